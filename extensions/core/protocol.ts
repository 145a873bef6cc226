// Generated from workbench/protocol.py by `python -m tilewright.workbench.typescript`.
// Do not edit: tests/workbench/test_protocol.py compares the two.

export const VERSION = 1;

export const SPAN_FIELDS = 7;

export const SPAN_KINDS = ["loop", "block", "buffer", "binding"] as const;

/**
 * Something one can select, with the name it is printed by.
 */
export interface Ref {
  readonly kind: "function" | "loop" | "block" | "buffer" | "binding";
  readonly function: string;
  readonly uid: number;
  readonly name: string;
}

/**
 * One line of the list of functions. `hash` is that of its pane; `calls` counts uses.
 */
export interface FunctionItem {
  readonly name: string;
  readonly level: "graph" | "loop";
  readonly hash: string;
  readonly calls: number;
  readonly scheduled: boolean;
}

/**
 * What is told at the end of a loop's or block's header line.
 */
export interface LoopNote {
  readonly uid: number;
  readonly kind: string;
  readonly name: string;
  readonly extent: string;
  readonly size: number | null;
  readonly note: string;
}

/**
 * The text of one function. Its spans are in the binary buffer of number `buffer`.
 *
 * `origins` maps a uid to positions in `origin_names`: the operations it computes a part of.
 */
export interface Pane {
  readonly hash: string;
  readonly function: string;
  readonly level: "graph" | "loop";
  readonly text: string;
  readonly buffer: number;
  readonly origin_names: readonly string[];
  readonly origins: Readonly<Record<string, readonly number[]>>;
  readonly notes: readonly LoopNote[];
}

/**
 * One value of a graph-level function. `path` is the namespace it folds into.
 */
export interface GraphNode {
  readonly uid: number;
  readonly name: string;
  readonly op: string;
  readonly kind: "param" | "call" | "kernel" | "library" | "other" | "result";
  readonly detail: string;
  readonly callee: string;
  readonly path: readonly string[];
  readonly inputs: readonly number[];
  readonly origins: readonly string[];
}

/**
 * The dataflow of one graph-level function, in program order.
 */
export interface GraphView {
  readonly hash: string;
  readonly function: string;
  readonly nodes: readonly GraphNode[];
}

/**
 * One parameter of a step, for its form. `value` is Python text.
 */
export interface Field {
  readonly name: string;
  readonly type: string;
  readonly doc: string;
  readonly value: string;
  readonly choices: readonly string[];
  readonly required: boolean;
}

/**
 * A filled-in step that removes a problem.
 */
export interface Fix {
  readonly key: string;
  readonly label: string;
}

/**
 * Why a step does not apply: the numbered requirement, the numbers, and what mends it.
 */
export interface Issue {
  readonly requirement: number;
  readonly message: string;
  readonly numbers: Readonly<Record<string, string>>;
  readonly counterexample: Readonly<Record<string, string>>;
  readonly where: readonly Ref[];
  readonly fixes: readonly Fix[];
}

/**
 * A line of a program beside the line of an instruction's semantics that it should be.
 *
 * `marks` are positions in :attr:`MatchView.mismatches`.
 */
export interface MatchRow {
  readonly program: string;
  readonly pattern: string;
  readonly marks: readonly number[];
}

/**
 * One difference: its kind, the two texts that differ, and what is wrong with them.
 */
export interface MatchMark {
  readonly kind: "extent" | "dtype" | "layout" | "access" | "reduction" | "scope" | "target" | "predicate";
  readonly program: string;
  readonly pattern: string;
  readonly message: string;
}

/**
 * A part of the program side by side with what a tensor instruction computes.
 */
export interface MatchView {
  readonly intrinsic: string;
  readonly summary: string;
  readonly rows: readonly MatchRow[];
  readonly mismatches: readonly MatchMark[];
}

/**
 * A step filled in for the selection; legal if `issues` is empty.
 *
 * `applies` tells whether it was legal as it was offered, whatever its form says now.
 *
 * A step that puts an instruction in the place of loops comes with the `match` of the two.
 */
export interface Candidate {
  readonly key: string;
  readonly step: string;
  readonly family: string;
  readonly applies: boolean;
  readonly label: string;
  readonly summary: string;
  readonly fields: readonly Field[];
  readonly issues: readonly Issue[];
  readonly more_issues: number;
  readonly match?: MatchView;
}

