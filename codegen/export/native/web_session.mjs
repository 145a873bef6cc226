// A part of the loader of models for WebGPU: a device with a model.

// @BEGIN@
/** A device with the module, the pipelines, and the weights of the model. */
class Session {
  lost = null; // the reason why the device was lost
  device;
  native = null;
  #owned;
  #buffers = new Map();
  #layouts = new Map();
  #pipelines = [];
  #groups = new Map();
  #sizes;
  #records;
  #encoder = null;
  #pass = null;
  #staged = new Uint8Array(SLOT * MOST_LAUNCHES);
  #launches = 0;
  #checked = null; // the shaders with checks that a call launched, or null outside of calls
  #waiting = new Set(); // the functions that reject promises of the device
  #earlier = []; // promises of the errors of operations outside of calls
  model = 0;

  static async open(base, options) {
    const device = options.device ?? (await openDevice());
    checkFeatures(device.features, globalThis.navigator?.gpu?.wgslLanguageFeatures);
    const session = new Session(device, options.device === undefined);
    try {
      await session.#start(base, options);
    } catch (error) {
      const found = session.lost === null ? error : session.lossError();
      session.close();
      throw found;
    }
    return session;
  }

  constructor(device, owned) {
    this.device = device;
    this.#owned = owned;
    device.lost.then((info) => this.#lose(`${info.reason}: ${info.message}`));
    const usage = GPUBufferUsage;
    this.#sizes = device.createBuffer({
      label: "sizes", size: SLOT * MOST_LAUNCHES, usage: usage.UNIFORM | usage.COPY_DST,
    });
    this.#records = device.createBuffer({
      label: "checks",
      size: RECORD * Math.max(SHADERS.length, 1),
      usage: usage.STORAGE | usage.COPY_DST | usage.COPY_SRC,
    });
  }

  async #start(base, { signal, trust = false, onProgress = () => {} }) {
    const [wasm, shaders, weights] = await Promise.all([
      fetched(base, `${NAME}.wasm`, signal).then((r) => r.arrayBuffer()),
      fetched(base, `${NAME}.wgsl`, signal).then((r) => r.text()),
      fetched(base, `${NAME}.safetensors`, signal),
    ]);
    const { instance } = await WebAssembly.instantiate(wasm, { webgpu: this.#imports() }).catch(
      (error) => {
        throw new ModelError(`cannot instantiate the module: ${error.message}`);
      },
    );
    this.native = instance.exports;
    const { maxBufferSize, maxStorageBufferBindingSize } = this.device.limits;
    const limits = [maxBufferSize, maxStorageBufferBindingSize];
    this.call("limits", ...limits.map((limit) => Math.min(limit, MOST_BYTES)));
    await this.#compile(shaders, onProgress);
    await this.#upload(weights, trust ? 1 : 0, onProgress);
    const { failed } = await this.recorded(() => {
      const output = this.alloc(8);
      this.checked((error) => this.call("open_on_device", trust ? 1 : 0, output, error));
      this.model = this.view().getUint32(output, true);
      this.call("free", output);
    });
    if (failed.length > 0) throw this.failedCheck(PREPARES, failed[0]);
  }

  /** Compile the shaders concurrently. */
  async #compile(text, onProgress) {
    const parts = text.split(/^\/\/ ---- shader (.*)\n/m);
    const code = new Map();
    for (let k = 1; k < parts.length; k += 2) code.set(parts[k], parts[k + 1]);
    let loaded = 0;
    const total = SHADERS.length;
    onProgress({ stage: "kernels", loaded, total });
    const made = SHADERS.map(async (shader, k) => {
      this.#pipelines[k] = await this.#pipeline(shader, code.get(shader.name));
      onProgress({ stage: "kernels", loaded: ++loaded, total });
    });
    await this.#unlessLost(Promise.all(made));
  }

  async #pipeline({ name, kernel, bindings, checks }, code) {
    if (code === undefined) throw new ModelError(`${NAME}.wgsl has no shader ${name}`);
    const module = this.device.createShaderModule({ label: name, code });
    const count = bindings + (checks > 0 ? 1 : 0);
    const layout = this.device.createPipelineLayout({ bindGroupLayouts: [this.#layout(count)] });
    const compute = { module, entryPoint: "main" };
    try {
      return await this.device.createComputePipelineAsync({ label: name, layout, compute });
    } catch (error) {
      const { messages } = await module.getCompilationInfo();
      const lines = messages.filter((m) => m.type === "error");
      const found = lines.map((m) => `${m.lineNum}: ${m.message}`).join("; ");
      throw new ShaderError(kernel, found || error.message);
    }
  }

  #layout(count) {
    if (!this.#layouts.has(count)) {
      const visibility = GPUShaderStage.COMPUTE;
      const uniform = { type: "uniform", hasDynamicOffset: true };
      const entries = [{ binding: 0, visibility, buffer: uniform }];
      for (let k = 1; k <= count; k++) {
        entries.push({ binding: k, visibility, buffer: { type: "storage" } });
      }
      this.#layouts.set(count, this.device.createBindGroupLayout({ entries }));
    }
    return this.#layouts.get(count);
  }

  /** Copy the weights to the device while they are downloaded, and add them to their digest. */
  async #upload(response, trust, onProgress) {
    const area = this.alloc(PART);
    const targets = WEIGHTS.map(({ bytes }, k) => {
      const address = this.call("weight", k, bytes) >>> 0;
      if (address === 0) throw failure("allocation", "", { bytes });
      return this.bufferAt(address);
    });
    let seen = 0;
    let current = 0;
    let part = new Uint8Array(0);
    let filled = 0;
    onProgress({ stage: "weights", loaded: 0, total: BYTES });
    const add = (chunk) => {
      for (let at = 0; at < chunk.length; at += PART) {
        const piece = chunk.subarray(at, at + PART);
        new Uint8Array(this.native.memory.buffer, area, piece.length).set(piece);
        this.call("verify", area, piece.length, trust);
      }
      for (let at = 0; at < chunk.length && current < WEIGHTS.length; ) {
        const { offset, bytes } = WEIGHTS[current];
        if (seen + at < offset) {
          at = Math.min(offset - seen, chunk.length);
          continue;
        }
        const start = seen + at - offset; // in the tensor
        if (start === bytes) {
          current++;
          continue;
        }
        if (filled === 0) part = new Uint8Array(Math.ceil(Math.min(PART, bytes - start) / 4) * 4);
        const room = Math.min(part.length - filled, bytes - start, chunk.length - at);
        part.set(chunk.subarray(at, at + room), filled);
        filled += room;
        at += room;
        if (filled === part.length || start + room === bytes) {
          const { buffer, offset: first } = targets[current];
          this.device.queue.writeBuffer(buffer, first + start + room - filled, part);
          filled = 0;
        }
      }
      seen += chunk.length;
      onProgress({ stage: "weights", loaded: seen, total: BYTES });
    };
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await this.#unlessLost(reader.read());
      if (done) break;
      add(value);
    }
    this.call("free", area);
  }

  /** The functions that the module imports. */
  #imports() {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
    return {
      create: (id, size) => {
        try {
          this.#buffers.set(id, this.device.createBuffer({ size: size >>> 0, usage }));
          return 1;
        } catch {
          return 0;
        }
      },
      destroy: (id) => {
        this.flush();
        this.#buffers.get(id).destroy();
        this.#buffers.delete(id);
        for (const [key, { ids }] of this.#groups) if (ids.has(id)) this.#groups.delete(key);
      },
      copy: (to, at, from, offset, bytes) => {
        const [target, source] = [this.#buffers.get(to), this.#buffers.get(from)];
        const encoder = this.#endPass();
        encoder.copyBufferToBuffer(source, offset >>> 0, target, at >>> 0, bytes >>> 0);
      },
      clear: (id, offset, bytes) => {
        this.#endPass().clearBuffer(this.#buffers.get(id), offset >>> 0, bytes >>> 0);
      },
      write: (id, offset, source, bytes) => {
        const data = new Uint8Array(this.native.memory.buffer, source, bytes);
        this.write(this.#buffers.get(id), offset >>> 0, data);
      },
      dispatch: (...words) => this.#dispatch(...words),
    };
  }

  #dispatch(number, ranges, count, numbers, bytes, x, y, z) {
    const { checks } = SHADERS[number];
    if (checks > 0) this.#begin(number);
    if (this.#launches === MOST_LAUNCHES) this.flush();
    this.#pass ??= this.#begun().beginComputePass();
    const offset = SLOT * this.#launches++;
    const memory = this.native.memory.buffer;
    this.#staged.set(new Uint8Array(memory, numbers, bytes), offset);
    this.#pass.setPipeline(this.#pipelines[number]);
    const words = new Uint32Array(memory, ranges, 3 * count);
    this.#pass.setBindGroup(0, this.#group(number, checks > 0, words), [offset]);
    this.#pass.dispatchWorkgroups(x, y, z);
  }

  /** Note that a call launches a shader with checks; its record is cleared before the first launch. */
  #begin(number) {
    if (this.#checked === null || this.#checked.has(number)) return;
    this.#endPass().clearBuffer(this.#records, RECORD * number, RECORD);
    this.#checked.add(number);
  }

  /** Return the bind group of ranges of buffers, each of which is a number, an offset, and bytes. */
  #group(number, checked, words) {
    const key = `${number},${words}`;
    const known = this.#groups.get(key);
    if (known !== undefined) return known.group;
    const resources = [{ buffer: this.#sizes, offset: 0, size: SLOT }];
    const ids = new Set();
    for (let k = 0; k < words.length; k += 3) {
      ids.add(words[k]);
      const buffer = this.#buffers.get(words[k]);
      resources.push({ buffer, offset: words[k + 1], size: words[k + 2] });
    }
    if (checked) resources.push({ buffer: this.#records, offset: RECORD * number, size: RECORD });
    const entries = resources.map((resource, binding) => ({ binding, resource }));
    const layout = this.#layout(resources.length - 1);
    const group = this.device.createBindGroup({ layout, entries });
    if (this.#groups.size >= 4096) this.#groups.clear();
    this.#groups.set(key, { group, ids });
    return group;
  }

  #begun() {
    this.#encoder ??= this.device.createCommandEncoder();
    return this.#encoder;
  }

  #endPass() {
    this.#pass?.end();
    this.#pass = null;
    return this.#begun();
  }

  /** Submit all recorded launches and copies. */
  flush() {
    if (this.#encoder === null) return;
    const encoder = this.#endPass();
    this.#encoder = null;
    if (this.#launches > 0) {
      this.device.queue.writeBuffer(this.#sizes, 0, this.#staged, 0, SLOT * this.#launches);
    }
    this.#launches = 0;
    this.device.queue.submit([encoder.finish()]);
  }

  /** Write bytes to a buffer; the last word is filled with zeros. */
  write(buffer, offset, data) {
    this.flush();
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const whole = bytes.length & ~3;
    if (whole > 0) this.device.queue.writeBuffer(buffer, offset, bytes, 0, whole);
    if (whole === bytes.length) return;
    const last = new Uint8Array(4);
    last.set(bytes.subarray(whole));
    this.device.queue.writeBuffer(buffer, offset + whole, last);
  }

  /** Run an action, submit its operations, and return its result or error, and a promise of the
   * errors that the browser found. */
  #scoped(action) {
    const { device } = this;
    device.pushErrorScope("out-of-memory");
    device.pushErrorScope("validation");
    const found = { result: undefined, thrown: null, errors: null };
    try {
      found.result = action();
    } catch (error) {
      found.thrown = error;
    }
    this.flush();
    found.errors = this.#unlessLost(Promise.all([device.popErrorScope(), device.popErrorScope()]));
    found.errors.catch(() => {});
    return found;
  }

  /** Run an action outside of a call; the next call raises the errors that the browser finds. */
  outside(action) {
    const { result, thrown, errors } = this.#scoped(action);
    if (thrown !== null) throw thrown;
    this.#earlier.push(errors);
    return result;
  }

  /** Record the operations of an action, submit them, and wait for errors that the browser found.
   * Return the result of the action, and the record of each failed shader. */
  async recorded(action) {
    const checked = new Set();
    let records = null;
    const { result, thrown, errors } = this.#scoped(() => {
      this.#checked = checked;
      try {
        return action();
      } finally {
        this.#checked = null;
        if (checked.size > 0) records = this.#recordsOf([...checked]);
      }
    });
    const scopes = [...this.#earlier.splice(0), errors];
    for (const [invalid, memory] of await Promise.all(scopes)) {
      if (memory) throw new ModelError(`the device is out of memory: ${memory.message}`, MEMORY);
      if (invalid) {
        throw new ModelError(`the browser rejects an operation: ${invalid.message}`, INTERNAL);
      }
    }
    if (thrown !== null) throw thrown;
    return { result, failed: records === null ? [] : await this.#failures([...checked], records) };
  }

  #recordsOf(checked) {
    const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
    const staging = this.device.createBuffer({ size: RECORD * checked.length, usage });
    checked.forEach((number, k) => {
      const encoder = this.#endPass();
      encoder.copyBufferToBuffer(this.#records, RECORD * number, staging, RECORD * k, 32);
    });
    return staging;
  }

  async #failures(checked, staging) {
    const view = new DataView(await this.#mapped(staging));
    return checked.flatMap((number, k) => {
      const check = view.getUint32(RECORD * k, true);
      if (check === 0) return [];
      const at = RECORD * k + 4;
      return [{ number, check, value: view.getBigInt64(at, true), bound: view.getBigInt64(at + 8, true) }];
    });
  }

  /** Return the content of a staging buffer, which is destroyed. */
  async #mapped(staging) {
    await this.#unlessLost(staging.mapAsync(GPUMapMode.READ));
    const content = staging.getMappedRange().slice(0);
    staging.destroy();
    return content;
  }

  /** Copy bytes of the device. */
  async read(address, bytes) {
    if (bytes === 0) return new ArrayBuffer(0);
    const size = Math.ceil(bytes / 4) * 4;
    const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
    const staging = this.device.createBuffer({ size, usage });
    const { buffer, offset } = this.bufferAt(address);
    this.#endPass().copyBufferToBuffer(buffer, offset, staging, 0, size);
    this.flush();
    return (await this.#mapped(staging)).slice(0, bytes);
  }

  /** Return the value of a promise, or raise that the device was lost. */
  #unlessLost(promise) {
    return new Promise((resolve, reject) => {
      if (this.lost !== null) reject(this.lossError());
      this.#waiting.add(reject);
      promise
        .then(resolve, (error) => reject(this.lost === null ? error : this.lossError()))
        .finally(() => this.#waiting.delete(reject));
    });
  }

  #lose(reason) {
    this.lost ??= reason;
    for (const reject of this.#waiting) reject(this.lossError());
  }

  lossError() {
    if (this.lost === CLOSED) return failure("closed", "", {});
    return new DeviceLostError(
      `the device was lost (${this.lost}); the next call opens the model again, without the states ` +
        "and tensors on the device",
    );
  }

  /** Check that the device was not lost, for a state or a tensor of it. */
  checkAlive(name) {
    if (this.lost === CLOSED) throw failure("closed", "", {});
    if (this.lost !== null) throw new DeviceLostError(`${name} was on a device that was lost`);
  }

  bufferAt(address) {
    const buffer = this.#buffers.get(this.call("buffer", address));
    return { buffer, offset: this.call("offset", address) >>> 0 };
  }

  /** Copy an array to a new buffer; return its address. */
  put(data) {
    const address = this.call("take", data.byteLength) >>> 0;
    if (address === 0) throw failure("allocation", "", { bytes: data.byteLength });
    if (data.byteLength > 0) {
      const { buffer, offset } = this.bufferAt(address);
      this.write(buffer, offset, data);
    }
    return address;
  }

  call(name, ...words) {
    return this.native[`${NAME}_${name}`](...words);
  }

  view() {
    return new DataView(this.native.memory.buffer);
  }

  alloc(bytes) {
    const address = this.call("alloc", bytes) >>> 0;
    if (address === 0) throw failure("allocation", "", { bytes });
    return address;
  }

  checked(run) {
    const error = this.alloc(ERROR);
    try {
      const code = run(error);
      if (code !== 0) throw this.errorAt(error, code);
    } finally {
      this.call("free", error);
    }
  }

  errorAt(error, code) {
    const bytes = new Uint8Array(this.native.memory.buffer, error + 8, ERROR - 8);
    const message = new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
    return new ModelError(message || `error ${code}`, code);
  }

  /** Return the error of a failed check of a call of a function. */
  failedCheck(position, { number, check, value, bound }) {
    const error = this.alloc(ERROR);
    this.call("explain", position, number, check, value, bound, error);
    const found = this.errorAt(error, this.view().getInt32(error, true));
    this.call("free", error);
    return found;
  }

  /** Write the description of a tensor on the device; return its address. */
  describe(dtype, address, shape) {
    const at = this.alloc(TENSOR + 8 * shape.length);
    const view = new DataView(this.native.memory.buffer, at);
    const [, code, bits] = DTYPES[dtype];
    view.setBigUint64(0, BigInt(address), true);
    view.setInt32(8, DEVICE, true);
    view.setInt32(12, 0, true);
    view.setInt32(16, shape.length, true);
    view.setUint8(20, code);
    view.setUint8(21, bits);
    view.setUint16(22, 1, true);
    view.setBigUint64(24, BigInt(at + TENSOR), true);
    view.setBigUint64(32, 0n, true);
    view.setBigUint64(40, 0n, true);
    view.setBigUint64(48, 0n, true);
    shape.forEach((d, k) => view.setBigInt64(TENSOR + 8 * k, BigInt(d), true));
    return at;
  }

  /** Return the address of the elements and the shape of a tensor of the module. */
  tensorAt(at) {
    const view = this.view();
    const shapeAt = view.getUint32(at + 24, true);
    const shape = [];
    for (let k = 0; k < view.getInt32(at + 16, true); k++) {
      shape.push(Number(view.getBigInt64(shapeAt + 8 * k, true)));
    }
    return { address: view.getUint32(at, true), shape };
  }

  close() {
    this.#lose(CLOSED);
    for (const buffer of this.#buffers.values()) buffer.destroy();
    this.#buffers.clear();
    this.#groups.clear();
    this.#sizes.destroy();
    this.#records.destroy();
    if (this.#owned) this.device.destroy();
  }
}
