import { Observable } from "./observable";

/** Values by name, the one that was set last at the end. */
export type Entries<T> = Readonly<Record<string, T>>;

/** The view of a graph: the namespaces that a user folded or unfolded, the zoom, and the scroll position. */
export interface GraphPosition {
  readonly folds: Entries<boolean>;
  /** The factor of the size, null for one that fits the width. */
  readonly zoom: number | null;
  readonly x: number;
  readonly y: number;
}

/** The view of a text: the folded headers as line number and text, the first visible line, and the selection it was scrolled to. */
export interface TextPosition {
  readonly folds: readonly (readonly [number, string])[];
  readonly top: number;
  readonly shown: string;
}

/** A form of a step: the chosen suggestion, and the entered values of each suggestion by its index. */
export interface FormState {
  readonly chosen: number;
  readonly values: Entries<Entries<string>>;
}

/** The types of the values by name. */
interface EntryTypes {
  /** The chosen stage, by tab. */
  readonly stages: string;
  /** The size in pixels that a splitter was moved to. */
  readonly splits: number;
  /** The text of a search field or a small form. */
  readonly fields: string;
  /** Whether lines are wrapped, by pane. */
  readonly wraps: boolean;
  /** The graph, by function. */
  readonly graphs: GraphPosition;
  /** The text, by pane and function. */
  readonly texts: TextPosition;
  /** Whether the form of a step is open, by step. */
  readonly steps: boolean;
  /** The form of a step, by state, selection and step. */
  readonly forms: FormState;
}

/** The parts of the state that contain values by name. */
export type EntryKey = keyof EntryTypes;
export type Entry<Key extends EntryKey> = EntryTypes[Key];
type EntryParts = { readonly [Key in EntryKey]: Entries<EntryTypes[Key]> };

/** Everything that a user arranged in a workbench and that is not a part of the session. */
export interface ViewState extends EntryParts {
  /** The panel of the dock, empty until one is chosen. */
  readonly dock: string;
  /** The pane that the narrow layout displays. */
  readonly pane: string;
  /** Whether the drawer with the graph is open, at medium widths. */
  readonly drawer: boolean;
  /** The form of the open function: `ir`, or the tab of a stage. */
  readonly level: string;
  /** The form of the graph: `diagram` or `text`. */
  readonly graphAs: string;
  /** The figures that color the graph: `time`, or a kind of costs. */
  readonly heat: string;
  /** Whether a stage displays its difference to the stage before. */
  readonly compares: boolean;
  /** The unfolded composite steps of the trace. */
  readonly unfolded: readonly string[];
}

export const INITIAL: ViewState = {
  dock: "",
  pane: "function",
  drawer: false,
  level: "ir",
  graphAs: "diagram",
  heat: "time",
  compares: false,
  unfolded: [],
  stages: {},
  splits: {},
  fields: {},
  wraps: {},
  graphs: {},
  texts: {},
  steps: {},
  forms: {},
};

/** The number of entries that are kept of each part, and of the items of a list. */
const MAX_ENTRIES = 64;
/** The largest text that is restored, in characters. */
const MAX_TEXT = 4000;

/** The view state of one mounted workbench, or of the panels that share it. */
export class View {
  readonly state = new Observable<ViewState>(INITIAL);

  get value(): ViewState {
    return this.state.value;
  }

  set<Key extends keyof ViewState>(key: Key, value: ViewState[Key]): void {
    if (!Object.is(this.value[key], value)) this.state.set({ ...this.value, [key]: value });
  }

  entry<Key extends EntryKey>(key: Key, name: string): Entry<Key> | undefined {
    const parts: EntryParts = this.value;
    const entries = parts[key];
    return Object.hasOwn(entries, name) ? entries[name] : undefined;
  }