/**
 * The steps for what is selected, applicable ones first. `facts` describe the selection.
 */
export interface Menu {
  readonly selection: Ref | null;
  readonly path: readonly Ref[];
  readonly facts: Readonly<Record<string, string>>;
  readonly candidates: readonly Candidate[];
}

/**
 * One step of the trace, as Python.
 */
export interface TraceLine {
  readonly index: number;
  readonly text: string;
  readonly step: string;
  readonly status: "done" | "query" | "opaque" | "pending";
  readonly note: string;
  readonly milliseconds: number | null;
}

/**
 * A state that was reached. `parent` is the one it was made from, empty at the root.
 */
export interface HistoryNode {
  readonly key: string;
  readonly parent: string;
  readonly label: string;
  readonly detail: string;
  readonly microseconds: number | null;
  readonly verified: boolean | null;
}

/**
 * The states reached so far as a tree, oldest first, and where the head stands.
 */
export interface History {
  readonly head: string;
  readonly nodes: readonly HistoryNode[];
  readonly can_undo: boolean;
  readonly can_redo: boolean;
}

/**
 * One thing known, or not known, of the symbols.
 */
export interface FactRow {
  readonly text: string;
  readonly knowledge: "proved" | "assumed" | "checked" | "unknown" | "likely";
  readonly origin: string;
}

/**
 * One symbol with its range, and the sample value that sizes are shown at.
 */
export interface SymbolRow {
  readonly name: string;
  readonly lower: number | null;
  readonly upper: number | null;
  readonly multiple_of: number;
  readonly sample: number;
  readonly likely: readonly number[];
}

/**
 * An expression over the symbols and its value at the samples.
 */
export interface Derived {
  readonly label: string;
  readonly text: string;
  readonly value: string;
}

/**
 * What is known of the symbols of the open function.
 */
export interface Symbols {
  readonly rows: readonly SymbolRow[];
  readonly facts: readonly FactRow[];
  readonly derived: readonly Derived[];
}

/**
 * Time of one kernel, summed over its calls, in microseconds.
 */
export interface KernelTime {
  readonly function: string;
  readonly label: string;
  readonly calls: number;
  readonly microseconds: number;
  readonly share: number;
}

/**
 * One measurement: the whole call (all samples, microseconds) and its kernels, slowest first.
 *
 * `state` is the history node that was measured; `compile_ms` is apart from the time;
 * `conditions` says how it was taken, `alone` whether nothing else measured meanwhile;
 * `machine` are the facts of the machine that the times depend on.
 */
export interface Timing {
  readonly state: string;
  readonly function: string;
  readonly shapes: string;
  readonly samples: readonly number[];
  readonly median: number;
  readonly low: number;
  readonly high: number;
  readonly compile_ms: number;
  readonly kernels: readonly KernelTime[];
  readonly conditions: string;
  readonly alone: boolean;
  readonly machine?: Readonly<Record<string, string>>;
}

/**
 * Compiled result against the interpreter's, at sample shapes.
 *
 * `error` and `bound` are seen and allowed at the element where the error takes most of what
 * is allowed; `message` says which one it is, `derivation` where the bound comes from.
 */
export interface Verdict {
  readonly state: string;
  readonly agrees: boolean;
  readonly error: number;
  readonly bound: number;
  readonly shapes: string;
  readonly message: string;
  readonly derivation: string;
}

/**
 * How the next measurement is taken. `threads` of 0 are all; `most` of them there are.
 */
export interface Conditions {
  readonly caches: "hot" | "cold";
  readonly threads: number;
  readonly most: number;
  readonly pin: boolean;
  readonly budget: number;
}

/**
 * Work off the main thread. `progress` is in 0..1, or -1 where it is not known.
 */
export interface Job {
  readonly key: string;
  readonly title: string;
  readonly state: "running" | "cancelling" | "done" | "failed" | "cancelled";
  readonly progress: number;
  readonly message: string;
}

/**
 * An entry of the problems list; `trace` is the raw traceback, shown on request.
 */
