import { extent } from "d3-array";
import { scaleLog, type Scale } from "d3-scale";
import type { History, KernelRule, Measurement, MeasurementRecord, Roof } from "../protocol";

/** A kernel in the roofline: operations per byte, and GFLOP/s. */
export interface Point {
  readonly kernel: string;
  readonly intensity: number;
  readonly gflops: number;
}

/** A kernel of the shown measurement. */
export interface Measured extends Point {
  readonly share: number;
  readonly roof: number | undefined;
  readonly bound: string | undefined;
}

/** A measured state of the branch from the root to the head. */
export interface PathPoint extends Point {
  readonly state: string;
}

/** Return the kernels of a measurement that have rates and compute, slowest first. */
export function measuredPoints({ kernels }: Measurement): Measured[] {
  return kernels.flatMap(({ function: kernel, gflops = 0, gbytes = 0, share, roof, bound }) =>
    gflops > 0 && gbytes > 0 ? [{ kernel, intensity: gflops / gbytes, gflops, share, roof, bound }] : [],
  );
}

/** Return the predictions of the measured kernels by the estimated instructions and bytes. */
export function predictedPoints({ kernels }: Measurement): Point[] {
  return kernels.flatMap(({ function: kernel, gflops = 0, gbytes = 0, predicted = 0 }) =>
    gflops > 0 && gbytes > 0 && predicted > 0 ? [{ kernel, intensity: gflops / gbytes, gflops: predicted }] : [],
  );
}

/** Return the prediction of the open kernel at the head, unless the head is the measured state. */
export function headPrediction({ head }: History, { state }: Measurement, rule: KernelRule | null): Point | null {
  const { function: kernel = "", gflops = 0, gbytes = 0 } = rule ?? {};
  return head !== state && gflops > 0 && gbytes > 0 ? { kernel, intensity: gflops / gbytes, gflops } : null;
}

/** Return the points of a kernel at the measured states from the root to the head, under equal conditions. */
export function branchPath(history: History, records: readonly MeasurementRecord[], shown: Measurement, kernel: string): PathPoint[] {
  const states = branch(history);
  return states.flatMap((state) => {
    const record = records.findLast((other) => other.state === state && isComparable(other, shown));
    const found = record?.kernels.find((other) => other.function === kernel);
    if (!found || found.gflops <= 0 || found.gbytes <= 0) return [];
    return [{ kernel, state, intensity: found.gflops / found.gbytes, gflops: found.gflops }];
  });
}

function branch({ nodes, head }: History): string[] {
  const parents = new Map(nodes.map((node) => [node.key, node.parent]));
  const found: string[] = [];
  for (let key = head; key !== ""; key = parents.get(key) ?? "") found.unshift(key);
  return found;
}

function isComparable(record: MeasurementRecord, { function: name, shapes, conditions }: Measurement): boolean {
  return record.function === name && record.shapes === shapes && record.conditions === conditions;
}

/** Return the GFLOP/s that the roof allows at an intensity, with the bandwidth of a level. */
export function ceiling(roof: Roof, gbytes: number, intensity: number): number {
  return Math.min(roof.gflops, gbytes * intensity);
}

/** Return the peak that limits a kernel as text. */
export function boundText(bound: string): string {
  return bound === "operations" ? "limited by the operations" : `limited by the reads from ${bound === "memory" ? "memory" : `the ${bound}`}`;
}

/** Return a logarithmic scale from the power of ten below all values, which are positive, to the one above. */
export function logScale(values: readonly number[], range: readonly [number, number]): Scale {
  const [least = 1, most = 10] = extent(values);
  const scale = scaleLog().domain([least, most]).nice().range(range);
  const [low, high] = scale.domain();
  return high > low ? scale : scale.domain([low, low * 10]);
}

/** Return the values of the lines of a grid, with labels at powers of ten. */
export function gridOf(scale: Scale): { readonly value: number; readonly label: string }[] {
  const label = scale.tickFormat(1, (value) => value.toLocaleString("en", { maximumFractionDigits: 9 }));
  return scale.ticks().map((value) => ({ value, label: label(value) }));
}