  /** Replace a value by name, or remove it; the values that were set longest ago are forgotten. */
  setEntry<Key extends EntryKey>(key: Key, name: string, value: Entry<Key> | undefined): void {
    if (Object.is(this.entry(key, name), value)) return;
    const others: (readonly [string, unknown])[] = Object.entries(this.value[key]).filter(([other]) => other !== name);
    const entries = value === undefined ? others : [...others, [name, value] as const];
    this.state.set({ ...this.value, [key]: Object.fromEntries(last(entries, MAX_ENTRIES)) });
  }
}

/** Return a state with at most a number of entries in each part, those that were set last. */
export function bounded(state: ViewState, count: number): ViewState {
  const parts = Object.entries(state as unknown as Record<string, unknown>).map(([key, value]) => {
    if (Array.isArray(value)) return [key, last(value as readonly unknown[], count)] as const;
    return [key, isRecord(value) ? Object.fromEntries(last(Object.entries(value), count)) : value] as const;
  });
  return Object.fromEntries(parts) as unknown as ViewState;
}

function last<T>(items: readonly T[], count: number): readonly T[] {
  return count === 0 ? [] : items.slice(-count);
}

/** Return a part of a state from stored data, undefined for anything else. */
type Reader<T> = (value: unknown) => T | undefined;

const text: Reader<string> = (value) => (typeof value === "string" && value.length <= MAX_TEXT ? value : undefined);
const flag: Reader<boolean> = (value) => (typeof value === "boolean" ? value : undefined);
const number: Reader<number> = (value) => (typeof value === "number" && Number.isFinite(value) ? value : undefined);
const index: Reader<number> = (value) => (Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined);
const zoom: Reader<number | null> = (value) => (value === null || (typeof value === "number" && value >= 0.01 && value <= 100) ? value : undefined);

function list<T>(read: Reader<T>): Reader<readonly T[]> {
  return (value) => {
    if (!Array.isArray(value)) return undefined;
    return value.slice(-MAX_ENTRIES).map(read).filter((item) => item !== undefined);
  };
}

function entries<T>(read: Reader<T>): Reader<Entries<T>> {
  return (value) => {
    if (!isRecord(value)) return undefined;
    const found = Object.entries(value).slice(-MAX_ENTRIES).flatMap(([name, item]) => {
      const result = read(item);
      return result === undefined ? [] : [[name, result] as const];
    });
    return Object.fromEntries(found);
  };
}

function record<T extends object>(readers: { readonly [Name in keyof T]: Reader<T[Name]> }): Reader<T> {
  return (value) => {
    if (!isRecord(value)) return undefined;
    const names = Object.keys(readers) as (keyof T & string)[];
    const found = names.map((name) => [name, readers[name](value[name])] as const);
    return found.every(([, part]) => part !== undefined) ? (Object.fromEntries(found) as unknown as T) : undefined;
  };
}

const fold: Reader<readonly [number, string]> = (value) => {
  if (!Array.isArray(value)) return undefined;
  const [line, header] = [index(value[0]), text(value[1])];
  return line === undefined || header === undefined ? undefined : [line, header];
};

const READERS: { readonly [Key in keyof ViewState]: Reader<ViewState[Key]> } = {
  dock: text,
  pane: text,
  drawer: flag,
  level: text,
  graphAs: text,
  heat: text,
  compares: flag,
  unfolded: list(text),
  stages: entries(text),
  splits: entries(index),
  fields: entries(text),
  wraps: entries(flag),
  graphs: entries(record<GraphPosition>({ folds: entries(flag), zoom, x: number, y: number })),
  texts: entries(record<TextPosition>({ folds: list(fold), top: index, shown: text })),
  steps: entries(flag),
  forms: entries(record<FormState>({ chosen: index, values: entries(entries(text)) })),
};

/** Return a state from stored data; a part that is missing or malformed has its initial value. */
export function readState(value: unknown): ViewState {
  if (!isRecord(value)) return INITIAL;
  const keys = Object.keys(READERS) as (keyof ViewState)[];
  return Object.fromEntries(keys.map((key) => [key, READERS[key](value[key]) ?? INITIAL[key]])) as unknown as ViewState;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
