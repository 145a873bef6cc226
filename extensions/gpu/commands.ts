// Commands of a session on the device of a page: buffers, pipelines, launches, and copies.
import type { GpuCommand, GpuCopy, GpuDraw, GpuGroup, GpuLaunch, GpuPipeline } from "../core/protocol";
import { drawn } from "./draw";
import { GpuError, type Loss } from "./failure";
import { COMPUTE, MAP_FOR_READING, USAGE } from "./flags";
import { KEPT } from "./kept";
import { copy, Recording, SLOT, type Bound, type Copy, type Launch } from "./record";

const USAGES = {
  storage: USAGE.STORAGE | USAGE.COPY_DST | USAGE.COPY_SRC,
  uniform: USAGE.UNIFORM | USAGE.COPY_DST,
};

/** A pipeline and the layout of its bind groups. */
interface Kernel {
  readonly pipeline: GPUComputePipeline;
  readonly layout: GPUBindGroupLayout;
}

/** A bind group; the uniform buffer has binding 0. */
interface Group {
  readonly group: GPUBindGroup;
  readonly uniform: number;
  readonly bound: Bound;
}

export class Commands {
  recording: Recording | null = null;
  private readonly buffers = new Map<number, GPUBuffer>();
  /** The contents of the uniform buffers, for recorded launches. */
  private readonly numbers = new Map<number, Uint8Array>();
  private readonly kernels = new Map<number, Promise<Kernel>>();
  private readonly groups = new Map<number, Group>();
  private readonly layouts = new Map<number, GPUBindGroupLayout>();
  private encoder: GPUCommandEncoder | null = null;
  private pass: GPUComputePassEncoder | null = null;
  private recorded: (Launch | Copy)[] | null = null;

  constructor(private readonly device: GPUDevice, private readonly loss: Loss) {}

  /** Execute commands in order; an error that the browser finds is raised at the end. */
  async run(commands: readonly GpuCommand[], content: Uint8Array<ArrayBuffer>): Promise<void> {
    this.device.pushErrorScope("out-of-memory");
    this.device.pushErrorScope("validation");
    let thrown: Error | null = null;
    try {
      for (const command of commands) if (command.op === "pipeline") this.compile(command);
      for (const command of commands) await this.execute(command, content);
      this.submit();
    } catch (error) {
      thrown = error instanceof Error ? error : new Error(String(error));
    }
    const [invalid, memory] = await this.loss.unless(Promise.all([this.device.popErrorScope(), this.device.popErrorScope()]));
    if (thrown) throw thrown;
    if (memory) throw new GpuError("memory", memory.message);
    if (invalid) throw new GpuError("invalid", invalid.message);
  }

  /** Return words of a buffer. */
  async read(buffer: number, offset: number, size: number): Promise<ArrayBuffer> {
    const staging = this.device.createBuffer({ size, usage: USAGE.MAP_READ | USAGE.COPY_DST });
    this.open().copyBufferToBuffer(this.buffer(buffer), offset, staging, 0, size);
    this.submit();
    await this.loss.unless(staging.mapAsync(MAP_FOR_READING));
    const content = staging.getMappedRange().slice(0);
    staging.destroy();
    return content;
  }

  private async execute(command: GpuCommand, content: Uint8Array<ArrayBuffer>): Promise<void> {
    switch (command.op) {
      case "create":
        this.buffers.set(command.buffer, this.device.createBuffer({ size: command.bytes, usage: USAGES[command.usage] }));
        if (command.usage === "uniform") this.numbers.set(command.buffer, new Uint8Array(command.bytes));
        break;
      case "destroy":
        this.submit();
        this.buffers.get(command.buffer)?.destroy();
        this.buffers.delete(command.buffer);
        this.numbers.delete(command.buffer);
        break;
      case "write":
        this.write(command.buffer, command.offset, content.subarray(command.start, command.start + command.bytes));
        break;
      case "write_kept":
        this.write(command.buffer, command.offset, KEPT.get(command.hash));
        break;
      case "draw":
        this.draw(command);
        break;
      case "copy":
        this.copy(command);
        break;
      case "pipeline":
        break; // started before
      case "group":
        this.groups.set(command.group, await this.group(command));
        break;
      case "launch":
        await this.launch(command);
        break;
      case "record":
        this.record(command.on);
        break;
    }
  }

  private buffer(number: number): GPUBuffer {
    const found = this.buffers.get(number);
    if (!found) throw new GpuError("invalid", `buffer ${number} does not exist`);
    return found;
  }

