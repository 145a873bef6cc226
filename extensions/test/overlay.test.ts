import { expect, test } from "vitest";
import { readOverlay, writeOverlay, type Heat } from "../core/overlay";

test("an overlay is restored from its buffers", () => {
  const heat: Heat = {
    kind: "time",
    unit: "µs",
    function: "main",
    total: 4.5,
    calls: [
      { kernel: "a", value: 1.25, uids: [3, 70000] },
      { kernel: "b", value: 3.25, uids: [] },
    ],
  };
  const [overlay, buffers] = writeOverlay(heat, 2);
  expect([overlay.values, overlay.uids, overlay.calls]).toEqual([2, 3, 4]);
  const unused = new DataView(new ArrayBuffer(0));
  expect(readOverlay(overlay, [unused, unused, ...buffers])).toEqual(heat);
  const [empty, none] = writeOverlay({ ...heat, calls: [] }, 2);
  expect(none).toEqual([]);
  expect(readOverlay(empty, [])).toEqual({ ...heat, calls: [] });
});
