import { expect, test } from "vitest";
import { makeGroup } from "../dev/fixture";
import type { Trace } from "../core/protocol";
import { hiddenNames, keyOf, rowsOf, treeKey, type TraceRow } from "../core/trace/rows";

const OUTER = makeGroup("lower_graph", 0, 1, 6);
const FIRST = makeGroup("tile", 1, 1, 3);
const SECOND = makeGroup("tile", 2, 3, 5);
const TRACE: Trace = {
  lines: Array.from({ length: 7 }, (_, index) => ({
    index,
    text: `sch.step_${String(index)}()`,
    step: `step_${String(index)}`,
    status: "done",
    decisions: "",
    milliseconds: null,
  })),
  groups: [OUTER, FIRST, SECOND],
  reason: "",
};

function shape(rows: readonly TraceRow[]): string[] {
  return rows.map((row) => `${"  ".repeat(row.level - 1)}${row.group ? `${row.group.step}${row.folded ? "+" : "-"}` : String(row.line?.index)}`);
}

test("folds groups to one row at first", () => {
  expect(shape(rowsOf(TRACE, new Set()))).toEqual(["0", "lower_graph+", "6"]);
});

test("unfolds nested groups one by one", () => {
  const outer = new Set([keyOf(OUTER)]);
  expect(shape(rowsOf(TRACE, outer))).toEqual(["0", "lower_graph-", "  tile+", "  tile+", "  5", "6"]);
  const all = new Set(TRACE.groups.map(keyOf));
  expect(shape(rowsOf(TRACE, all))).toEqual(["0", "lower_graph-", "  tile-", "    1", "    2", "  tile-", "    3", "    4", "  5", "6"]);
});

test("keeps an inner group folded inside a folded one", () => {
  const inner = new Set([keyOf(FIRST)]);
  expect(shape(rowsOf(TRACE, inner))).toEqual(["0", "lower_graph+", "6"]);
});

test("displays a group that covers the same steps as its only step", () => {
  const trace = { ...TRACE, groups: [makeGroup("outer", 0, 0, 7), makeGroup("inner", 1, 0, 7)] };
  expect(shape(rowsOf(trace, new Set(["0:outer:0"])))).toEqual(["outer-", "  inner+"]);
});

test("moves and folds with the keys of a tree", () => {
  const rows = rowsOf(TRACE, new Set([keyOf(OUTER)]));
  expect(treeKey("ArrowDown", 0, rows)).toBe(1);
  expect(treeKey("ArrowUp", 0, rows)).toBe(0);
  expect(treeKey("End", 0, rows)).toBe(5);
  expect(treeKey("ArrowRight", 1, rows)).toBe(2);
  expect(treeKey("ArrowRight", 2, rows)).toBe("unfold");
  expect(treeKey("ArrowRight", 0, rows)).toBeNull();
  expect(treeKey("ArrowLeft", 4, rows)).toBe(1);
  expect(treeKey("ArrowLeft", 1, rows)).toBe("fold");
  expect(treeKey("ArrowLeft", 5, rows)).toBeNull();
  expect(treeKey("Enter", 1, rows)).toBe("toggle");
  expect(treeKey("Enter", 0, rows)).toBeNull();
  expect(treeKey("x", 0, rows)).toBeNull();
});

test("hides the names of a long list of results", () => {
  const shown = (text: string): string => {
    const names = hiddenNames(text);
    return names ? `${text.slice(0, names.from)}… ${String(names.count)} more${text.slice(names.to)}` : text;
  };
  expect(shown("a, b, c = sch.split(loop=i)")).toBe("a, b, c = sch.split(loop=i)");
  expect(shown("a, b, c, d, e, f = sch.fuse_ops(function=main)")).toBe("a, b, c, d, … 2 more = sch.fuse_ops(function=main)");
  expect(shown("sch.dead_code(function=main)")).toBe("sch.dead_code(function=main)");
});
