import type { JSX } from "preact";
import { memo } from "../ui/memo";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Heat } from "../overlay";
import type { GraphView as Graph } from "../protocol";
import { focusRoving, nextIndex } from "../ui/roving";
import { Icon } from "../ui/icons";
import { percent } from "../ui/format";
import { textWidth } from "../ui/text_width";
import { fold, foldedAtFirst, namespaces, type Card, type Folded } from "./fold";
import { layOut, routePath, type Box, type Placed } from "./layout";

interface GraphProps {
  readonly graph: Graph;
  readonly heat: Heat | null;
  readonly selected: number | null;
  readonly linked: ReadonlySet<string>;
  readonly openFunction: string;
  readonly onSelect: (uid: number) => void;
  readonly onHover: (uid: number | null) => void;
  readonly onOpen: (callee: string) => void;
}

const HEIGHT = 38;
const PARAM_HEIGHT = 24;
/** The opacity of the color of a card that takes the entire call; the text on it stays readable. */
const MAX_HEAT = 0.55;

/** The dataflow as a layered diagram with foldable namespaces. */
export function GraphDiagram(props: GraphProps): JSX.Element {
  const { graph } = props;
  const [changed, setChanged] = useState<ReadonlyMap<string, boolean>>(new Map());
  const [zoom, setZoom] = useState<number | null>(null);
  const [query, setQuery] = useState("");
  const scroll = useRef<HTMLDivElement>(null);
  const last = useRef<ReadonlyMap<string, Placed>>(new Map());
  const fonts = useFonts(scroll);
  const initial = useMemo(() => foldedAtFirst(graph), [graph]);
  const shown = useMemo(() => folding(graph, initial, changed), [graph, initial, changed]);
  const layout = useMemo(() => {
    const next = layOut(shown.cards.map((card) => boxOf(card, fonts)), shown.edges, last.current);
    last.current = next.boxes;
    return next;
  }, [shown, fonts]);
  const wide = useWidth(scroll);
  const scale = zoom ?? Math.max(0.62, Math.min(1, (wide - 4) / layout.width));
  const zoomBy = (factor: number): void => setZoom(Math.max(0.35, Math.min(2, scale * factor)));
  const toggle = (key: string): void =>
    setChanged((map) => new Map(map).set(key, !isFolded(initial, map, key)));
  const open = [...namespaces(graph)]
    .filter(([key, count]) => count > 1 && !isFolded(initial, changed, key))
    .map(([key]) => key);
  return (
    <div class="tw-graph">
      <div class="tw-graph-bar">
        <label class="tw-search">
          <Icon name="search" size={14} />
          <input
            type="search"
            placeholder="Find an operation"
            aria-label="Find an operation"
            value={query}
            onInput={(event) => setQuery(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter") scroll.current?.querySelector<SVGElement>(".tw-card.is-found")?.focus();
            }}
          />
          {query.trim() === "" ? null : (
            <span class="tw-found" role="status">
              {found(shown.cards, query)} found
            </span>
          )}
        </label>
        <button type="button" class="tw-tool" aria-label="Zoom out" onClick={() => zoomBy(1 / 1.2)}>
          <Icon name="minus" />
        </button>
        <button type="button" class="tw-tool" aria-label="Zoom in" onClick={() => zoomBy(1.2)}>
          <Icon name="plus" />
        </button>
        <button type="button" class="tw-tool" aria-label="Fit the width" onClick={() => setZoom(null)}>
          <Icon name="fit" />
        </button>
      </div>
      {props.heat && props.heat.calls.length > 0 ? (
        <p class="tw-legend">
          Time of the kernels, % of the call <span class="tw-legend-scale" aria-hidden="true" /> <span class="tw-mono">0 … 100 %</span>
        </p>
      ) : null}
      {open.length > 0 && (graph.nodes.length > 12 || graph.nodes.some((node) => node.kind === "carried")) ? (
        <div class="tw-crumbs" aria-label="Open namespaces">
          {open.map((key) => (
            <button type="button" key={key} class="tw-crumb" title={`Fold ${key}`} onClick={() => toggle(key)}>
              {key}
              <Icon name="cross" size={10} />
            </button>
          ))}
        </div>
      ) : null}
      <div class="tw-graph-scroll" ref={scroll}>
        <Cards {...props} shown={shown} layout={layout} zoom={scale} query={query.trim().toLowerCase()} onToggle={toggle} />
      </div>
    </div>
  );
}

