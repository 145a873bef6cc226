import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { differs, memo } from "../ui/memo";
import type { Heat } from "../overlay";
import type { GraphView as Graph } from "../protocol";
import type { Area } from "./camera";
import { kernelsOf, type Coloring, type Figure } from "./coloring";
import type { Card, Folded } from "./fold";
import { routePath, type Layout, type Placed, type Route } from "./layout";
import { clipped, isSmall } from "./sizes";
import { overlaps, portsOf, routesIn, type Ports } from "./visible";

export interface CardActions {
  readonly onSelect: (uid: number) => void;
  readonly onHover: (uid: number | null) => void;
  readonly onOpen: (callee: string) => void;
  readonly onToggle: (key: string) => void;
  readonly onActive: (index: number) => void;
}

interface CardsProps extends CardActions {
  readonly graph: Graph;
  readonly heat: Heat | null;
  readonly coloring: Coloring;
  readonly linked: ReadonlySet<string>;
  readonly openFunction: string;
  readonly shown: Folded;
  readonly layout: Layout;
  /** The keys of the cards with the selection, and of those that match the search; null without a search. */
  readonly chosen: ReadonlySet<string>;
  readonly found: ReadonlySet<string> | null;
  /** The part of a large graph to render, null for all of it. */
  readonly part: Area | null;
  /** The number of the card that is a tab stop. */
  readonly tabStop: number;
}

/** The opacity of the color at the end of the range; the text on it stays readable. */
const MAX_HEAT = 0.55;
/** The share from which the color is strong enough to make quiet text hard to read. */
const HOT = 0.1;

/** The edges and cards of the diagram. */
export const Cards = memo(function Cards(props: CardsProps): JSX.Element {
  const { shown, layout, chosen, part, tabStop } = props;
  const routes = useMemo(() => routesIn(layout.routes, part), [layout, part]);
  const ports = useMemo(() => portsOf(layout.ports), [layout]);
  const near = useMemo(() => cardsIn(shown, layout, part), [shown, layout, part]);
  const isOther = ({ key }: Card, index: number): boolean => (index === tabStop || chosen.has(key)) && !near.has(index);
  const others = part === null ? [] : shown.cards.flatMap((card, index) => (isOther(card, index) ? [index] : []));
  const indices = others.length === 0 ? [...near] : [...near, ...others].sort((one, other) => one - other);
  return (
    <>
      <g aria-hidden="true">
        {routes.map((route) => (
          <EdgeLine key={`${route.edge.from}>${route.edge.to}`} route={route} isNear={chosen.has(route.edge.from) || chosen.has(route.edge.to)} />
        ))}
      </g>
      {indices.map((index) => {
        const card = shown.cards[index];
        return card ? <CardNode key={card.key} {...props} card={card} index={index} ports={ports.get(card.key)} /> : null;
      })}
    </>
  );
});

/** Return the numbers of the cards that are near a part of the layout. */
function cardsIn({ cards }: Folded, { boxes }: Layout, part: Area | null): ReadonlySet<number> {
  const isNear = (card: Card): boolean => {
    const place = boxes.get(card.key);
    return place !== undefined && overlaps(part, place);
  };
  return new Set(cards.flatMap((card, index) => (isNear(card) ? [index] : [])));
}

const EdgeLine = memo(function EdgeLine({ route, isNear }: { readonly route: Route; readonly isNear: boolean }): JSX.Element {
  const path = useMemo(() => routePath(route.points), [route]);
  return <path class={`tw-edge${isNear ? " is-near" : ""}`} d={path} />;
});

interface CardProps extends CardsProps {
  readonly card: Card;
  readonly index: number;
  readonly ports: Ports | undefined;
}

/** The properties of the diagram of which a card shows a part of its own, or nothing. */
const SHARED = new Set(["graph", "selected", "layout", "part", "chosen", "found", "linked", "openFunction", "tabStop"]);

/** A card, which is rendered again only if its own part of the properties changes. */
const CardNode = memo(CardShape, (before, now) => {
  const last = ownPart(before);
  return differs(before, now, SHARED) || ownPart(now).some((value, index) => value !== last[index]);
});

/** Return the values for one card of the properties that all cards share. */
function ownPart({ card, index, layout, chosen, found, linked, openFunction, tabStop }: CardProps): readonly unknown[] {
  return [
    layout.boxes.get(card.key),
    index === tabStop,
    chosen.has(card.key),
    found?.has(card.key),
    linked.size > 0 && card.members.some((node) => node.origins.some((origin) => linked.has(origin))),
    card.members.some((node) => node.callee !== "" && node.callee === openFunction),
  ];
}

