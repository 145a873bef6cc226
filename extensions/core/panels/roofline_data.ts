import type { History, Measurement, MeasurementRecord, Roof } from "../protocol";

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

/** Return a range of whole powers of ten that contains all values, which are positive. */
export function decades(values: readonly number[]): readonly [number, number] {
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.ceil(Math.log10(Math.max(...values)));
  return [low, Math.max(high, low + 1)];
}
