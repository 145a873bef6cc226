import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useWatch } from "../observable";
import type { Job } from "../protocol";
import type { State, Store } from "../store";
import { ConditionsButton } from "./conditions";
import { Icon, Mark, type IconName } from "../ui/icons";

/** Undo and redo, compile and time, and whether the compiled program is right. */
export function Toolbar({ store, idBase }: { store: Store; idBase: string }): JSX.Element {
  const history = useWatch(store.state, (state) => state.history);
  const target = useWatch(store.state, (state) => state.target);
  const job = useWatch(store.state, runningJob);
  return (
    <div class="tw-toolbar" role="toolbar" aria-label="Workbench">
      <span class="tw-brand">
        <Mark /> Tilewright
      </span>
      <span class="tw-bar-gap" />
      <Tool icon="undo" label="Undo" keys="Ctrl+Z" disabled={!history.can_undo} onClick={() => store.travel("undo")} />
      <Tool icon="redo" label="Redo" keys="Ctrl+Shift+Z" disabled={!history.can_redo} onClick={() => store.travel("redo")} />
      <span class="tw-bar-gap" />
      <button
        type="button"
        class="tw-button"
        disabled={job !== null}
        title="Compile, run at the sample sizes and compare with the interpreter"
        onClick={() => store.send({ type: "run", what: "compile", function: "" })}
      >
        <Icon name="hammer" size={15} /> Compile
      </button>
      <button
        type="button"
        class="tw-button tw-primary"
        disabled={job !== null}
        title="Compile and measure at the sample sizes"
        onClick={() => store.send({ type: "run", what: "time", function: "" })}
      >
        <Icon name="play" size={13} /> Time
      </button>
      <ConditionsButton store={store} id={`${idBase}-conditions`} />
      <TimeKernel store={store} disabled={job !== null} />
      {job ? <Progress job={job} store={store} /> : <Correctness store={store} />}
      <span class="tw-bar-fill-gap" />
      <span class="tw-target tw-mono" title="What is compiled for">
        {target}
      </span>
    </div>
  );
}

/** Where a kernel is open beside a graph: time it by itself, which is faster than the whole. */
function TimeKernel({ store, disabled }: { store: Store; disabled: boolean }): JSX.Element | null {
  const name = useWatch(store.state, openKernel);
  if (name === "") return null;
  return (
    <button
      type="button"
      class="tw-button"
      disabled={disabled}
      title={`Compile ${name} alone and measure it at the sizes its caller gives it`}
      onClick={() => store.send({ type: "run", what: "time", function: name })}
    >
      <Icon name="clock" size={14} /> Time kernel
    </button>
  );
}

function openKernel(state: State): string {
  const item = state.functions.find((candidate) => candidate.name === state.open);
  return state.graph !== null && item?.level === "loop" ? item.name : "";
}

interface ToolProps {
  readonly icon: IconName;
  readonly label: string;
  readonly keys: string;
  readonly disabled: boolean;
  readonly onClick: () => void;
}

function Tool({ icon, label, keys, disabled, onClick }: ToolProps): JSX.Element {
  return (
    <button type="button" class="tw-tool" aria-label={label} title={`${label} (${keys})`} disabled={disabled} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}

function Progress({ job, store }: { job: Job; store: Store }): JSX.Element {
  const known = job.progress >= 0;
  // Said at once, whatever the kernel is at; what it answers takes its time.
  const [asked, setAsked] = useState("");
  const cancelling = job.state === "cancelling" || asked === job.key;
  return (
    <span class="tw-job">
      <span
        class={`tw-progress${known ? "" : " is-endless"}`}
        role="progressbar"
        aria-label={job.title}
        {...(known ? { "aria-valuenow": Math.round(job.progress * 100), "aria-valuemin": 0, "aria-valuemax": 100 } : {})}
      >
        <span style={{ width: `${known ? job.progress * 100 : 35}%` }} />
      </span>
      <span class="tw-job-text">{job.message || job.title}</span>
      <button
        type="button"
        class="tw-button"
        disabled={cancelling}
        onClick={() => {
          setAsked(job.key);
          store.send({ type: "cancel", job: job.key });
        }}
      >
        {cancelling ? "Cancelling" : "Cancel"}
      </button>
    </span>
  );
}

function Correctness({ store }: { store: Store }): JSX.Element | null {
  const verdict = useWatch(store.state, (state) => state.verdict);
  const head = useWatch(store.state, (state) => state.history.head);
  if (verdict === null) return null;
  const stale = verdict.state !== head;
  const tone = stale ? "is-stale" : verdict.agrees ? "is-good" : "is-bad";
  const said = verdict.agrees ? "matches the interpreter" : "differs from the interpreter";
  return (
    <span class={`tw-badge tw-correct ${tone}`} title={`${verdict.message} (${verdict.shapes}). Allowed: ${verdict.derivation}`}>
      <Icon name={verdict.agrees ? "check" : "cross"} size={13} />
      {said}
      <span class="tw-mono">{stale ? "at an earlier step" : `off by ${verdict.error.toExponential(1)} of ${verdict.bound.toExponential(1)} allowed`}</span>
    </span>
  );
}

function runningJob(state: State): Job | null {
  return state.jobs.find((job) => job.state === "running" || job.state === "cancelling") ?? null;
}
