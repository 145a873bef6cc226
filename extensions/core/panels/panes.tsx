import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useState } from "preact/hooks";
import { CodeView } from "../code/view";
import { LoweredView } from "../code/lowered";
import { GraphDiagram } from "../graph/view";
import { useWatch } from "../observable";
import { originsOf, type PaneModel, type Span } from "../pane";
import type { FunctionItem, GraphView, Handle, Lowered, Measurement } from "../protocol";
import { paneOf, type Pointer, type State, type Store } from "../store";
import { Tabs } from "../ui/tabs";

const NO_ORIGINS: ReadonlySet<string> = new Set();

/** The graph-level function as a diagram or as text. */
export function GraphPane({ store, idBase }: { store: Store; idBase: string }): JSX.Element {
  const [mode, setMode] = useState("diagram");
  const graph = useWatch(store.state, (state) => state.graph);
  const measurement = useWatch(store.state, measurementOfGraph);
  const open = useWatch(store.state, (state) => state.open);
  const linked = useLinked(store);
  const pane = useWatch(store.state, (state) => (graph ? paneOf(state, graph.function) : null));
  const selected = useSelected(store, graph?.function ?? "");
  const tabs = [
    { key: "diagram", label: "Graph" },
    { key: "text", label: "Text" },
  ];
  return (
    <section class="tw-pane" aria-label="Graph">
      <Tabs label="Graph as" tabs={tabs} current={mode} onChange={setMode} idBase={idBase} trailing={
        <span class="tw-pane-name tw-mono">{graph?.function ?? ""}</span>
      } />
      <div class="tw-pane-body" role="tabpanel" id={`${idBase}-panel`} aria-labelledby={`${idBase}-tab-${mode}`}>
        {graph === null ? (
          <p class="tw-quiet tw-pad">This module has no graph-level function.</p>
        ) : mode === "diagram" ? (
          <GraphDiagram
            graph={graph}
            measurement={measurement}
            selected={selected}
            linked={linked}
            openFunction={open}
            onSelect={(uid) => store.select({ kind: "binding", function: graph.function, uid })}
            onHover={(uid) => store.hover.set(pointerOfNode(graph, uid))}
            onOpen={(callee) => store.send({ type: "open", function: callee })}
          />
        ) : pane ? (
          <Code store={store} pane={pane} linked={linked} />
        ) : null}
      </div>
    </section>
  );
}

/** Return the last measurement of the entire graph, which the diagram displays per node. */
function measurementOfGraph(state: State): Measurement | null {
  return state.measurement?.function === state.graph?.function ? state.measurement : null;
}

/** The open function as loop IR, graph IR, LLVM or assembly. */
export function FunctionPane({ store, idBase }: { store: Store; idBase: string }): JSX.Element {
  const [mode, setMode] = useState("ir");
  const open = useWatch(store.state, (state) => state.open);
  const functions = useWatch(store.state, (state) => state.functions);
  const pane = useWatch(store.state, (state) => paneOf(state, open));
  const linked = useLinked(store);
  const item = functions.find((other) => other.name === open);
  const tabs = [
    { key: "ir", label: item?.level === "graph" ? "Graph IR" : "Loop IR" },
    ...(item?.level === "graph"
      ? []
      : [
          { key: "llvm", label: "LLVM" },
          { key: "assembly", label: "Assembly" },
        ]),
  ];
  const shown = tabs.some((tab) => tab.key === mode) ? mode : "ir";
  return (
    <section class="tw-pane" aria-label="Function">
      <Tabs label="Level" tabs={tabs} current={shown} onChange={setMode} idBase={idBase} trailing={
        <FunctionPicker store={store} functions={functions} open={open} />
      } />
      <div class="tw-pane-body" role="tabpanel" id={`${idBase}-panel`} aria-labelledby={`${idBase}-tab-${shown}`}>
        {shown !== "llvm" && shown !== "assembly" ? (
          pane ? <Code store={store} pane={pane} linked={linked} /> : <p class="tw-quiet tw-pad">Waiting for the Jupyter kernel…</p>
        ) : (
          <Lower store={store} kind={shown} />
        )}
      </div>
    </section>
  );
}

