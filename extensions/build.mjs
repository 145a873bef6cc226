// Builds the notebook widget into workbench/static/ and, with --dev, the page that displays
// recorded data (dev/) into dist/.
import { build } from "esbuild";
import { cpSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
/** The largest sizes of the minified files in bytes. */
const LIMITS = { "widget.js": 600_000, "widget.css": 60_000, "gpu.js": 40_000 };
const common = {
  bundle: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  logLevel: "warning",
  absWorkingDir: here,
  // Parts of D3 for animations and colors, 30 kB, which the workbench does not use.
  alias: {
    "d3-interpolate": "./core/d3/interpolate.ts",
    "d3-transition": "./core/d3/transition.ts",
  },
};

const out = join(here, "..", "workbench", "static");
mkdirSync(out, { recursive: true });
await build({ ...common, minify: true, entryPoints: ["widget/widget.ts"], outdir: out });
// A page loads this module when it runs kernels on its GPU for the first time.
await build({ ...common, minify: true, entryPoints: { gpu: "gpu/open.ts" }, outdir: out });
for (const [name, limit] of Object.entries(LIMITS)) {
  const { size } = statSync(join(out, name));
  if (size > limit) throw new Error(`${name} has ${size} bytes; the limit is ${limit}`);
  console.log(`workbench/static/${name}: ${size} bytes`);
}

if (process.argv.includes("--dev")) {
  const dist = join(here, "dist");
  await build({ ...common, sourcemap: true, entryPoints: ["dev/main.ts"], outdir: dist });
  cpSync(join(here, "dev", "index.html"), join(dist, "index.html"));
  console.log(`dist: ${readFileSync(join(dist, "main.js")).length} bytes`);
}
