import type { ComponentChildren, JSX } from "preact";
import { useCallback, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { memo } from "../ui/memo";
import type { Heat } from "../overlay";
import type { GraphView as Graph } from "../protocol";
import { nextIndex } from "../ui/roving";
import { Icon } from "../ui/icons";
import { useEntry, useView } from "../use_view";
import type { Camera } from "./camera";
import { Cards } from "./cards";
import { WIDEST, costColoring, heatKind, timeColoring, type Coloring, type HeatKind } from "./coloring";
import { UNMOVED } from "./kept_camera";
import { fold, foldedAtFirst, namespaces, type Card, type Folded } from "./fold";
import { layOut, type Placed } from "./layout";
import { Legend } from "./legend";
import { Minimap } from "./minimap";
import { boxOf, useFonts } from "./sizes";
import { useCamera, useHint, type Ref } from "./use_camera";
import type { Costs } from "./use_costs";

export interface GraphProps {
  readonly graph: Graph;
  readonly heat: Heat | null;
  readonly costs: Costs;
  readonly selected: number | null;
  readonly linked: ReadonlySet<string>;
  readonly openFunction: string;
  readonly onSelect: (uid: number) => void;
  readonly onHover: (uid: number | null) => void;
  readonly onOpen: (callee: string) => void;
}

/** The dataflow as a layered diagram with foldable namespaces. */
export function GraphDiagram(props: GraphProps): JSX.Element {
  const { graph, heat, costs } = props;
  const [stored, setKind] = useView("heat");
  const kind = heatKind(stored);
  const [kept, keep] = useEntry("graphs", graph.function, UNMOVED);
  const changed = useMemo(() => new Map(Object.entries(kept.folds)), [kept.folds]);
  const [query, setQuery] = useEntry("fields", "graph", "");
  const initial = useMemo(() => foldedAtFirst(graph), [graph]);
  const shown = useMemo(() => folding(graph, initial, changed), [graph, initial, changed]);
  const found = useMemo(() => foundIn(shown.cards, query.trim().toLowerCase()), [shown, query]);
  const coloring = useMemo(
    () => (kind === "time" ? timeColoring(shown.cards, heat) : costColoring(shown.cards, costs.costs)),
    [shown, kind, heat, costs.costs],
  );
  const toggled = useRef("");
  const camera = useRef<Camera | null>(null);
  const goTo = useRef<(index: number) => void>(() => undefined);
  const flip = useRef<(key: string) => void>(() => undefined);
  flip.current = (key) => {
    toggled.current = key;
    keep((before) => ({ ...before, folds: { ...before.folds, [key]: !isFolded(initial, changed, key) } }));
  };
  const toggle = useCallback((key: string) => flip.current(key), []);
  const counts = useMemo(() => namespaces(graph), [graph]);
  const open = [...counts]
    .filter(([key, count]) => count > 1 && !isFolded(initial, changed, key))
    .map(([key]) => key);
  useLayoutEffect(() => {
    const key = toggled.current;
    toggled.current = "";
    const first = key === "" ? -1 : shown.cards.findIndex((card) => `${card.path.join("/")}/`.startsWith(`${key}/`));
    if (first >= 0) goTo.current(first);
  }, [shown]);
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
            onInput={({ currentTarget: { value } }) => setQuery(() => value)}
            onKeyDown={(event) => {
              const first = shown.cards.findIndex((card) => found?.has(card.key));
              if (event.key === "Enter" && first >= 0) goTo.current(first);
            }}
          />
          {found === null ? null : (
            <span class="tw-found" role="status">
              {found.size} found
            </span>
          )}
        </label>
        <ZoomButtons camera={camera} />
      </div>
      <Legend kind={kind} onChoose={setKind} coloring={coloring} note={noteOf(kind, costs, coloring)} />
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
      <GraphArea {...props} kind={kind} coloring={coloring} shown={shown} found={found} camera={camera} goTo={goTo} onToggle={toggle} />
    </div>
  );
}

/** Return the conditions of the figures, or why there are none. */
function noteOf(kind: HeatKind, { costs, status }: Costs, { limit }: Coloring): string {
  if (kind === "time") return limit === "" ? "not measured" : "of the call";
  return status || (costs ? `at ${costs.sizes}` : "");
}

/** The buttons and, as their titles state, the keys that zoom. */
function ZoomButtons({ camera }: { camera: Ref<Camera | null> }): JSX.Element {
  const button = (label: string, key: string, icon: ComponentChildren): JSX.Element => (
    <button type="button" class="tw-tool" aria-label={label} title={`${label} (${key})`} onClick={() => zoomKey(key, camera.current)}>
      {icon}
    </button>
  );
  return (
    <>
      {button("Zoom out", "-", <Icon name="minus" />)}
      {button("Zoom in", "+", <Icon name="plus" />)}
      {button("Fit the graph", "f", <Icon name="fit" />)}
    </>
  );
}

