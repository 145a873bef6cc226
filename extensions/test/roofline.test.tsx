import { render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Dock } from "../core/panels/dock";
import { branchPath, ceiling, gridOf, headPrediction, logScale, measuredPoints, predictedPoints } from "../core/panels/roofline_data";
import { svgText } from "../core/ui/svg_file";
import { connected, flush, useFakeTimers } from "./helpers";

let page: HTMLElement;

beforeEach(() => {
  useFakeTimers();
  page = document.createElement("div");
  document.body.append(page);
});

afterEach(async () => {
  render(null, page);
  page.remove();
  await flush();
  vi.useRealTimers();
});

async function open(): Promise<ReturnType<typeof connected>> {
  const both = connected();
  render(<Dock store={both.store} idBase="d" />, page);
  await flush();
  page.querySelector<HTMLElement>('[data-tab="roofline"]')?.click();
  await flush();
  return both;
}

test("draws the kernels below the roof, with a legend and a description", async () => {
  await open();
  const chart = page.querySelector(".tw-roofline-chart");
  expect(chart?.querySelectorAll(".tw-roofline-point")).toHaveLength(6);
  expect(chart?.querySelectorAll(".tw-roof")).toHaveLength(2);
  expect(chart?.getAttribute("aria-label")).toContain("Peaks: 125 GFLOP/s, L2 cache 180 GB/s, memory 21.0 GB/s");
  expect(chart?.getAttribute("aria-label")).toContain("fused_matmul_add_gelu: 42.5 GFLOP/s at 5.96 operations per byte, 34 % of the roof, limited by the operations");
  expect(page.querySelector(".tw-roofline-legend")?.textContent).toContain("memory: 21.0 GB/s");
  expect(page.querySelector(".tw-roofline table")?.textContent).toContain("fused_matmul_add_gelu");
});

test("draws the path of the open kernel through the measured states of the branch", async () => {
  const { store } = await open();
  const { history, records, measurement } = store.state.value;
  if (!measurement) throw new Error("no measurement");
  const path = branchPath(history, records, measurement, "fused_matmul_add_gelu");
  expect(path.map((point) => point.state)).toEqual([0, 4, 5].map((index) => history.nodes[index]?.key));
  expect(branchPath(history, records, { ...measurement, shapes: "b = 2" }, "fused_matmul_add_gelu")).toEqual([]);
  expect(page.querySelectorAll(".tw-roofline-earlier")).toHaveLength(3); // one of them in the legend
  expect(page.querySelector(".tw-roofline-chart .tw-roofline-path")).not.toBeNull();
});

test("draws predictions as hollow circles, also that of a head that is not measured", async () => {
  const { kernel, store } = await open();
  const { history, measurement, rule } = store.state.value;
  if (!measurement || !rule) throw new Error("no measurement");
  expect(predictedPoints(measurement)).toEqual([]);
  expect(page.querySelector(".tw-roofline-predicted")).toBeNull();
  const kernels = measurement.kernels.map((item, index) => (index < 2 ? { ...item, predicted: 85 } : item));
  kernel.answer({ measurement: { ...measurement, kernels }, rule: { ...rule, gflops: 100, gbytes: 10 } });
  await flush();
  expect(page.querySelectorAll(".tw-roofline-chart .tw-roofline-predicted")).toHaveLength(2);
  expect(page.querySelector(".tw-roofline-next")).toBeNull();
  expect(page.querySelector(".tw-roofline-legend")?.textContent).toContain("predicted by the estimated instructions");

  const edited = { ...history, head: "edited", nodes: [...history.nodes, { ...history.nodes[5], key: "edited", parent: history.head } as (typeof history.nodes)[number]] };
  kernel.answer({ history: edited });
  await flush();
  expect(page.querySelectorAll(".tw-roofline-chart .tw-roofline-predicted")).toHaveLength(3);
  expect(page.querySelector(".tw-roofline-next")).not.toBeNull();
  expect(page.querySelector(".tw-roofline-chart")?.getAttribute("aria-label")).toContain("fused_matmul_add_gelu at the head 100 GFLOP/s.");
});

test("a head without a prediction has no point", () => {
  const { store } = connected();
  const { history, measurement, rule } = store.state.value;
  if (!measurement || !rule) throw new Error("no measurement");
  const edited = { ...history, head: "edited" };
  expect(headPrediction(edited, measurement, rule)).toBeNull();
  expect(headPrediction(edited, measurement, null)).toBeNull();
  expect(headPrediction(edited, measurement, { ...rule, gflops: 0, gbytes: 5 })).toBeNull();
  expect(headPrediction(history, { ...measurement, state: history.head }, { ...rule, gflops: 1, gbytes: 1 })).toBeNull();
});

test("a kernel opens from the table, and the roof is measured again", async () => {
  const { kernel } = await open();
  page.querySelector<HTMLElement>('[data-focus="roofline:softmax"]')?.click();
  expect(kernel.last()).toMatchObject({ type: "open", function: "softmax" });
  page.querySelector<HTMLElement>('[data-focus="remeasure-roof"]')?.click();
  expect(kernel.last()).toMatchObject({ type: "run", action: "roof" });
});

test("states why there is no roofline", async () => {
  const { kernel, store } = await open();
  const { measurement } = store.state.value;
  if (!measurement) throw new Error("no measurement");
  const kernels = measurement.kernels.map(({ function: name, calls, microseconds, share }) => ({ function: name, calls, microseconds, share }));
  kernel.answer({ measurement: { ...measurement, kernels } });
  await flush();
  expect(page.textContent).toContain("No kernel of the measurement has known operations and bytes.");
  kernel.answer({ measurement: { ...measurement, kernels, emulated: true } });
  await flush();
  expect(page.textContent).toContain("The times of an emulator have no roof.");
  kernel.answer({ measurement: Object.fromEntries(Object.entries(measurement).filter(([name]) => name !== "roof")) as typeof measurement });
  await flush();
  expect(page.textContent).toContain("were not measured");
});

test("computes points, ceilings, and ranges of the axes", () => {
  const { store } = connected();
  const { measurement } = store.state.value;
  if (!measurement?.roof) throw new Error("no roof");
  expect(measuredPoints(measurement)[0]?.intensity).toBeCloseTo(42.5 / 7.125);
  expect(ceiling(measurement.roof, 21, 1)).toBe(21);
  expect(ceiling(measurement.roof, 21, 100)).toBe(125);
  expect(logScale([0.5, 42], [0, 300]).domain()).toEqual([0.1, 100]);
  expect(logScale([0.5, 42], [0, 300])(1)).toBeCloseTo(100);
  expect(logScale([1], [0, 1]).domain()).toEqual([1, 10]);
  expect(logScale([3], [0, 1]).domain()).toEqual([1, 10]);
});

test("labels the powers of ten of a grid", () => {
  const lines = gridOf(logScale([0.02, 5000], [0, 1]));
  expect(lines.map(({ label }) => label).filter((label) => label !== "")).toEqual(["0.01", "0.1", "1", "10", "100", "1,000", "10,000"]);
  expect(gridOf(logScale([2, 5], [0, 1])).map(({ label }) => label)).toEqual(["1", "", "", "", "", "", "", "", "", "10"]);
});

test("a saved drawing contains its size and namespace", async () => {
  await open();
  const drawing = page.querySelector<SVGSVGElement>(".tw-roofline-chart");
  if (!drawing) throw new Error("no drawing");
  const text = svgText(drawing);
  expect(text).toContain('xmlns="http://www.w3.org/2000/svg"');
  expect(text).toContain('width="460"');
  expect(text).toContain("fused_matmul_add_gelu");
});
