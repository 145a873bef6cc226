import { expect, test } from "vitest";
import { compared, diffOf, type DiffLine } from "../core/code/diff";

const SIGN = { same: " ", added: "+", removed: "-", skip: "~" };
const text = (lines: readonly DiffLine[]): string[] => lines.map((line) => `${SIGN[line.kind]}${line.kind === "skip" ? String(line.count) : line.text}`);
const split = (letters: string): string[] => letters.split("");

test("marks added and removed lines", () => {
  expect(text(compared(split("abcd"), split("abxd")))).toEqual([" a", " b", "-c", "+x", " d"]);
  expect(text(compared([], split("ab")))).toEqual(["+a", "+b"]);
  expect(text(compared(split("ab"), []))).toEqual(["-a", "-b"]);
  expect(text(compared(split("ab"), split("ab")))).toEqual([" a", " b"]);
});

test("finds the shortest list of edits", () => {
  const lines = compared(split("abcabba"), split("cbabac"));
  expect(lines.filter((line) => line.kind !== "same")).toHaveLength(5);
});

test.each([1, 2, 3, 4, 5, 6, 7, 8])("contains both texts in order (seed %i)", (seed) => {
  let state = seed * 7919;
  const next = (): number => (state = (state * 48_271) % 2_147_483_647);
  const random = (): string[] => Array.from({ length: next() % 40 }, () => "abcde".charAt(next() % 5));
  const before = random();
  const after = random();
  const lines = compared(before, after);
  expect(lines.filter((line) => line.kind !== "added").map((line) => line.text)).toEqual(before);
  expect(lines.filter((line) => line.kind !== "removed").map((line) => line.text)).toEqual(after);
});

test("replaces texts without common lines, however long, in less than a second", () => {
  const before = Array.from({ length: 20_000 }, (_, index) => `a${String(index)}`);
  const after = Array.from({ length: 20_000 }, (_, index) => `b${String(index)}`);
  const start = performance.now();
  expect(compared(before, after)).toHaveLength(40_000);
  expect(performance.now() - start).toBeLessThan(1000);
});

test("shortens runs of unchanged lines", () => {
  const before = split("abcdefghijkl");
  const after = [...before.slice(0, 6), "x", ...before.slice(6)];
  expect(text(diffOf(before, after))).toEqual(["~3", " d", " e", " f", "+x", " g", " h", " i", "~3"]);
});