  private write(number: number, offset: number, content: Uint8Array<ArrayBuffer>): void {
    this.submit();
    this.numbers.get(number)?.set(content, offset);
    this.device.queue.writeBuffer(this.buffer(number), offset, content);
  }

  private draw(command: GpuDraw): void {
    this.submit();
    for (const [first, part] of drawn(command)) {
      this.device.queue.writeBuffer(this.buffer(command.buffer), command.offset + 4 * first, part);
    }
  }

  private copy({ source, start, target, offset, bytes, timed }: GpuCopy): void {
    const made = { source: this.buffer(source), start, target: this.buffer(target), offset, bytes };
    copy(this.open(), made);
    if (timed) this.recorded?.push(made);
  }

  /** Start the compilation of a shader; several ones are compiled at the same time. */
  private compile({ pipeline, name, text, bindings }: GpuPipeline): void {
    const layout = this.layout(bindings);
    const module = this.device.createShaderModule({ label: name, code: text });
    const made = this.device.createComputePipelineAsync({
      label: name,
      layout: this.device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module, entryPoint: "main" },
    });
    const kernel = this.loss.unless(made).then(
      (found) => ({ pipeline: found, layout }),
      async (error: unknown) => {
        if (error instanceof GpuError) throw error;
        const { messages } = await module.getCompilationInfo();
        const errors = messages.filter(({ type }) => type === "error").map(({ lineNum, message }) => `line ${lineNum}: ${message}`);
        throw new GpuError("shader", errors.join("; ") || String(error), name);
      },
    );
    kernel.catch(() => undefined); // raised by the first launch
    this.kernels.set(pipeline, kernel);
  }

  private layout(bindings: number): GPUBindGroupLayout {
    const found = this.layouts.get(bindings);
    if (found) return found;
    const visibility = COMPUTE;
    const uniform: GPUBindGroupLayoutEntry = { binding: 0, visibility, buffer: { type: "uniform", hasDynamicOffset: true } };
    const storage = Array.from({ length: bindings }, (_, k): GPUBindGroupLayoutEntry => ({ binding: k + 1, visibility, buffer: { type: "storage" } }));
    const made = this.device.createBindGroupLayout({ entries: [uniform, ...storage] });
    this.layouts.set(bindings, made);
    return made;
  }

  private async group({ pipeline, ranges }: GpuGroup): Promise<Group> {
    const { layout } = await this.kernel(pipeline);
    const entries = ranges.map(([buffer = 0, offset = 0, size = 0], binding) => ({
      binding,
      resource: { buffer: this.buffer(buffer), offset, size },
    }));
    const [uniform, , size] = ranges[0] ?? [];
    const bound = { layout, size: size ?? SLOT, others: entries.slice(1) };
    return { group: this.device.createBindGroup({ layout, entries }), uniform: uniform ?? 0, bound };
  }

  private kernel(pipeline: number): Promise<Kernel> {
    const found = this.kernels.get(pipeline);
    if (!found) throw new GpuError("invalid", `pipeline ${pipeline} does not exist`);
    return found;
  }

  private async launch(command: GpuLaunch): Promise<void> {
    const { pipeline } = await this.kernel(command.pipeline);
    const found = this.groups.get(command.group);
    if (!found) throw new GpuError("invalid", `bind group ${command.group} does not exist`);
    const grid: [number, number, number] = [command.grid[0] ?? 1, command.grid[1] ?? 1, command.grid[2] ?? 1];
    this.pass ??= this.open().beginComputePass();
    this.pass.setPipeline(pipeline);
    this.pass.setBindGroup(0, found.group, [command.offset]);
    this.pass.dispatchWorkgroups(...grid);
    const numbers = this.numbers.get(found.uniform)?.slice(command.offset, command.offset + found.bound.size);
    this.recorded?.push({ pipeline, bound: found.bound, numbers: numbers ?? new Uint8Array(), grid });
  }

  private record(on: boolean): void {
    if (on) {
      this.recorded = [];
      return;
    }
    this.recording?.destroy();
    this.recording = new Recording(this.device, this.recorded ?? []);
    this.recorded = null;
  }

  /** Return the open encoder outside of a pass. */
  private open(): GPUCommandEncoder {
    this.pass?.end();
    this.pass = null;
    this.encoder ??= this.device.createCommandEncoder();
    return this.encoder;
  }

  private submit(): void {
    if (!this.encoder) return;
    const commands = this.open().finish();
    this.encoder = null;
    this.device.queue.submit([commands]);
  }

  destroy(): void {
    this.recording?.destroy();
    for (const buffer of this.buffers.values()) buffer.destroy();
  }
}
