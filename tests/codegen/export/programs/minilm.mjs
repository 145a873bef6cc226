// minilm.mjs DIRECTORY OUT REPEATS (BATCH LENGTH)...: as minilm.c, in JavaScript.
import { closeSync, openSync, writeSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [directory, path, repeats, ...numbers] = process.argv.slice(2);
const { load } = await import(pathToFileURL(`${directory}/minilm.mjs`));
const model = await load();
const out = openSync(path, "w");
let given;
for (let a = 0; a < numbers.length; a += 2) {
  const shape = [Number(numbers[a]), Number(numbers[a + 1])];
  const ids = new BigInt64Array(shape[0] * shape[1]);
  const mask = new BigInt64Array(ids.length);
  for (let k = 0; k < ids.length; k++) {
    ids[k] = BigInt(1000 + ((k * 7919) % 29000));
    mask[k] = BigInt(k % shape[1] < shape[1] - Math.floor(k / shape[1]));
  }
  given = [{ data: ids, shape }, { data: mask, shape }];
  for (const { data } of model.main(...given)) writeSync(out, data);
}
closeSync(out);
const begin = performance.now();
for (let k = 0; k < Number(repeats); k++) model.main(...given);
if (Number(repeats)) console.log(((performance.now() - begin) * 1e3) / Number(repeats));
