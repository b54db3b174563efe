import { defineConfig } from "@notation/core";

export default defineConfig({
  app: "pair",
  entries: { pair: "infra/app.ts" },
  defaultStage: "dev",
});
