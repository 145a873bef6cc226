import { selection } from "d3-selection";
import { expect, test } from "vitest";
import { interpolate, interpolateNumber, interpolateRound } from "../core/d3/interpolate";
import { interrupt } from "../core/d3/transition";

test("interpolates numbers like D3, from the first to the second one", () => {
  expect([0, 0.25, 1].map(interpolateNumber(10, 20))).toEqual([10, 12.5, 20]);
  expect([0, 0.24, 1].map(interpolateRound(10, 20))).toEqual([10, 12, 20]);
  expect(interpolate).toBe(interpolateNumber);
});

test("a selection without animations is not changed by stopping them", () => {
  const { prototype } = selection;
  expect(prototype.interrupt()).toBe(prototype);
  interrupt();
});
