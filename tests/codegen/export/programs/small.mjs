// node small.mjs DIRECTORY: calls the small model, prints its results and its refusals as JSON.
import { pathToFileURL } from "node:url";

const { load, ModelError } = await import(pathToFileURL(`${process.argv[2]}/small.mjs`));

function filled(shape, seed) {
  const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
  for (let k = 0; k < data.length; k++) data[k] = (((k * 37 + seed * 11) % 41) - 20) / 8;
  return { data, shape };
}

function refusal(run) {
  try {
    run();
    return "nothing";
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    return `${error.code} ${error.message}`;
  }
}

const model = await load();
const results = [1, 7, 64, 0].map((n) =>
  model.main(filled([n, 24], 1), filled([n, 40], 2)).map(({ data, shape }) => ({ shape, data: [...data] })),
);
const total = { data: new Float32Array([1, 2]), shape: [2] };
const written = model.accumulate({ data: new Float32Array([5, 6]), shape: [2] }, total);
const x = filled([3, 24], 1);
const y = filled([3, 40], 2);
for (let k = 0; k < 2000; k++) model.main(x, y); // memory does not grow
const before = model.main(x, y)[0].data[0];
const refusals = {
  shape: refusal(() => model.main(x, filled([2, 40], 2))),
  dtype: refusal(() => model.main({ data: new Float64Array(72), shape: [3, 24] }, y)),
  rank: refusal(() => model.main({ data: x.data, shape: [72] }, y)),
  data: refusal(() => model.main({ data: x.data, shape: [3, 23] }, y)),
  sizes: refusal(() => model.main({ data: x.data, shape: [1.5, 48] }, y)),
  minus: refusal(() => model.main({ data: x.data, shape: [-3, -24] }, y)),
  alias: refusal(() => model.accumulate(total, { data: total.data.subarray(1), shape: [1] })),
  count: refusal(() => model.main(x)),
  fact: refusal(() => model.main(filled([65, 24], 1), filled([65, 40], 1))),
};
model.trim();
model.close();
refusals.trim = refusal(() => model.trim());
refusals.closed = refusal(() => model.main(x, y));
const { readFile } = await import("node:fs/promises");
const wasm = await readFile(`${process.argv[2]}/small.wasm`);
const weights = new Uint8Array(await readFile(`${process.argv[2]}/small.safetensors`));
const altered = weights.slice();
altered[altered.length - 1] ^= 1;
(await load({ wasm, weights: altered, trust: true })).close();
const spoilt = { truncated: weights.slice(0, 99), empty: new Uint8Array(0), altered };
for (const [name, bytes] of Object.entries(spoilt)) {
  try {
    await load({ wasm, weights: bytes });
  } catch (error) {
    refusals[name] = `${error.code} ${error.message}`;
  }
}
refusals.module = await load({ wasm: new Uint8Array(8), weights }).catch(
  (error) => `${error.code} ${error.message}`,
);
console.log(JSON.stringify({ results, total: [...total.data], same: written === total, before, refusals }));
