// A part of the loader of models for WebGPU: the functions of a model.

// @BEGIN@
class Model {
  #base;
  #options;
  #session;
  #state = null;
  #last = Promise.resolve(); // calls run one after another
  #closed = false;

  constructor(base, options, session) {
    this.#base = base;
    this.#options = options;
    this.#session = session;
    for (const every of FUNCTIONS) {
      const params = every.params.filter((param) => param.access !== "state");
      const stateful = params.length < every.params.length;
      const facts = { ...every, params, stateful, every: every.params };
      this[facts.name] = (inputs = {}, state = undefined) => this.#queue(facts, inputs, state);
    }
    const names = FUNCTIONS.map((f) => f.name);
    const first = names.length === 1 ? names[0] : names.find((name) => name === "main");
    if (first !== undefined) this.run = this[first];
    if (STATES.params.length > 0) {
      this.newState = (values = {}) => this.#newState(values);
      Object.defineProperty(this, "state", { get: () => this.#defaultState() });
    }
  }

  /** The GPUDevice. */
  get device() {
    return this.#session.device;
  }

  /** Copy an array to the device. */
  upload(dtype, value) {
    if (!Object.hasOwn(DTYPES, dtype)) throw new ModelError(`unknown dtype '${dtype}'`);
    checkArray("upload", { dtype }, value);
    const session = this.#session;
    session.checkAlive("the model");
    const address = session.outside(() => session.put(value.data));
    return new DeviceTensor(session, dtype, value.shape, address, () => session.call("drop", address));
  }

  /** Free the memory of the model on the device, with its states and tensors. */
  close() {
    this.#closed = true;
    this.#session.close();
  }

  #queue(facts, inputs, state) {
    const result = this.#last.then(() => this.#call(facts, inputs, state));
    this.#last = result.catch(() => {});
    return result;
  }

  /** Return the session, a new one if the device was lost before. */
  async #alive() {
    if (this.#closed) throw failure("closed", "", {});
    if (this.#session.lost !== null) {
      if (this.#options.device !== undefined) throw this.#session.lossError();
      this.#session.close();
      this.#state = null;
      this.#session = await Session.open(this.#base, this.#options);
    }
    return this.#session;
  }

  async #call(facts, inputs, given) {
    const session = await this.#alive();
    const { params } = facts;
    const locations = params.map((param) => inParameter(facts, param));
    const values = argumentsOf(facts, inputs);
    checkAliases(facts, locations, values);
    params.forEach((param, k) => {
      if (param.form === "integer") integer(locations[k], values[k]);
      else if (!(values[k] instanceof DeviceTensor)) checkArray(locations[k], param, values[k]);
    });
    const state = facts.stateful ? this.#stateOf(facts, given, session) : [];
    const copies = [];
    const memory = [];
    try {
      const created = facts.results.filter((r) => r.param < 0);
      const run = () => {
        const words = params.map((param, k) => {
          if (param.form === "integer") return integer(locations[k], values[k]);
          const tensor = { dtype: param.dtype, ...this.#placed(session, locations[k], values[k]) };
          if (tensor.owned) copies.push({ ...tensor, param, data: values[k].data });
          memory.push(session.describe(tensor.dtype, tensor.address, tensor.shape));
          return memory.at(-1);
        });
        const results = session.alloc(8 * Math.max(created.length, 1));
        memory.push(results);
        const slots = created.map((_, k) => results + 8 * k);
        const call = session.native[facts.symbol];
        session.checked((error) => call(session.model, ...words, ...state, ...slots, error));
        return slots.map((slot) => session.view().getUint32(slot, true));
      };
      const { result: blocks, failed } = await session.recorded(run);
      const tensors = created.map(({ dtype }, k) => this.#result(session, dtype, blocks[k]));
      if (failed.length > 0) {
        if (state.length > 0) session.call("state_fail", ...state);
        tensors.forEach((tensor) => tensor.free());
        throw session.failedCheck(facts.position, failed[0]);
      }
      for (const { param, address, data } of copies) {
        if (param.access === "in") continue;
        const content = await session.read(address, data.byteLength);
        data.set(new data.constructor(content));
      }
      return resultsOf(facts, tensors, values);
    } finally {
      if (session.lost === null) {
        for (const { address } of copies) session.call("drop", address);
        for (const address of memory) session.call("free", address);
      }
    }
  }

  /** Return the address and the shape of an argument on the device. */
  #placed(session, where, value) {
    if (value instanceof DeviceTensor) {
      const { dtype, shape } = value;
      return { dtype, shape, address: value.addressIn(session, where), owned: false };
    }
    return { shape: value.shape, address: session.put(value.data), owned: true };
  }

  #result(session, dtype, block) {
    const { address, shape } = session.tensorAt(block + RESULT);
    return new DeviceTensor(session, dtype, shape, address, () => session.call("release", block));
  }

  #stateOf(facts, given, session) {
    const state = given ?? this.#defaultState();
    if (!(state instanceof State)) {
      throw new ModelError(
        `${inFunction(facts)}: expected a state of newState(), got ${typeName(state)}`,
      );
    }
    return [state.addressIn(this, session)];
  }

  /** Create a state: sizes of symbols, and initial arrays of state parameters, by name. */
  #newState(values) {
    if (this.#closed) throw failure("closed", "", {});
    const session = this.#session;
    session.checkAlive("the model");
    const names = [...STATES.params.map((p) => p.name), ...STATES.symbols];
    const unknown = Object.keys(values).find((name) => !names.includes(name));
    if (unknown !== undefined) {
      const known = names.join(", ");
      throw new ModelError(`no state parameter or symbol '${unknown}'; names are ${known}`);
    }
    const sizes = sizesOfStates(values);
    const output = session.alloc(8);
    try {
      session.outside(() =>
        session.checked((error) =>
          session.call("state_create", session.model, ...sizes, output, error),
        ),
      );
      const state = new State(this, session, session.view().getUint32(output, true));
      for (const { name } of STATES.params) if (name in values) state.set(name, values[name]);
      return state;
    } finally {
      session.call("free", output);
    }
  }

  /** The default state of calls; its shapes must not depend on symbols. */
  #defaultState() {
    this.#state ??= this.#newState({});
    return this.#state;
  }
}

/** Return the arguments of a call in the order of the parameters. */
function argumentsOf(facts, inputs) {
  const { params } = facts;
  const signature = `${facts.name}(${params.map((p) => `${p.name}: ${p.annotation}`).join(", ")})`;
  if (inputs === null || typeof inputs !== "object") {
    throw failure("argument_type", inFunction(facts), {
      kind: "an object with the arguments by name", actual_type: typeName(inputs), reason: "",
    });
  }
  const unknown = Object.keys(inputs).find((name) => !params.some((p) => p.name === name));
  if (unknown !== undefined) {
    throw failure("unknown_argument", inFunction(facts), { parameter: unknown, similar: "", signature });
  }
  const missing = params.filter((p) => inputs[p.name] === undefined).map((p) => `'${p.name}'`);
  if (missing.length > 0) {
    throw failure("missing_argument", inFunction(facts), { names: missing.join(", "), signature });
  }
  return params.map((p) => inputs[p.name]);
}

/** Return the results of a call: new tensors, and written arguments. */
function resultsOf(facts, tensors, values) {
  const given = [...values];
  const written = facts.every.map((p) => (p.access === "state" ? null : given.shift()));
  const all = facts.results.map(({ param }) => (param < 0 ? tensors.shift() : written[param]));
  return all.length === 1 ? all[0] : all;
}

/** Return the sizes of the symbols: given ones, and dimensions of given arrays. */
function sizesOfStates(values) {
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
