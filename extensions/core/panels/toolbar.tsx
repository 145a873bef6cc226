import type { JSX } from "preact";
import { CommandButton } from "../commands/button";
import { useWatch } from "../observable";
import type { Store } from "../store";
import { Icon, Mark } from "../ui/icons";
import { SetupButton } from "./setup";

/** The toolbar: undo, redo, compile, measure, the verdict of the last compilation, all commands, and the setup. */
export function Toolbar({ store, idBase }: { store: Store; idBase: string }): JSX.Element {
  return (
    <div class="tw-toolbar" role="toolbar" aria-label="Workbench">
      <span class="tw-brand">
        <Mark /> <span class="tw-optional">Tilewright</span>
      </span>
      <span class="tw-bar-gap" />
      <CommandButton id="tilewright:undo" kind="tool" size={16} />
      <CommandButton id="tilewright:redo" kind="tool" size={16} />
      <span class="tw-bar-gap" />
      <CommandButton id="tilewright:compile" size={15} />
      <CommandButton id="tilewright:measure" kind="primary" size={13} />
      <CommandButton id="tilewright:measure-kernel" kind="compact" />
      <Verdict store={store} />
      <span class="tw-bar-fill-gap" />
      <CommandButton id="tilewright:palette" kind="tool" size={15} />
      <SetupButton store={store} id={`${idBase}-setup`} />
    </div>
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
