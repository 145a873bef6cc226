import type { Edge } from "./fold";

/** A card to lay out, with its size. */
export interface Box {
  readonly key: string;
  readonly width: number;
  readonly height: number;
}

export interface Placed {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly boxes: ReadonlyMap<string, Placed>;
  readonly routes: readonly Route[];
  /** The edges that are not routed because they cross too many layers. */
  readonly ports: readonly Edge[];
}

export interface Route {
  readonly edge: Edge;
  readonly points: readonly Point[];
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A box, or a bend of an edge that crosses layers. */
interface Slot {
  readonly key: string;
  readonly width: number;
  readonly height: number;
  readonly layer: number;
  readonly up: Slot[];
  readonly down: Slot[];
  order: number;
  x: number;
}

const GAP_X = 18;
const GAP_BEND = 10;
const GAP_Y = 30;
const SWEEPS = 6;
const MARGIN = 16;
/** The number of bends of all edges; the longest edges have none if there are more. */
const MAX_BENDS = 20_000;

/**
 * Lay out an acyclic graph in layers, top to bottom (Sugiyama): longest-path layers, bends where an
 * edge crosses layers, barycenter ordering, then positions near the mean of the neighbors.
 * `before` contains the positions of the previous layout, which determine the initial order, so
 * that positions are stable between steps.
 */
export function layOut(
  boxes: readonly Box[],
  edges: readonly Edge[],
  before: ReadonlyMap<string, Placed> = new Map(),
): Layout {
  const layers = assignLayers(boxes, edges);
  const slots = new Map<string, Slot>();
  boxes.forEach((box, index) => {
    const order = before.get(box.key)?.x ?? index * 1e-3;
    slots.set(box.key, { ...box, layer: layers.get(box.key) ?? 0, up: [], down: [], order, x: 0 });
  });
  const [short, ports] = byLength(edges, layers);
  const chains = short.flatMap((edge) => chain(edge, slots));
  const rows = toRows(chains, slots);
  order(rows);
  position(rows);
  return { ...finish(rows, chains, boxes), ports };
}

/** Return the edges that are routed, and the longest ones, which would need too many bends. */
function byLength(edges: readonly Edge[], layers: ReadonlyMap<string, number>): [readonly Edge[], readonly Edge[]] {
  const length = (edge: Edge): number => (layers.get(edge.to) ?? 0) - (layers.get(edge.from) ?? 0);
  const total = edges.reduce((sum, edge) => sum + Math.max(0, length(edge) - 1), 0);
  if (total <= MAX_BENDS) return [edges, []];
  let bends = 0;
  const short = new Set<Edge>();
  for (const edge of [...edges].sort((one, other) => length(one) - length(other))) {
    bends += Math.max(0, length(edge) - 1);
    if (bends > MAX_BENDS) break;
    short.add(edge);
  }
  return [edges.filter((edge) => short.has(edge)), edges.filter((edge) => !short.has(edge))];
}

interface Chain {
  readonly edge: Edge;
  readonly slots: readonly Slot[];
}

/** Assign longest-path layers; a source is moved to the layer above its first consumer. */
function assignLayers(boxes: readonly Box[], edges: readonly Edge[]): Map<string, number> {
  const inputs = group(edges, (edge) => edge.to);
  const outputs = group(edges, (edge) => edge.from);
  const layers = new Map<string, number>();
  const visiting = new Set<string>();
  for (const box of boxes) {
    const stack = [box.key]; // not a recursion: a chain may be longer than the stack of the browser
    for (let key = stack.at(-1); key !== undefined; key = stack.at(-1)) {
      const above = (inputs.get(key) ?? []).map((edge) => edge.from);
      const next = visiting.has(key) ? undefined : above.filter((other) => !layers.has(other) && !visiting.has(other));
      visiting.add(key);
      if (!layers.has(key) && next !== undefined && next.length > 0) {
        stack.push(...next);
        continue;
      }
      stack.pop();
      if (!layers.has(key)) layers.set(key, above.reduce((layer, other) => Math.max(layer, (layers.get(other) ?? 0) + 1), 0));
    }
  }
  for (const box of boxes) {
    const below = (outputs.get(box.key) ?? []).map((edge) => layers.get(edge.to) ?? 1);
    if (!inputs.has(box.key) && below.length > 0) layers.set(box.key, Math.min(...below) - 1);
  }
  return layers;
}

/** Return the slots of an edge, with a bend in each intermediate layer. */
function chain(edge: Edge, slots: ReadonlyMap<string, Slot>): Chain[] {
  const from = slots.get(edge.from);
  const to = slots.get(edge.to);
  if (!from || !to || from.layer >= to.layer) return [];
  const path = [from];
  for (let layer = from.layer + 1; layer < to.layer; layer++) {
    const share = (layer - from.layer) / (to.layer - from.layer);
    path.push({
      key: `${edge.from}>${edge.to}@${String(layer)}`,
      width: 2,
      height: 0,
      layer,
      up: [],
      down: [],
      order: from.order + (to.order - from.order) * share,
      x: 0,
    });
  }
  path.push(to);
  for (let index = 1; index < path.length; index++) {
    const above = path[index - 1];
    const below = path[index];
    if (above && below) {
      above.down.push(below);
      below.up.push(above);
    }
  }
  return [{ edge, slots: path }];
}

function toRows(chains: readonly Chain[], slots: ReadonlyMap<string, Slot>): Slot[][] {
  const all = new Set<Slot>(slots.values());
  for (const { slots: path } of chains) for (const slot of path) all.add(slot);
  const rows: Slot[][] = [];
  for (const slot of all) (rows[slot.layer] ??= []).push(slot);
  return Array.from(rows, (row: Slot[] | undefined) => row ?? []);
}

/** Order rows by barycenter sweeps, alternating down and up, with a stable sort. */
function order(rows: readonly Slot[][]): void {
  for (const row of rows) sortRow(row);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (const row of down ? rows : [...rows].reverse()) {
      if (row.length < 2) continue;
      for (const slot of row) weigh(slot, down ? slot.up : slot.down);
      sortRow(row);
    }
  }
}

