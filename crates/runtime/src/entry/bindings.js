// What each kind of binding looks like to tenant code. Every operation is one
// request to the host; the host checks everything again on its side.
import { own, coded, toBase64, fromBase64 } from "~edge:prelude";

// Streams the runtime received itself report a broken transfer by themselves.
// Any other stream that fails midway would reach the wire as a clean end of body,
// so it goes through a pipe, and its failure aborts the whole exchange.
const received = new own.WeakSet();

export const trust = (stream) => {
  if (stream) received.add(stream);
};

// The transport knows the length of these, and breaks the exchange when they fall short.
const measured = new own.WeakSet();
const Measured = globalThis.FixedLengthStream;
globalThis.FixedLengthStream = class FixedLengthStream extends Measured {
  constructor(...given) {
    super(...given);
    measured.add(this.readable);
    received.add(this.readable);
  }
};

const guarded = (stream, exchange) => {
  if (received.has(stream)) return stream;
  const pipe = new own.IdentityTransformStream();
  carry(stream.getReader(), pipe.writable.getWriter(), exchange);
  return pipe.readable;
};

// Written by hand, since the runtime cannot pipe one of its own streams into another, and
// since only a source that fails may break the exchange: a receiver that has read enough
// still answers.
const carry = async (reader, writer, exchange) => {
  for (;;) {
    let next;
    try {
      next = await reader.read();
      if (!next.done && !own.isView(next.value) && !(next.value instanceof own.ArrayBuffer)) {
        throw new own.TypeError("a stream of a body gives bytes");
      }
    } catch (reason) {
      exchange.abort(reason);
      return;
    }
    try {
      if (next.done) return await writer.close();
      await writer.write(next.value);
    } catch (reason) {
      reader.cancel(reason).catch(() => {});
      return;
    }
  }
};

// A body whose stream failed on the way; why is kept as its cause.
const undelivered = (code, reason) =>
  own.define(coded(code, `the stream of the body failed: ${reason?.message ?? reason}`), "cause", {
    value: reason,
    writable: true,
    configurable: true,
  });

const bytesOf = (value, code) => {
  if (typeof value === "string") return own.toUtf8(value);
  if (value instanceof own.ArrayBuffer) return new own.Uint8Array(value);
  if (own.isView(value)) return new own.Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  throw coded(code, "a string, an ArrayBuffer or a typed array is expected here");
};

const LONGEST_KEY = 979;
const LONGEST_METADATA = 1024;
const LONGEST_TYPE = 256;

// JSON would turn NaN and the infinities into null, which means "not given"; as a text they
// are of the wrong type, and the host refuses them with the code of the operation.
const exact = (name, value) =>
  typeof value === "bigint" || (typeof value === "number" && !(own.abs(value) < own.infinity))
    ? own.String(value)
    : value;
const written = (document) => own.stringify(document, exact);

// The operation document is the JSON body; when the operation carries bytes, the
// body is the bytes and the document travels in a header.
async function operate(fetcher, binding, operation, document, bytes) {
  const headers = new own.Headers();
  const exchange = new own.AbortController();
  let body;
  if (bytes === undefined) {
    headers.set("content-type", "application/json");
    body = written(document);
  } else {
    // No key of any interface is longer; a header would not hold what is far too long.
    if (typeof document.key === "string" && document.key.length > LONGEST_KEY) {
      throw coded("invalid_key", "the key is too long");
    }
    headers.set("x-edge-doc", toBase64(own.toUtf8(written(document))));
    try {
      body = bytes instanceof own.ReadableStream ? guarded(bytes, exchange) : bytes;
    } catch (reason) {
      throw undelivered("invalid_body", reason);
    }
  }
  let answer;
  try {
    answer = await fetcher.fetch(`http://host/${own.encodeName(binding)}/${operation}`, {
      method: "POST",
      headers,
      body,
      signal: exchange.signal,
    });
  } catch (reason) {
    if (exchange.signal.aborted) throw undelivered("invalid_body", exchange.signal.reason);
    if (measured.has(bytes)) throw undelivered("invalid_body", reason);
    throw coded("backend_unavailable", "the data service did not answer");
  }
  if (answer.status === 200) return answer;
  let refusal = null;
  try {
    refusal = await answer.json();
  } catch {
    // An answer without a document is a broken transport.
  }
  throw coded(refusal?.code ?? "backend_unavailable", refusal?.message);
}

const asJson = async (...call) => (await operate(...call)).json();
const asNothing = async (...call) => {
  await (await operate(...call)).arrayBuffer();
};
const headDocument = (answer) => own.parse(own.fromUtf8(fromBase64(answer.headers.get("x-edge-doc"))));
const nullWhenAbsent = async (work) => {
  try {
    return await work;
  } catch (error) {
    if (error?.name === "not_found") return null;
    throw error;
  }
};

