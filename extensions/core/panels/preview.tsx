import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Comparison } from "../code/comparison";
import { useWatch } from "../observable";
import type { FunctionChange, StepData } from "../protocol";
import type { Store } from "../store";

/** The delay in milliseconds after which a step with new values is previewed. */
const DELAY = 150;

/** The changes of the program by a step that is not applied yet; computed while it is unfolded. */
export function StepPreview({ step, store }: { step: StepData; store: Store }): JSX.Element {
  const [open, setOpen] = useState(false);
  const head = useWatch(store.state, (state) => state.history.head);
  const key = JSON.stringify([head, step]);
  const preview = useWatch(store.state, (state) => state.previewed);
  useEffect(() => {
    if (!open) return undefined;
    const timer = setTimeout(() => store.preview(key, step), DELAY);
    return () => clearTimeout(timer);
  }, [open, key, store]);
  const present = preview?.key === key;
  return (
    <details class="tw-preview" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary data-focus={`preview:${step.op}`}>Preview</summary>
      {open && preview && present ? (
        preview.problem ? (
          <p class="tw-quiet">The step is illegal: {preview.problem.message}</p>
        ) : (
          <>
            {preview.changes.length === 0 ? <p class="tw-quiet">The step changes nothing.</p> : null}
            {preview.changes.map((change) => (
              <Change key={change.function} change={change} />
            ))}
            {preview.more > 0 ? <p class="tw-quiet">and {preview.more} more functions</p> : null}
          </>
        )
      ) : open ? (
        <p class="tw-quiet">Trying the step…</p>
      ) : null}
    </details>
  );
}

function Change({ change }: { change: FunctionChange }): JSX.Element {
  return (
    <figure class="tw-preview-change">
      <figcaption class="tw-mono">{change.function}</figcaption>
      <Comparison label={`Changes of ${change.function}`} before={change.before} after={change.after} language="script" inline />
    </figure>
  );
}
