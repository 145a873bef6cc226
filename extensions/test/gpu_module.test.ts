import { expect, test } from "vitest";
import type { GpuDraw, GpuTime } from "../core/protocol";
import { drawn } from "../gpu/draw";
import { Loss } from "../gpu/failure";
import { Kept } from "../gpu/kept";
import { Recording, type Launch } from "../gpu/record";
import { stepOf, timed } from "../gpu/timing";

const DRAW: GpuDraw = { op: "draw", buffer: 1, offset: 0, count: 3, dtype: "f32", seed: 1, low: 0, high: 2 };

test("draws the elements that the session draws", () => {
  const [[, floats] = [0, new Float32Array()]] = [...drawn(DRAW)];
  expect([...floats].map((x) => Math.round(x * 1000) / 1000)).toEqual([0.042, -0.265, -0.469]);
  const [[, integers] = [0, new Int32Array()]] = [...drawn({ ...DRAW, count: 6, dtype: "i32", seed: 2, low: 3, high: 5 })];
  expect([...integers]).toEqual([4, 3, 4, 4, 4, 3]);
  const parts = [...drawn({ ...DRAW, count: (1 << 20) + 1 })];
  expect(parts.map(([first, part]) => [first, part.length])).toEqual([[0, 1 << 20], [1 << 20, 1]]);
});

test("keeps a content when all of its parts were sent", () => {
  const kept = new Kept();
  kept.add("a", 6, 0, new Uint8Array([1, 2, 3, 4]));
  expect(kept.missing(["a", "b"])).toEqual(["a", "b"]);
  expect(() => kept.get("a")).toThrow("was not sent");
  kept.add("a", 6, 4, new Uint8Array([5, 6]));
  expect(kept.missing(["a", "b"])).toEqual(["b"]);
  expect([...kept.get("a")]).toEqual([1, 2, 3, 4, 5, 6]);
});

test("finds the resolution of timestamps", () => {
  expect(stepOf([0n, 0n])).toBe(0);
  expect(stepOf([1_000_001n, 1_000_041n])).toBe(1);
  expect(stepOf([65536n * 7n, 65536n * 9n, 65536n * 12n])).toBe(65536);
});

/** A device that counts launches; a submission takes a time per launch. */
class FakeDevice {
  launches = 0;
  submitted: number[] = [];
  lose: (info: { reason: string; message: string }) => void = () => undefined;
  readonly lost = new Promise<{ reason: string; message: string }>((resolve) => (this.lose = resolve));
  readonly queue = {
    writeBuffer: (): void => undefined,
    submit: (): void => {
      this.submitted.push(this.launches);
      this.launches = 0;
    },
    onSubmittedWorkDone: (): Promise<void> => {
      const end = performance.now() + (this.submitted.at(-1) ?? 0) * 0.5;
      while (performance.now() < end);
      return Promise.resolve();
    },
  };
  createBuffer = (): object => ({ destroy: () => undefined });
  createBindGroup = (): object => ({});
  createCommandEncoder = (): object => ({
    beginComputePass: () => ({
      setPipeline: () => undefined,
      setBindGroup: () => undefined,
      dispatchWorkgroups: () => (this.launches += 1),
      end: () => undefined,
    }),
    finish: () => ({}),
  });
}

const LAUNCH = {
  pipeline: {},
  bound: { layout: {}, size: 16, others: [] },
  numbers: new Uint8Array(16),
  grid: [1, 1, 1],
} as unknown as Launch;

const WORK: GpuTime = { kind: "time", first: 0, stop: 2, repeats: 0, most: 3, seconds: 10 };

test("repeats short calls in one submission, and divides the time", async () => {
  const fake = new FakeDevice();
  const device = fake as unknown as GPUDevice;
  const recording = new Recording(device, [LAUNCH, LAUNCH]);
  const found = await timed({ device, loss: new Loss(device, () => undefined) }, recording, null, WORK);
  expect(found).toMatchObject({ clock: "submissions", items: 2 });
  expect(found.repeats).toBeGreaterThan(10); // 1 ms per call, and samples of at least 20 ms
  expect(fake.submitted.at(-1)).toBe(2 * found.repeats);
  expect(found.nanoseconds.length).toBe(3);
  for (const sample of found.nanoseconds) expect(sample).toBeGreaterThan(0.9e6);
  const one = await timed({ device, loss: new Loss(device, () => undefined) }, recording, null, { ...WORK, stop: 1, repeats: 2, most: 1 });
  expect(one.nanoseconds.length).toBe(1);
  expect(fake.submitted.at(-1)).toBe(2);
  expect(() => recording.encode(0, 3, 1, null)).toThrow("are not recorded");
});

test("a lost device rejects the promises that wait for it", async () => {
  const fake = new FakeDevice();
  const reports: string[] = [];
  const loss = new Loss(fake as unknown as GPUDevice, ({ kind }) => reports.push(kind));
  const waiting = loss.unless(new Promise(() => undefined));
  fake.lose({ reason: "unknown", message: "hung" });
  await expect(waiting).rejects.toThrow("the page lost its GPU: hung");
  await expect(loss.unless(Promise.resolve(1))).rejects.toThrow("hung");
  expect(reports).toEqual(["lost"]);
});
