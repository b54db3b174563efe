// First module of every worker process: it stands between the host and the
// tenant's main module. It shares a realm with tenant code, so nothing it says is
// evidence for the host.
import { own, coded, fromBase64 } from "~edge:prelude";
import { KINDS, trust } from "~edge:bindings";
import { ENV } from "~edge:manifest";
import * as main from "~edge:main";

const user = main.default;
const isObject = user !== null && typeof user === "object";
const exportedHandlers = isObject
  ? ["fetch", "scheduled", "queue"].filter((name) => own.has(user, name) && typeof user[name] === "function")
  : [];

let pending = 0;
let environment = null;

const report = (during, error) => {
  own.logError(
    own.stringify({
      edge: during,
      name: String(error?.name ?? typeof error),
      message: String(error?.message ?? error),
      stack: error?.stack,
    }),
  );
};

// `env` holds exactly the declared names. Properties are defined, not assigned,
// because `__proto__` is a legal name.
const environmentOf = (raw) => {
  if (environment !== null) return environment;
  const made = {};
  for (const { name, from, kind } of ENV) {
    const value = kind === "value" ? raw[from] : KINDS[kind](raw[from], name);
    own.define(made, name, { value, enumerable: true, writable: true, configurable: true });
  }
  environment = made;
  return made;
};

// The context of one invocation. It is over when its handler has ended, its tasks have settled
// and nothing of it runs any more; a stream of its response still does. The runtime's own context
// cannot tell that, but a stream can be divided only by the invocation that made it.
const contextOf = (ctx) => {
  let mark = new own.IdentityTransformStream().readable;
  const running = () => {
    try {
      [mark] = mark.tee();
      return true;
    } catch {
      return false;
    }
  };
  let handling = true;
  let tasks = 0;
  const context = {
    waitUntil(task) {
      if (!handling && tasks === 0 && !running()) {
        throw coded("context_expired", "the invocation is over, and so are its tasks");
      }
      pending += 1;
      tasks += 1;
      ctx.waitUntil(
        (async () => {
          try {
            await task;
          } catch (error) {
            report("waitUntil", error);
          } finally {
            pending -= 1;
            tasks -= 1;
          }
        })(),
      );
    },
  };
  return { context, ended: () => (handling = false) };
};

// Runs a handler with a context that ends with it.
const handled = async (handler, argument, raw, ctx) => {
  const { context, ended } = contextOf(ctx);
  try {
    return await user[handler](argument, environmentOf(raw), context);
  } finally {
    ended();
  }
};

// Undoes the marker of a service call, so that the handler sees the body the
// caller had: none, empty, of known or of unknown length.
const withoutMarker = (request) => {
  const marker = request.headers.get("x-edge-body");
  if (marker === null) return request;
  const headers = new own.Headers(request.headers);
  headers.delete("x-edge-body");
  return new own.Request(request, marker === "absent" ? { headers, body: null } : { headers });
};

export default {
  async fetch(given, raw, ctx) {
    try {
      const request = withoutMarker(given);
      trust(request.body);
      const answer = await handled("fetch", request, raw, ctx);
      if (!(answer instanceof own.Response)) throw new own.TypeError("the fetch handler gave no Response");
      if (answer.body !== null || answer.webSocket) return answer;
      const marked = new own.Response(null, answer);
      marked.headers.set("x-edge-body", "absent");
      return marked;
    } catch (error) {
      report("fetch", error);
      return new own.Response("Internal Server Error", {
        status: 500,
        headers: { "content-type": "text/plain;charset=UTF-8" },
      });
    }
  },
};

// A message body is bytes, and also shows the encoded form of the interface.
const bodyOf = (encoded) => {
  const bytes = fromBase64(encoded.data);
  own.define(bytes, "encoding", { value: "base64" });
  own.define(bytes, "data", { value: encoded.data });
  return bytes;
};

// A settlement is durable when its promise resolves: the host writes it down at once. The
// answer repeats all of them, for those whose call to the host failed.
const recorder = (host, batchId) => async (settlements) => {
  let answer;
  try {
    answer = await host.fetch(`http://host/~settle/${batchId}`, {
      method: "POST",
      body: own.stringify({ settlements }),
    });
  } catch {
    throw coded("backend_unavailable", "the settlement was not recorded yet");
  }
  if (answer.status !== 200) throw coded("backend_unavailable", "the settlement was not recorded yet");
};

const batchOf = (document, settled, record) => {
  let open = true;
  const opened = () => {
    if (!open) throw coded("unknown_batch", "this batch is no longer being handled");
  };
  const settle = async (id, verdict) => {
    opened();
    if (!settled.has(id)) throw coded("unknown_message", "this batch has no such message");
    if (settled.get(id) !== null) throw coded("already_settled", "this message was settled before");
    settled.set(id, verdict);
    await record([{ id, ...verdict }]);
  };
  const settleRest = async (verdict) => {
    opened();
    const rest = [...settled].filter(([, before]) => before === null).map(([id]) => id);
    for (const id of rest) settled.set(id, verdict);
    if (rest.length > 0) await record(rest.map((id) => ({ id, ...verdict })));
  };
  const batch = {
    batchId: document.batchId,
    queue: document.queue,
    messages: document.messages.map(({ id, timestampMillis, attempts, body }) => ({
      id,
      timestampMillis,
      attempts,
      body: bodyOf(body),
    })),
    acknowledge: (id) => settle(id, { as: "ack" }),
    retry: (id, options) => settle(id, { as: "retry", delaySeconds: options?.delaySeconds }),
    acknowledgeAll: () => settleRest({ as: "ack" }),
    retryAll: (options) => settleRest({ as: "retry", delaySeconds: options?.delaySeconds }),
  };
  return { batch, close: () => (open = false) };
};

export const events = {
  async fetch(request, raw, ctx) {
    const path = new own.URL(request.url).pathname;
    if (path === "/exports") return own.json({ exportedHandlers, defaultIsObject: isObject });
    if (path === "/pending") return own.json({ pending });
    const document = await request.json();
    if (path === "/scheduled") {
      try {
        const { cron, scheduledTime } = document;
        await handled("scheduled", { cron, scheduledTime }, raw, ctx);
      } catch (error) {
        report("scheduled", error);
        return own.json({ outcome: "threw" });
      }
      return own.json({ outcome: "returned" });
    }
    if (path === "/queue") {
      const settled = new own.Map(document.messages.map((message) => [message.id, null]));
      const { batch, close } = batchOf(document, settled, recorder(raw.d, document.batchId));
      let outcome = "returned";
      try {
        await handled("queue", batch, raw, ctx);
      } catch (error) {
        report("queue", error);
        outcome = "threw";
      }
      close();
      const settlements = [...settled].filter(([, how]) => how !== null).map(([id, how]) => ({ id, ...how }));
      return own.json({ outcome, settlements });
    }
    return new own.Response(null, { status: 404 });
  },
};
