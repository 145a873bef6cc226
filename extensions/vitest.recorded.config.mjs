// Configuration of the tests on recorded sessions; tests/workbench/test_recorded.py runs them.
import { readdirSync } from "node:fs";
import { defineConfig } from "vitest/config";

const folder = process.env.RECORDED;
if (!folder) throw new Error("RECORDED must be the folder of the recorded sessions");
const names = readdirSync(folder).filter((name) => name.endsWith(".json"));

export default defineConfig({
  test: {
    environment: "jsdom",
    include: ["recorded/**/*.test.ts"],
    testTimeout: 120_000,
    provide: { folder, names, sent: process.env.SENT },
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
});
