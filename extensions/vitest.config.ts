import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { environment: "jsdom", include: ["test/**/*.test.{ts,tsx}"] },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
});
