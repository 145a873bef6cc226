/** A trace as a file, of the program and the Jupyter kernel (`process`) that it belongs to. */
export interface Saved {
  readonly name: string;
  readonly program: string;
  readonly process: string;
  readonly steps: number;
  readonly text: string;
  /** The notes on the states of the history, by key. */
  readonly notes: Readonly<Record<string, string>>;
}

const PREFIX = "tilewright:trace:";
/** The number of programs whose traces are kept. */
const MAX_PROGRAMS = 12;
/** The largest file that is kept, in characters; browsers limit the storage of a site to about 5 MB. */
const MAX_LENGTH = 1_000_000;

/** Keep a trace in the storage of the browser, so that it survives the kernel and the page. */
export function remember(saved: Saved): void {
  if (saved.text.length > MAX_LENGTH) return;
  try {
    localStorage.removeItem(PREFIX + saved.program);
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
    for (const key of keys.slice(0, Math.max(0, keys.length + 1 - MAX_PROGRAMS))) localStorage.removeItem(key);
    localStorage.setItem(PREFIX + saved.program, JSON.stringify(saved));
  } catch {
    // Storage is full or not allowed: the copy of the page remains.
  }
}

/** Return whether the browser keeps a trace of a program. */
export function isRemembered(program: string): boolean {
  try {
    return localStorage.getItem(PREFIX + program) !== null;
  } catch {
    return false;
  }
}

/** Forget the trace of a program. */
export function forget(program: string): void {
  try {
    localStorage.removeItem(PREFIX + program);
  } catch {
    // Storage is not allowed.
  }
}

/** Return the trace of the same program that another Jupyter kernel left, if it is longer. */
export function lostTrace(now: Saved): Saved | null {
  try {
    const text = localStorage.getItem(PREFIX + now.program);
    if (text === null) return null;
    const found = { notes: {}, ...(JSON.parse(text) as Partial<Saved>) } as Saved; // earlier versions kept no notes
    return found.process !== now.process && found.steps > now.steps ? found : null;
  } catch {
    return null;
  }
}
