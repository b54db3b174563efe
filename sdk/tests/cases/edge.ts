import { secret } from "@notation/core";
import { Worker } from "@notation/edge";
import type { Handlers, Service } from "@notation/edge";

const api = new Worker({ id: "api", config: { main: "src/api.ts" } });
const auth = new Worker({
  id: "auth",
  protect: true,
  placeholder: "never",
  formerly: ["login"],
  config: {
    main: "src/auth.ts",
    endpoint: false,
    vars: { PEER: api.ScriptName, TEXT: `https://${api.url}/x` },
    secrets: { KEY: secret("KEY") },
    bindings: [{ name: "API", service: api.ScriptName }],
  },
});
new Worker({ config: { ScriptName: "by-hand", main: "src/api.ts" } });

api.bind("AUTH", auth).dependOn(auth).contribute({ bindings: { name: "X", service: auth.ScriptName } });
api.contribute({ bindings: [{ name: "Y", service: auth.ScriptName }], vars: { A: "1" } });

const text: string = api.url;

// error: 'mian' does not exist
new Worker({ id: "a", config: { main: "src/a.ts", mian: "src/a.ts" } });
// error: Property 'main' is missing
new Worker({ id: "b", config: {} });
// error: Property 'config' is missing
new Worker({ id: "c" });
// error: Type 'number' is not assignable to type 'string'
new Worker({ id: "d", config: { main: 5 } });
// error: Type 'string' is not assignable to type 'boolean | undefined'
new Worker({ id: "e", config: { main: "src/a.ts", endpoint: "no" } });
// error: Type '"always"' is not assignable to type '"never"'
new Worker({ id: "f", placeholder: "always", config: { main: "src/a.ts" } });
// error: 'binding' does not exist
api.contribute({ binding: [] });
// error: Type '{ name: string; }' is not assignable to type 'readonly ServiceBinding[] | ServiceBinding
api.contribute({ bindings: { name: "Z" } });
// error: Type 'Worker' is not assignable to type 'string'
new Worker({ id: "g", config: { main: "src/a.ts", vars: { PEER: auth } } });
// error: Property 'adress' does not exist
export const address = api.adress;
// error: not assignable to parameter of type 'Worker'
api.bind("AUTH", "auth");
// error: not assignable to parameter of type 'string'
api.bind(auth, "AUTH");
// error: Expected 2 arguments, but got 1
api.bind("AUTH");
// error: not assignable to parameter of type 'Worker'
api.bind("AUTH", auth.ScriptName);
// error: 'servise' does not exist
api.contribute({ bindings: [{ name: "X", servise: auth.ScriptName }] });
// error: Type 'number' is not assignable to type 'string'
api.contribute({ vars: { A: 1 } });
// error: not assignable to type 'string'
new Worker({ id: "h", config: { main: "src/a.ts", secrets: { KEY: auth } } });
// error: Argument of type 'string' is not assignable to parameter of type 'Resource<never>'
api.dependOn("auth");
// error: Type 'Ref<string>' is not assignable to type 'boolean | undefined'
new Worker({ id: "i", config: { main: "src/a.ts", endpoint: api.url } });
// error: has no exported member
import { Wroker } from "@notation/edge";
// error: Cannot assign to 'url' because it is a read-only property
api.url = text as typeof api.url;

export const handlers = {
  async fetch(request, env) {
    return env.AUTH.fetch(request);
  },
  async scheduled(event) {
    const at: number = event.scheduledTime;
    return void at;
  },
} satisfies Handlers<{ AUTH: Service }>;

export const wrong = {
  // error: is not assignable to type
  fetch() {
    return "a text";
  },
} satisfies Handlers;
