import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { callsOf, commonNamespaces } from "../graph/namespaces";
import { useWatch } from "../observable";
import type { Heat } from "../overlay";
import type { FunctionItem, GraphView } from "../protocol";
import type { Store } from "../store";

/** The position of the open function in the graph: its caller, the namespaces of its calls, and the list of functions. */
export function Breadcrumb({ store }: { store: Store }): JSX.Element {
  const functions = useWatch(store.state, (state) => state.functions);
  const open = useWatch(store.state, (state) => state.open);
  const view = useWatch(store.state, (state) => state.graph);
  const heat = useWatch(store.state, (state) => state.heat);
  const graph = view?.function ?? "";
  const path = useMemo(() => pathOf(open, view, heat), [open, view, heat]);
  const separator = <span class="tw-position-separator" aria-hidden="true">›</span>;
  return (
    <nav class="tw-position" aria-label="Position of the function">
      {graph !== "" && graph !== open ? (
        <>
          <button type="button" class="tw-link tw-mono" onClick={() => store.send({ type: "open", function: graph })}>
            {graph}
          </button>
          {separator}
        </>
      ) : null}
      {path === "" ? null : (
        <>
          <span class="tw-position-path tw-mono" title={path}>{path}</span>
          {separator}
        </>
      )}
      <FunctionPicker store={store} functions={functions} open={open} />
    </nav>
  );
}

function pathOf(open: string, graph: GraphView | null, heat: Heat | null): string {
  if (!graph || graph.function === open) return "";
  return commonNamespaces(callsOf(open, graph.nodes, heat)).join(" › ");
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
