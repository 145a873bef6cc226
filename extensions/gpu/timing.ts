// Times of recorded items: by timestamps of the GPU, or by repeated submissions where the browser
// has none or rounds them. No timer of the page is used, because hidden pages throttle timers.
import type { GpuSamples, GpuTime } from "../core/protocol";
import { GpuError, type Loss } from "./failure";
import { MAP_FOR_READING, USAGE } from "./flags";
import type { Recording } from "./record";

/** The largest resolution in nanoseconds with which timestamps are used. */
export const FINE = 10_000;

/** The duration of a sample of repeated submissions in ms: 200 steps of the clock of pages. */
const LONG = 20;

/** The largest number of launches in a submission. */
const MOST_LAUNCHES = 20_000;

/** The samples of the resolution. */
const PROBES = 8;

interface Queue {
  readonly device: GPUDevice;
  readonly loss: Loss;
}

/** The greatest common divisor of times, which is their resolution; 0 if all are 0. */
export function stepOf(times: readonly bigint[]): number {
  let step = 0n;
  for (const time of times) {
    let [a, b] = [step, time];
    while (b !== 0n) [a, b] = [b, a % b];
    step = a;
  }
  return Number(step);
}

/** A query set of two timestamps, and the buffers to read them. */
export class Stamps {
  readonly set: GPUQuerySet;
  private readonly resolved: GPUBuffer;
  private readonly staging: GPUBuffer;

  constructor(private readonly queue: Queue) {
    const { device } = queue;
    this.set = device.createQuerySet({ type: "timestamp", count: 2 });
    this.resolved = device.createBuffer({ size: 16, usage: USAGE.QUERY_RESOLVE | USAGE.COPY_SRC });
    this.staging = device.createBuffer({ size: 16, usage: USAGE.MAP_READ | USAGE.COPY_DST });
  }

  /** Return the timestamps of submitted commands. */
  async read(commands: readonly GPUCommandBuffer[]): Promise<readonly [bigint, bigint]> {
    const { device, loss } = this.queue;
    const encoder = device.createCommandEncoder();
    encoder.resolveQuerySet(this.set, 0, 2, this.resolved, 0);
    encoder.copyBufferToBuffer(this.resolved, 0, this.staging, 0, 16);
    device.queue.submit([...commands, encoder.finish()]);
    await loss.unless(this.staging.mapAsync(MAP_FOR_READING));
    const [start, end] = new BigInt64Array(this.staging.getMappedRange().slice(0));
    this.staging.unmap();
    return [start ?? 0n, end ?? 0n];
  }

  /** Return the resolution in nanoseconds; 0 if the GPU takes no times. */
  async step(): Promise<number> {
    const times: bigint[] = [];
    for (let k = 0; k < PROBES; k++) {
      const encoder = this.queue.device.createCommandEncoder();
      const timestampWrites = { querySet: this.set, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 };
      encoder.beginComputePass({ timestampWrites }).end();
      times.push(...(await this.read([encoder.finish()])));
    }
    return stepOf(times);
  }

  destroy(): void {
    this.set.destroy();
    this.resolved.destroy();
    this.staging.destroy();
  }
}

/** Take samples until there are enough, or the time is over. */
export async function timed(queue: Queue, recording: Recording, stamps: Stamps | null, work: GpuTime): Promise<GpuSamples> {
  const end = performance.now() + work.seconds * 1e3;
  const { first, stop } = work;
  const sample = (repeats: number): Promise<number> =>
    stamps ? stamped(recording, stamps, work) : submitted(queue, recording, work, repeats);
  const repeats = stamps ? 1 : work.repeats || (await repeatsOf(sample, stop - first));
  const nanoseconds: number[] = [];
  do nanoseconds.push((await sample(repeats)) / repeats);
  while (nanoseconds.length < work.most && performance.now() < end);
  return { clock: stamps ? "timestamps" : "submissions", repeats, nanoseconds, items: recording.length };
}

/** Return the number of repetitions that take long enough for the clock of the page. */
async function repeatsOf(sample: (repeats: number) => Promise<number>, items: number): Promise<number> {
  const most = Math.max(1, Math.floor(MOST_LAUNCHES / items));
  await sample(1); // warm-up
  let repeats = 1;
  while (repeats < most) {
    const ms = (await sample(repeats)) / 1e6;
    if (ms >= LONG) break;
    const factor = Math.min(16, Math.max(2, (1.2 * LONG) / Math.max(ms, 0.1)));
    repeats = Math.min(most, Math.ceil(repeats * factor));
  }
  return repeats;
}

/** Return the nanoseconds between two timestamps. */
async function stamped(recording: Recording, stamps: Stamps, { first, stop }: GpuTime): Promise<number> {
  const [start, end] = await stamps.read([recording.encode(first, stop, 1, stamps.set)]);
  if (end < start) throw new GpuError("invalid", `the GPU reports the times ${String(start)} and ${String(end)}, which decrease`);
  return Number(end - start);
}

/** Return the nanoseconds from a submission to its completion. */
async function submitted({ device, loss }: Queue, recording: Recording, { first, stop }: GpuTime, repeats: number): Promise<number> {
  const commands = recording.encode(first, stop, repeats, null);
  const start = performance.now();
  device.queue.submit([commands]);
  await loss.unless(device.queue.onSubmittedWorkDone());
  return (performance.now() - start) * 1e6;
}
