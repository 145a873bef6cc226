// node loops.mjs DIRECTORY: calls functions with loops, prints their results and states as JSON.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const ARRAYS = { f: Float32Array, i: BigInt64Array, b: Uint8Array };
const { load } = await import(pathToFileURL(`${process.argv[2]}/loops.mjs`));
const model = await load();
const state = model.newState({ n: 3 });
const tensor = ({ kind, shape, data }) => {
  const values = kind === "i" ? data.map(BigInt) : data;
  return { data: ARRAYS[kind].from(values), shape, ...(kind === "b" ? { dtype: "bool" } : {}) };
};
const plain = ({ data, shape }) => ({ shape, data: [...data].map(Number) });
const calls = JSON.parse(readFileSync(`${process.argv[2]}/calls.json`, "utf8"));
const found = calls.map(({ name, args, held }) => {
  const own = held === null ? [] : [state];
  const results = [model[name](...args.map(tensor), ...own)].flat().map(plain);
  return held === null ? results : [...results, plain(state.get(held))];
});
console.log(JSON.stringify(found));
state.free();
model.close();
