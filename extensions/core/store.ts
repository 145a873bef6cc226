import { forget, isRemembered, lostTrace, remember, type Saved } from "./backup";
import { clientName } from "./client";
import { Observable } from "./observable";
import { merge } from "./merge";
import type { Heat } from "./overlay";
import type { PaneModel } from "./pane";
import {
  VERSION,
  type Applied,
  type Checked,
  type Document,
  type FunctionItem,
  type GraphView,
  type KernelRule,
  type Handle,
  type History,
  type Job,
  type Lowered,
  type Mark,
  type MeasureOptions,
  type Measurement,
  type MeasurementRecord,
  type Menu,
  type Navigate,
  type Problem,
  type Previewed,
  type Request,
  type Selected,
  type SimilarKernels,
  type Stage,
  type StepData,
  type StepInfo,
  type Symbols,
  type Trace,
  type TraceCopy,
  type Update,
  type Verdict,
} from "./protocol";
import { markRequest, measureUpdate } from "./round_trip";
import { fromText } from "./saved";

/** The channel for messages: a widget's comm, or recorded data in tests. */
export interface Transport {
  /** Call a listener whenever the connection is lost or restored. */
  watch(listener: (alive: boolean) => void): void;
  send(message: Request & { readonly id: number; readonly client: string }): void;
  receive(listener: (update: Update, buffers: readonly DataView[]) => void): void;
}

/** The sections of an update that the state stores; an update contains the ones that changed. */
export type Sections = Omit<Update, "version" | "client" | "reply" | "revision" | "server_ms" | "panes">;

/** The state of the connection, and the sections that have an initial value. */
interface Known {
  readonly connected: boolean;
  readonly mismatch: boolean;
  readonly alive: boolean;
  /** Whether a notebook file contained the state. */
  readonly saved: boolean;
  readonly lost: Saved | null;
  readonly waiting: number;
  /** Whether the answer to an edit of this page is pending. */
  readonly editing: boolean;
  readonly target: string;
  readonly open: string;
  readonly functions: readonly FunctionItem[];
  readonly panes: ReadonlyMap<string, PaneModel>;
  readonly graph: GraphView | null;
  readonly selected: Selected;
  /** The steps for the selection; those of an earlier selection or state until the answer arrives. */
  readonly menu: Menu | null;
  readonly catalog: readonly StepInfo[];
  readonly previewed: Previewed | null;
  readonly trace: Trace;
  readonly history: History;
  readonly symbols: Symbols;
  readonly measure_options: MeasureOptions | null;
  readonly measurement: Measurement | null;
  readonly records: readonly MeasurementRecord[];
  readonly heat: Heat | null;
  readonly rule: KernelRule | null;
  readonly similar: SimilarKernels | null;
  readonly verdict: Verdict | null;
  readonly jobs: readonly Job[];
  readonly problems: readonly Problem[];
  readonly stages: readonly Stage[];
  readonly lowered: Lowered | null;
  readonly texts: ReadonlyMap<string, Lowered>;
  readonly document: Document | null;
  readonly applied: Applied | null;
}

/**
 * The browser's copy of all sections of a session. A section without an initial value in `EMPTY` is
 * undefined until it is received.
 */
export type State = Known & { readonly [Name in Exclude<keyof Sections, keyof Known>]?: Sections[Name] };

/**
 * Parts of a function that its text underlines. `reveal` is 0 while a problem is pointed at; else it
 * is a number that increases each time that parts are to be scrolled to.
 */
export interface Marked {
  readonly function: string;
  readonly marks: readonly Mark[];
  readonly reveal: number;
}

/** The part under the pointer or the keyboard focus, and the operations it originates from. */
export interface Pointer {
  readonly function: string;
  readonly uid: number;
  readonly origins: ReadonlySet<string>;
}

const EMPTY: State = {
  connected: false,
  mismatch: false,
  alive: true,
  saved: false,
  lost: null,
  waiting: 0,
  editing: false,
  target: "",
  open: "",
  functions: [],
  panes: new Map(),
  graph: null,
  selected: { selection: null, path: [], properties: {} },
  menu: null,
  catalog: [],
  previewed: null,
  trace: { lines: [], groups: [], reason: "" },
  history: { head: "", nodes: [], can_undo: false, can_redo: false },
  symbols: { rows: [], facts: [], derived: [] },
  measure_options: null,
  measurement: null,
  records: [],
  heat: null,
  rule: null,
  similar: null,
  verdict: null,
  jobs: [],
  problems: [],
  stages: [],
  lowered: null,
  texts: new Map(),
  document: null,
  applied: null,
};

const DISCONNECTED: Applied = {
  message: "Not possible without the Jupyter kernel: run the cell again",
  tone: "bad",
  functions: [],
};

type WithoutHead<T> = T extends { readonly head: string } ? Omit<T, "head"> : never;

