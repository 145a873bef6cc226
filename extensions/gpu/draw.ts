// Random elements: element k depends on the seed and k only, as in workbench/page/drawing.py.
import { DRAW_WORDS, type GpuDraw } from "../core/protocol";

/** The number of elements that are drawn at a time. */
const PART = 1 << 20;

/** Return a well-mixed word of a word. */
export function mixed(word: number): number {
  let h = word;
  h ^= h >>> 16;
  h = Math.imul(h, DRAW_WORDS[1]);
  h ^= h >>> 13;
  h = Math.imul(h, DRAW_WORDS[2]);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Yield the elements in parts, each with the index of its first element. */
export function* drawn({ count, dtype, seed, low, high }: GpuDraw): Generator<readonly [first: number, part: Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer>]> {
  const start = mixed(seed);
  for (let first = 0; first < count; first += PART) {
    const size = Math.min(PART, count - first);
    const part = dtype === "f32" ? new Float32Array(size) : new Int32Array(size);
    for (let k = 0; k < size; k++) {
      const word = mixed(start ^ Math.imul(first + k + 1, DRAW_WORDS[0]));
      part[k] = dtype === "f32" ? (word >>> 8) / 0x800000 - 1 : low + (word % (high - low));
    }
    yield [first, part];
  }
}
