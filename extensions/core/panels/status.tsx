import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useWatch } from "../observable";
import { runningJob, runningJobs, type Store } from "../store";
import { pendingCount } from "../trace/rows";
import { Progress } from "./progress";

const SILENCE_MS = 8000;

/** Return whether a condition has been true for a number of milliseconds. */
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

/** The status bar: the outcome of the last request, the running job, and the number of steps. */
export function StatusBar({ store }: { store: Store }): JSX.Element {
  const applied = useWatch(store.state, (state) => state.applied);
  const steps = useWatch(store.state, (state) => state.trace.lines.length - pendingCount(state.trace));
  const waiting = useWatch(store.state, (state) => state.waiting > 0);
  const silent = useLong(waiting, SILENCE_MS);
  const job = useWatch(store.state, runningJob);
  const alive = useWatch(store.state, (state) => state.alive);
  const jobs = useWatch(store.state, (state) => runningJobs(state).length);
  return (
    <footer class="tw-status">
      <span class={`tw-announcement tw-tone-${applied?.tone ?? "info"}`} role="status" aria-live="polite">
        {silent && alive ? "The Jupyter kernel does not respond. It may be busy with a cell. If it stopped, run the cell again." : (applied?.message ?? "")}
      </span>
      {job ? <Progress key={job.key} job={job} more={jobs - 1} store={store} /> : null}
      <span class={`tw-dot${alive ? (waiting ? " is-busy" : "") : " is-lost"}`} title={alive ? (waiting ? "Waiting for the Jupyter kernel" : "Ready") : "Not connected"} />
      <span class="tw-mono" title="Number of applied steps">
        {steps} {steps === 1 ? "step" : "steps"}
      </span>
    </footer>
  );
}