/** A request that the session rejects if the head is not the displayed one. */
export type Edit = WithoutHead<Request>;

/** A move of the head in the history. */
type Move = Pick<Navigate, "action" | "node">;

/** The client of a session, which sends requests and merges updates into the state. */
export class Store {
  readonly state = new Observable<State>(EMPTY);
  readonly hover = new Observable<Pointer | null>(null);
  readonly marked = new Observable<Marked | null>(null);
  private nextId = 1;
  private applying = 0;
  private editing = 0;
  private moves: Move[] = [];
  private reveals = 0;
  private revealing = 0;
  private lines: readonly string[] = [];
  private kept: Saved | null = null;
  private revision = 0;
  private suggested = "";
  private readonly unanswered = new Map<number, (update: Update | null) => void>();

  /** Connect to a session; `saved` is the state in a notebook file, empty for a new widget. */
  constructor(private readonly transport: Transport, saved = "", private readonly client = clientName()) {
    transport.receive((update, buffers) => this.receive(update, buffers));
    this.show(saved);
    if (this.state.value.alive) this.send({ type: "hello", version: VERSION });
    transport.watch((alive) => this.connect(alive));
  }

  /** Show the state of a notebook file without a connection; its steps can be restored later. */
  private show(text: string): void {
    const snapshot = fromText(text);
    if (!snapshot) return;
    const { copy, ...update } = snapshot.update;
    this.state.update((state) => ({ ...merge(state, update, snapshot.buffers), alive: false, saved: true }));
    if (!copy) return;
    this.kept = this.file(copy);
    if (copy.steps > 0 && !isRemembered(copy.program)) remember(this.kept);
  }

  private connect(alive: boolean): void {
    const before = this.state.value.alive;
    this.state.update((state) => ({ ...state, alive, saved: state.saved && !alive, ...(alive ? {} : { jobs: [], waiting: 0, editing: false }) }));
    if (!alive) this.lose();
    if (alive && !before) this.send({ type: "hello", version: VERSION });
  }

  /** The jobs and the answers are lost with the kernel. */
  private lose(): void {
    this.moves = [];
    for (const answered of this.unanswered.values()) answered(null);
    this.unanswered.clear();
    this.suggested = "";
  }

  /** Send a request and return its number; without a connection only the status bar answers. */
  send(request: Request, answered: (update: Update | null) => void = () => undefined): number {
    if (!this.state.value.alive) {
      this.state.update((state) => ({ ...state, applied: DISCONNECTED }));
      answered(null);
      return 0;
    }
    const id = this.nextId++;
    this.unanswered.set(id, answered);
    markRequest(id, request.type);
    this.state.update((state) => ({ ...state, waiting: state.waiting + 1 }));
    this.transport.send({ ...request, id, client: this.client });
    return id;
  }

  /** Report a message in the status bar. */
  announce(message: string): void {
    this.state.update((state) => ({ ...state, applied: { message, tone: "info", functions: [] } }));
  }

  select(handle: Pick<Handle, "kind" | "function" | "uid"> | null): void {
    this.send({
      type: "select",
      kind: handle?.kind ?? "",
      function: handle?.function ?? "",
      uid: handle?.uid ?? 0,
    });
  }

  /** Apply a step, unless the answer to the last application is still pending. */
  apply(step: StepData): void {
    if (this.unanswered.has(this.applying)) return;
    this.applying = this.edit({ type: "apply", step });
  }

  /** Check a step; null if the connection is lost. */
  check(step: StepData): Promise<Checked | null> {
    return new Promise((resolve) => {
      this.send({ type: "check", step }, (update) => resolve(update?.checked ?? null));
    });
  }

  /** Ask for the program after a step; the answer with the key is a section of a later update. */
  preview(key: string, step: StepData): void {
    this.send({ type: "preview", key, step });
  }

  /**
   * Ask for the steps of the selection, once for each selection, state, and target. After the answer
   * to a request, they come without being asked for.
   */
  private suggest(isAnswer: boolean): void {
    const { selected, history, target, alive } = this.state.value;
    const { selection } = selected;
    const wanted = selection ? [selection.kind, selection.function, selection.uid, history.head, target].join(" ") : "";
    if (!alive || wanted === this.suggested) return;
    const isKnown = isAnswer || (this.suggested === "" && hasMenu(this.state.value));
    this.suggested = wanted;
    if (wanted !== "" && !isKnown) this.send({ type: "suggest" });
  }

  /** Underline parts of a function while a problem is pointed at; null ends that. */
  mark(name: string, marks: readonly Mark[] | null): void {
    if (marks) this.marked.set({ function: name, marks, reveal: 0 });
    else if (this.marked.value?.reveal === 0) this.marked.set(null);
  }

  /** Open a function, underline parts of it until the selection changes, and scroll to the first one. */
  reveal(name: string, marks: readonly Mark[]): void {
    this.reveals += 1;
    this.marked.set({ function: name, marks, reveal: this.reveals });
    this.revealing = this.state.value.open === name ? 0 : this.send({ type: "open", function: name });
  }

