import type { Store } from "./store";
import { bounded, readState, type View, type ViewState } from "./view_state";

const PREFIX = "tilewright:view:";
/** The number of programs whose views are kept. */
const MAX_PROGRAMS = 12;
/** The largest view that is stored, in characters; browsers limit the storage of a site to about 5 MB. */
const MAX_LENGTH = 100_000;
/** The numbers of entries of each part to try in turn until a view is small enough. */
const COUNTS = [64, 16, 4, 0] as const;
/** The pause in milliseconds after a change until it is stored. */
const PAUSE = 250;

interface Stored {
  readonly time: number;
  readonly view: unknown;
}

/** Return the view of a program from the storage of the browser's tab, null if there is none. */
export function readView(program: string): ViewState | null {
  try {
    const text = sessionStorage.getItem(PREFIX + program);
    return text === null ? null : readState((JSON.parse(text) as Partial<Stored> | null)?.view);
  } catch {
    return null; // not allowed, or not written by this code
  }
}

/** Store the view of a program; a full or forbidden storage is ignored, because the page has the view. */
export function writeView(program: string, state: ViewState): void {
  const text = stored(state);
  if (text.length > MAX_LENGTH) return;
  try {
    if (sessionStorage.getItem(PREFIX + program) === null) forgetOldest(MAX_PROGRAMS - 1);
    sessionStorage.setItem(PREFIX + program, text);
  } catch {
    // Storage is full or not allowed.
  }
}

/** Return a view as text, with as many entries as its size allows. */
function stored(state: ViewState): string {
  let text = "";
  for (const count of COUNTS) {
    text = JSON.stringify({ time: Date.now(), view: bounded(state, count) } satisfies Stored);
    if (text.length <= MAX_LENGTH) break;
  }
  return text;
}

/** Remove the views that were stored longest ago, except for a number of them. */
function forgetOldest(kept: number): void {
  const keys = Object.keys(sessionStorage).filter((key) => key.startsWith(PREFIX));
  const times = new Map(keys.map((key) => [key, timeOf(sessionStorage.getItem(key) ?? "")]));
  const newest = keys.sort((one, other) => (times.get(other) ?? 0) - (times.get(one) ?? 0));
  for (const key of newest.slice(kept)) sessionStorage.removeItem(key);
}

function timeOf(text: string): number {
  try {
    return Number((JSON.parse(text) as Partial<Stored> | null)?.time) || 0;
  } catch {
    return 0;
  }
}

/** Restore the view of a store's program when it is known, store each change, and return the function that ends that. */
export function persist(view: View, store: Store): () => void {
  let program = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  let saved: ViewState | null = null;
  const save = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (program === "" || view.value === saved) return;
    saved = view.value;
    writeView(program, saved);
  };
  const look = (): void => {
    const found = store.saved?.program ?? "";
    if (found === "" || found === program) return;
    const kept = program === "" ? readView(found) : null;
    program = found;
    if (kept) view.state.set(kept);
    saved = view.value;
  };
  const stops = [
    store.state.subscribe(look),
    view.state.subscribe(() => {
      timer ??= setTimeout(save, PAUSE);
    }),
  ];
  look();
  window.addEventListener("pagehide", save);
  return () => {
    save();
    window.removeEventListener("pagehide", save);
    for (const stop of stops) stop();
  };
}
