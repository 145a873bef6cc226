// Colors of the graph: the times of kernels, or the costs of operations, as figures of the cards.
import type { Heat } from "../overlay";
import type { GraphCosts, OperationCost } from "../protocol";
import { bytes, count, percent } from "../ui/format";
import type { Card } from "./fold";

/** A choice of the figures that color the graph. */
export type HeatKind = "time" | GraphCosts["kind"];

/** The choices with their names. */
export const HEAT_KINDS: Readonly<Record<HeatKind, string>> = {
  time: "Time",
  flops: "FLOPs",
  bytes: "Bytes moved",
  memory: "Peak memory",
};

/** Return the choice of a stored text. */
export function heatKind(text: string): HeatKind {
  return (Object.keys(HEAT_KINDS) as HeatKind[]).find((kind) => kind === text) ?? "time";
}

/** The figure of a card. */
export interface Figure {
  /** The position in the range of colors, from 0 to 1; 0 for an unknown figure. */
  readonly share: number;
  /** The text on the card. */
  readonly text: string;
  readonly isKnown: boolean;
  /** The figure as a phrase with its unit, and how it is derived. */
  readonly label: string;
  readonly note: string;
}

/** The figures of the cards, by key, and the upper end of the range of colors, empty without figures. */
export interface Coloring {
  readonly figures: ReadonlyMap<string, Figure>;
  readonly limit: string;
}

/** The widest figure of each choice, for which a card reserves space. */
export const WIDEST: Readonly<Record<HeatKind, string>> = { time: " 100 %", flops: " ≥ 99.9 M", bytes: " ≥ 99.9 MiB", memory: " ≥ 99.9 MiB" };

/** Return the names of the kernels that compute parts of a card. */
export function kernelsOf(card: Card, heat: Heat | null): readonly string[] {
  if (!heat) return [];
  const members = new Set(card.members.map((node) => node.uid));
  const calls = heat.calls.filter((call) => call.uids.some((uid) => members.has(uid)));
  return [...new Set(calls.map((call) => call.kernel))];
}

/** Return the shares of the call that the kernels of the cards take. */
export function timeColoring(cards: readonly Card[], heat: Heat | null): Coloring {
  if (!heat || heat.total <= 0 || heat.calls.length === 0) return { figures: new Map(), limit: "" };
  const figures = new Map<string, Figure>();
  const byUid = new Map<number, Heat["calls"]>();
  for (const call of heat.calls) for (const uid of call.uids) byUid.set(uid, [...(byUid.get(uid) ?? []), call]);
  for (const card of cards) {
    const calls = new Set(card.members.flatMap(({ uid }) => byUid.get(uid) ?? []));
    const time = [...calls].reduce((sum, call) => sum + call.value, 0);
    const share = Math.min(1, time / heat.total);
    if (share > 0) figures.set(card.key, { share, text: percent(share), isKnown: true, label: `${percent(share)} of the call`, note: "" });
  }
  return { figures, limit: "100 %" };
}

/** Return the costs of the cards; the range of colors ends at the largest one. */
export function costColoring(cards: readonly Card[], costs: GraphCosts | null): Coloring {
  if (!costs) return { figures: new Map(), limit: "" };
  const byUid = new Map(costs.items.map((item) => [item.uid, item]));
  const found = cards.flatMap((card): [string, Sum][] => {
    const items = card.members.flatMap((node) => byUid.get(node.uid) ?? []);
    return items.length > 0 ? [[card.key, sumOf(items, costs.kind)]] : [];
  });
  const most = Math.max(0, ...found.map(([, { value }]) => value ?? 0));
  const figures = new Map(found.map(([key, sum]) => [key, figureOf(sum, most, costs)] as const));
  return { figures, limit: found.length > 0 ? amount(most, costs.kind) : "" };
}

/** The cost of a card: null if no part of it is known. */
interface Sum {
  readonly value: number | null;
  readonly items: readonly OperationCost[];
  readonly unknown: number;
}

function sumOf(items: readonly OperationCost[], kind: GraphCosts["kind"]): Sum {
  const known = items.flatMap(({ value }) => (value === null ? [] : [value]));
  const value = kind === "memory" ? Math.max(0, ...known) : known.reduce((sum, one) => sum + one, 0);
  return { value: known.length > 0 ? value : null, items, unknown: items.length - known.length };
}

function figureOf(sum: Sum, most: number, costs: GraphCosts): Figure {
  const { value, unknown } = sum;
  const name = HEAT_KINDS[costs.kind];
  const note = noteOf(sum, costs);
  if (value === null) return { share: 0, text: "unknown", isKnown: false, label: `${name} unknown`, note };
  const sign = unknown > 0 ? "≥ " : "";
  const text = costs.kind === "flops" ? count(value) : bytes(value);
  return { share: most > 0 ? value / most : 0, text: sign + text, isKnown: true, label: `${name} ${sign}${amount(value, costs.kind)}`, note };
}

/** Return the cost of one operation with its unit, as a term over the symbols and at the sample sizes. */
export function costOf(uid: number, costs: GraphCosts): string | null {
  const item = costs.items.find((one) => one.uid === uid);
  if (!item || item.term === "") return null;
  if (item.value === null) return `${item.term} ${costs.unit}`;
  const value = amount(item.value, costs.kind);
  return item.term === String(item.value) ? value : `${item.term} = ${value} at ${costs.sizes}`;
}

function noteOf({ value, items, unknown }: Sum, { kind, sizes }: GraphCosts): string {
  const [first] = items;
  if (items.length > 1) {
    const rest = unknown > 0 ? `, ${String(unknown)} of them unknown` : "";
    return `${kind === "memory" ? "largest" : "sum"} of ${String(items.length)} operations${rest}, at ${sizes}`;
  }
  if (!first || first.term === "") return "no analysis states this cost";
  if (value === null) return `${first.term}, which the sizes do not determine`;
  return first.term === String(value) ? "" : `${first.term} = ${String(value)} at ${sizes}`;
}

function amount(value: number, kind: GraphCosts["kind"]): string {
  return kind === "flops" ? count(value, "FLOP") : bytes(value);
}
