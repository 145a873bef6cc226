import { render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { GraphDiagram } from "../core/graph/view";
import type { GraphNode, GraphView } from "../core/protocol";
import { flush, useFakeTimers } from "./helpers";
import { rendered } from "./rendered";

let page: HTMLElement;
const select = vi.fn();
const ignore = vi.fn();
const NONE: ReadonlySet<string> = new Set();
const UNKNOWN = { costs: null, status: "" };

beforeEach(() => {
  useFakeTimers();
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(300);
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(400);
  select.mockClear();
  page = document.createElement("div");
  document.body.append(page);
});

afterEach(async () => {
  render(null, page);
  page.remove();
  await flush();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** A chain of operations; with namespaces, three operations are in each. */
function chain(count: number, grouped = false): GraphView {
  const nodes = Array.from({ length: count }, (_, uid): GraphNode => ({
    uid,
    name: `v${String(uid)}`,
    op: `op_${String(uid)}`,
    kind: "call",
    detail: "(8,) f32",
    callee: "",
    path: grouped ? ["main", `part.${String(Math.floor(uid / 3))}`] : [],
    inputs: uid === 0 ? [] : [uid - 1],
    origins: [],
  }));
  return { function: "main", nodes };
}

async function show(graph: GraphView, selected: number | null = null): Promise<void> {
  const diagram = (
    <GraphDiagram graph={graph} heat={null} selected={selected} linked={NONE} openFunction="" onSelect={select} onHover={ignore} onOpen={ignore} costs={UNKNOWN} />
  );
  render(diagram, page);
  await flush();
}

function found<T>(element: T | null): T {
  if (element === null) throw new Error("no element matches");
  return element;
}

const find = (selector: string): HTMLElement => found(page.querySelector<HTMLElement>(selector));
const findSvg = (selector: string): SVGElement => found(page.querySelector<SVGElement>(selector));

/** Return the movement and the scale of the graph. */
function camera(): { x: number; y: number; k: number } {
  const text = find(".tw-graph-canvas").getAttribute("transform") ?? "";
  const [x = 0, y = 0, k = 1] = (text.match(/-?[\d.]+(?:e-?\d+)?/g) ?? []).map(Number);
  return { x, y, k };
}

/** Return the position of a card in the window of the graph, from its top. */
function topOf(name: string): number {
  const { y, k } = camera();
  const [, top = 0] = (find(`.tw-card[data-name=${name}]`).getAttribute("transform")?.match(/-?[\d.]+/g) ?? []).map(Number);
  return y + k * top;
}

async function press(key: string): Promise<void> {
  (document.activeElement ?? page).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  await flush();
}

function wheel(init: WheelEventInit): WheelEvent {
  const event = new WheelEvent("wheel", { bubbles: true, cancelable: true, ...init });
  find(".tw-graph-view").dispatchEvent(event);
  return event;
}

function focusCard(): SVGElement {
  const card = findSvg(".tw-card[tabindex='0']");
  card.focus();
  return card;
}

test("starts at the top with readable text, and shows an overview of a partly hidden graph", async () => {
  await show(chain(30));
  expect(camera().k).toBeGreaterThanOrEqual(0.92);
  expect(topOf("v0")).toBeGreaterThanOrEqual(0);
  expect(page.querySelectorAll(".tw-minimap rect")).toHaveLength(31);
  const frame = find(".tw-minimap-frame");
  expect(Number(frame.getAttribute("y"))).toBe(0);
  expect(Number(frame.getAttribute("height"))).toBeCloseTo(400 / camera().k, 0);
  await show(chain(3));
  expect(page.querySelector(".tw-minimap")).toBeNull();
});

test("is one tab stop with arrow keys, which move the focused card into view", async () => {
  await show(chain(30));
  expect(page.querySelectorAll(".tw-card[tabindex='0']")).toHaveLength(1);
  expect(focusCard().dataset.name).toBe("v0");
  await press("ArrowDown");
  expect((document.activeElement as SVGElement).dataset.name).toBe("v1");
  await press("End");
  expect((document.activeElement as SVGElement).dataset.name).toBe("v29");
  expect(topOf("v29")).toBeGreaterThan(0);
  expect(topOf("v29")).toBeLessThan(400);
  await press("Enter");
  expect(select).toHaveBeenCalledWith(29);
});

test("zooms with keys and buttons, and fits the entire graph", async () => {
  await show(chain(30));
  focusCard();
  const before = camera().k;
  await press("+");
  expect(camera().k).toBeCloseTo(before * 1.25);
  await press("-");
  expect(camera().k).toBeCloseTo(before);
  find("[aria-label='Fit the graph']").click();
  await flush();
  expect(topOf("v0")).toBeGreaterThanOrEqual(0);
  expect(topOf("v29")).toBeLessThan(400);
  expect(page.querySelector(".tw-minimap")).toBeNull();
  await press("0");
  expect(camera().k).toBeCloseTo(1);
  find("[aria-label='Zoom in']").click();
  expect(camera().k).toBeCloseTo(1.25);
});

test("leaves the wheel to the page until the graph has the focus, except with Ctrl", async () => {
  await show(chain(30));
  const before = camera();
  expect(wheel({ deltaY: 100 }).defaultPrevented).toBe(false);
  await flush();
  expect(camera()).toEqual(before);
  expect(find(".tw-graph-hint").textContent).toContain("Click the graph");
  expect(wheel({ deltaY: -100, ctrlKey: true }).defaultPrevented).toBe(true);
  expect(camera().k).toBeGreaterThan(before.k);
  focusCard();
  const top = topOf("v5");
  expect(wheel({ deltaY: 50 }).defaultPrevented).toBe(true);
  expect(topOf("v5")).toBeCloseTo(top - 50);
});

test("moves a selection into view, and keeps the position otherwise", async () => {
  await show(chain(30), 0);
  await show(chain(30), 25);
  expect(topOf("v25")).toBeGreaterThan(0);
  expect(topOf("v25")).toBeLessThan(400);
  const before = camera();
  await show({ ...chain(30) }, 25);
  expect(camera()).toEqual(before);
});

test("keeps a visible card as the tab stop, so that the page is not scrolled to a hidden one", async () => {
  await show(chain(30));
  for (let turn = 0; turn < 10; turn++) find("[aria-label='Zoom in']").click();
  const frame = find(".tw-minimap-frame");
  const svg = findSvg(".tw-minimap");
  svg.setPointerCapture = vi.fn();
  const scale = Number(svg.getAttribute("width")) / Number(svg.getAttribute("viewBox")?.split(" ")[2]);
  const height = Number(svg.getAttribute("viewBox")?.split(" ")[3]);
  const down = new MouseEvent("pointerdown", { bubbles: true, cancelable: true, buttons: 1, clientX: 20, clientY: (height - 100) * scale });
  svg.dispatchEvent(down);
  await flush();
  expect(Number(frame.getAttribute("y"))).toBeGreaterThan(height / 2);
  const stop = findSvg(".tw-card[tabindex='0']");
  expect(Number(stop.dataset.name?.slice(1))).toBeGreaterThan(15);
});

test("focuses the first operation of a namespace that is opened, and the card of one that is folded", async () => {
  await show(chain(60, true));
  const group = findSvg(".tw-card-group");
  expect(group.getAttribute("aria-label")).toContain("part.0, 3 operations");
  group.focus();
  await press("Enter");
  expect((document.activeElement as SVGElement).dataset.name).toBe("v0");
  [...page.querySelectorAll<HTMLElement>(".tw-crumb")].find((crumb) => crumb.textContent.includes("part.0"))?.click();
  await flush();
  expect(document.activeElement?.getAttribute("aria-label")).toContain("part.0, 3 operations");
});

test("counts the results of a search and focuses the first one with Enter", async () => {
  await show(chain(30));
  const search = find("input[type=search]") as HTMLInputElement;
  const searchFor = async (text: string): Promise<void> => {
    search.value = text;
    search.dispatchEvent(new Event("input", { bubbles: true }));
    await flush();
  };
  await searchFor("no such operation");
  expect(find(".tw-found").textContent).toBe("0 found");
  await searchFor("op_27");
  expect(find(".tw-found").textContent).toBe("1 found");
  expect(page.querySelectorAll(".tw-minimap .is-found")).toHaveLength(1);
  search.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  await flush();
  expect((document.activeElement as SVGElement).dataset.name).toBe("v27");
  expect(topOf("v27")).toBeLessThan(400);
});

test("of a large graph only the cards near the visible part are rendered, and the selected one", async () => {
  await show(chain(1000), 900);
  const names = (): string[] => [...page.querySelectorAll<SVGElement>(".tw-card")].map((card) => card.dataset.name ?? "");
  expect(names().length).toBeLessThan(120);
  expect(names()).toContain("v900");
  expect(page.querySelectorAll(".tw-edge").length).toBeLessThan(120);
  expect(page.querySelectorAll(".tw-minimap path")).toHaveLength(1);
  await press("Home");
  findSvg(".tw-card[tabindex='0']").focus();
  await press("Home");
  expect(document.activeElement?.getAttribute("data-name")).toBe("v0");
  await press("End");
  expect(document.activeElement?.getAttribute("data-name")).toBe("v999");
  expect(names()).toContain("v998");
});

test("edges over many layers are marks with the names of the other ends", async () => {
  const graph = chain(2000);
  const nodes = graph.nodes.map((node) => (node.uid >= 60 ? { ...node, inputs: [...node.inputs, node.uid - 60] } : node));
  await show({ ...graph, nodes }, 1500);
  const ports = [...findSvg(".tw-card[data-name=v1500]").querySelectorAll(".tw-port")];
  expect(ports.map((port) => port.textContent)).toEqual(["from v1440", "to v1560"]);
});

test("a selection renders only the cards that it changes", async () => {
  const graph = chain(500);
  await show(graph, 1);
  expect(find("[data-name=v1]").classList.contains("is-selected")).toBe(true);
  const counts = await rendered(() => show(graph, 2));
  expect(counts.get("CardShape")).toBe(2);
  expect(find("[data-name=v1]").classList.contains("is-selected")).toBe(false);
  expect(find("[data-name=v2]").classList.contains("is-selected")).toBe(true);
  expect((await rendered(() => show(graph, 2))).get("Cards")).toBeUndefined();
});
