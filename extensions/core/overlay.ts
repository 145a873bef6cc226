// Overlays of the graph: numbers of its operations, sent in binary form.
import type { Overlay } from "./protocol";

/** The value of one call of a kernel, and the operations of the graph that it computes. */
export interface CallValue {
  readonly kernel: string;
  readonly value: number;
  readonly uids: readonly number[];
}

/** The values of the calls of a graph; `total` is the value of the whole graph. */
export interface Heat {
  readonly kind: Overlay["kind"];
  readonly unit: string;
  readonly function: string;
  readonly total: number;
  readonly calls: readonly CallValue[];
}

const EMPTY = new DataView(new ArrayBuffer(0));

/** Return an overlay with the values of its buffers. */
export function readOverlay(overlay: Overlay, buffers: readonly DataView[]): Heat {
  const { kind, unit, function: name, total, labels } = overlay;
  if (labels.length === 0) return { kind, unit, function: name, total, calls: [] };
  const values = buffers[overlay.values] ?? EMPTY;
  const uids = buffers[overlay.uids] ?? EMPTY;
  const positions = buffers[overlay.calls] ?? EMPTY;
  const members: number[][] = labels.map(() => []);
  for (let at = 0; at + 4 <= uids.byteLength; at += 4)
    members[positions.getInt32(at, true)]?.push(uids.getInt32(at, true));
  const calls = labels.map((kernel, index) => ({ kernel, value: values.getFloat64(index * 8, true), uids: members[index] ?? [] }));
  return { kind, unit, function: name, total, calls };
}

/** Return an overlay in binary form, with its buffers; `first` is the index of the first one. */
export function writeOverlay({ kind, unit, function: name, total, calls }: Heat, first: number): [Overlay, DataView[]] {
  const labels = calls.map((call) => call.kernel);
  const overlay = { kind, unit, function: name, total, labels, values: first, uids: first + 1, calls: first + 2 };
  if (calls.length === 0) return [{ ...overlay, values: 0, uids: 0, calls: 0 }, []];
  const values = new DataView(new ArrayBuffer(calls.length * 8));
  calls.forEach((call, index) => values.setFloat64(index * 8, call.value, true));
  const pairs = calls.flatMap((call, index) => call.uids.map((uid) => [uid, index] as const));
  const uids = new DataView(new ArrayBuffer(pairs.length * 4));
  const positions = new DataView(new ArrayBuffer(pairs.length * 4));
  pairs.forEach(([uid, index], at) => {
    uids.setInt32(at * 4, uid, true);
    positions.setInt32(at * 4, index, true);
  });
  return [overlay, [values, uids, positions]];
}
