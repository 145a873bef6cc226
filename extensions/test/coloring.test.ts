import { expect, test } from "vitest";
import { costColoring, costOf, heatKind, kernelsOf, timeColoring } from "../core/graph/coloring";
import type { Card } from "../core/graph/fold";
import { kernelFigures } from "../core/panels/kernel_figures";
import type { GraphCosts, GraphNode, Measurement } from "../core/protocol";
import { bytes, count } from "../core/ui/format";
import { connected } from "./helpers";

function node(uid: number, callee = ""): GraphNode {
  return { uid, name: `v${String(uid)}`, op: "exp", kind: "call", detail: "(n,) f32", callee, path: [], inputs: [], origins: [] };
}

function card(key: string, ...uids: number[]): Card {
  return { key, title: key, detail: "", kind: uids.length > 1 ? "group" : "call", path: [], members: uids.map((uid) => node(uid)) };
}

function costs(kind: GraphCosts["kind"], items: readonly (readonly [number, string, number | null])[]): GraphCosts {
  return { kind, unit: kind === "flops" ? "FLOP" : "B", function: "main", state: "s", sizes: "n = 8", items: items.map(([uid, term, value]) => ({ uid, term, value })) };
}

const ITEMS = [[1, "n * 200", 1600], [2, "n * 100", 800], [3, "", null], [4, "n * k", null], [5, "0", 0]] as const;

test("counts and bytes have three digits, a prefix, and a unit", () => {
  expect([0, 7, 999, 1000, 1570, 1_570_000, 12_345_678].map((value) => count(value))).toEqual(["0", "7", "999", "1.00 k", "1.57 k", "1.57 M", "12.3 M"]);
  expect(count(1_570_000, "FLOP")).toBe("1.57 MFLOP");
  expect([0, 1023, 1024, 1536 * 1024, 3 * 1024 ** 3].map(bytes)).toEqual(["0 B", "1023 B", "1.00 KiB", "1.50 MiB", "3.00 GiB"]);
});

test("each operation has its cost as a term and at the sizes, and the largest one is the end of the range", () => {
  const cards = [card("a", 1), card("b", 2), card("c", 3), card("d", 4), card("e", 5), card("f", 9)];
  const { figures, limit } = costColoring(cards, costs("flops", ITEMS));
  expect(limit).toBe("1.60 kFLOP");
  expect(figures.get("a")).toEqual({ share: 1, text: "1.60 k", isKnown: true, label: "FLOPs 1.60 kFLOP", note: "n * 200 = 1600 at n = 8" });
  expect(figures.get("b")?.share).toBe(0.5);
  expect(figures.get("e")).toMatchObject({ share: 0, text: "0", isKnown: true, note: "" });
  expect(figures.has("f")).toBe(false);
});

test("an unknown cost is unknown, and not 0", () => {
  const { figures } = costColoring([card("c", 3), card("d", 4)], costs("flops", ITEMS));
  expect(figures.get("c")).toEqual({ share: 0, text: "unknown", isKnown: false, label: "FLOPs unknown", note: "no analysis states this cost" });
  expect(figures.get("d")).toMatchObject({ text: "unknown", note: "n * k, which the sizes do not determine" });
});

test("the cost of one operation has its term, its value, and its unit", () => {
  const all = costs("flops", [...ITEMS, [6, "n * k", null]]);
  expect(costOf(1, all)).toBe("n * 200 = 1.60 kFLOP at n = 8");
  expect(costOf(4, all)).toBe("n * k FLOP");
  expect(costOf(5, all)).toBe("0 FLOP");
  expect(costOf(3, all)).toBeNull();
  expect(costOf(9, all)).toBeNull();
});

test("a namespace has the sum of its operations, or the largest memory, as a lower bound if some are unknown", () => {
  const group = [card("g", 1, 2, 3)];
  expect(costColoring(group, costs("bytes", ITEMS)).figures.get("g")).toMatchObject({ text: "≥ 2.34 KiB", note: "sum of 3 operations, 1 of them unknown, at n = 8" });
  expect(costColoring(group, costs("memory", ITEMS)).figures.get("g")).toMatchObject({ label: "Peak memory ≥ 1.56 KiB", note: "largest of 3 operations, 1 of them unknown, at n = 8" });
  expect(costColoring([card("g", 3, 4)], costs("bytes", ITEMS)).figures.get("g")?.text).toBe("unknown");
});

test("the time of kernels is a share of the call", () => {
  const heat = { kind: "time" as const, unit: "µs", function: "main", total: 4, calls: [{ kernel: "k", value: 1, uids: [1, 2] }] };
  const { figures, limit } = timeColoring([card("a", 1), card("c", 3)], heat);
  expect([...figures.keys()]).toEqual(["a"]);
  expect(figures.get("a")).toMatchObject({ share: 0.25, text: "25 %", label: "25 % of the call" });
  expect(limit).toBe("100 %");
  expect(kernelsOf(card("a", 1), heat)).toEqual(["k"]);
  expect(timeColoring([card("a", 1)], null)).toEqual({ figures: new Map(), limit: "" });
  expect(costColoring([card("a", 1)], null).limit).toBe("");
});

test("a stored choice that does not exist is the time", () => {
  expect(["time", "bytes", "", "toString"].map(heatKind)).toEqual(["time", "bytes", "time", "time"]);
});

function measured(): Measurement {
  const { measurement } = connected().store.state.value;
  if (!measurement) throw new Error("no measurement");
  return measurement;
}

test("the bars of the kernels follow the choice, and unknown figures have none", () => {
  const measurement = measured();
  const [first] = measurement.kernels;
  if (!first) throw new Error("no kernel");
  const { gflops, gbytes, ...unrated } = first;
  const two = { ...measurement, kernels: [{ ...unrated, gflops: 2, gbytes: 1, microseconds: 3 }, { ...unrated, function: "library" }] };
  expect([gflops, gbytes]).toEqual([42.5, 7.125]);
  expect(kernelFigures(two, "flops", null, null)).toEqual([{ share: 1, text: "6.00 kFLOP" }, { share: null, text: "unknown" }]);
  expect(kernelFigures(two, "bytes", null, null)[0]?.text).toBe("2.93 KiB");
  expect(kernelFigures(two, "time", null, null)[0]?.share).toBe(first.share);
  expect(kernelFigures(two, "memory", null, null).map(({ text }) => text)).toEqual(["unknown", "unknown"]);
  const graph = { function: "main", nodes: [node(1, first.function), node(2, first.function), node(3, "library")] };
  expect(kernelFigures(two, "memory", costs("memory", ITEMS), graph).map(({ text }) => text)).toEqual(["1.56 KiB", "unknown"]);
});
