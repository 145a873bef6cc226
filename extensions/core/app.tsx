import { render, type JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useWatch } from "./observable";
import { Dock } from "./panels/dock";
import { Inspector } from "./panels/inspector";
import { FunctionPane, GraphPane } from "./panels/panes";
import { useRevealed } from "./panels/revealed";
import { StatusBar } from "./panels/status";
import { Toolbar } from "./panels/toolbar";
import type { Store } from "./store";
import { Boundary } from "./ui/boundary";
import { Split } from "./ui/split";
import { Tabs } from "./ui/tabs";

const NARROW = 900;

/** The workbench: graph, function and inspector side by side, and the dock below. */
export function Workbench({ store, idBase }: { store: Store; idBase: string }): JSX.Element {
  const root = useRef<HTMLDivElement>(null);
  const narrow = useNarrow(root);
  const mismatch = useWatch(store.state, (state) => state.mismatch);
  const connected = useWatch(store.state, (state) => state.connected);
  const keys = (event: KeyboardEvent): void => shortcuts(event, store);
  return (
    <div
      class={`tw tw-root${narrow ? " is-narrow" : ""}`}
      ref={root}
      onKeyDown={keys}
      data-connected={connected}
      data-lm-suppress-shortcuts="true"
    >
      {mismatch ? (
        <p class="tw-mismatch" role="alert">
          The page was loaded by another version of Tilewright. Reload the page, then run the cell again.
        </p>
      ) : null}
      <Toolbar store={store} idBase={idBase} />
      <div class="tw-main">{narrow ? <Narrow store={store} idBase={idBase} /> : <Wide store={store} idBase={idBase} />}</div>
      <StatusBar store={store} />
    </div>
  );
}

interface PartProps {
  readonly store: Store;
  readonly idBase: string;
}

function Wide({ store, idBase }: PartProps): JSX.Element {
  const hasGraph = useWatch(store.state, (state) => state.graph !== null);
  const loops = (
    <Split
      label="Width of the inspector"
      direction="row"
      sized="second"
      initial={340}
      first={<Boundary name="function"><FunctionPane store={store} idBase={`${idBase}-function`} /></Boundary>}
      second={
        <section class="tw-pane tw-pane-side" aria-label="Steps">
          <Boundary name="inspector"><Inspector store={store} /></Boundary>
        </section>
      }
    />
  );
  return (
    <Split
      label="Height of the dock"
      direction="column"
      sized="second"
      initial={200}
      minimum={72}
      first={
        hasGraph ? (
          <Split
            label="Width of the graph"
            direction="row"
            sized="first"
            initial={290}
            first={<Boundary name="graph"><GraphPane store={store} idBase={`${idBase}-graph`} /></Boundary>}
            second={loops}
          />
        ) : (
          loops
        )
      }
      second={<Dock store={store} idBase={`${idBase}-dock`} />}
    />
  );
}

function Narrow({ store, idBase }: PartProps): JSX.Element {
  const [chosen, setTab] = useState("function");
  const hasGraph = useWatch(store.state, (state) => state.graph !== null);
  useRevealed(store, () => setTab("function"));
  const tab = chosen === "graph" && !hasGraph ? "function" : chosen;
  const tabs = [
    ...(hasGraph ? [{ key: "graph", label: "Graph" }] : []),
    { key: "function", label: "Loops" },
    { key: "steps", label: "Steps" },
    { key: "dock", label: "More" },
  ];
  return (
    <div class="tw-narrow">
      <Tabs label="Panes" tabs={tabs} current={tab} onChange={setTab} idBase={`${idBase}-narrow`} />
      <div class="tw-pane-body" role="tabpanel" id={`${idBase}-narrow-panel`} aria-labelledby={`${idBase}-narrow-tab-${tab}`}>
        {tab === "graph" ? <Boundary name="graph"><GraphPane store={store} idBase={`${idBase}-graph`} /></Boundary> : null}
        {tab === "function" ? <Boundary name="function"><FunctionPane store={store} idBase={`${idBase}-function`} /></Boundary> : null}
        {tab === "steps" ? <Boundary name="inspector"><Inspector store={store} /></Boundary> : null}
        {tab === "dock" ? <Dock store={store} idBase={`${idBase}-dock`} /> : null}
      </div>
    </div>
  );
}

function useNarrow(root: { readonly current: HTMLElement | null }): boolean {
  const [narrow, setNarrow] = useState(false);
  useEffect(() => {
    const element = root.current;
    if (!element || typeof ResizeObserver === "undefined") return undefined;
    const observer = new ResizeObserver(() => setNarrow(element.clientWidth > 0 && element.clientWidth < NARROW));
    observer.observe(element);
    return () => observer.disconnect();
  }, [root]);
  return narrow;
}

function shortcuts(event: KeyboardEvent, store: Store): void {
  const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if (event.key === "Escape" && typing) event.target.blur();
  // Keys typed in the workbench must not trigger notebook shortcuts, such as deleting a cell.
  event.stopPropagation();
  if (typing || !(event.ctrlKey || event.metaKey)) return;
  const { can_undo: canUndo, can_redo: canRedo } = store.state.value.history;
  const key = event.key.toLowerCase();
  const redo = key === "y" || (key === "z" && event.shiftKey);
  if (redo ? canRedo : key === "z" && canUndo) {
    event.preventDefault();
    store.navigate(redo ? "redo" : "undo");
  }
}

let mounted = 0;

/** Mount a workbench in an element and return the function that unmounts it. */
export function mount(store: Store, element: HTMLElement): () => void {
  render(<Workbench store={store} idBase={`tw${String(++mounted)}`} />, element);
  return () => render(null, element);
}
