// JavaScript loader of an exported model, for Node.js, browsers, and other engines that support
// WebAssembly with SIMD.
//
//   import { load } from "./@NAME@.mjs";
//   const model = await load();                      // Node.js: reads the files of this directory
//   const model = await load({ wasm, weights });     // elsewhere: the contents of the two files
//   const model = await load({ trust: true });       // does not verify the sha256 of the weights
//   const { data, shape } = model.main({ data: new Float32Array(6), shape: [2, 3] });
//
// Arguments are { data, shape } with a typed array of the parameter's dtype, or integers. A dtype
// without a typed array is passed as its bits, in Uint8Array or Uint16Array; elements of less than
// 8 bits are packed, element 0 in the low bits of a byte. Several
// results are returned as an array. Written parameters are updated in place.
//
// A function with state parameters takes a state after its other arguments:
//
//   const state = model.newState({ batch: 4 });      // sizes of symbols, and initial arrays
//   const y = model.main(x, state);                  // without a state: model.state
//   const { data, shape } = state.get("cache");      // a copy; state.set("cache", { data, shape })
//   state.reset(); state.free();

const NAME = "@NAME@";
const ABI = 2;
const FUNCTIONS = @FUNCTIONS@;
const STATES = @STATES@;
const MESSAGES = @MESSAGES@;
const TENSOR = 56;
const ERROR = 512;
const TRUST_WEIGHTS = 1;

// @VALUES@

/** Open the model. `wasm` and `weights` are bytes; by default Node.js reads the files. The sha256
 * of the weights is verified unless `trust` is set. */
export async function load({ wasm, weights, trust = false } = {}) {
  if (wasm === undefined || weights === undefined) {
    const { readFile } = await import("node:fs/promises");
    wasm ??= await readFile(new URL(`./${NAME}.wasm`, import.meta.url));
    weights ??= await readFile(new URL(`./${NAME}.safetensors`, import.meta.url));
  }
  const { instance } = await WebAssembly.instantiate(wasm, {}).catch((error) => {
    throw new ModelError(`cannot instantiate the module: ${error.message}`);
  });
  return new Model(instance.exports, new Uint8Array(weights), trust ? TRUST_WEIGHTS : 0);
}

/** The values of the state parameters between calls. */
class State {
  #owner;
  #native;

  constructor(owner, native) {
    this.#owner = owner;
    this.#native = native;
  }

