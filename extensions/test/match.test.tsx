import { render } from "preact";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Matching, occurrences } from "../core/panels/match";
import type { MatchView } from "../core/protocol";

const MATCH: MatchView = {
  intrinsic: "avx512.fma.f32.14x32",
  summary: "a tile of 14 x 32 sums",
  rows: [
    { program: "for i1 in unrolled(14):", pattern: "for i in unrolled(14):", marks: [] },
    { program: "    for j1 in vectorized(24):", pattern: "  for j in vectorized(32):", marks: [0] },
    { program: "    C[i1, j1] = C[i1, j1] + A[i1, 0] * B[j1, 0]", pattern: "    C[i, j] = C[i, j] + A[i, 0] * B[0, j]", marks: [1] },
  ],
  mismatches: [
    { kind: "extent", program: "24", pattern: "32", message: "loop 'j1' has extent 24; expected 32" },
    { kind: "access", program: "B[j1, 0]", pattern: "B[0, j]", message: "B is read in column-major order" },
  ],
};

let page: HTMLElement;

beforeEach(() => {
  page = document.createElement("div");
  document.body.append(page);
});

afterEach(() => {
  render(null, page);
  page.remove();
});

test("marks and numbers every mismatch on both sides", () => {
  render(<Matching match={MATCH} />, page);
  expect([...page.querySelectorAll("mark")].map((mark) => mark.textContent)).toEqual(["24", "32", "B[j1, 0]", "B[0, j]"]);
  expect([...page.querySelectorAll("sup")].map((mark) => mark.textContent)).toEqual(["1", "2"]);
  expect([...page.querySelectorAll(".tw-match-list li")].map((item) => item.textContent)).toEqual([
    "extent loop 'j1' has extent 24; expected 32",
    "access B is read in column-major order",
  ]);
  expect(page.textContent).toContain("2 mismatches between the loops and the intrinsic.");
});

test("reports a match without mismatches", () => {
  render(<Matching match={{ ...MATCH, mismatches: [], rows: MATCH.rows.map((row) => ({ ...row, marks: [] })) }} />, page);
  expect(page.textContent).toContain("The loops match the intrinsic.");
  expect(page.querySelector("mark")).toBeNull();
});

test("finds occurrences without overlap", () => {
  expect(occurrences("A[i, k] * A[i, k]", ["A[i, k]", "i, k"])).toEqual([[0, 7]]);
  expect(occurrences("none", ["part", ""])).toEqual([]);
  expect(occurrences("a b c", ["c", "a"])).toEqual([
    [0, 1],
    [4, 5],
  ]);
});