function CardShape(props: CardProps): JSX.Element | null {
  const { card, layout } = props;
  const place = layout.boxes.get(card.key);
  if (!place) return null;
  const kernels = kernelsOf(card, props.heat);
  const figure = props.coloring.figures.get(card.key);
  const act = (): void => {
    if (card.kind === "group") props.onToggle(card.path.join("/"));
    else if (card.members[0]) props.onSelect(card.members[0].uid);
  };
  const openIt = (): void => {
    const callee = card.members[0]?.callee;
    const called = callee === "" || callee === undefined ? kernels[0] : callee;
    if (card.kind !== "group" && called !== undefined) props.onOpen(called);
  };
  const title = isSmall(card) ? `${card.title} ${card.members[0]?.name ?? ""}` : card.title;
  const label = `${title}, ${card.detail}${figure ? `, ${figure.label}` : ""}`;
  return (
    <g
      role="treeitem"
      class={cardClass(props, figure)}
      transform={`translate(${place.x.toFixed(1)} ${place.y.toFixed(1)})`}
      tabindex={props.index === props.tabStop ? 0 : -1}
      data-roving={props.index}
      data-name={card.members[0]?.name}
      aria-label={card.kind === "group" ? `${label}, folded` : label}
      aria-level={Math.max(1, card.path.length)}
      aria-selected={props.chosen.has(card.key)}
      {...(card.kind === "group" ? { "aria-expanded": false } : {})}
      onFocus={() => props.onActive(props.index)}
      onClick={act}
      onDblClick={openIt}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        act();
      }}
      onPointerEnter={() => props.onHover(card.members[0]?.uid ?? null)}
      onPointerLeave={() => props.onHover(null)}
    >
      <title>{[card.path.join(" › "), label, figure?.note ?? "", kernels.length > 0 ? `kernel ${kernels.join(", ")}` : ""].filter((line) => line !== "").join("\n")}</title>
      {card.kind === "group" ? (
        <rect class="tw-card-stack" x="4" y="4" width={place.width} height={place.height} rx="7" />
      ) : null}
      <rect class="tw-card-box" width={place.width} height={place.height} rx={isSmall(card) ? place.height / 2 : 7} />
      {figure && figure.share > 0 ? <rect class="tw-card-heat" width={place.width} height={place.height} rx="7" style={{ opacity: figure.share * MAX_HEAT }} /> : null}
      <text class="tw-card-title" x={isSmall(card) ? 12 : 11} y="16">
        {isSmall(card) ? `${card.members[0]?.name ?? card.title}  ${card.detail}` : clipped(card.title, 24)}
      </text>
      {isSmall(card) ? null : (
        <text class="tw-card-detail" x="11" y="30">
          {clipped(card.detail, 27)}
        </text>
      )}
      {props.ports ? <PortMarks ports={props.ports} place={place} shown={props.shown} /> : null}
      {figure ? (
        <text class={`tw-card-share${figure.isKnown ? "" : " is-unknown"}`} x={place.width - 8} y="30" text-anchor="end">
          {figure.text}
        </text>
      ) : null}
    </g>
  );
}

/** The number of other ends that a mark names. */
const NAMED = 4;

/** The ends of edges that are too long to be routed, with the names of the values at the other ends. */
function PortMarks({ ports, place, shown }: { ports: Ports; place: Placed; shown: Folded }): JSX.Element {
  // An operand of all operations has thousands of other ends, of which the text shows the first ones.
  const names = (keys: readonly string[]): string => keys.slice(0, NAMED).map((key) => nameOf(shown, key)).join(", ");
  const x = place.width - 14;
  return (
    <>
      {ports.inputs.length > 0 ? (
        <g class="tw-port">
          <path d={`M${x} 0v-8`} />
          <text x={x + 5} y="-3">{clipped(`from ${names(ports.inputs)}`, 24)}</text>
        </g>
      ) : null}
      {ports.outputs.length > 0 ? (
        <g class="tw-port">
          <path d={`M${x} ${place.height}v8`} />
          <text x={x + 5} y={place.height + 10}>{clipped(`to ${names(ports.outputs)}`, 24)}</text>
        </g>
      ) : null}
    </>
  );
}

const byKey = new WeakMap<Folded, ReadonlyMap<string, Card>>();

function nameOf(shown: Folded, key: string): string {
  const cards = byKey.get(shown) ?? new Map(shown.cards.map((card) => [card.key, card]));
  byKey.set(shown, cards);
  const card = cards.get(key);
  return card?.kind === "group" ? card.title : (card?.members[0]?.name ?? key);
}

function cardClass(props: CardProps, figure: Figure | undefined): string {
  const { card } = props;
  const classes = ["tw-card", `tw-card-${card.kind}`];
  if (figure && figure.share > HOT) classes.push("is-hot");
  if (figure?.isKnown === false) classes.push("is-unknown");
  if (props.chosen.has(card.key)) classes.push("is-selected");
  if (card.members.some((node) => node.origins.some((origin) => props.linked.has(origin)))) classes.push("is-linked");
  if (card.members.some((node) => node.callee !== "" && node.callee === props.openFunction)) classes.push("is-open");
  if (props.found) classes.push(props.found.has(card.key) ? "is-found" : "is-dim");
  return classes.join(" ");
}