interface CardsProps extends GraphProps {
  readonly shown: Folded;
  readonly layout: ReturnType<typeof layOut>;
  readonly zoom: number;
  readonly query: string;
  readonly onToggle: (key: string) => void;
}

const Cards = memo(function Cards(props: CardsProps): JSX.Element {
  const { shown, layout, zoom } = props;
  const [active, setActive] = useState(0);
  const svg = useRef<SVGSVGElement>(null);
  const near = useMemo(() => new Set(shown.cards.filter((card) => isChosen(card, props.selected)).map((card) => card.key)), [shown, props.selected]);
  const move = (event: KeyboardEvent): void => {
    const next = nextIndex(event.key, active, shown.cards.length);
    if (next === null) return;
    event.preventDefault();
    setActive(next);
    focusRoving(svg.current, next);
  };
  return (
    <svg
      ref={svg}
      class="tw-graph-svg"
      role="tree"
      aria-label={`Dataflow of ${props.graph.function}`}
      width={layout.width * zoom}
      height={layout.height * zoom}
      viewBox={`0 0 ${layout.width} ${layout.height}`}
      onKeyDown={move}
    >
      <g aria-hidden="true">
        {layout.routes.map(({ edge, points }) => (
          <path
            key={`${edge.from}>${edge.to}`}
            class={`tw-edge${near.has(edge.from) || near.has(edge.to) ? " is-near" : ""}`}
            d={routePath(points)}
          />
        ))}
      </g>
      {shown.cards.map((card, index) => (
        <CardShape key={card.key} {...props} card={card} index={index} onActive={setActive} tabStop={index === Math.min(active, shown.cards.length - 1)} />
      ))}
    </svg>
  );
});

interface CardProps extends CardsProps {
  readonly card: Card;
  readonly index: number;
  readonly tabStop: boolean;
  readonly onActive: (index: number) => void;
}

function CardShape(props: CardProps): JSX.Element | null {
  const { card, layout } = props;
  const place = layout.boxes.get(card.key);
  if (!place) return null;
  const { share, kernels } = heatOf(card, props.heat);
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
  const label = `${title}, ${card.detail}${share > 0 ? `, ${percent(share)} of the call` : ""}`;
  return (
    <g
      role="treeitem"
      class={cardClass(props)}
      transform={`translate(${place.x.toFixed(1)} ${place.y.toFixed(1)})`}
      tabindex={props.tabStop ? 0 : -1}
      data-roving={props.index}
      data-name={card.members[0]?.name}
      aria-label={card.kind === "group" ? `${label}, folded` : label}
      aria-level={Math.max(1, card.path.length)}
      aria-selected={isChosen(card, props.selected)}
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
      <title>{`${card.path.join(" › ")}\n${label}${kernels.length > 0 ? `\nkernel ${kernels.join(", ")}` : ""}`}</title>
      {card.kind === "group" ? (
        <rect class="tw-card-stack" x="4" y="4" width={place.width} height={place.height} rx="7" />
      ) : null}
      <rect class="tw-card-box" width={place.width} height={place.height} rx={isSmall(card) ? place.height / 2 : 7} />
      {share > 0 ? <rect class="tw-card-heat" width={place.width} height={place.height} rx="7" style={{ opacity: share * MAX_HEAT }} /> : null}
      <text class="tw-card-title" x={isSmall(card) ? 12 : 11} y="16">
        {isSmall(card) ? `${card.members[0]?.name ?? card.title}  ${card.detail}` : clipped(card.title, 24)}
      </text>
      {isSmall(card) ? null : (
        <text class="tw-card-detail" x="11" y="30">
          {clipped(card.detail, 27)}
        </text>
      )}
      {share > 0 ? (
        <text class="tw-card-share" x={place.width - 8} y="30" text-anchor="end">
          {percent(share)}
        </text>
      ) : null}
    </g>
  );
}

