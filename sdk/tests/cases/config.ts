import { defineConfig } from "@notation/core";

const name: string = "computed";

export const every = defineConfig({
  app: "orders-app",
  entries: { orders: "infra/orders.ts", jobs: "infra/jobs.ts" },
  runtimeModules: ["src/**/*.fn.ts"],
  defaultStage: "dev",
  state: "sqlite:state.db",
});
export const computed = defineConfig({ app: name, entries: { [name]: "infra/app.ts" }, defaultStage: name });

// error: 'entry' does not exist
export const unknown = defineConfig({ app: "a", entries: { a: "a.ts" }, entry: {} });
// error: Property 'entries' is missing
export const missing = defineConfig({ app: "a" });
// error: Type 'number' is not assignable to type 'string'
export const number = defineConfig({ app: "a", entries: { a: 5 } });
