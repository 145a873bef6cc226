import { render, type ComponentChildren, type JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useWatch } from "./observable";
import { ConnectionBar } from "./panels/connection";
import { Dock } from "./panels/dock";
import { Inspector } from "./panels/inspector";
import { FunctionPane, GraphPane } from "./panels/panes";
import { useRevealed } from "./panels/revealed";
import { StatusBar } from "./panels/status";
import { Toolbar } from "./panels/toolbar";
import type { Store } from "./store";
import { Boundary } from "./ui/boundary";
import { useKeptFocus } from "./ui/focus";
import { belongsHere, isTyping, useOwnKeys } from "./ui/keys";
import { Split } from "./ui/split";
import { Tabs } from "./ui/tabs";

/** The widths in pixels from which the text has the inspector beside it, and the graph as well. */
const MEDIUM = 800;
const WIDE = 1250;
/** The width of 62 characters of text with line numbers, the tree of loops, and the edge of the drawer. */
const TEXT = 590;
/** The smallest and the largest initial width of the inspector. */
const INSPECTOR = [200, 340] as const;

type Size = "narrow" | "medium" | "wide";

/** The workbench: graph, function and inspector side by side, and the dock below. */
export function Workbench({ store, idBase }: { store: Store; idBase: string }): JSX.Element {
  const root = useRef<HTMLDivElement>(null);
  const [width, size] = useSize(root);
  const mismatch = useWatch(store.state, (state) => state.mismatch);
  const connected = useWatch(store.state, (state) => state.connected && state.alive);
  const keys = (event: KeyboardEvent): void => shortcuts(event, store, root.current);
  useOwnKeys(root);
  useKeptFocus(root);
  return (
    <div
      class={`tw tw-root is-${size}`}
      ref={root}
      onKeyDown={keys}
      data-connected={connected}
      tabIndex={-1}
    >
      {mismatch ? (
        <p class="tw-mismatch" role="alert">
          The page was loaded by another version of Tilewright. Reload the page, then run the cell again.
        </p>
      ) : null}
      <Toolbar store={store} idBase={idBase} />
      <ConnectionBar store={store} />
      <div class="tw-main">
        {size === "narrow" ? <Narrow store={store} idBase={idBase} /> : <Columns store={store} idBase={idBase} width={width} wide={size === "wide"} />}
      </div>
      <StatusBar store={store} />
    </div>
  );
}

interface PartProps {
  readonly store: Store;
  readonly idBase: string;
}

interface ColumnsProps extends PartProps {
  readonly width: number;
  readonly wide: boolean;
}

/** The text and the inspector side by side; the graph is a third column, or a drawer over the text. */
function Columns({ store, idBase, width, wide }: ColumnsProps): JSX.Element {
  const hasGraph = useWatch(store.state, (state) => state.graph !== null);
  const [smallest, largest] = INSPECTOR;
  const graph = <Boundary name="graph"><GraphPane store={store} idBase={`${idBase}-graph`} /></Boundary>;
  const loops = (
    <Split
      label="Width of the inspector"
      direction="row"
      sized="second"
      initial={wide ? largest : Math.max(smallest, Math.min(largest, width - TEXT))}
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
        wide && hasGraph ? (
          <Split label="Width of the graph" direction="row" sized="first" initial={290} first={graph} second={loops} />
        ) : (
          <>
            {hasGraph ? <Drawer store={store}>{graph}</Drawer> : null}
            {loops}
          </>
        )
      }
      second={<Dock store={store} idBase={`${idBase}-dock`} />}
    />
  );
}

/** The graph over the text: opened by the button at the left edge, closed by Escape or an opened kernel. */
function Drawer({ store, children }: { store: Store; children: ComponentChildren }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const open = useWatch(store.state, (state) => state.open);
  useEffect(() => setOpen(false), [open]);
  const close = (event: KeyboardEvent): void => {
    if (event.key !== "Escape" || !isOpen) return;
    setOpen(false);
    button.current?.focus();
  };
  return (
    <div class="tw-drawer-edge" onKeyDown={close}>
      <button type="button" ref={button} class="tw-drawer-button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Graph
      </button>
      {isOpen ? <div class="tw-drawer">{children}</div> : null}
    </div>
  );
}

/** One pane at a time; a pane that was opened stays mounted, with its forms, folds and positions. */
function Narrow({ store, idBase }: PartProps): JSX.Element {
  const [chosen, setTab] = useState("function");
  const hasGraph = useWatch(store.state, (state) => state.graph !== null);
  useRevealed(store, () => setTab("function"));
  const tab = chosen === "graph" && !hasGraph ? "function" : chosen;
  const visited = useRef(new Set<string>());
  visited.current.add(tab);
  const tabs = [
    ...(hasGraph ? [{ key: "graph", label: "Graph" }] : []),
    { key: "function", label: "Loops" },
    { key: "steps", label: "Steps" },
    { key: "dock", label: "More" },
  ];
  return (
    <div class="tw-narrow">
      <Tabs label="Panes" tabs={tabs} current={tab} onChange={setTab} idBase={`${idBase}-narrow`} />
      {tabs.filter(({ key }) => visited.current.has(key)).map(({ key }) => (
        <div
          key={key}
          class="tw-pane-body"
          role="tabpanel"
          hidden={key !== tab}
          id={key === tab ? `${idBase}-narrow-panel` : undefined}
          aria-labelledby={`${idBase}-narrow-tab-${key}`}
        >
          <NarrowPane name={key} store={store} idBase={idBase} />
        </div>
      ))}
    </div>
  );
}

function NarrowPane({ name, store, idBase }: PartProps & { readonly name: string }): JSX.Element {
  switch (name) {
    case "graph":
      return <Boundary name="graph"><GraphPane store={store} idBase={`${idBase}-graph`} /></Boundary>;
    case "steps":
      return <Boundary name="inspector"><Inspector store={store} /></Boundary>;
    case "dock":
      return <Dock store={store} idBase={`${idBase}-dock`} />;
    default:
      return <Boundary name="function"><FunctionPane store={store} idBase={`${idBase}-function`} /></Boundary>;
  }
}

/** Return the width of the workbench in pixels, and the layout for it. */
function useSize(root: { readonly current: HTMLElement | null }): [number, Size] {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = root.current;
    if (!element || typeof ResizeObserver === "undefined") return undefined;
    const look = (): void => {
      if (element.clientWidth > 0) setWidth(element.clientWidth);
    };
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, [root]);
  return [width, width === 0 || width >= WIDE ? "wide" : width >= MEDIUM ? "medium" : "narrow"];
}

function shortcuts(event: KeyboardEvent, store: Store, root: HTMLElement | null): void {
  if (event.key === "Escape" && !event.defaultPrevented && isTyping(event.target)) root?.focus();
  if (belongsHere(event)) event.stopPropagation();
  if (isTyping(event.target) || !(event.ctrlKey || event.metaKey)) return;
  const { can_undo: canUndo, can_redo: canRedo } = store.state.value.history;
  const key = event.key.toLowerCase();
  const redo = key === "y" || (key === "z" && event.shiftKey);
  if (!redo && key !== "z") return;
  event.preventDefault();
  if (redo ? canRedo : canUndo) store.navigate(redo ? "redo" : "undo");
}

let mounted = 0;

/** Mount a workbench in an element and return the function that unmounts it. */
export function mount(store: Store, element: HTMLElement): () => void {
  render(<Workbench store={store} idBase={`tw${String(++mounted)}`} />, element);
  return () => render(null, element);
}
