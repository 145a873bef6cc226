import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Job } from "../protocol";
import type { Store } from "../store";
import { seconds } from "../ui/format";

const TICK_MS = 250;

/** A running job: its title, progress, message and elapsed time, and a button that cancels it. */
export function Progress({ job, more, store }: { job: Job; more: number; store: Store }): JSX.Element {
  const determinate = job.progress >= 0;
  // Displayed immediately, without waiting for the answer of the Jupyter kernel.
  const [requested, setRequested] = useState("");
  const canceling = job.state === "canceling" || requested === job.key;
  const elapsed = useElapsed(job);
  return (
    <span class="tw-job">
      <span
        class={`tw-progress${determinate ? "" : " is-endless"}`}
        role="progressbar"
        aria-label={job.title}
        {...(determinate ? { "aria-valuenow": Math.round(job.progress * 100), "aria-valuemin": 0, "aria-valuemax": 100 } : {})}
      >
        <span style={{ width: `${determinate ? job.progress * 100 : 35}%` }} />
      </span>
      <span class="tw-job-text" title={job.message}>
        <strong>{job.title}</strong> {job.message}
      </span>
      <span class="tw-mono tw-job-time">
        {determinate ? `${String(Math.round(job.progress * 100))} % · ` : ""}
        {seconds(elapsed)}
        {more > 0 ? ` · ${String(more)} more` : ""}
      </span>
      <button
        type="button"
        class="tw-button"
        disabled={canceling}
        onClick={() => {
          setRequested(job.key);
          store.send({ type: "cancel", job: job.key });
        }}
      >
        {canceling ? "Canceling" : "Cancel"}
      </button>
    </span>
  );
}

/** Return the elapsed seconds of a job, which continue between its reports. */
function useElapsed(job: Job): number {
  const [now, setNow] = useState(() => performance.now());
  const [report, setReport] = useState({ seconds: job.seconds, at: now });
  useEffect(() => {
    const at = performance.now();
    setReport({ seconds: job.seconds, at });
    setNow(at);
  }, [job.key, job.seconds]);
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  return report.seconds + Math.max(0, now - report.at) / 1000;
}
