import type { Edge } from "./fold";

/** A card to be placed, with its real size. */
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
  readonly routes: readonly { readonly edge: Edge; readonly points: readonly Point[] }[];
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A box or a bend of a long edge, in its layer. */
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

/**
 * Lay out an acyclic graph in layers, top to bottom (Sugiyama): longest-path layers, bends where an
 * edge crosses layers, barycentre ordering, then positions pulled towards the neighbours' mean.
 * `before` holds the last layout's positions, which decide the first order, so that cards keep
 * their places from one step to the next.
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
  const chains = edges.flatMap((edge) => chain(edge, slots));
  const rows = toRows(chains, slots);
  order(rows);
  position(rows);
  return finish(rows, chains, boxes);
}

interface Chain {
  readonly edge: Edge;
  readonly slots: readonly Slot[];
}

/** Longest path from the sources; a source then sinks to just above its first consumer. */
function assignLayers(boxes: readonly Box[], edges: readonly Edge[]): Map<string, number> {
  const inputs = group(edges, (edge) => edge.to);
  const outputs = group(edges, (edge) => edge.from);
  const layers = new Map<string, number>();
  const visiting = new Set<string>();
  const depth = (key: string): number => {
    const known = layers.get(key);
    if (known !== undefined) return known;
    if (visiting.has(key)) return 0;
    visiting.add(key);
    const above = (inputs.get(key) ?? []).map((edge) => depth(edge.from) + 1);
    const layer = Math.max(0, ...above);
    layers.set(key, layer);
    return layer;
  };
  for (const box of boxes) depth(box.key);
  for (const box of boxes) {
    const below = (outputs.get(box.key) ?? []).map((edge) => layers.get(edge.to) ?? 1);
    if (!inputs.has(box.key) && below.length > 0) layers.set(box.key, Math.min(...below) - 1);
  }
  return layers;
}

/** Follow an edge through its layers, making a bend in each one between. */
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

/** Barycentre sweeps, down then up; a sort that keeps equals in place. */
function order(rows: readonly Slot[][]): void {
  for (const row of rows) settle(row);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (const row of down ? rows : [...rows].reverse()) {
      for (const slot of row) weigh(slot, down ? slot.up : slot.down);
      settle(row);
    }
  }
}

function weigh(slot: Slot, near: readonly Slot[]): void {
  if (near.length > 0) slot.order = mean(near.map((other) => other.order));
}

function settle(row: Slot[]): void {
  row.sort((a, b) => a.order - b.order);
  row.forEach((slot, index) => (slot.order = index));
}

/** Start packed and centred, then pull each slot towards the mean of its neighbours. */
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
    for (const row of down ? rows : [...rows].reverse()) pull(row, down);
  }
}

function pull(row: readonly Slot[], down: boolean): void {
  const wanted = row.map((slot) => {
    const near = down ? slot.up : slot.down;
    const far = near.length > 0 ? near : down ? slot.down : slot.up;
    return far.length > 0 ? mean(far.map((other) => other.x)) : slot.x;
  });
  spread(row, wanted);
}

/**
 * Put the slots of a row as near as possible to where they are wanted, in order and without
 * overlap: neighbours that collide form a cluster, which moves to its members' mean wish.
 */
function spread(row: readonly Slot[], wanted: readonly number[]): void {
  const clusters: Cluster[] = [];
  row.forEach((slot, index) => {
    const wish = wanted[index] ?? slot.x;
    const weight = slot.height === 0 ? 4 : 1;
    const half = (slot.width + gap(slot)) / 2;
    clusters.push({ sum: (wish - half) * weight, weight, slots: [{ slot, offset: half }], span: 2 * half });
    while (collide(clusters.at(-2), clusters.at(-1))) join(clusters);
  });
  for (const cluster of clusters) {
    const start = cluster.sum / cluster.weight;
    for (const { slot, offset } of cluster.slots) slot.x = start + offset;
  }
}

/** Neighbours that touch: the mean wish for their left edge, its weight, and their width. */
interface Cluster {
  sum: number;
  weight: number;
  span: number;
  readonly slots: { readonly slot: Slot; readonly offset: number }[];
}

function collide(left: Cluster | undefined, right: Cluster | undefined): boolean {
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

function finish(rows: readonly Slot[][], chains: readonly Chain[], boxes: readonly Box[]): Layout {
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

/** Let an edge leave at the bottom of its first box and arrive at the top of its last. */
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

/** A smooth line through the points, vertical at each. */
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
