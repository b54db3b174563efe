// Calls whatever binding method the request names. Bytes travel as {"$b64": "..."}.
const b64 = (bytes) => btoa(String.fromCharCode(...bytes));
const measured = (text, length, identity) => {
  const { readable, writable } = identity ? new IdentityTransformStream() : new FixedLengthStream(length);
  const writer = writable.getWriter();
  writer.write(new TextEncoder().encode(text)).then(() => writer.close()).catch(() => {});
  return readable;
};
const into = (v) =>
  v === null || typeof v !== "object" ? v
  : Array.isArray(v) ? v.map(into)
  : "$b64" in v ? Uint8Array.from(atob(v.$b64), (c) => c.charCodeAt(0))
  : "$nan" in v ? NaN
  : "$date" in v ? new Date(v.$date)
  : "$big" in v ? 1n
  : "$measured" in v ? measured(v.$measured, v.length, v.identity)
  : "$stream" in v ? new ReadableStream({
      start(c) { for (const text of v.$stream) c.enqueue(new TextEncoder().encode(text)); if (!v.fail) c.close(); },
      pull(c) { c.error(new Error("the source failed")); } })
  : Object.fromEntries(Object.entries(v).map(([name, value]) => [name, into(value)]));
const outof = async (v) =>
  v instanceof ArrayBuffer ? { $b64: b64(new Uint8Array(v)) }
  : v instanceof ReadableStream ? { $b64: b64(new Uint8Array(await new Response(v).arrayBuffer())) }
  : v === undefined ? { $undefined: true }
  : v === null || typeof v !== "object" ? v
  : Array.isArray(v) ? Promise.all(v.map(outof))
  : Object.fromEntries(await Promise.all(Object.entries(v).map(async ([name, value]) => [name, await outof(value)])));
export default {
  async fetch(request, env) {
    const { binding, method, args } = await request.json();
    try {
      return Response.json({ value: await outof(await env[binding][method](...into(args))) });
    } catch (error) {
      return Response.json({ error: error.name, message: error.message, isError: error instanceof Error });
    }
  },
};
