import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Kept, Positions } from "../code/program";
import { TextToolbar, TextTools } from "../code/tools";
import { CodeView } from "../code/view";
import { useActions } from "../commands/use_command";
import { heatKind } from "../graph/coloring";
import { useCosts } from "../graph/use_costs";
import { Diagram, type GraphProps } from "../graph/view";
import { useWatch } from "../observable";
import { originsOf, type PaneModel, type Span } from "../pane";
import { Breadcrumb } from "./breadcrumb";
import { useRevealed } from "./revealed";
import { RuleBar } from "./rule";
import type { GraphView, Handle } from "../protocol";
import { paneOf, type Pointer, type State, type Store } from "../store";
import { StagePane, shownStage, shownTab, stageTabs } from "./stages";
import { Tabs } from "../ui/tabs";
import { useOpen, useView, useViewOf } from "../use_view";

const NO_ORIGINS: ReadonlySet<string> = new Set();

/** Return the text of a pane; whether its lines are wrapped is kept, and commands act on it. */
function useTextTools(pane: string): TextTools {
  const view = useViewOf();
  const actions = useActions();
  const tools = useMemo(() => new TextTools(view.entry("wraps", pane)), []);
  useEffect(() => {
    const follow = (): void => tools.wrap.set(view.entry("wraps", pane) ?? false);
    const stops = [
      view.state.subscribe(follow),
      tools.wrap.subscribe(() => view.setEntry("wraps", pane, tools.wrap.value)),
      actions.addText(pane, tools),
    ];
    follow();
    return () => stops.forEach((stop) => stop());
  }, [tools, view, actions, pane]);
  return tools;
}

/** Return the kept position of the text of a function in a pane. */
function useKept(pane: string, name: string): Kept {
  const view = useViewOf();
  const key = `${pane} ${name}`;
  return useMemo<Kept>(
    () => ({ read: () => view.entry("texts", key), write: (position) => view.setEntry("texts", key, position) }),
    [view, key],
  );
}

/** The graph-level function as a diagram or as text. */
export function GraphPane({ store, idBase }: { store: Store; idBase: string }): JSX.Element {
  const positions = useRef<Positions>(new Map());
  const tools = useTextTools("graph");
  const [mode, setMode] = useView("graphAs");
  const graph = useWatch(store.state, (state) => state.graph);
  const heat = useWatch(store.state, (state) => (state.heat?.function === state.graph?.function ? state.heat : null));
  const [kind] = useView("heat");
  const costs = useCosts(store, heatKind(kind));
  const open = useWatch(store.state, (state) => state.open);
  const linked = useLinked(store);
  const pane = useWatch(store.state, (state) => (graph ? paneOf(state, graph.function) : null));
  const selected = useSelected(store, graph?.function ?? "");
  const show = useOpen(store);
  const actions = useMemo(() => graphActions(store, show), [store, show]);
  const tabs = [
    { key: "diagram", label: "Graph" },
    { key: "text", label: "Text" },
  ];
  return (
    <section class="tw-pane" aria-label="Graph">
      <Tabs label="Graph as" tabs={tabs} current={mode} onChange={setMode} idBase={idBase} trailing={
        <>
          <TextToolbar tools={tools} />
          <span class="tw-pane-name tw-mono">{graph?.function ?? ""}</span>
        </>
      } />
      <div class="tw-pane-body" role="tabpanel" id={`${idBase}-panel`} aria-labelledby={`${idBase}-tab-${mode}`}>
        {graph === null ? (
          <p class="tw-quiet tw-pad">This module has no graph-level function.</p>
        ) : mode === "diagram" ? (
          <Diagram
            graph={graph}
            heat={heat}
            costs={costs}
            selected={selected}
            linked={linked}
            openFunction={open}
            {...actions}
          />
        ) : pane ? (
          <Code name="graph" store={store} pane={pane} linked={linked} positions={positions.current} tools={tools} />
        ) : null}
      </div>
    </section>
  );
}

/** Return the actions on the graph that a store has, which stay the same when it changes. */
function graphActions(store: Store, show: (name: string) => void): Pick<GraphProps, "onSelect" | "onHover" | "onOpen"> {
  const { state } = store;
  return {
    onSelect: (uid) => store.select({ kind: "binding", function: state.value.graph?.function ?? "", uid }),
    onHover: (uid) => store.hover.set(state.value.graph && pointerOfNode(state.value.graph, uid)),
    onOpen: show,
  };
}