const kv = (fetcher, name) => ({
  get: (key) => nullWhenAbsent(operate(fetcher, name, "get", { key }).then((answer) => answer.arrayBuffer())),
  getWithMetadata: (key) =>
    nullWhenAbsent(
      operate(fetcher, name, "getWithMetadata", { key }).then(async (answer) => ({
        value: await answer.arrayBuffer(),
        ...headDocument(answer),
      })),
    ),
  put: async (key, value, options) => {
    if ((own.stringify(options?.metadata) ?? "").length > LONGEST_METADATA) {
      throw coded("metadata_too_large", "metadata has at most 1024 bytes as JSON");
    }
    return asNothing(fetcher, name, "put", { ...options, key }, bytesOf(value, "invalid_value"));
  },
  delete: (key) => asNothing(fetcher, name, "delete", { key }),
  list: (options) => asJson(fetcher, name, "list", { ...options }),
});

const objects = (fetcher, name) => {
  const source = (body) => (body instanceof own.ReadableStream ? body : bytesOf(body, "invalid_body"));
  return {
    head: (key) => nullWhenAbsent(asJson(fetcher, name, "head", { key })),
    get: (key, options) =>
      nullWhenAbsent(
        operate(fetcher, name, "get", { ...options, key }).then((answer) => {
          trust(answer.body);
          return { ...headDocument(answer), body: answer.body };
        }),
      ),
    put: async (key, body, options) => {
      if (options?.contentType?.length > LONGEST_TYPE) throw coded("invalid_body", "the content type is too long");
      return asJson(fetcher, name, "put", { ...options, key }, source(body));
    },
    delete: (key) => asNothing(fetcher, name, "delete", { key }),
    list: (options) => asJson(fetcher, name, "list", { ...options }),
    createMultipartUpload: (key, options) => asJson(fetcher, name, "createMultipartUpload", { ...options, key }),
    uploadPart: async (key, uploadId, partNumber, body) =>
      asJson(fetcher, name, "uploadPart", { key, uploadId, partNumber }, source(body)),
    completeMultipartUpload: (key, uploadId, parts) =>
      asJson(fetcher, name, "completeMultipartUpload", { key, uploadId, parts }),
    abortMultipartUpload: (key, uploadId) => asNothing(fetcher, name, "abortMultipartUpload", { key, uploadId }),
  };
};

const sql = (fetcher, name) => {
  // Values that JSON would change on the way (undefined, dates, whatever brings a `toJSON`)
  // are refused before they are written.
  const parameter = (value) => {
    if (value === null || typeof value === "string") return value;
    if (typeof value === "number") {
      if (own.abs(value) <= own.maxInteger) return value;
      throw coded("numeric_out_of_range", "a parameter is outside the range of exact numbers");
    }
    if (value?.encoding === "base64" && typeof value.data === "string" && own.keys(value).length === 2) {
      return { encoding: "base64", data: value.data };
    }
    throw coded("sql_error", "a parameter is null, a number, a string or encoded bytes");
  };
  const list = (value, what) => {
    if (own.isArray(value)) return value;
    throw coded("sql_error", `${what} are given as an array`);
  };
  const statement = (text, params) => ({
    sql: text,
    params: own.Array.from(list(params ?? [], "parameters"), parameter),
  });
  return {
    execute: async (text, params) => asJson(fetcher, name, "execute", statement(text, params)),
    query: async (text, params) => asJson(fetcher, name, "query", statement(text, params)),
    transaction: async (statements) =>
      asJson(fetcher, name, "transaction", {
        statements: list(statements, "statements").map((each) => statement(each?.sql, each?.params)),
      }),
  };
};

const queue = (fetcher, name) => {
  const encoded = (body) => ({ encoding: "base64", data: toBase64(bytesOf(body, "invalid_body")) });
  return {
    send: async (body, options) =>
      (await asJson(fetcher, name, "send", { ...options, body: encoded(body) })).messageId,
    sendBatch: async (messages) =>
      (
        await asJson(fetcher, name, "sendBatch", {
          messages: [...messages].map((message) => ({ ...message, body: encoded(message.body) })),
        })
      ).messageIds,
  };
};

const service = (fetcher) => ({
  async fetch(input, init) {
    const given = init?.body ?? input?.body;
    const call = new own.Request(input, init);
    if (given instanceof own.ReadableStream && received.has(given)) trust(call.body);
    const headers = new own.Headers(call.headers);
    // "No body" and "empty body" look alike on the wire; this header tells them apart.
    headers.set("x-edge-body", call.body === null ? "absent" : "present");
    const exchange = new own.AbortController();
    const changes = { headers, signal: own.anySignal([call.signal, exchange.signal]) };
    if (call.body !== null && given instanceof own.ReadableStream) changes.body = guarded(call.body, exchange);
    let answer;
    try {
      answer = await fetcher.fetch(new own.Request(call, changes));
    } catch (reason) {
      if (exchange.signal.aborted) throw undelivered("request_aborted", exchange.signal.reason);
      if (call.signal.aborted) throw reason;
      throw coded("backend_unavailable", "the call did not reach the other worker");
    }
    const refused = answer.headers.get("x-edge-error");
    if (refused) throw coded(refused);
    trust(answer.body);
    if (answer.headers.get("x-edge-body") !== "absent") return answer;
    const rest = new own.Headers(answer.headers);
    rest.delete("x-edge-body");
    return new own.Response(null, { status: answer.status, statusText: answer.statusText, headers: rest });
  },
});

export const KINDS = {
  "edge.kv": kv,
  "edge.objects": objects,
  "edge.sql": sql,
  "edge.queue": queue,
  "worker.service": service,
};
