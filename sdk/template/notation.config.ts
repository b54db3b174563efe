import { defineConfig } from "@notation/core";

export default defineConfig({
  app: "my-app",
  entries: { app: "infra/app.ts" },
  defaultStage: "dev",
});
