import { expect, test } from "vitest";
import { fold, foldedAtFirst, type Edge } from "../core/graph/fold";
import { layOut, routePath, type Box } from "../core/graph/layout";
import type { GraphNode, GraphView } from "../core/protocol";

const box = (key: string): Box => ({ key, width: 100, height: 30 });

function random(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

function randomGraph(count: number, seed: number): { boxes: Box[]; edges: Edge[] } {
  const next = random(seed);
  const boxes = Array.from({ length: count }, (_, index) => box(`n${String(index)}`));
  const edges: Edge[] = [];
  for (let to = 1; to < count; to++)
    for (const back of [1, 1 + Math.floor(next() * Math.min(to, 12))])
      if (back <= to) edges.push({ from: `n${String(to - back)}`, to: `n${String(to)}` });
  return { boxes, edges };
}

test.each([1, 2, 3, 4, 5])("cards do not overlap and edges point down (seed %i)", (seed) => {
  const { boxes, edges } = randomGraph(60, seed);
  const layout = layOut(boxes, edges);
  const placed = [...layout.boxes.values()];
  for (const [index, a] of placed.entries())
    for (const b of placed.slice(index + 1)) {
      const disjoint = a.x + a.width <= b.x + 1e-6 || b.x + b.width <= a.x + 1e-6 || a.y + a.height <= b.y || b.y + b.height <= a.y;
      expect(disjoint).toBe(true);
    }
  for (const { from, to } of edges) {
    const above = layout.boxes.get(from);
    const below = layout.boxes.get(to);
    expect((above?.y ?? 0) + (above?.height ?? 0)).toBeLessThan(below?.y ?? -1);
  }
});

test("keeps all cards within the page", () => {
  const { boxes, edges } = randomGraph(40, 9);
  const layout = layOut(boxes, edges);
  for (const { x, y, width, height } of layout.boxes.values()) {
    expect(x).toBeGreaterThanOrEqual(0);
    expect(y).toBeGreaterThanOrEqual(0);
    expect(x + width).toBeLessThanOrEqual(layout.width);
    expect(y + height).toBeLessThanOrEqual(layout.height);
  }
});

test("is deterministic and supports cycles of folded groups", () => {
  const { boxes, edges } = randomGraph(30, 3);
  expect(layOut(boxes, edges)).toEqual(layOut(boxes, edges));
  const cyclic = [...edges, { from: "n9", to: "n2" }];
  expect(layOut(boxes, cyclic).boxes.size).toBe(30);
  expect(layOut([], []).boxes.size).toBe(0);
});

test("lays out 300 cards in less than 250 ms", () => {
  const { boxes, edges } = randomGraph(300, 4);
  layOut(boxes, edges);
  const started = performance.now();
  layOut(boxes, edges);
  expect(performance.now() - started).toBeLessThan(250);
});

test("starts a path at its first point", () => {
  expect(routePath([])).toBe("");
  expect(routePath([{ x: 1, y: 2 }, { x: 3, y: 4 }])).toMatch(/^M1.0 2.0C/);
});

function node(uid: number, path: string[], inputs: number[]): GraphNode {
  return { uid, name: `v${String(uid)}`, op: "add", kind: "call", detail: "", callee: "", path, inputs, origins: [] };
}

function layers(count: number): GraphView {
  const nodes: GraphNode[] = [node(0, [], [])];
  for (let layer = 0; layer < count; layer++)
    for (let k = 0; k < 20; k++)
      nodes.push(node(nodes.length, ["encoder", `layer.${String(layer)}`, k < 10 ? "attention" : "mlp"], [nodes.length - 1]));
  return { function: "main", nodes };
}

test("folds a large graph initially to fit a page, and not a small one", () => {
  const big = layers(16);
  const shown = fold(big, foldedAtFirst(big));
  expect(shown.cards.length).toBeLessThanOrEqual(28);
  expect(shown.cards.map((card) => card.title)).toContain("layer.3");
  expect(foldedAtFirst({ function: "main", nodes: [node(0, [], []), node(1, ["a"], [0])] }).size).toBe(0);
});

test("keeps each value in exactly one card, without edges from a card to itself", () => {
  const view = layers(3);
  const shown = fold(view, new Set(["encoder/layer.1", "encoder/layer.2/mlp"]));
  const members = shown.cards.flatMap((card) => card.members.map((member) => member.uid));
  expect(members.toSorted((a, b) => a - b)).toEqual(view.nodes.map((member) => member.uid));
  expect(shown.edges.every((edge) => edge.from !== edge.to)).toBe(true);
  expect(shown.cards.find((card) => card.title === "layer.1")?.members.length).toBe(20);
});

function chainOf(count: number, back: number): { boxes: Box[]; edges: Edge[] } {
  const boxes = Array.from({ length: count }, (_, index) => box(`n${String(index)}`));
  const edges: Edge[] = [];
  for (let to = 1; to < count; to++) {
    edges.push({ from: `n${String(to - 1)}`, to: `n${String(to)}` });
    if (to >= back) edges.push({ from: `n${String(to - back)}`, to: `n${String(to)}` });
  }
  return { boxes, edges };
}

test("a chain may be longer than the stack", () => {
  const { boxes, edges } = chainOf(20_000, 20_000);
  const layout = layOut(boxes, edges);
  expect(layout.routes).toHaveLength(edges.length);
  expect(layout.ports).toEqual([]);
  const last = layout.boxes.get("n19999");
  expect((last?.y ?? 0) + (last?.height ?? 0)).toBeLessThanOrEqual(layout.height);
});

test("the longest edges are not routed if all would need too many bends", () => {
  const { boxes, edges } = chainOf(2000, 40);
  const { routes, ports } = layOut(boxes, edges);
  expect(routes.length + ports.length).toBe(edges.length);
  expect(ports.length).toBeGreaterThan(100);
  const number = (name: string): number => Number(name.slice(1));
  expect(new Set(ports.map((edge) => number(edge.to) - number(edge.from)))).toEqual(new Set([40]));
  expect(routes.filter(({ edge }) => number(edge.to) - number(edge.from) === 1)).toHaveLength(1999);
  expect(routes.reduce((bends, route) => bends + route.points.length - 2, 0)).toBeLessThanOrEqual(20_000);
});