export interface Report {
  readonly key: string;
  readonly tone: "info" | "good" | "warn" | "bad";
  readonly title: string;
  readonly message: string;
  readonly where: string;
  readonly hint: string;
  readonly trace: string;
}

/**
 * The text of a kernel below the loop level, at the state it was made of.
 */
export interface Lowered {
  readonly state: string;
  readonly function: string;
  readonly kind: "llvm" | "assembly";
  readonly text: string;
}

/**
 * A text the browser copies or saves: the trace as Python or JSON.
 */
export interface Document {
  readonly name: string;
  readonly format: "python" | "json";
  readonly text: string;
}

/**
 * What an edit did: said in the live region, and selected.
 */
export interface Applied {
  readonly message: string;
  readonly tone: "info" | "good" | "warn" | "bad";
  readonly functions: readonly string[];
}

/**
 * What changed. `server_ms` is the time that the request took in the session.
 */
export interface Update {
  readonly version: number;
  readonly reply: number;
  readonly server_ms: number;
  readonly target?: string;
  readonly open?: string;
  readonly functions?: readonly FunctionItem[];
  readonly panes?: readonly Pane[];
  readonly graph?: GraphView;
  readonly menu?: Menu;
  readonly trace?: readonly TraceLine[];
  readonly history?: History;
  readonly symbols?: Symbols;
  readonly conditions?: Conditions;
  readonly timing?: Timing;
  readonly verdict?: Verdict;
  readonly jobs?: readonly Job[];
  readonly reports?: readonly Report[];
  readonly lowered?: Lowered;
  readonly document?: Document;
  readonly applied?: Applied;
}

/**
 * The first message of a page; it is answered with everything.
 */
export interface Hello {
  readonly type: "hello";
  readonly version: number;
}

/**
 * Show a function.
 */
export interface Open {
  readonly type: "open";
  readonly function: string;
}

/**
 * Select a thing, or nothing (`kind` empty); answered with a menu.
 */
export interface Select {
  readonly type: "select";
  readonly kind: "function" | "loop" | "block" | "buffer" | "binding" | "";
  readonly function: string;
  readonly uid: number;
}

/**
 * Check a candidate with the values of its form; answered with a menu that has it so.
 */
export interface Check {
  readonly type: "check";
  readonly key: string;
  readonly values: Readonly<Record<string, string>>;
}

/**
 * Apply a candidate or a fix of the menu, with the values of its form, at `head`.
 */
export interface Apply {
  readonly type: "apply";
  readonly key: string;
  readonly values: Readonly<Record<string, string>>;
  readonly head: string;
}

/**
 * Move in the history: undo, redo, or jump to the node `to`.
 */
export interface Travel {
  readonly type: "travel";
  readonly how: "undo" | "redo" | "jump";
  readonly to: string;
  readonly head: string;
}

/**
 * Give a symbol another sample value.
 */
export interface Sample {
  readonly type: "sample";
  readonly symbol: string;
  readonly value: number;
}

/**
 * Start a job: compile and check, or compile and time.
 *
 * `function` is one kernel, timed by itself; empty means the whole program.
 */
export interface Run {
  readonly type: "run";
  readonly what: "compile" | "time";
  readonly function: string;
}

/**
 * Choose how the next measurement is taken.
 */
export interface Condition {
  readonly type: "condition";
  readonly caches: "hot" | "cold";
  readonly threads: number;
  readonly pin: boolean;
  readonly budget: number;
}

/**
 * Cancel a job.
 */
export interface Cancel {
  readonly type: "cancel";
  readonly job: string;
}

/**
 * Show the lower text of the open function.
 */
export interface Lower {
  readonly type: "lower";
  readonly kind: "llvm" | "assembly";
}

/**
 * Ask for the trace as a document.
 */
export interface SaveTrace {
  readonly type: "save";
  readonly format: "python" | "json";
}

/**
 * Replay a trace, given as JSON, on the module the session began with.
 */
export interface LoadTrace {
  readonly type: "load";
  readonly text: string;
}

/**
 * Drop an entry of the problems list.
 */
export interface Dismiss {
  readonly type: "dismiss";
  readonly key: string;
}

export type Request = Hello | Open | Select | Check | Apply | Travel | Sample | Run | Condition | Cancel | Lower | SaveTrace | LoadTrace | Dismiss;
