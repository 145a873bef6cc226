import { expect, test } from "vitest";
import { enclosing, headerOf, readPane, spanAt } from "../core/pane";
import { LOOPS, makePane } from "../dev/fixture";

const { pane, buffer } = makePane("f", LOOPS, "loop", 0);
const model = readPane(pane, buffer);
const lineOf = (text: string): number => model.lines.findIndex((line) => line.includes(text));

test("loops nest as they are indented", () => {
  const names = model.scopes.map((scope) => `${"  ".repeat(scope.depth)}${scope.note?.name ?? ""}`);
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

test("a click on a header selects its loop, one on the body the block", () => {
  const header = lineOf("for k_0");
  expect(spanAt(model, header, 20)?.uid).toBe(header + 1);
  expect(spanAt(model, header, 2)?.uid).toBe(header + 1);
  expect(spanAt(model, lineOf("acc[i, j] = acc"), 60)?.kind).toBe("block");
});

test("outside of everything there is nothing", () => {
  expect(spanAt(model, 0, 0)).toBeNull();
  expect(enclosing(model, lineOf("def fused"))).toBeNull();
});

test("the header of a thing is where it is defined", () => {
  const line = lineOf("for j_0");
  expect(headerOf(model, line + 1)?.line).toBe(line);
  expect(headerOf(model, 99_999)).toBeNull();
});

test("a span of an unknown kind is an error, not a guess", () => {
  const data = new DataView(Int32Array.from([17, 1, 1, 0, 0, 0, 1]).buffer);
  expect(() => readPane(pane, data)).toThrow("span kind 17");
});
