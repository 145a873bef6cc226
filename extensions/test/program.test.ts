import { foldCode, foldedRanges } from "@codemirror/language";
import { afterEach, beforeEach, expect, test } from "vitest";
import { changeOf } from "../core/code/change";
import { ProgramText, type Display, type Kept, type Positions } from "../core/code/program";
import { TextTools } from "../core/code/tools";
import { scopesBetween } from "../core/code/tree";
import { readPane, type PaneModel } from "../core/pane";
import { SPAN_KINDS } from "../core/protocol";
import type { TextPosition } from "../core/view_state";
import { LOOPS, makePane } from "../dev/program";
import "./helpers";

const TEXT = "@prim_func\ndef f(a: Buffer[(4,), f32]):\n    for i in range(4):\n        a[i] = a[i] + 1.0\n";
const BUFFER = SPAN_KINDS.indexOf("buffer");
const SPANS = [
  [BUFFER, 9, 1, 1, 6, 1, 7],
  [BUFFER, 9, 0, 3, 8, 3, 9],
  [BUFFER, 9, 0, 3, 15, 3, 16],
  [SPAN_KINDS.indexOf("loop"), 5, 0, 3, 10, 3, 11],
];

let page: HTMLElement;
let text: ProgramText;
let positions: Positions;
let position: TextPosition | undefined;

const kept: Kept = {
  read: () => position,
  write: (next) => {
    position = next;
  },
};

beforeEach(() => {
  page = document.createElement("div");
  document.body.append(page);
  positions = new Map();
  position = undefined;
});

afterEach(() => {
  text.destroy();
  page.remove();
});

function paneFor(source: string, spans: number[][] | null = null): PaneModel {
  const { pane, buffer } = makePane("f", source, "loop", 0);
  return readPane(pane, spans ? new DataView(Int32Array.from(spans.flat()).buffer) : buffer);
}

function display(pane: PaneModel, extra: Partial<Display> = {}): void {
  text.update({ pane, selected: null, linked: new Set(), marked: null, ...extra });
}

function open(): void {
  text = new ProgramText(page, "f", positions, new TextTools(), kept);
}

function texts(selector: string): string[] {
  return [...page.querySelectorAll(selector)].map((one) => one.textContent);
}

test("marks the uses of the selected part, not its definition or other parts", () => {
  open();
  display(paneFor(TEXT, SPANS), { selected: 9 });
  expect(texts(".tw-occurrence")).toEqual(["a", "a"]);
  expect(page.querySelector(".tw-occurrence")?.closest(".cm-line")?.textContent).toContain("a[i] = a[i]");
  expect(texts(".cm-line.is-selected")).toEqual(["def f(a: Buffer[(4,), f32]):"]);
  display(paneFor(TEXT, SPANS));
  expect(texts(".tw-occurrence")).toEqual([]);
});

test("underlines the parts at fault, also beyond the end of a line", () => {
  open();
  const marks = [{ line: 3, column: 5, end: 8 }, { line: 4, column: 9, end: 900 }, { line: 90, column: 1, end: 2 }];
  display(paneFor(TEXT), { marked: { function: "f", marks, reveal: 0 } });
  expect(texts(".tw-underline")).toEqual(["for", "a[i] = a[i] + 1.0"]);
});

test("shows the notes of loops after their lines, and half of the indentation", () => {
  open();
  display(paneFor(LOOPS));
  const note = page.querySelector(".tw-line-label");
  expect(note?.textContent).toBe("22 at b = 1, s = 128");
  expect(note?.closest(".cm-line")?.textContent).toContain("for i_0 in parallel");
  expect(texts(".tw-indent")[0]).toBe("    ");
});

test("keeps folds outside of a change, and when the function is opened again", () => {
  open();
  display(paneFor(LOOPS));
  const { view } = text;
  const header = view.state.doc.toString().indexOf("for j_1 in vectorized(32):\n                    with");
  view.dispatch({ selection: { anchor: header } });
  foldCode(view);
  expect(texts(".tw-folded")).toEqual(["⋯ 4 lines"]);
  expect(page.querySelectorAll('.tw-marker[data-name="add_gelu"]')).toHaveLength(0);
  display(paneFor(LOOPS.replace("range(96)", "range(48)")));
  expect(foldedRanges(view.state).size).toBe(1);
  text.destroy();
  open();
  display(paneFor(LOOPS));
  expect(texts(".tw-folded")).toEqual(["⋯ 4 lines"]);
});

test("keeps folds as data, which another page restores where the headers are the same", () => {
  open();
  display(paneFor(LOOPS));
  const { view } = text;
  const header = view.state.doc.toString().indexOf("for j_1 in vectorized(32):\n                    with");
  view.dispatch({ selection: { anchor: header } });
  foldCode(view);
  const line = view.state.doc.lineAt(header);
  expect(position?.folds).toEqual([[line.number, line.text]]);
  text.destroy();
  positions = new Map();
  open();
  display(paneFor(LOOPS));
  expect(texts(".tw-folded")).toEqual(["⋯ 4 lines"]);
  text.destroy();
  positions = new Map();
  position = { folds: [[line.number, "another header"], [0, ""], [9000, ""]], top: 9000, shown: "" };
  open();
  display(paneFor(LOOPS));
  expect(texts(".tw-folded")).toEqual([]);
});

test("replaces only the part of a text that differs", () => {
  const pairs = [["abcd", "abxd"], ["", "a"], ["aaa", "aa"], ["ab", "ba"], ["same", "same"]] as const;
  for (const [before, after] of pairs) {
    const change = changeOf(before, after);
    const result = change ? before.slice(0, change.from) + change.insert + before.slice(change.to) : before;
    expect(result).toBe(after);
  }
  expect(changeOf("abcd", "abxd")).toEqual({ from: 2, to: 3, insert: "x" });
});

test("finds the scopes that overlap a range of lines", () => {
  const { scopes } = paneFor(LOOPS);
  for (let first = 0; first < 30; first++)
    for (const last of [first, first + 4]) {
      const expected = scopes.flatMap((scope, index) => (scope.span.endLine >= first && scope.span.line <= last ? [index] : []));
      expect(scopesBetween(scopes, first, last)).toEqual(expected);
    }
});