  /** Return the trace as a file, from the copy in the browser; null before the first one. */
  get saved(): Saved | null {
    return this.kept;
  }

  /** Return the trace as a section of an update, null before the first one. */
  get copy(): TraceCopy | null {
    if (!this.kept) return null;
    const { name, program, process, steps, notes } = this.kept;
    return { name, program, process, steps, notes, keep: 0, lines: [...this.lines] };
  }

  /** Replay the trace that a lost kernel left in the browser, or forget it. */
  restore(accept: boolean): void {
    const { lost } = this.state.value;
    if (!lost) return;
    if (accept) this.send({ type: "load", text: lost.text, notes: lost.notes });
    else forget(lost.program);
    this.state.update((state) => ({ ...state, lost: null }));
  }

  private keep(copy: TraceCopy): void {
    const first = this.kept === null;
    this.kept = this.file(copy);
    const lost = first ? lostTrace(this.kept) : null;
    if (lost) this.state.update((state) => ({ ...state, lost }));
    if (copy.steps > 0) remember(this.kept);
  }

  /** Update the lines of the trace, and return it as a file. */
  private file({ name, program, process, steps, keep, lines, notes }: TraceCopy): Saved {
    this.lines = [...this.lines.slice(0, keep), ...lines];
    return { name, program, process, steps, notes, text: `${this.lines.join("\n")}\n` };
  }

  /** Lower the graph, or take or return to the default rule of a kernel. */
  useRule(action: "lower" | "take" | "return", name: string): void {
    this.edit({ type: "use_rule", action, function: name });
  }

  /** Apply the steps of a kernel to all kernels that accept them, or find these kernels. */
  applyToSimilar(name: string, preview: boolean): void {
    this.edit({ type: "apply_to_similar", function: name, preview });
  }

  /** Move the head. A move that follows an edit is sent after its answer, because the head is unknown until then. */
  navigate(action: Move["action"], node = ""): void {
    if (this.state.value.editing) this.moves.push({ action, node });
    else this.edit({ type: "navigate", action, node });
  }

  /**
   * Send an edit of the displayed head, and return the number of the request. If the edit does not
   * move the head, the moves that were asked for after it are dropped.
   */
  edit(edit: Edit): number {
    const { head } = this.state.value.history;
    const next = (): void => {
      const move = this.state.value.history.head === head ? undefined : this.moves.shift();
      if (move) this.navigate(move.action, move.node);
      else this.moves = [];
    };
    this.editing = this.send({ ...edit, head }, next);
    this.state.update((state) => ({ ...state, editing: this.unanswered.has(this.editing) }));
    return this.editing;
  }

  private receive(update: Update, buffers: readonly DataView[]): void {
    if (update.version !== VERSION) {
      this.state.update((state) => ({ ...state, mismatch: true }));
      return;
    }
    if (update.client !== "" && update.client !== this.client) return; // of another page
    const missed = this.revision > 0 && update.revision > this.revision + 1;
    this.revision = update.revision;
    const answered = this.unanswered.get(update.reply);
    if (update.copy) this.keep(update.copy); // first, because the program determines the view of the state
    this.state.update((state) => merge(this.answered(state, update.reply), update, buffers));
    answered?.(update);
    if ((update.selected || update.panes) && update.reply !== this.revealing) this.marked.set(null);
    if (missed) this.send({ type: "hello", version: VERSION });
    else this.suggest(answered !== undefined);
    measureUpdate(update);
  }

  private answered(state: State, reply: number): State {
    if (!this.unanswered.delete(reply)) return state;
    return { ...state, waiting: state.waiting - 1, editing: state.editing && reply !== this.editing };
  }
}

/** Return the running job, first one that runs compiled code; null if none is running. */
export function runningJob(state: State): Job | null {
  return runningJobs(state)[0] ?? null;
}

/** Return the running jobs, those that run compiled code before those that only produce text. */
export function runningJobs(state: State): Job[] {
  const running = state.jobs.filter((job) => job.state === "running" || job.state === "canceling");
  return [...running.filter((job) => job.kind === "run"), ...running.filter((job) => job.kind !== "run")];
}

/** Return the pane of a function, null if its text was not received yet. */
export function paneOf(state: State, name: string): PaneModel | null {
  const item = state.functions.find((other) => other.name === name);
  return (item && state.panes.get(item.hash)) ?? null;
}

/** Return whether the displayed steps are those of the selection and the head. */
export function hasMenu(state: State): boolean {
  const { menu, selected, history } = state;
  return menu !== null && menu.state === history.head && same(menu.selection, selected.selection);
}

function same(one: Handle, other: Handle | null): boolean {
  return one.kind === other?.kind && one.function === other.function && one.uid === other.uid;
}