function weigh(slot: Slot, near: readonly Slot[]): void {
  if (near.length > 0) slot.order = mean(near.map((other) => other.order));
}

function sortRow(row: Slot[]): void {
  row.sort((a, b) => a.order - b.order);
  row.forEach((slot, index) => (slot.order = index));
}

/** Position slots packed and centered, then move each toward the mean of its neighbors. */
function position(rows: readonly Slot[][]): void {
  for (const row of rows) {
    const width = row.reduce((sum, slot) => sum + slot.width + gap(slot), 0);
    let x = -width / 2;
    for (const slot of row) {
      slot.x = x + slot.width / 2;
      x += slot.width + gap(slot);
    }
  }
  for (let sweep = 0; sweep < SWEEPS * 2; sweep++) {
    const down = sweep % 2 === 0;
    for (const row of down ? rows : [...rows].reverse()) relax(row, down);
  }
}

function relax(row: readonly Slot[], down: boolean): void {
  const [only] = row;
  if (only && row.length === 1) only.x = target(only, down);
  else spread(row, row.map((slot) => target(slot, down)));
}

/** Return the mean position of the neighbors of a slot in the layer above or below. */
function target(slot: Slot, down: boolean): number {
  const near = down ? slot.up : slot.down;
  const far = near.length > 0 ? near : down ? slot.down : slot.up;
  return far.length > 0 ? far.reduce((sum, other) => sum + other.x, 0) / far.length : slot.x;
}

/**
 * Move the slots of a row as close as possible to their target positions, in order and without
 * overlap: slots that overlap form a cluster, which moves to the weighted mean of its targets.
 */
