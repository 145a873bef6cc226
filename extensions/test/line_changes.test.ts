import type { Change } from "@codemirror/merge";
import { expect, test } from "vitest";
import { lineChanges } from "../core/code/line_changes";

const text = (letters: string): string => letters.split("").join("\n") + (letters === "" ? "" : "\n");

/** Return the second text, built from the unchanged parts of the first one and the changes. */
function rebuilt(changes: readonly Change[], before: string, after: string): string {
  let at = 0;
  let result = "";
  for (const change of changes) {
    result += before.slice(at, change.fromA) + after.slice(change.fromB, change.toB);
    at = change.toA;
  }
  return result + before.slice(at);
}

test("marks added and removed lines", () => {
  const parts = (before: string, after: string): number[][] =>
    lineChanges(before, after).map(({ fromA, toA, fromB, toB }) => [fromA, toA, fromB, toB]);
  expect(parts("a\nb\n", "a\nb\n")).toEqual([]);
  expect(parts("a\nb\n", "a\nx\nb\n")).toEqual([[2, 2, 2, 4]]);
  expect(parts("a\nb\n", "b\n")).toEqual([[0, 2, 0, 0]]);
  expect(parts("a\nb\n", "a\nb\nc\n")).toEqual([[4, 4, 4, 6]]);
});

test("compares the parts of replaced lines", () => {
  const [before, after] = ["for i in range(8):\n", "for i in parallel(8):\n"];
  const changes = lineChanges(before, after);
  expect(changes.every(({ fromA, toA }) => fromA >= 9 && toA <= 14)).toBe(true);
  expect(rebuilt(changes, before, after)).toBe(after);
});

test.each([1, 2, 3, 4, 5, 6, 7, 8])("contains both texts in order (seed %i)", (seed) => {
  let state = seed * 7919;
  const next = (): number => (state = (state * 48_271) % 2_147_483_647);
  const random = (): string => text(Array.from({ length: 1 + (next() % 40) }, () => "abcde".charAt(next() % 5)).join(""));
  const [before, after] = [random(), random()];
  expect(rebuilt(lineChanges(before, after), before, after)).toBe(after);
  expect(rebuilt(lineChanges(after, before), after, before)).toBe(before);
});

test("replaces texts without common lines, however long, in less than a second", () => {
  const lines = (letter: string): string => Array.from({ length: 20_000 }, (_, index) => `${letter}${String(index)}\n`).join("");
  const [before, after] = [lines("a"), lines("b")];
  const start = performance.now();
  expect(rebuilt(lineChanges(before, after), before, after)).toBe(after);
  expect(performance.now() - start).toBeLessThan(1000);
});

test("finds one removed line of a long text with more different lines than letters", () => {
  const lines = Array.from({ length: 70_000 }, (_, index) => `${String(index)}\n`);
  const [before, after] = [lines.join(""), lines.toSpliced(40_000, 1).join("")];
  const changes = lineChanges(before, after);
  expect(rebuilt(changes, before, after)).toBe(after);
  expect(changes.reduce((sum, { fromA, toA }) => sum + toA - fromA, 0)).toBe("40000\n".length);
});
