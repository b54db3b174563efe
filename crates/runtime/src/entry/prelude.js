// Copies of the globals that the host's own modules use. The entry imports this
// module first, so the copies are made before tenant code can replace anything.
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export const own = Object.freeze({
  define: Object.defineProperty,
  has: Object.hasOwn,
  keys: Object.keys,
  stringify: JSON.stringify,
  parse: JSON.parse,
  encodeName: encodeURIComponent,
  isView: ArrayBuffer.isView,
  isArray: Array.isArray,
  fromCharCode: String.fromCharCode,
  btoa: btoa.bind(globalThis),
  atob: atob.bind(globalThis),
  anySignal: AbortSignal.any.bind(AbortSignal),
  json: Response.json.bind(Response),
  logError: console.error.bind(console),
  maxInteger: Number.MAX_SAFE_INTEGER,
  abs: Math.abs,
  infinity: Infinity,
  Array,
  AbortController,
  ArrayBuffer,
  Error,
  Headers,
  IdentityTransformStream,
  Map,
  ReadableStream,
  Request,
  Response,
  String,
  TypeError,
  Uint8Array,
  URL,
  WeakSet,
  toUtf8: (text) => encoder.encode(text),
  fromUtf8: (bytes) => decoder.decode(bytes),
});

// An error whose `name` is the code of the interface.
export const coded = (code, message) =>
  own.define(new own.Error(message ?? code), "name", { value: code, writable: true, configurable: true });

export const toBase64 = (bytes) => {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x4000) {
    text += own.fromCharCode(...bytes.subarray(at, at + 0x4000));
  }
  return own.btoa(text);
};

export const fromBase64 = (text) => own.Uint8Array.from(own.atob(text), (char) => char.charCodeAt(0));
