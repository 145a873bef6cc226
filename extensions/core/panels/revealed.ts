import { useEffect, useRef } from "preact/hooks";
import { useWatch } from "../observable";
import type { Store } from "../store";

/** Run an action each time that parts of a function are to be scrolled to, to show the function. */
export function useRevealed(store: Store, show: () => void): void {
  const reveal = useWatch(store.marked, (marked) => marked?.reveal ?? 0);
  const last = useRef(reveal); // that was shown before the component was mounted
  useEffect(() => {
    if (reveal > 0 && reveal !== last.current) show();
    last.current = reveal;
  }, [reveal]);
}
