// Run an exported model in JavaScript: node, browsers, and what else has WebAssembly with SIMD.
//
//   import { load } from "./@NAME@.mjs";
//   const model = await load();                      // node: the files beside this one
//   const model = await load({ wasm, weights });     // anywhere: bytes that you fetched
//   const model = await load({ trust: true });       // without the sha256 of the weights
//   const { data, shape } = model.main({ data: new Float32Array(6), shape: [2, 3] });
//
// Arguments are { data, shape } with a typed array of the parameter's dtype, or integers. Several
// results come as an array. Parameters that a function writes are written in place.

const NAME = "@NAME@";
const ABI = 1;
const FUNCTIONS = @FUNCTIONS@;
const TENSOR = 56;
const ERROR = 512;
const TRUST_WEIGHTS = 1;

const ARRAYS = {
  f32: Float32Array, f64: Float64Array, i8: Int8Array, i16: Int16Array, i32: Int32Array,
  i64: BigInt64Array, u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, u64: BigUint64Array,
  bool: Uint8Array, f16: Uint16Array, bf16: Uint16Array,
};
const CODES = { i: 0, u: 1, f: 2, b: 6 };

/** The files are not those that were exported, or a call was refused; `code` says why. */
export class ModelError extends Error {
  constructor(message, code = 0) {
    super(message);
    this.name = "ModelError";
    this.code = code;
  }
}

/** Open the model. `wasm` and `weights` are bytes; without them, node reads the files. The sha256
 * of the weights is compared unless you `trust` them. */
export async function load({ wasm, weights, trust = false } = {}) {
  if (wasm === undefined || weights === undefined) {
    const { readFile } = await import("node:fs/promises");
    wasm ??= await readFile(new URL(`./${NAME}.wasm`, import.meta.url));
    weights ??= await readFile(new URL(`./${NAME}.safetensors`, import.meta.url));
  }
  const { instance } = await WebAssembly.instantiate(wasm, {}).catch((error) => {
    throw new ModelError(`the module cannot be run: ${error.message}`);
  });
  return new Model(instance.exports, new Uint8Array(weights), trust ? TRUST_WEIGHTS : 0);
}

function integer(param, given) {
  const value = typeof given === "bigint" ? given : Number.isSafeInteger(given) ? BigInt(given) : null;
  if (value === null || value !== BigInt.asIntN(64, value)) {
    throw new ModelError(`parameter '${param.name}': expected an integer of 64 bits`, 1);
  }
  return value;
}

/** What is written shares no memory with another argument; here each has a copy, which hides it. */
function refuseAliases(params, given) {
  const views = given.map((argument) => argument?.data).map((d) => (ArrayBuffer.isView(d) ? d : null));
  params.forEach((param, k) => {
    if (param.access === "in" || views[k] === null) return;
    const end = views[k].byteOffset + views[k].byteLength;
    views.forEach((other, j) => {
      if (j === k || other === null || other.buffer !== views[k].buffer) return;
      if (other.byteOffset >= end || views[k].byteOffset >= other.byteOffset + other.byteLength) return;
      throw new ModelError(`parameter '${param.name}' is written and shares memory with '${params[j].name}'`, 8);
    });
  });
}

class Model {
  #native;
  #model = 0;
  #weights = 0;

  constructor(native, weights, flags) {
    this.#native = native;
    if (this.#call("abi_version") !== ABI) throw new ModelError("the module is of another version");
    this.#weights = this.#alloc(Math.max(weights.byteLength, 1));
    new Uint8Array(native.memory.buffer, this.#weights, weights.byteLength).set(weights);
    const place = this.#alloc(8);
    try {
      const bytes = weights.byteLength;
      this.#checked((error) => this.#call("start", this.#weights, bytes, flags, place, error));
      this.#model = new DataView(native.memory.buffer).getUint32(place, true);
    } catch (error) {
      this.#call("free", this.#weights);
      throw error;
    } finally {
      this.#call("free", place);
    }
    for (const facts of FUNCTIONS) this[facts.name] = (...given) => this.#run(facts, given);
  }

  /** Free the model's memory. */
  close() {
    this.#call("close", this.#model);
    this.#call("free", this.#weights);
    this.#model = this.#weights = 0;
  }

  #call(name, ...words) {
    return this.#native[`${NAME}_${name}`](...words);
  }

  #alloc(bytes) {
    const place = this.#call("alloc", bytes) >>> 0;
    if (place === 0) throw new ModelError(`no memory for ${bytes} bytes`, 12);
    return place;
  }