/** The LLVM or assembly text of the open function, requested when the tab is opened. */
function Lower({ store, kind }: { store: Store; kind: Lowered["kind"] }): JSX.Element {
  const lowered = useWatch(store.state, (state) => state.lowered);
  const open = useWatch(store.state, (state) => state.open);
  const head = useWatch(store.state, (state) => state.history.head);
  const working = useWatch(store.state, isLowering);
  const request = (): void => void store.send({ type: "lower", kind });
  const fits = lowered?.function === open && lowered.kind === kind;
  useLayoutEffect(() => {
    if (!fits) request();
  }, [open, kind]);
  if (!fits)
    return working ? (
      <p class="tw-quiet tw-pad">Compiling…</p>
    ) : (
      <div class="tw-empty">
        <p>Compilation of {open} did not finish. See Problems.</p>
        <button type="button" class="tw-button" onClick={request}>
          Compile again
        </button>
      </div>
    );
  return (
    <div class="tw-lowered">
      {lowered.state === head ? null : (
        <button type="button" class="tw-stale tw-button" onClick={request}>
          Compiled from an earlier state. Compile again
        </button>
      )}
      <LoweredView lowered={lowered} />
    </div>
  );
}

function isLowering(state: State): boolean {
  const title = `Lower ${state.open}`;
  const running = state.jobs.some((job) => job.title === title && (job.state === "running" || job.state === "canceling"));
  return running || state.waiting > 0;
}

interface PickerProps {
  readonly store: Store;
  readonly functions: readonly FunctionItem[];
  readonly open: string;
}

function FunctionPicker({ store, functions, open }: PickerProps): JSX.Element {
  const option = (item: FunctionItem): JSX.Element => (
    <option key={item.name} value={item.name} selected={item.name === open}>
      {item.name}
      {item.calls > 1 ? `  ×${item.calls}` : ""}
      {item.scheduled ? "  ●" : ""}
    </option>
  );
  return (
    <select
      class="tw-picker tw-mono"
      aria-label="Function"
      value={open}
      onChange={(event) => store.send({ type: "open", function: event.currentTarget.value })}
    >
      <optgroup label="Graph level">{functions.filter((item) => item.level === "graph").map(option)}</optgroup>
      <optgroup label="Loop level (● scheduled)">{functions.filter((item) => item.level === "loop").map(option)}</optgroup>
    </select>
  );
}

function Code({ store, pane, linked }: { store: Store; pane: PaneModel; linked: ReadonlySet<string> }): JSX.Element {
  const selected = useSelected(store, pane.name);
  const select = (span: Span): void => store.select({ kind: span.kind, function: pane.name, uid: span.uid });
  const hover = (span: Span | null): void =>
    store.hover.set(span && { function: pane.name, uid: span.uid, origins: originsOf(pane, span.uid) });
  return <CodeView pane={pane} selected={selected} linked={linked} onSelect={select} onHover={hover} />;
}

/** Return the uid of the selection if it is in this function. */
function useSelected(store: Store, name: string): number | null {
  return useWatch(store.state, (state) => {
    const handle: Handle | null = state.menu.selection;
    return handle?.function === name && handle.kind !== "function" ? handle.uid : null;
  });
}

/** Return the operations that the hovered part, or else the selection, belongs to. */
function useLinked(store: Store): ReadonlySet<string> {
  const hover = useWatch(store.hover, (pointer) => pointer?.origins ?? null);
  const graph = useWatch(store.state, (state) => state.graph);
  const menu = useWatch(store.state, (state) => state.menu);
  const panes = useWatch(store.state, (state) => state.panes);
  const selected = useMemo(() => originsOfSelection(store.state.value), [store, graph, menu, panes]);
  return hover !== null && hover.size > 0 ? hover : selected;
}

function originsOfSelection(state: State): ReadonlySet<string> {
  const handle = state.menu.selection;
  if (handle === null) return NO_ORIGINS;
  const pane = paneOf(state, handle.function);
  const found = pane ? originsOf(pane, handle.uid) : NO_ORIGINS;
  if (found.size > 0 || state.graph === null) return found;
  return pointerOfNode(state.graph, handle.kind === "binding" ? handle.uid : null)?.origins ?? NO_ORIGINS;
}

function pointerOfNode(graph: GraphView, uid: number | null): Pointer | null {
  const node = graph.nodes.find((other) => other.uid === uid);
  return node ? { function: graph.function, uid: node.uid, origins: new Set(node.origins) } : null;
}
