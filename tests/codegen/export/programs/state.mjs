// node state.mjs DIRECTORY: calls a model with a state twice, prints its results and the state.
import { pathToFileURL } from "node:url";

const { load } = await import(pathToFileURL(`${process.argv[2]}/counter.mjs`));
const model = await load();
const state = model.newState({ cache: { data: new Float32Array(8).fill(10), shape: [8] } });
const results = [100, 7].map((value) => {
  const [y] = [model.main({ data: new Float32Array(8).fill(value), shape: [8] }, state)].flat();
  return [...y.data];
});
console.log(JSON.stringify({ results, cache: [...state.get("cache").data] }));
state.free();
model.close();
