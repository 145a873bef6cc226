import { Observable } from "./observable";
import { readPane, type PaneModel } from "./pane";
import {
  VERSION,
  type Applied,
  type Conditions,
  type Document,
  type FunctionItem,
  type GraphView,
  type History,
  type Job,
  type Lowered,
  type Menu,
  type Pane,
  type Ref,
  type Report,
  type Request,
  type Symbols,
  type Timing,
  type TraceLine,
  type Update,
  type Verdict,
} from "./protocol";

/** How messages travel: through a widget's comm, or to recorded data. */
export interface Transport {
  send(message: Request & { readonly id: number }): void;
  receive(listener: (update: Update, buffers: readonly DataView[]) => void): void;
}

/** Everything the session has told. */
export interface State {
  readonly connected: boolean;
  readonly mismatch: boolean;
  readonly waiting: number;
  readonly roundTrip: number | null;
  readonly target: string;
  readonly open: string;
  readonly functions: readonly FunctionItem[];
  readonly panes: ReadonlyMap<string, PaneModel>;
  readonly graph: GraphView | null;
  readonly menu: Menu;
  readonly trace: readonly TraceLine[];
  readonly history: History;
  readonly symbols: Symbols;
  readonly conditions: Conditions | null;
  readonly timing: Timing | null;
  readonly verdict: Verdict | null;
  readonly jobs: readonly Job[];
  readonly reports: readonly Report[];
  readonly lowered: Lowered | null;
  readonly document: Document | null;
  readonly applied: Applied | null;
}

/** What the pointer or the keyboard points at: the things, and the operations they come from. */
export interface Pointer {
  readonly function: string;
  readonly uid: number;
  readonly origins: ReadonlySet<string>;
}

const EMPTY: State = {
  connected: false,
  mismatch: false,
  waiting: 0,
  roundTrip: null,
  target: "",
  open: "",
  functions: [],
  panes: new Map(),
  graph: null,
  menu: { selection: null, path: [], facts: {}, candidates: [] },
  trace: [],
  history: { head: "", nodes: [], can_undo: false, can_redo: false },
  symbols: { rows: [], facts: [], derived: [] },
  conditions: null,
  timing: null,
  verdict: null,
  jobs: [],
  reports: [],
  lowered: null,
  document: null,
  applied: null,
};

const KEPT_PANES = 64;

/** The browser's copy of a session: sends requests, folds updates into the state. */
export class Store {
  readonly state = new Observable<State>(EMPTY);
  readonly hover = new Observable<Pointer | null>(null);
  private nextId = 1;
  private applying = 0;
  private readonly sentAt = new Map<number, number>();

  constructor(private readonly transport: Transport) {
    transport.receive((update, buffers) => this.fold(update, buffers));
    this.send({ type: "hello", version: VERSION });
  }

  send(request: Request): number {
    const id = this.nextId++;
    this.sentAt.set(id, performance.now());
    performance.mark(`tw:send:${id}`);
    this.state.update((state) => ({ ...state, waiting: state.waiting + 1 }));
    this.transport.send({ ...request, id });
    return id;
  }

  select(ref: Pick<Ref, "kind" | "function" | "uid"> | null): void {
    this.send({
      type: "select",
      kind: ref?.kind ?? "",
      function: ref?.function ?? "",
      uid: ref?.uid ?? 0,
    });
  }

  /** Apply a step; the second click of two is not a second step. */
  apply(key: string, values: Readonly<Record<string, string>> = {}): void {
    if (this.sentAt.has(this.applying)) return;
    this.applying = this.send({ type: "apply", key, values, head: this.state.value.history.head });
  }

  travel(how: "undo" | "redo" | "jump", to = ""): void {
    this.send({ type: "travel", how, to, head: this.state.value.history.head });
  }

  private fold(update: Update, buffers: readonly DataView[]): void {
    if (update.version !== VERSION) {
      this.state.update((state) => ({ ...state, mismatch: true }));
      return;
    }
    this.state.update((state) => merge(this.timed(state, update.reply), update, buffers));
    if (update.reply) afterPaint(() => measureReply(update.reply));
  }

  private timed(state: State, reply: number): State {
    const sent = this.sentAt.get(reply);
    if (sent === undefined) return state;
    this.sentAt.delete(reply);
    return { ...state, waiting: state.waiting - 1, roundTrip: performance.now() - sent };
  }
}

/** The pane of a function, if its text has arrived. */
export function paneOf(state: State, name: string): PaneModel | null {
  const item = state.functions.find((candidate) => candidate.name === name);
  return (item && state.panes.get(item.hash)) ?? null;
}

/** Fold an update into a state: sections replace, panes gather by hash. */
export function merge(state: State, update: Update, buffers: readonly DataView[]): State {
  const { panes, ...sections } = update;
  const known = panes ? gather(state.panes, panes, buffers) : state.panes;
  return { ...state, ...sections, panes: known, connected: true };
}

function gather(
  known: ReadonlyMap<string, PaneModel>,
  arrived: readonly Pane[],
  buffers: readonly DataView[],
): ReadonlyMap<string, PaneModel> {
  const panes = new Map(known);
  for (const pane of arrived) {
    panes.delete(pane.hash);
    panes.set(pane.hash, readPane(pane, buffers[pane.buffer] ?? new DataView(new ArrayBuffer(0))));
  }
  for (const hash of panes.keys()) {
    if (panes.size <= KEPT_PANES) break;
    panes.delete(hash);
  }
  return panes;
}

/** Run after the browser has painted what was just rendered. */
function afterPaint(action: () => void): void {
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = (): void => {
      channel.port1.close();
      action();
    };
    channel.port2.postMessage(null);
  });
}

function measureReply(id: number): void {
  const start = `tw:send:${id}`;
  if (performance.getEntriesByName(start).length === 0) return;
  performance.measure("tw:round-trip", { start, detail: { id } });
  performance.clearMarks(start);
}
