import { afterEach, expect, test, vi } from "vitest";
import { Camera } from "../core/graph/camera";

let width = 600;

afterEach(() => vi.restoreAllMocks());

function camera(): Camera {
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockImplementation(() => width);
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(400);
  return new Camera(document.createElement("div"), { onMove: () => undefined, onPass: () => undefined });
}

const LARGE = { width: 4000, height: 4000 };
const centerX = ({ visible }: Camera): number => visible.x + visible.width / 2;

test("a view of another width has the same center after the user has moved the graph", () => {
  const moved = camera();
  moved.show(LARGE, null);
  moved.center(2000, 1500);
  expect(centerX(moved)).toBeCloseTo(2000);
  width = 300;
  moved.show(LARGE, null);
  expect(centerX(moved)).toBeCloseTo(2000);
  moved.show(LARGE, null);
  expect(centerX(moved)).toBeCloseTo(2000);
  width = 600;
});

test("a view of another width shows the start of a graph that was not moved", () => {
  const kept = camera();
  kept.show(LARGE, null);
  width = 300;
  kept.show(LARGE, null);
  expect(centerX(kept)).toBeCloseTo(2000);
  expect(kept.visible.y).toBeCloseTo(0);
  expect(kept.position).toBeNull();
  width = 600;
});