/** The open function as loop IR or graph IR, and after each stage of lowering. */
export function FunctionPane({ store, idBase }: { store: Store; idBase: string }): JSX.Element {
  const positions = useRef<Positions>(new Map());
  const tools = useTextTools("function");
  const [, setMode] = useView("level");
  const view = useViewOf();
  const open = useWatch(store.state, (state) => state.open);
  const functions = useWatch(store.state, (state) => state.functions);
  const stages = useWatch(store.state, (state) => state.stages);
  const target = useWatch(store.state, (state) => state.target);
  useRevealed(store, () => setMode("ir"));
  const item = functions.find((other) => other.name === open);
  const tabs = [{ key: "ir", label: item?.level === "graph" ? "Graph IR" : "Loop IR" }, ...stageTabs(stages, target)];
  useView("stages");
  const shown = shownTab(store.state.value, view.value);
  const stage = shownStage(store.state.value, view.value);
  return (
    <section class="tw-pane" aria-label="Function">
      <Tabs label="Level" tabs={tabs} current={shown} onChange={setMode} idBase={idBase} trailing={<TextToolbar tools={tools} />} />
      <Breadcrumb store={store} />
      <RuleBar store={store} />
      <div class="tw-pane-body" role="tabpanel" id={`${idBase}-panel`} aria-labelledby={`${idBase}-tab-${shown}`}>
        {stage ? <StagePane store={store} stage={stage} tools={tools} /> : <OpenFunction store={store} open={open} positions={positions.current} tools={tools} />}
      </div>
    </section>
  );
}

interface OpenProps {
  readonly store: Store;
  readonly open: string;
  readonly positions: Positions;
  readonly tools: TextTools;
}

function OpenFunction({ store, open, positions, tools }: OpenProps): JSX.Element {
  const pane = useWatch(store.state, (state) => paneOf(state, open));
  const linked = useLinked(store);
  const alive = useWatch(store.state, (state) => state.alive);
  if (!pane) return <p class="tw-quiet tw-pad">{alive ? "Waiting for the Jupyter kernel…" : "No program was received."}</p>;
  return <Code name="function" store={store} pane={pane} linked={linked} positions={positions} tools={tools} />;
}

interface CodePaneProps {
  /** The name of the pane. */
  readonly name: string;
  readonly store: Store;
  readonly pane: PaneModel;
  readonly linked: ReadonlySet<string>;
  readonly positions: Positions;
  readonly tools: TextTools;
}

function Code({ name, store, pane, linked, positions, tools }: CodePaneProps): JSX.Element {
  const kept = useKept(name, pane.name);
  const selected = useSelected(store, pane.name);
  const select = (span: Span): void => store.select({ kind: span.kind, function: pane.name, uid: span.uid });
  const hover = (span: Span | null): void =>
    store.hover.set(span && { function: pane.name, uid: span.uid, origins: originsOf(pane, span.uid) });
  const marked = useWatch(store.marked, (value) => (value?.function === pane.name ? value : null));
  return <CodeView pane={pane} selected={selected} linked={linked} marked={marked} positions={positions} tools={tools} kept={kept} onSelect={select} onHover={hover} />;
}

/** Return the uid of the selection if it is in this function. */
function useSelected(store: Store, name: string): number | null {
  return useWatch(store.state, (state) => {
    const handle: Handle | null = state.selected.selection;
    return handle?.function === name && handle.kind !== "function" ? handle.uid : null;
  });
}

/** Return the operations that the hovered part, or else the selection, belongs to. */
function useLinked(store: Store): ReadonlySet<string> {
  const hover = useWatch(store.hover, (pointer) => pointer?.origins ?? null);
  const graph = useWatch(store.state, (state) => state.graph);
  const selection = useWatch(store.state, (state) => state.selected);
  const panes = useWatch(store.state, (state) => state.panes);
  const selected = useMemo(() => originsOfSelection(store.state.value), [store, graph, selection, panes]);
  const now = hover !== null && hover.size > 0 ? hover : selected;
  const last = useRef(now);
  // Adjacent loops have the same operations, for which nothing is rendered again.
  if (!isSameSet(last.current, now)) last.current = now;
  return last.current;
}

function isSameSet(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  return one === other || (one.size === other.size && [...one].every((item) => other.has(item)));
}

function originsOfSelection(state: State): ReadonlySet<string> {
  const handle = state.selected.selection;
  if (handle === null) return NO_ORIGINS;
  const pane = paneOf(state, handle.function);
  const found = pane ? originsOf(pane, handle.uid) : NO_ORIGINS;
  if (found.size > 0 || state.graph === null) return found;
  return pointerOfNode(state.graph, handle.kind === "binding" ? handle.uid : null)?.origins ?? NO_ORIGINS;
}

function pointerOfNode(graph: GraphView, uid: number | null): Pointer | null {
  const node = uid === null ? undefined : graph.nodes.find((other) => other.uid === uid);
  return node ? { function: graph.function, uid: node.uid, origins: new Set(node.origins) } : null;
}
