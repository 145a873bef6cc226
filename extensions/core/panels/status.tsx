import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useWatch } from "../observable";
import type { Store } from "../store";

const PATIENCE = 8000;

/** Whether something has been so for a number of milliseconds. */
function useLong(now: boolean, milliseconds: number): boolean {
  const [long, setLong] = useState(false);
  useEffect(() => {
    if (!now) return undefined;
    const timer = setTimeout(() => setLong(true), milliseconds);
    return () => {
      clearTimeout(timer);
      setLong(false);
    };
  }, [now, milliseconds]);
  return long;
}

/** The line at the bottom: what the last edit did, and where the session stands. */
export function StatusBar({ store }: { store: Store }): JSX.Element {
  const applied = useWatch(store.state, (state) => state.applied);
  const steps = useWatch(store.state, (state) => state.trace.length);
  const head = useWatch(store.state, (state) => state.history.head);
  const roundTrip = useWatch(store.state, (state) => state.roundTrip);
  const waiting = useWatch(store.state, (state) => state.waiting > 0);
  const silent = useLong(waiting, PATIENCE);
  return (
    <footer class="tw-status">
      <span class={`tw-said tw-tone-${applied?.tone ?? "info"}`} role="status" aria-live="polite">
        {silent ? "The kernel does not answer: it is busy with a cell, or gone. Then run the cell again." : (applied?.message ?? "")}
      </span>
      <span class={`tw-dot${waiting ? " is-busy" : ""}`} title={waiting ? "Waiting for the kernel" : "Ready"} />
      <span class="tw-mono" title="Steps applied, and the state they led to">
        {steps} {steps === 1 ? "step" : "steps"} · {head.slice(0, 7) || "—"}
      </span>
      <span class="tw-mono tw-round-trip" title="The last round trip to the kernel">
        {roundTrip === null ? "" : `${roundTrip.toFixed(0)} ms`}
      </span>
    </footer>
  );
}
