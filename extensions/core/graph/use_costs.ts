import { useEffect, useMemo } from "preact/hooks";
import { useWatch } from "../observable";
import type { GraphCosts } from "../protocol";
import type { State, Store } from "../store";
import type { HeatKind } from "./coloring";

/** The costs of the displayed graph, null until they are known, and the status until then. */
export interface Costs {
  readonly costs: GraphCosts | null;
  readonly status: string;
}

/** The last request of each page, because several parts display the same costs. */
const asked = new WeakMap<Store, string>();

function ask(store: Store, kind: GraphCosts["kind"], key: string): void {
  if (asked.get(store) === key) return;
  asked.set(store, key);
  store.send({ type: "count_costs", kind });
}

/** Return the costs of the graph; they are requested for each state and each choice of sizes. */
export function useCosts(store: Store, kind: HeatKind): Costs {
  const name = useWatch(store.state, ({ graph }) => graph?.function ?? "");
  const head = useWatch(store.state, ({ history }) => history.head);
  const sizes = useWatch(store.state, sizesOf);
  const alive = useWatch(store.state, (state) => state.alive && state.connected);
  const received = useWatch(store.state, (state) => state.costs);
  useEffect(() => {
    if (!alive) asked.delete(store);
    else if (kind !== "time" && name !== "") ask(store, kind, [kind, name, head, sizes].join("\n"));
  }, [store, kind, name, head, sizes, alive]);
  const costs = received?.kind === kind && received.function === name ? received : null;
  const status = alive ? (costs?.state === head ? "" : "counting…") : costs ? "" : "not known without the Jupyter kernel";
  return useMemo(() => ({ costs, status }), [costs, status]);
}

/** Return the sample sizes of the graph as text, to compare them. */
function sizesOf({ setup }: State): string {
  return (setup?.sizes ?? []).map(({ name, sample }) => `${name} ${String(sample)}`).join();
}
