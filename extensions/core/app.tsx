import { render, type ComponentChildren, type JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Frame } from "./frame";
import { useWatch } from "./observable";
import { ConnectionBar } from "./panels/connection";
import { Dock } from "./panels/dock";
import { Inspector } from "./panels/inspector";
import type { Panel } from "./panels/panel";
import { FunctionPane, GraphPane } from "./panels/panes";
import { PANELS } from "./panels/registry";
import { useRevealed } from "./panels/revealed";
import { StatusBar } from "./panels/status";
import { Toolbar } from "./panels/toolbar";
import type { Store } from "./store";
import { Boundary } from "./ui/boundary";
import { Split } from "./ui/split";
import { Tabs } from "./ui/tabs";
import { useView, useViewOf } from "./use_view";
import { View } from "./view_state";
import { persist } from "./view_storage";

/** The widths in pixels from which the text has the inspector beside it, and the graph as well. */
const MEDIUM = 800;
const WIDE = 1250;
/** The width of 62 characters of text with line numbers, the tree of loops, and the edge of the drawer. */
const TEXT = 590;
/** The smallest and the largest initial width of the inspector. */
const INSPECTOR = [200, 340] as const;

type Size = "narrow" | "medium" | "wide";

interface MountProps {
  readonly store: Store;
  readonly view: View;
  readonly idBase: string;
}

/** The workbench: graph, function and inspector side by side, and the dock below. */
function Workbench({ store, view, idBase }: MountProps): JSX.Element {
  const root = useRef<HTMLDivElement>(null);
  const [width, size] = useSize(root);
  return (
    <Frame store={store} view={view} root={root} class={`is-${size}`}>
      <Toolbar store={store} idBase={idBase} />
      <ConnectionBar store={store} />
      <div class="tw-main">
        {size === "narrow" ? <Narrow store={store} idBase={idBase} /> : <Columns store={store} idBase={idBase} width={width} wide={size === "wide"} />}
      </div>
      <StatusBar store={store} />
    </Frame>
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
  const graph = <Pane name="graph" store={store} idBase={idBase} />;
  const loops = (
    <Split
      name={wide ? "inspector" : "inspector beside a drawer"}
      label="Width of the inspector"
      direction="row"
      sized="second"
      initial={wide ? largest : Math.max(smallest, Math.min(largest, width - TEXT))}
      first={<Pane name="function" store={store} idBase={idBase} />}
      second={<Pane name="steps" store={store} idBase={idBase} />}
    />
  );
  return (
    <Split
      name="dock"
      label="Height of the dock"
      direction="column"
      sized="second"
      initial={200}
      minimum={72}
      first={
        wide && hasGraph ? (
          <Split name="graph" label="Width of the graph" direction="row" sized="first" initial={290} first={graph} second={loops} />
        ) : (
          <>
            {hasGraph ? <Drawer store={store}>{graph}</Drawer> : null}
            {loops}
          </>
        )
      }
      second={<Pane name="dock" store={store} idBase={idBase} />}
    />
  );
}

/** The graph over the text: opened by the button at the left edge, closed by Escape or an opened kernel. */
function Drawer({ store, children }: { store: Store; children: ComponentChildren }): JSX.Element {
  const [isOpen, setOpen] = useView("drawer");
  const button = useRef<HTMLButtonElement>(null);
  const open = useWatch(store.state, (state) => state.open);
  const last = useRef(open);
  useEffect(() => {
    if (last.current !== "" && last.current !== open) setOpen(false);
    last.current = open;
  }, [open]);
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
  const view = useViewOf();
  const [chosen, setTab] = useView("pane");
  const hasGraph = useWatch(store.state, (state) => state.graph !== null);
  useRevealed(store, () => {
    view.set("level", "ir");
    setTab("function");
  });
  const tabs = [
    ...(hasGraph ? [{ key: "graph", label: "Graph" }] : []),
    { key: "function", label: "Loops" },
    { key: "steps", label: "Steps" },
    { key: "dock", label: "More" },
  ];
  const tab = tabs.some(({ key }) => key === chosen) ? chosen : "function";
  const visited = useRef(new Set<string>());
  visited.current.add(tab);
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
          <Pane name={key} store={store} idBase={idBase} />
        </div>
      ))}
    </div>
  );
}

/** A pane of the workbench; an error in one does not affect the others. */
function Pane({ name, store, idBase }: PartProps & { readonly name: string }): JSX.Element {
  switch (name) {
    case "graph":
      return <Boundary name="graph"><GraphPane store={store} idBase={`${idBase}-graph`} /></Boundary>;
    case "function":
      return <Boundary name="function"><FunctionPane store={store} idBase={`${idBase}-function`} /></Boundary>;
    case "steps":
      return (
        <section class="tw-pane" aria-label="Steps">
          <Boundary name="inspector"><Inspector store={store} /></Boundary>
        </section>
      );
    default:
      return <Dock store={store} idBase={`${idBase}-dock`} />;
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

/** One pane or panel without the others. */
function Alone({ name, ...props }: MountProps & { readonly name: string }): JSX.Element {
  const root = useRef<HTMLDivElement>(null);
  const panel = PANELS.find(({ key }) => key === name);
  return (
    <Frame store={props.store} view={props.view} root={root} class="is-alone">
      <div class="tw-main">{panel ? <PanelAlone panel={panel} store={props.store} /> : <Pane name={name} {...props} />}</div>
    </Frame>
  );
}

function PanelAlone({ panel: { title, view: Content }, store }: { readonly panel: Panel; readonly store: Store }): JSX.Element {
  return (
    <section class="tw-pane tw-dock" aria-label={title}>
      <div class="tw-pane-body tw-scroll" tabIndex={0}>
        <Boundary name={title}><Content store={store} /></Boundary>
      </div>
    </section>
  );
}

const PANES = ["graph", "function", "steps", "dock"] as const;

/** The names for `mountPane`: the parts of the workbench, and the panels of its dock. */
export const PANE_NAMES: readonly string[] = [...PANES, ...PANELS.map(({ key }) => key)];

let mounted = 0;

/**
 * Mount a workbench in an element and return the function that unmounts it. Without a view, the
 * workbench has its own, which the browser keeps; a shared one is kept by `persist`.
 */
export function mount(store: Store, element: HTMLElement, shared?: View): () => void {
  return show(store, element, shared, (props) => <Workbench {...props} />);
}

/** Mount one pane or panel of a workbench in an element and return the function that unmounts it. */
export function mountPane(store: Store, name: string, element: HTMLElement, shared?: View): () => void {
  if (!PANE_NAMES.includes(name)) throw new Error(`no pane '${name}'; the panes are ${PANE_NAMES.join(", ")}`);
  return show(store, element, shared, (props) => <Alone name={name} {...props} />);
}

function show(store: Store, element: HTMLElement, shared: View | undefined, content: (props: MountProps) => JSX.Element): () => void {
  const view = shared ?? new View();
  const close = shared ? (): void => undefined : persist(view, store);
  render(content({ store, view, idBase: `tw${String(++mounted)}` }), element);
  return () => {
    render(null, element);
    close();
  };
}