function spread(row: readonly Slot[], targets: readonly number[]): void {
  const clusters: Cluster[] = [];
  row.forEach((slot, index) => {
    const wanted = targets[index] ?? slot.x;
    const weight = slot.height === 0 ? 4 : 1;
    const half = (slot.width + gap(slot)) / 2;
    clusters.push({ sum: (wanted - half) * weight, weight, slots: [{ slot, offset: half }], span: 2 * half });
    while (overlap(clusters.at(-2), clusters.at(-1))) join(clusters);
  });
  for (const cluster of clusters) {
    const start = cluster.sum / cluster.weight;
    for (const { slot, offset } of cluster.slots) slot.x = start + offset;
  }
}

/** Adjacent slots: the weighted sum of the targets of their left edge, the weight, and the width. */
interface Cluster {
  sum: number;
  weight: number;
  span: number;
  readonly slots: { readonly slot: Slot; readonly offset: number }[];
}

function overlap(left: Cluster | undefined, right: Cluster | undefined): boolean {
  return left !== undefined && right !== undefined && left.sum / left.weight + left.span > right.sum / right.weight;
}

/** Merge the last two clusters. */
function join(clusters: Cluster[]): void {
  const right = clusters.pop();
  const left = clusters.at(-1);
  if (!left || !right) return;
  for (const { slot, offset } of right.slots) left.slots.push({ slot, offset: offset + left.span });
  left.sum += right.sum - right.weight * left.span;
  left.weight += right.weight;
  left.span += right.span;
}

function finish(rows: readonly Slot[][], chains: readonly Chain[], boxes: readonly Box[]): Omit<Layout, "ports"> {
  const real = new Set(boxes.map((box) => box.key));
  const slots = rows.flat();
  const left = slots.reduce((x, slot) => Math.min(x, slot.x - slot.width / 2), Infinity) - MARGIN;
  const right = slots.reduce((x, slot) => Math.max(x, slot.x + slot.width / 2), -Infinity) + MARGIN;
  if (slots.length === 0) return { width: 2 * MARGIN, height: 2 * MARGIN, boxes: new Map(), routes: [] };
  const placed = new Map<string, Placed>();
  const middles: number[] = [];
  let y = MARGIN;
  rows.forEach((row, layer) => {
    const tallest = Math.max(0, ...row.map((slot) => slot.height));
    middles[layer] = y + tallest / 2;
    for (const { key, x, width, height } of row.filter((slot) => real.has(slot.key)))
      placed.set(key, { x: x - left - width / 2, y: y + (tallest - height) / 2, width, height });
    y += tallest + GAP_Y;
  });
  const point = (slot: Slot): Point => ({ x: slot.x - left, y: middles[slot.layer] ?? 0 });
  const routes = chains.map(({ edge, slots }) => ({
    edge,
    points: ends(slots.map(point), placed.get(edge.from), placed.get(edge.to)),
  }));
  return { width: right - left, height: Math.max(y - GAP_Y + MARGIN, 2 * MARGIN), boxes: placed, routes };
}

/** Return the points of an edge from the bottom of its first box to the top of its last box. */
function ends(points: readonly Point[], from: Placed | undefined, to: Placed | undefined): Point[] {
  const first = points[0];
  const last = points.at(-1);
  if (!first || !last || !from || !to) return [...points];
  return [
    { x: first.x, y: from.y + from.height },
    ...points.slice(1, -1),
    { x: last.x, y: to.y },
  ];
}

/** Return a smooth SVG path through the points, vertical at each point. */
export function routePath(points: readonly Point[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let path = `M${first.x.toFixed(1)} ${first.y.toFixed(1)}`;
  let last = first;
  for (const point of rest) {
    const middle = ((last.y + point.y) / 2).toFixed(1);
    path += `C${last.x.toFixed(1)} ${middle} ${point.x.toFixed(1)} ${middle} ${point.x.toFixed(1)} ${point.y.toFixed(1)}`;
    last = point;
  }
  return path;
}

function gap(slot: Slot): number {
  return slot.height === 0 ? GAP_BEND : GAP_X;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function group<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const list = groups.get(key(item));
    if (list) list.push(item);
    else groups.set(key(item), [item]);
  }
  return groups;
}
