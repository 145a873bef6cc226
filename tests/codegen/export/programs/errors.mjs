// node errors.mjs DIRECTORY CASES: makes invalid calls, and prints their codes and messages as JSON.
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const { load, ModelError } = await import(pathToFileURL(`${process.argv[2]}/errors.mjs`));
const cases = JSON.parse(await readFile(process.argv[3], "utf8"));
const ARRAYS = { float32: Float32Array, float64: Float64Array, int64: BigInt64Array };

function values(call) {
  const made = [];
  for (const argument of call.arguments) {
    if (typeof argument === "number") made.push(argument);
    else if ("same" in argument) made.push(made[argument.same]);
    else {
      const data = argument.dtype === "int64" ? argument.data.map(BigInt) : argument.data;
      made.push({ data: ARRAYS[argument.dtype].from(data), shape: argument.shape });
    }
  }
  return made;
}

const model = await load();
const messages = {};
for (const [name, call] of Object.entries(cases)) {
  try {
    model[call.function](...values(call));
    messages[name] = [0, ""];
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    messages[name] = [error.code, error.message];
  }
}
console.log(JSON.stringify(messages));
