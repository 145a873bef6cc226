import { expect, test } from "vitest";
import { definitionOf, enclosing, readPane, spanAt } from "../core/pane";
import { LOOPS, makePane } from "../dev/program";

const { pane, buffer } = makePane("f", LOOPS, "loop", 0);
const model = readPane(pane, buffer);
const lineOf = (text: string): number => model.lines.findIndex((line) => line.includes(text));

test("nests scopes by indentation", () => {
  const names = model.scopes.map((scope) => `${"  ".repeat(scope.depth)}${scope.header?.name ?? ""}`);
  expect(names.slice(0, 7)).toEqual([
    "i_0",
    "  j_0",
    "    k_0",
    "      k_1",
    "        i_1",
    "          j_1",
    "            matmul",
  ]);
  expect(names[7]).toBe("    i_1");
});

test("finds the loop at its header and the block in its body", () => {
  const header = lineOf("for k_0");
  expect(spanAt(model, header, 20)?.uid).toBe(header + 1);
  expect(spanAt(model, header, 2)?.uid).toBe(header + 1);
  expect(spanAt(model, lineOf("acc[i, j] = acc"), 60)?.kind).toBe("block");
});

test("finds no span outside of all scopes", () => {
  expect(spanAt(model, 0, 0)).toBeNull();
  expect(enclosing(model, lineOf("def fused"))).toBeNull();
});

test("finds the definition of a part", () => {
  const line = lineOf("for j_0");
  expect(definitionOf(model, line + 1)?.line).toBe(line);
  expect(definitionOf(model, 99_999)).toBeNull();
});

test("rejects a span of unknown kind", () => {
  const data = new DataView(Int32Array.from([17, 1, 1, 0, 0, 0, 1]).buffer);
  expect(() => readPane(pane, data)).toThrow("unknown span kind 17");
});