  /** The address of the state for a call of a model. */
  addressIn(owner) {
    if (this.#owner !== owner) throw failure("other_state", "", {});
    if (this.#native.address === 0) throw new ModelError("the state was freed");
    return this.#native.address;
  }

  /** Return a copy of a tensor. */
  get(name) {
    const { view, shape } = this.#tensor(name);
    return { data: view.slice(), shape };
  }

  /** Copy a value to a tensor; it may be one number for all elements. */
  set(name, value) {
    const { view, shape, where, param } = this.#tensor(name);
    if (typeof value === "number" || typeof value === "bigint") {
      view.fill(filling(param.dtype, value));
      if (isComplex(param.dtype)) view.forEach((_, k) => k % 2 && (view[k] = 0));
      return;
    }
    checkArray(where, param, value);
    if (dims(value.shape) !== dims(shape)) {
      throw new ModelError(`${where}: expected shape ${dims(shape)}, got ${dims(value.shape)}`);
    }
    view.set(value.data);
  }

  /** Set the initial values of the model. */
  reset() {
    this.#native.reset(this.addressIn(this.#owner));
  }

  /** Free the memory of the state. */
  free() {
    if (this.#native.address !== 0) this.#native.destroy(this.#native.address);
    this.#native.address = 0;
  }

  #tensor(name) {
    const param = STATES.params.find((p) => p.name === name);
    if (param === undefined) {
      const known = STATES.params.map((p) => p.name).join(", ");
      throw new ModelError(`no state parameter '${name}'; names are ${known}`);
    }
    const found = this.#native.tensor(this.addressIn(this.#owner), param);
    return { ...found, param, where: `state '${name}'` };
  }
}

class Model {
  #native;
  #model = 0;
  #weights = 0;
  #state = null;

  constructor(native, weights, flags) {
    this.#native = native;
    const version = this.#call("abi_version");
    if (version !== ABI) throw failure("library_version", "", { actual: version, expected: ABI });
    this.#weights = this.#alloc(Math.max(weights.byteLength, 1));
    new Uint8Array(native.memory.buffer, this.#weights, weights.byteLength).set(weights);
    const output = this.#alloc(8);
    try {
      const bytes = weights.byteLength;
      this.#checked((error) => this.#call("start", this.#weights, bytes, flags, output, error));
      this.#model = new DataView(native.memory.buffer).getUint32(output, true);
    } catch (error) {
      this.#call("free", this.#weights);
      throw error;
    } finally {
      this.#call("free", output);
    }
    for (const every of FUNCTIONS) {
      const params = every.params.filter((param) => param.access !== "state");
      const facts = { ...every, params, every: every.params };
      const locations = params.map((param) => inParameter(facts, param));
      this[facts.name] = (...values) => this.#run(facts, locations, values);
    }
    if (STATES.params.length > 0) {
      this.newState = (values = {}) => this.#newState(values);
      Object.defineProperty(this, "state", { get: () => this.#defaultState() });
    }
  }

  /** Free memory that is kept for later calls, until `keep` bytes of workspaces remain. */
  trim(keep = 0) {
    if (this.#model === 0) throw failure("closed", "", {});
    this.#call("trim", this.#model, BigInt(keep));
  }

  /** Create a state: sizes of symbols, and initial arrays of state parameters, by name. */
  #newState(values) {
    if (this.#model === 0) throw failure("closed", "", {});
    const names = [...STATES.params.map((p) => p.name), ...STATES.symbols];
    const unknown = Object.keys(values).find((name) => !names.includes(name));
    if (unknown !== undefined) {
      const known = names.join(", ");
      throw new ModelError(`no state parameter or symbol '${unknown}'; names are ${known}`);
    }
    const sizes = this.#sizes(values);
    const output = this.#alloc(8);
    try {
      this.#checked((error) => this.#call("state_create", this.#model, ...sizes, output, error));
      const address = new DataView(this.#native.memory.buffer).getUint32(output, true);
      const state = new State(this, this.#stateFunctions(address));
      for (const { name } of STATES.params) if (name in values) state.set(name, values[name]);
      return state;
    } finally {
      this.#call("free", output);
    }
  }

  /** The default state of calls; its shapes must not depend on symbols. */
  #defaultState() {
    this.#state ??= this.#newState({});
    return this.#state;
  }

  /** Return the sizes of the symbols: given ones, and dimensions of given arrays. */
  #sizes(values) {
    const sizes = { ...values };
    for (const { name, shape } of STATES.params) {
      shape.forEach((dim, k) => {
        if (STATES.symbols.includes(dim)) sizes[dim] ??= values[name]?.shape?.[k];
      });
    }
    const missing = STATES.symbols.filter((symbol) => sizes[symbol] === undefined);
    if (missing.length > 0) {
      const example = missing.map((symbol) => `${symbol}: 4`).join(", ");
      throw new ModelError(
        `the shapes of states depend on ${missing.join(", ")}; pass newState({ ${example} })`,
      );
    }
    return STATES.symbols.map((symbol) => integer(`symbol '${symbol}'`, sizes[symbol]));
  }

  #stateFunctions(address) {
    return {
      address,
      reset: (state) => {
        if (this.#model === 0) throw failure("closed", "", {});
        this.#checked((error) => this.#call("state_reset", state, error));
      },
      destroy: (state) => this.#call("state_destroy", state),
      tensor: (state, param) => this.#stateTensor(state, param),
    };
  }

  /** Return the memory and the shape of a tensor of a state; calls may move the memory. */
  #stateTensor(state, param) {
    const bytes = new TextEncoder().encode(`${param.name}\0`);
    const text = this.#alloc(bytes.length);
    new Uint8Array(this.#native.memory.buffer, text, bytes.length).set(bytes);
    const tensor = this.#call("state_tensor", state, text) >>> 0;
    this.#call("free", text);
    return this.#view(tensor, param.dtype);
  }

  /** Return the elements and the shape of a tensor of the module. */
  #view(tensor, dtype) {
    const buffer = this.#native.memory.buffer;
    const view = new DataView(buffer, tensor);
    const shapeAt = view.getUint32(24, true);
    const shape = [];
    for (let k = 0; k < view.getInt32(16, true); k++) {
      shape.push(Number(new DataView(buffer).getBigInt64(shapeAt + 8 * k, true)));
    }
    const count = lengthOf(dtype, shape.reduce((a, b) => a * b, 1));
    return { view: new (arrayOf(dtype))(buffer, view.getUint32(0, true), count), shape };
  }

  /** Free the memory of the model. */
  close() {
    this.#state?.free();
    this.#call("close", this.#model);
    this.#call("free", this.#weights);
    this.#model = this.#weights = 0;
  }

  #call(name, ...words) {
    return this.#native[`${NAME}_${name}`](...words);
  }

  #alloc(bytes) {
    const address = this.#call("alloc", bytes) >>> 0;
    if (address === 0) throw failure("allocation", "", { bytes });
    return address;
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

  /** Return the address of the state of a call, which is its last argument, or an empty list. */
  #stateOf(facts, values) {
    if (facts.every.length === facts.params.length) return [];
    const given = values.length > facts.params.length ? values.pop() : this.#defaultState();
    if (!(given instanceof State)) {
      throw new ModelError(
        `${inFunction(facts)}: expected a state of newState(), got ${typeName(given)}`,
      );
    }
    return [given.addressIn(this)];
  }

  #run(facts, locations, values) {
    if (this.#model === 0) throw failure("closed", "", {});
    const state = this.#stateOf(facts, values);
    if (values.length !== facts.params.length) {
      const params = facts.params.map((p) => `${p.name}: ${p.annotation}`).join(", ");
      throw failure("argument_count", inFunction(facts), {
        expected: facts.params.length,
        actual: values.length,
        signature: `${facts.name}(${params})`,
      });
    }
    const created = facts.results.filter((r) => r.param < 0);
    checkAliases(facts, locations, values);
    const copies = [];
    try {
      const words = [];
      facts.params.forEach((param, k) => {
        if (param.form === "integer") words.push(integer(locations[k], values[k]));
        else copies.push(this.#copyIn(locations[k], param, values[k], words));
      });
      const results = this.#alloc(8 * Math.max(created.length, 1));
      copies.push({ memory: [results] });
      const slots = created.map((_, k) => results + 8 * k);
      const call = this.#native[facts.symbol];
      this.#checked((error) => call(this.#model, ...words, ...state, ...slots, error));
      for (const { written, data } of copies) {
        if (written === undefined) continue;
        data.set(new data.constructor(this.#native.memory.buffer, written, data.length));
      }
      const arrays = created.map((result, k) => this.#copyOut(result, slots[k]));
      const given = values.slice();
      const written = facts.every.map((p) => (p.access === "state" ? null : given.shift()));
      const all = facts.results.map((r) => (r.param < 0 ? arrays.shift() : written[r.param]));
      return all.length === 1 ? all[0] : all;
    } finally {
      for (const { memory } of copies) for (const address of memory) this.#call("free", address);
    }
  }

  #copyIn(where, param, argument, words) {
    checkArray(where, param, argument);
    const kind = arrayOf(param.dtype);
    const { data, shape } = argument;
    const copy = this.#alloc(Math.max(data.byteLength, 1));
    const tensor = this.#alloc(TENSOR + 8 * shape.length);
    const buffer = this.#native.memory.buffer;
    new kind(buffer, copy, data.length).set(data);
    const view = new DataView(buffer, tensor);
    const [, code, bits] = DTYPES[param.dtype];
    view.setBigUint64(0, BigInt(copy), true);
    view.setInt32(8, 1, true);
    view.setInt32(12, 0, true);
    view.setInt32(16, shape.length, true);
    view.setUint8(20, code);
    view.setUint8(21, bits);
    view.setUint16(22, 1, true);
    view.setBigUint64(24, BigInt(tensor + TENSOR), true);
    view.setBigUint64(32, 0n, true);
    view.setBigUint64(40, 0n, true);
    shape.forEach((d, k) => view.setBigInt64(TENSOR + 8 * k, BigInt(d), true));
    words.push(tensor);
    return { memory: [copy, tensor], written: param.access === "in" ? undefined : copy, data };
  }

  #copyOut(result, slot) {
    const buffer = this.#native.memory.buffer;
    const block = new DataView(buffer).getUint32(slot, true);
    const { view, shape } = this.#view(block + 32, result.dtype);
    const data = view.slice();
    this.#call("release", block);
    return { data, shape };
  }
}
