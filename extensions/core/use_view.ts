import { createContext } from "preact";
import { useContext, useMemo } from "preact/hooks";
import { useWatch } from "./observable";
import type { Store } from "./store";
import { View, type Entry, type EntryKey, type ViewState } from "./view_state";

/** The view of the mounted workbench or panel. */
export const ViewContext = createContext<View | null>(null);

/** Return the view of the workbench; a component that is mounted without one has its own. */
export function useViewOf(): View {
  const own = useMemo(() => new View(), []);
  return useContext(ViewContext) ?? own;
}

/** Return a part of the view state, and the function that replaces it. */
export function useView<Key extends keyof ViewState>(key: Key): [ViewState[Key], (value: ViewState[Key]) => void] {
  const view = useViewOf();
  const value = useWatch(view.state, (state) => state[key]);
  return [value, (next) => view.set(key, next)];
}

/** Return a value of the view state by name, `initial` until it is set, and the function that changes it. */
export function useEntry<Key extends EntryKey>(
  key: Key,
  name: string,
  initial: Entry<Key>,
): [Entry<Key>, (change: (before: Entry<Key>) => Entry<Key>) => void] {
  const view = useViewOf();
  const value = useWatch(view.state, () => view.entry(key, name)) ?? initial;
  return [value, (change) => view.setEntry(key, name, change(view.entry(key, name) ?? initial))];
}

/** Return the text that was typed into a field and not sent yet, undefined without one, and the function that replaces it. */
export function useDraft(name: string): [string | undefined, (text: string | undefined) => void] {
  const view = useViewOf();
  const draft = useWatch(view.state, () => view.entry("fields", name));
  return [draft, (text) => view.setEntry("fields", name, text)];
}

/** Return the function that opens a function of the program and, in the narrow layout, displays its pane. */
export function useOpen(store: Store): (name: string) => void {
  const view = useViewOf();
  return useMemo(
    () => (name) => {
      store.send({ type: "open", function: name });
      view.set("pane", "function");
    },
    [store, view],
  );
}