/** Return the width of an element, updated when it is resized. */
function useWidth(box: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(280);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const look = (): void => setWidth(element.clientWidth);
    look();
    if (typeof ResizeObserver === "undefined") return undefined;
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, [box]);
  return width;
}

function isFolded(initial: ReadonlySet<string>, changed: ReadonlyMap<string, boolean>, key: string): boolean {
  return changed.get(key) ?? initial.has(key);
}

function folding(graph: Graph, initial: ReadonlySet<string>, changed: ReadonlyMap<string, boolean>): Folded {
  const folded = new Set(initial);
  for (const [key, isSet] of changed)
    if (isSet) folded.add(key);
    else folded.delete(key);
  return fold(graph, folded);
}

function isSmall(card: Card): boolean {
  return card.kind === "param" || card.kind === "carried" || card.kind === "result";
}

interface Fonts {
  readonly title: string;
  readonly detail: string;
}

/** Return the fonts of the cards, whose families depend on the notebook's theme. */
function useFonts(box: { readonly current: HTMLElement | null }): Fonts {
  const [families, setFamilies] = useState<readonly [string, string]>(["sans-serif", "monospace"]);
  useLayoutEffect(() => {
    if (!box.current) return;
    const style = getComputedStyle(box.current);
    setFamilies([style.fontFamily || "sans-serif", style.getPropertyValue("--tw-mono") || "monospace"]);
  }, [box]);
  const [title, detail] = families;
  return useMemo(() => ({ title: `600 12px ${title}`, detail: `11px ${detail}` }), [title, detail]);
}

function boxOf(card: Card, fonts: Fonts): Box {
  const first = card.members[0];
  if (isSmall(card)) {
    const text = `${first?.name ?? ""}  ${card.detail}`;
    return { key: card.key, width: Math.max(56, textWidth(text, fonts.detail) + 24), height: PARAM_HEIGHT };
  }
  const title = textWidth(clipped(card.title, 24), fonts.title);
  const width = Math.max(title, textWidth(clipped(card.detail, 27), fonts.detail) + textWidth(" 100 %", fonts.detail)) + 24;
  return { key: card.key, width: Math.max(84, width), height: HEIGHT };
}

function clipped(text: string, limit: number): string {
  return text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
}

function cardClass(props: CardProps): string {
  const { card } = props;
  const classes = ["tw-card", `tw-card-${card.kind}`];
  if (isChosen(card, props.selected)) classes.push("is-selected");
  if (card.members.some((node) => node.origins.some((origin) => props.linked.has(origin)))) classes.push("is-linked");
  if (card.members.some((node) => node.callee !== "" && node.callee === props.openFunction)) classes.push("is-open");
  if (props.query !== "") classes.push(matches(card, props.query) ? "is-found" : "is-dim");
  return classes.join(" ");
}

function isChosen(card: Card, selected: number | null): boolean {
  return selected !== null && card.members.some((node) => node.uid === selected);
}

function found(cards: readonly Card[], query: string): number {
  return cards.filter((card) => matches(card, query.trim().toLowerCase())).length;
}

function matches(card: Card, query: string): boolean {
  const words = (node: Card["members"][number]): string =>
    `${node.name} ${node.op} ${node.callee} ${node.path.join("/")}`.toLowerCase();
  return card.title.toLowerCase().includes(query) || card.members.some((node) => words(node).includes(query));
}

/** Return the share of the call of the kernels that compute parts of a card, and their names. */
function heatOf(card: Card, heat: Heat | null): { readonly share: number; readonly kernels: readonly string[] } {
  if (!heat || heat.total <= 0) return { share: 0, kernels: [] };
  const members = new Set(card.members.map((node) => node.uid));
  const calls = heat.calls.filter((call) => call.uids.some((uid) => members.has(uid)));
  const time = calls.reduce((sum, call) => sum + call.value, 0);
  return { share: Math.min(1, time / heat.total), kernels: [...new Set(calls.map((call) => call.kernel))] };
}
