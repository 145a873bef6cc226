import { useEffect, useState } from "preact/hooks";
import type { Checked, Suggestion } from "../protocol";
import type { Store } from "../store";
import type { Values } from "./form";
import { withValues } from "./suggestions";

/** The delay in milliseconds after which entered values are checked. */
const DELAY = 120;

interface Found {
  readonly suggestion: Suggestion;
  readonly values: Values;
  readonly checked: Checked;
}

/**
 * Check a step while its form is open, and whenever its values or the program change.
 *
 * Return the result of the last check of this step, null before the first one, and whether it is
 * that of the present values.
 */
export function useCheck(store: Store, suggestion: Suggestion, values: Values, open: boolean): [Checked | null, boolean] {
  const [found, setFound] = useState<Found | null>(null);
  const entered = Object.keys(values).length > 0;
  useEffect(() => {
    if (!open) return undefined;
    let wanted = true;
    const check = async (): Promise<void> => {
      const checked = await store.check(withValues(suggestion, values));
      if (wanted && checked) setFound({ suggestion, values, checked });
    };
    const timer = setTimeout(() => void check(), entered ? DELAY : 0);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [store, suggestion, values, open, entered]);
  const isSame = found?.suggestion.key === suggestion.key;
  const isPresent = isSame && found.suggestion === suggestion && found.values === values;
  return [isSame ? found.checked : null, isPresent];
}
