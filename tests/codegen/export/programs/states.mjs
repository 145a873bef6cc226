// node states.mjs DIRECTORY: calls a model with state, prints states, results and refusals as JSON.
import { pathToFileURL } from "node:url";

const { load, ModelError } = await import(pathToFileURL(`${process.argv[2]}/sized.mjs`));

function refusal(run) {
  try {
    run();
    return "nothing";
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    return `${error.code} ${error.message}`;
  }
}

function ones(shape, value = 1) {
  return { data: new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(value), shape };
}

const model = await load();
const state = model.newState({ b: 2, n: 3 });
const other = model.newState({ seen: ones([1, 3]), n: 1 });
const x = { data: Float32Array.from([0, 1, 2, 3, 4, 5]), shape: [2, 3] };
const list = ({ data }) => [...data];
const shapes = ["seen", "count"].map((name) => state.get(name).shape);
const first = list(model.main(x, state));
const second = list(model.main(x, state));
const third = list(model.main(ones([1, 1], 9), other));
const seen = list(other.get("seen"));
const peeks = [list(model.peek(state)), list(model.peek(other))];
state.set("count", 1);
const set = list(model.peek(state));
state.set("count", ones([2], 4));
const copied = list(model.peek(state));
const copy = state.get("count");
copy.data.fill(100); // a copy, not the memory
const kept = list(state.get("count"));
state.reset();
const reset = [list(state.get("count")), list(state.get("seen")).every((v) => v === 0)];
for (let k = 0; k < 300; k++) model.newState({ b: 1, n: 3 }).free(); // memory is used again
const many = model.newState({ b: 1, n: 40000 }); // the memory of the module grows
const after = list(model.peek(state));
many.free();
const foreign = (await load()).newState({ b: 2, n: 3 });
const refusals = {
  missing: refusal(() => model.main(x)),
  kind: refusal(() => model.main(x, 3)),
  size: refusal(() => model.main(ones([1, 3]), state)),
  unknown: refusal(() => model.newState({ k: 1 })),
  negative: refusal(() => model.newState({ b: -1, n: 1 })),
  large: refusal(() => model.newState({ b: 2 ** 31 - 1, n: 2 ** 31 - 1 })),
  memory: refusal(() => model.newState({ b: 2 ** 20, n: 2 ** 20 })),
  name: refusal(() => state.get("none")),
  shape: refusal(() => state.set("seen", ones([5]))),
  dtype: refusal(() => state.set("seen", { data: new Float64Array(14), shape: [2, 7] })),
  foreign: refusal(() => model.main(x, foreign)),
};
other.free();
other.free();
refusals.freed = refusal(() => model.main(ones([1, 1]), other));
const works = list(model.main(x, state));
model.close();
refusals.closed = refusal(() => state.reset());
state.free();
console.log(JSON.stringify({
  shapes, first, second, third, seen, peeks, set, copied, kept, reset, after, works, refusals,
}));
