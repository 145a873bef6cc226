// The interface on real sessions; tests/workbench/test_recorded.py records them and runs this.
import { readdirSync } from "node:fs";
import { defineConfig } from "vitest/config";

const folder = process.env.RECORDED;
if (!folder) throw new Error("RECORDED is the folder of recorded sessions");
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