  #checked(run) {
    const error = this.#alloc(ERROR);
    try {
      const code = run(error);
      if (code === 0) return;
      const bytes = new Uint8Array(this.#native.memory.buffer, error + 8, ERROR - 8);
      const text = new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
      throw new ModelError(text || `error ${code}`, code);
    } finally {
      this.#call("free", error);
    }
  }

  #run(facts, given) {
    if (this.#model === 0) throw new ModelError("the model is closed", 14);
    if (given.length !== facts.params.length) {
      const names = facts.params.map((p) => `${p.name}: ${p.annotation}`).join(", ");
      throw new ModelError(`${facts.name}(${names}): got ${given.length} arguments`);
    }
    const made = facts.results.filter((r) => r.param < 0);
    refuseAliases(facts.params, given);
    const places = [];
    try {
      const words = [];
      facts.params.forEach((param, k) => {
        if (param.form === "integer") words.push(integer(param, given[k]));
        else places.push(this.#describe(param, given[k], words));
      });
      const results = this.#alloc(8 * Math.max(made.length, 1));
      places.push({ memory: [results] });
      const slots = made.map((_, k) => results + 8 * k);
      const call = this.#native[facts.symbol];
      this.#checked((error) => call(this.#model, ...words, ...slots, error));
      for (const { written, data } of places) {
        if (written === undefined) continue;
        data.set(new data.constructor(this.#native.memory.buffer, written, data.length));
      }
      const fresh = made.map((result, k) => this.#take(result, slots[k]));
      const all = facts.results.map((r) => (r.param < 0 ? fresh.shift() : given[r.param]));
      return all.length === 1 ? all[0] : all;
    } finally {
      for (const { memory } of places) for (const place of memory) this.#call("free", place);
    }
  }

  #describe(param, argument, words) {
    const kind = ARRAYS[param.dtype];
    const { data, shape } = argument ?? {};
    if (!(data instanceof kind) || !Array.isArray(shape)) {
      throw new ModelError(`parameter '${param.name}': expected { data: ${kind.name}, shape }`, 1);
    }
    if (!shape.every((d) => Number.isSafeInteger(d) && d >= 0)) {
      throw new ModelError(`parameter '${param.name}': shape [${shape}] is not of sizes`, 14);
    }
    const count = shape.reduce((a, b) => a * b, 1);
    if (count !== data.length) {
      throw new ModelError(`parameter '${param.name}': shape [${shape}] has ${count} elements, data ${data.length}`, 3);
    }
    const held = this.#alloc(Math.max(data.byteLength, 1));
    const tensor = this.#alloc(TENSOR + 8 * shape.length);
    const buffer = this.#native.memory.buffer;
    new kind(buffer, held, data.length).set(data);
    const view = new DataView(buffer, tensor);
    const bits = 8 * kind.BYTES_PER_ELEMENT;
    view.setBigUint64(0, BigInt(held), true);
    view.setInt32(8, 1, true);
    view.setInt32(12, 0, true);
    view.setInt32(16, shape.length, true);
    view.setUint8(20, param.dtype === "bf16" ? 4 : CODES[param.dtype[0]]);
    view.setUint8(21, bits);
    view.setUint16(22, 1, true);
    view.setBigUint64(24, BigInt(tensor + TENSOR), true);
    view.setBigUint64(32, 0n, true);
    view.setBigUint64(40, 0n, true);
    shape.forEach((d, k) => view.setBigInt64(TENSOR + 8 * k, BigInt(d), true));
    words.push(tensor);
    return { memory: [held, tensor], written: param.access === "in" ? undefined : held, data };
  }

  #take(result, slot) {
    const buffer = this.#native.memory.buffer;
    const place = new DataView(buffer).getUint32(slot, true);
    const view = new DataView(buffer, place + 32);
    const shapeAt = view.getUint32(24, true);
    const shape = [];
    for (let k = 0; k < view.getInt32(16, true); k++) {
      shape.push(Number(new DataView(buffer).getBigInt64(shapeAt + 8 * k, true)));
    }
    const kind = ARRAYS[result.dtype];
    const count = shape.reduce((a, b) => a * b, 1);
    const data = new kind(buffer, view.getUint32(0, true), count).slice();
    this.#call("release", place);
    return { data, shape };
  }
}
