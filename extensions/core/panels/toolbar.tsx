import type { JSX } from "preact";
import { useWatch } from "../observable";
import { runningJob, type State, type Store } from "../store";
import { SetupButton } from "./setup";
import { Icon, Mark, type IconName } from "../ui/icons";

/** The toolbar: undo, redo, compile, measure, and the verdict of the last compilation. */
export function Toolbar({ store, idBase }: { store: Store; idBase: string }): JSX.Element {
  const history = useWatch(store.state, (state) => state.history);
  const missing = useWatch(store.state, (state) => state.setup?.missing ?? "");
  const busy = useWatch(store.state, (state) => runningJob(state)?.kind === "run");
  const blocked = busy || missing !== "";
  const run = (action: "compile" | "measure"): void => {
    if (!blocked) store.send({ type: "run", action, function: "" });
  };
  return (
    <div class="tw-toolbar" role="toolbar" aria-label="Workbench">
      <span class="tw-brand">
        <Mark /> <span class="tw-optional">Tilewright</span>
      </span>
      <span class="tw-bar-gap" />
      <Tool icon="undo" label="Undo" keys="Ctrl+Z" disabled={!history.can_undo} onClick={() => store.navigate("undo")} />
      <Tool icon="redo" label="Redo" keys="Ctrl+Shift+Z" disabled={!history.can_redo} onClick={() => store.navigate("redo")} />
      <span class="tw-bar-gap" />
      <button
        type="button"
        class="tw-button"
        aria-disabled={blocked}
        title={missing || "Compile, run at the sample sizes, and compare with the interpreter"}
        onClick={() => run("compile")}
      >
        <Icon name="hammer" size={15} /> Compile
      </button>
      <button
        type="button"
        class="tw-button tw-primary"
        aria-disabled={blocked}
        title={missing || "Compile and measure at the sample sizes"}
        onClick={() => run("measure")}
      >
        <Icon name="play" size={13} /> Measure
      </button>
      <MeasureKernel store={store} disabled={blocked} />
      <Verdict store={store} />
      <span class="tw-bar-fill-gap" />
      <SetupButton store={store} id={`${idBase}-setup`} />
    </div>
  );
}

/** The button that measures the open kernel in isolation, displayed for modules with a graph. */
function MeasureKernel({ store, disabled }: { store: Store; disabled: boolean }): JSX.Element | null {
  const name = useWatch(store.state, openKernel);
  if (name === "") return null;
  return (
    <button
      type="button"
      class="tw-button"
      aria-disabled={disabled}
      aria-label="Measure kernel"
      title={`Measure kernel: compile and measure only ${name} at the sizes of its caller`}
      onClick={() => {
        if (!disabled) store.send({ type: "run", action: "measure", function: name });
      }}
    >
      <Icon name="clock" size={14} /> <span class="tw-optional">Measure kernel</span>
    </button>
  );
}

function openKernel(state: State): string {
  const item = state.functions.find((other) => other.name === state.open);
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
    <button type="button" class="tw-tool" aria-label={label} title={`${label} (${keys})`} aria-disabled={disabled} onClick={() => { if (!disabled) onClick(); }}>
      <Icon name={icon} />
    </button>
  );
}

function Verdict({ store }: { store: Store }): JSX.Element | null {
  const verdict = useWatch(store.state, (state) => state.verdict);
  const head = useWatch(store.state, (state) => state.history.head);
  if (verdict === null) return null;
  const stale = verdict.state !== head;
  const tone = stale ? "is-stale" : verdict.agrees ? "is-good" : "is-bad";
  const result = verdict.agrees ? "Matches the interpreter" : "Differs from the interpreter";
  return (
    <span class={`tw-badge tw-verdict ${tone}`} title={`${verdict.message} (${verdict.shapes}). Error bound: ${verdict.derivation}`}>
      <Icon name={verdict.agrees ? "check" : "cross"} size={13} />
      {result}
      <span class="tw-mono tw-optional">{stale ? "at an earlier state" : `error ${verdict.error.toExponential(1)}, bound ${verdict.bound.toExponential(1)}`}</span>
    </span>
  );
}
