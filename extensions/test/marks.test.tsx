import { render } from "preact";
import { expect, test } from "vitest";
import { Occurrences } from "../core/code/marks";
import { readPane } from "../core/pane";
import { SPAN_KINDS } from "../core/protocol";
import { makePane } from "../dev/program";

const TEXT = "@prim_func\ndef f(a: Buffer[(4,), f32]):\n    for i in range(4):\n        a[i] = a[i] + 1.0\n";
const BUFFER = SPAN_KINDS.indexOf("buffer");
const SPANS = [
  [BUFFER, 9, 1, 1, 6, 1, 7],
  [BUFFER, 9, 0, 3, 8, 3, 9],
  [BUFFER, 9, 0, 3, 15, 3, 16],
  [SPAN_KINDS.indexOf("loop"), 5, 0, 3, 10, 3, 11],
];

function boxes(uid: number | null, first: number, last: number): (string | null)[] {
  const pane = readPane(makePane("f", TEXT, "loop", 0).pane, new DataView(Int32Array.from(SPANS.flat()).buffer));
  const box = document.createElement("div");
  render(<Occurrences pane={pane} uid={uid} first={first} last={last} />, box);
  return [...box.querySelectorAll(".tw-occurrence")].map((one) => one.getAttribute("style"));
}

test("marks the uses of the selected part, not its definition or other parts", () => {
  expect(boxes(9, 0, 9)).toEqual([
    "transform: translateY(60px); left: 8ch; width: 1ch;",
    "transform: translateY(60px); left: 15ch; width: 1ch;",
  ]);
});

test("marks only the lines that are displayed", () => {
  expect(boxes(9, 0, 2)).toEqual([]);
  expect(boxes(null, 0, 9)).toEqual([]);
});
