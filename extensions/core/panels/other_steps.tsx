import type { JSX } from "preact";
import { useWatch } from "../observable";
import type { Handle, Suggestion } from "../protocol";
import type { Store } from "../store";
import { Step } from "./step";
import { matches, otherSteps } from "./suggestions";

interface OtherProps {
  readonly selection: Handle;
  readonly suggestions: readonly Suggestion[];
  readonly query: string;
  readonly scope: string;
  readonly store: Store;
}

/** All other steps that accept the selection: they are not suggested, and their parameters must be entered. */
export function OtherSteps({ selection, suggestions, query, scope, store }: OtherProps): JSX.Element | null {
  const catalog = useWatch(store.state, (state) => state.catalog);
  const others = otherSteps(catalog, selection, suggestions).filter((step) => matches(step, query));
  if (others.length === 0) return null;
  return (
    <details class="tw-other-steps" open={query.trim() !== ""}>
      <summary class="tw-heading" data-focus="other-steps">
        Other steps <span class="tw-count">{others.length}</span>
      </summary>
      <ul class="tw-step-list" aria-label="Other steps">
        {others.map((step) => (
          <Step key={step.step} suggestions={[step]} scope={scope} store={store} />
        ))}
      </ul>
    </details>
  );
}
