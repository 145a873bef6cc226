// Recorded launches and copies, encoded again for each sample with a uniform buffer of their own.
import { GpuError } from "./failure";
import { USAGE } from "./flags";

/** The distance of the numbers of two launches in the uniform buffer. */
export const SLOT = 1024;

export interface Copy {
  readonly source: GPUBuffer;
  readonly start: number;
  readonly target: GPUBuffer;
  readonly offset: number;
  readonly bytes: number;
}

/** A bind group without its uniform buffer, which has binding 0. */
export interface Bound {
  readonly layout: GPUBindGroupLayout;
  readonly size: number;
  readonly others: readonly GPUBindGroupEntry[];
}

export interface Launch {
  readonly pipeline: GPUComputePipeline;
  readonly bound: Bound;
  readonly numbers: Uint8Array;
  readonly grid: readonly [number, number, number];
}

/** A launch with its bind group. */
interface Ready {
  readonly launch: Launch;
  readonly group: GPUBindGroup;
  readonly at: number;
}

type Item = Ready | Copy;

/** Launches that one compute pass can run, or a copy. */
type Segment = readonly Ready[] | Copy;

export class Recording {
  private readonly items: readonly Item[];
  private readonly numbers: GPUBuffer;

  constructor(private readonly device: GPUDevice, recorded: readonly (Launch | Copy)[]) {
    const count = recorded.filter((item) => "pipeline" in item).length;
    this.numbers = device.createBuffer({ size: Math.max(count, 1) * SLOT, usage: USAGE.UNIFORM | USAGE.COPY_DST });
    const content = new Uint8Array(Math.max(count, 1) * SLOT);
    let at = 0;
    this.items = recorded.map((item) => {
      if (!("pipeline" in item)) return item;
      content.set(item.numbers, at);
      const ready = { launch: item, group: this.group(item.bound), at };
      at += SLOT;
      return ready;
    });
    device.queue.writeBuffer(this.numbers, 0, content);
  }

  get length(): number {
    return this.items.length;
  }

  private group({ layout, size, others }: Bound): GPUBindGroup {
    const first = { binding: 0, resource: { buffer: this.numbers, size } };
    return this.device.createBindGroup({ layout, entries: [first, ...others] });
  }

  /** Encode some items repeatedly; `stamps` writes the times of the start and of the end. */
  encode(first: number, stop: number, repeats: number, stamps: GPUQuerySet | null): GPUCommandBuffer {
    if (first < 0 || stop > this.items.length || first >= stop) {
      throw new GpuError("invalid", `items ${first} to ${stop} of ${this.items.length} are not recorded`);
    }
    const segments = segmentsOf(this.items.slice(first, stop), repeats);
    const passes = segments.flatMap((segment, index) => ("source" in segment ? [] : [index]));
    const encoder = this.device.createCommandEncoder();
    segments.forEach((segment, index) => {
      if ("source" in segment) copy(encoder, segment);
      else pass(encoder, segment, stamps && writes(stamps, index === passes[0], index === passes.at(-1)));
    });
    return encoder.finish();
  }

  destroy(): void {
    this.numbers.destroy();
  }
}

function segmentsOf(items: readonly Item[], repeats: number): Segment[] {
  const segments: (Ready[] | Copy)[] = [];
  for (let k = 0; k < repeats; k++) {
    for (const item of items) {
      const last = segments.at(-1);
      if ("source" in item) segments.push(item);
      else if (last && !("source" in last)) last.push(item);
      else segments.push([item]);
    }
  }
  return segments;
}

function writes(querySet: GPUQuerySet, begins: boolean, ends: boolean): GPUComputePassTimestampWrites | null {
  if (!begins && !ends) return null;
  return { querySet, ...(begins ? { beginningOfPassWriteIndex: 0 } : {}), ...(ends ? { endOfPassWriteIndex: 1 } : {}) };
}

function pass(encoder: GPUCommandEncoder, launches: readonly Ready[], timestampWrites: GPUComputePassTimestampWrites | null): void {
  const open = encoder.beginComputePass(timestampWrites ? { timestampWrites } : {});
  for (const { launch, group, at } of launches) {
    open.setPipeline(launch.pipeline);
    open.setBindGroup(0, group, [at]);
    open.dispatchWorkgroups(...launch.grid);
  }
  open.end();
}

export function copy(encoder: GPUCommandEncoder, { source, start, target, offset, bytes }: Copy): void {
  encoder.copyBufferToBuffer(source, start, target, offset, bytes);
}
