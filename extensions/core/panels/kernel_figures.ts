// The bars of the list of kernels: shares of the time, the operations, or the bytes, or live memory.
import type { HeatKind } from "../graph/coloring";
import type { GraphCosts, GraphView, KernelTime, Measurement } from "../protocol";
import { bytes, count, percent } from "../ui/format";

/** A bar; an unknown figure has no share. */
export interface KernelFigure {
  readonly share: number | null;
  readonly text: string;
}

/** Return the bars of the kernels of a measurement, in its order, over all calls of each. */
export function kernelFigures(measurement: Measurement, kind: HeatKind, costs: GraphCosts | null, graph: GraphView | null): readonly KernelFigure[] {
  const { kernels } = measurement;
  if (kind === "time") return kernels.map(({ share }) => ({ share, text: percent(share) }));
  const values = kernels.map((kernel) => valueOf(kernel, kind, costs, graph));
  const known = values.filter((value) => value !== undefined);
  const most = kind === "memory" ? Math.max(0, ...known) : known.reduce((sum, value) => sum + value, 0);
  return values.map((value) => {
    if (value === undefined) return { share: null, text: "unknown" };
    return { share: most > 0 ? value / most : 0, text: kind === "flops" ? count(value, "FLOP") : bytes(value) };
  });
}

function valueOf(kernel: KernelTime, kind: HeatKind, costs: GraphCosts | null, graph: GraphView | null): number | undefined {
  if (kind === "memory") return memoryOf(kernel.function, costs, graph);
  const rate = kind === "flops" ? kernel.gflops : kernel.gbytes;
  return rate === undefined ? undefined : rate * kernel.microseconds * 1000;
}

/** Return the largest memory of the calls of a kernel in the displayed graph, undefined if it has none. */
function memoryOf(name: string, costs: GraphCosts | null, graph: GraphView | null): number | undefined {
  if (costs?.kind !== "memory" || costs.function !== graph?.function) return undefined;
  const uids = new Set(graph.nodes.filter((node) => node.callee === name).map((node) => node.uid));
  const values = costs.items.flatMap(({ uid, value }) => (uids.has(uid) && value !== null ? [value] : []));
  return values.length > 0 ? Math.max(...values) : undefined;
}
