// A part of the loader of models for WebGPU: tensors and states on the device.

// @BEGIN@
function countOf(shape) {
  return shape.reduce((a, b) => a * b, 1);
}

function bytesOf(dtype, shape) {
  return lengthOf(dtype, countOf(shape)) * arrayOf(dtype).BYTES_PER_ELEMENT;
}

/** Frees tensors that are no longer reachable. */
const unreachable = new FinalizationRegistry((free) => free());

/** A tensor on the device. */
export class DeviceTensor {
  #session;
  #address;
  #free;
  dtype;
  shape;

  constructor(session, dtype, shape, address, free) {
    this.#session = session;
    this.#address = address;
    this.#free = () => {
      if (session.lost === null) free();
    };
    this.dtype = dtype;
    this.shape = Object.freeze([...shape]);
    unreachable.register(this, this.#free, this);
  }

  /** The address of the elements for a call of a session. */
  addressIn(session, where) {
    if (this.#free === null) throw new ModelError(`${where}: the tensor was freed`);
    this.#session.checkAlive(`${where}: the tensor`);
    if (this.#session !== session) {
      throw new ModelError(`${where}: the tensor is on the device of another model`);
    }
    return this.#address;
  }

  /** Copy the elements from the device. */
  async read() {
    const address = this.addressIn(this.#session, "read");
    const bytes = bytesOf(this.dtype, this.shape);
    return new (arrayOf(this.dtype))(await this.#session.read(address, bytes));
  }

  /** Free the memory on the device. */
  free() {
    if (this.#free === null) return;
    unreachable.unregister(this);
    this.#free();
    this.#free = null;
  }
}

/** The values of the state parameters between calls, on the device. */
class State {
  #owner;
  #session;
  #address;

  constructor(owner, session, address) {
    this.#owner = owner;
    this.#session = session;
    this.#address = address;
  }

  /** The address of the state for a call of a model. */
  addressIn(owner, session) {
    if (this.#owner !== owner) throw failure("other_state", "", {});
    if (this.#address === 0) throw new ModelError("the state was freed");
    this.#session.checkAlive("the state");
    if (session !== undefined && session !== this.#session) throw failure("other_state", "", {});
    return this.#address;
  }

  /** Return a copy of a tensor. */
  async get(name) {
    const { param, address, shape } = this.#tensor(name);
    const content = await this.#session.read(address, bytesOf(param.dtype, shape));
    return { data: new (arrayOf(param.dtype))(content), shape };
  }

  /** Copy a value to a tensor; it may be one number for all elements. */
  set(name, value) {
    const { param, address, shape, where } = this.#tensor(name);
    const { buffer, offset } = this.#session.bufferAt(address);
    let data;
    if (typeof value === "number" || typeof value === "bigint") {
      data = new (arrayOf(param.dtype))(lengthOf(param.dtype, countOf(shape)));
      data.fill(filling(param.dtype, value));
      if (isComplex(param.dtype)) data.forEach((_, k) => k % 2 && (data[k] = 0));
    } else {
      checkArray(where, param, value);
      if (dims(value.shape) !== dims(shape)) {
        throw new ModelError(`${where}: expected shape ${dims(shape)}, got ${dims(value.shape)}`);
      }
      data = value.data;
    }
    this.#session.outside(() => this.#session.write(buffer, offset, data));
  }

  /** Set the initial values of the model. */
  reset() {
    const address = this.addressIn(this.#owner);
    const session = this.#session;
    session.outside(() => session.checked((error) => session.call("state_reset", address, error)));
  }

  /** Free the memory of the state. */
  free() {
    if (this.#address !== 0 && this.#session.lost === null) {
      this.#session.call("state_destroy", this.#address);
    }
    this.#address = 0;
  }

  #tensor(name) {
    const param = STATES.params.find((p) => p.name === name);
    if (param === undefined) {
      const known = STATES.params.map((p) => p.name).join(", ");
      throw new ModelError(`no state parameter '${name}'; names are ${known}`);
    }
    const state = this.addressIn(this.#owner);
    const bytes = new TextEncoder().encode(`${name}\0`);
    const at = this.#session.alloc(bytes.length);
    new Uint8Array(this.#session.native.memory.buffer, at, bytes.length).set(bytes);
    const tensor = this.#session.call("state_tensor", state, at) >>> 0;
    this.#session.call("free", at);
    return { ...this.#session.tensorAt(tensor), param, where: `state '${name}'` };
  }
}