const ZOOM_STEP = 1.25;

/** Run the action of a key on the visible part of the graph, and return whether it has one. */
function zoomKey(key: string, camera: Camera | null): boolean {
  if (!camera) return false;
  const actions: Readonly<Record<string, () => void>> = {
    "+": () => camera.zoomBy(ZOOM_STEP),
    "=": () => camera.zoomBy(ZOOM_STEP),
    "-": () => camera.zoomBy(1 / ZOOM_STEP),
    "0": () => camera.fullSize(),
    f: () => camera.fit(),
  };
  const action = actions[key];
  action?.();
  return action !== undefined;
}

interface AreaProps extends GraphProps {
  readonly kind: HeatKind;
  readonly coloring: Coloring;
  readonly shown: Folded;
  readonly found: ReadonlySet<string> | null;
  readonly camera: Ref<Camera | null>;
  /** Set to the function that focuses a card and moves it into view. */
  readonly goTo: Ref<(index: number) => void>;
  readonly onToggle: (key: string) => void;
}

/** The visible part of the graph, with an overview if it is not the entire graph. */
function GraphArea(props: AreaProps): JSX.Element {
  const { graph, shown, selected, camera, goTo, kind } = props;
  const view = useRef<HTMLDivElement>(null);
  const frame = useRef<SVGRectElement>(null);
  const fonts = useFonts(view);
  const last = useRef<ReadonlyMap<string, Placed>>(new Map());
  const layout = useMemo(() => {
    const next = layOut(shown.cards.map((card) => boxOf(card, fonts, WIDEST[kind])), shown.edges, last.current);
    last.current = next.boxes;
    return next;
  }, [shown, fonts, WIDEST[kind]]);
  const chosen = useMemo(() => new Set(shown.cards.filter((card) => isChosen(card, selected)).map((card) => card.key)), [shown, selected]);
  const [active, setActive] = useState(0);
  const [hint, showHint] = useHint();
  const [overflows, part] = useCamera({ view, frame, camera, layout, graph, shown, chosen, selected, setActive, showHint });
  const wanted = useRef(-1);
  // A card that is far from the visible part is rendered only as the tab stop.
  const focusWanted = (): void => {
    const card = view.current?.querySelector<SVGElement>(`[data-roving="${String(wanted.current)}"]`);
    if (!card) return;
    wanted.current = -1;
    card.focus({ preventScroll: true });
  };
  goTo.current = (index) => {
    const card = shown.cards[index];
    const place = card && layout.boxes.get(card.key);
    wanted.current = index;
    setActive(index);
    focusWanted();
    if (place) camera.current?.reveal(place);
  };
  useLayoutEffect(focusWanted);
  const tabStop = Math.min(active, shown.cards.length - 1);
  const press = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = nextIndex(event.key, tabStop, shown.cards.length);
    if (next !== null) goTo.current(next);
    else if (!zoomKey(event.key, camera.current)) return;
    event.preventDefault();
  };
  return (
    <div class="tw-graph-area">
      <div class="tw-graph-view" ref={view} tabIndex={-1} onKeyDown={press}>
        <svg class="tw-graph-svg" role="tree" aria-label={`Dataflow of ${graph.function}`} aria-keyshortcuts="+ - 0 f" width="100%" height="100%">
          <g class="tw-graph-canvas" role="none">
            <Cards {...props} layout={layout} chosen={chosen} part={part} tabStop={tabStop} onActive={setActive} />
          </g>
        </svg>
      </div>
      {hint && overflows ? (
        <p class="tw-graph-hint" aria-hidden="true">
          Click the graph to move it by the wheel. Ctrl + wheel zooms.
        </p>
      ) : null}
      {overflows ? <Minimap camera={camera} cards={shown.cards} layout={layout} chosen={chosen} found={props.found} frame={frame} /> : null}
    </div>
  );
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

function isChosen(card: Card, selected: number | null): boolean {
  return selected !== null && card.members.some((node) => node.uid === selected);
}

/** Return the keys of the cards that match a search, null without one. */
function foundIn(cards: readonly Card[], query: string): ReadonlySet<string> | null {
  return query === "" ? null : new Set(cards.filter((card) => matches(card, query)).map((card) => card.key));
}

function matches(card: Card, query: string): boolean {
  const words = (node: Card["members"][number]): string =>
    `${node.name} ${node.op} ${node.callee} ${node.path.join("/")}`.toLowerCase();
  return card.title.toLowerCase().includes(query) || card.members.some((node) => words(node).includes(query));
}

/** The diagram, which is rendered again only if one of its properties changes. */
export const Diagram = memo(GraphDiagram);
