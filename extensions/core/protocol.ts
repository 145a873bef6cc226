// Generated from protocol*.py, requests.py and dtype.py: python -m tilewright.workbench.typescript.
// Do not edit: tests/workbench/test_typescript.py checks that it is up to date.

export const VERSION = 9;

export const MOST_BYTES = 4194304;

export const DRAW_WORDS = [2654435769, 2246822507, 3266489909] as const;

export const SPAN_FIELDS = 7;

export const SPAN_KINDS = ["loop", "block", "buffer", "binding"] as const;

/** The names of the dtypes. */
export const DTYPES = ["f16", "f32", "f64", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool", "f8_e4m3", "f8_e5m2", "i4", "u4", "i2", "u2", "c64", "c128"];

/**
 * A handle of a selectable part of the program, with its printed name.
 */
export interface Handle {
  readonly kind: "function" | "loop" | "block" | "buffer" | "binding";
  readonly function: string;
  readonly uid: number;
  readonly name: string;
}

/**
 * A step as data: its name, and its arguments by parameter.
 *
 * `handles` are arguments that are parts of the program, and `values` the text of others. A
 * text from a form is used instead of the handles of its parameter, and names parts of
 * `function`. A parameter in neither has its default.
 */
export interface StepData {
  readonly op: string;
  readonly function: string;
  readonly handles: Readonly<Record<string, readonly Handle[]>>;
  readonly values: Readonly<Record<string, string>>;
}

/**
 * A field of a step's form: one parameter. `value` is Python text.
 *
 * `kinds` are the kinds of parts of the program that the parameter accepts; it is empty for
 * other values. `unavailable` contains the choices that the target does not have, each with the
 * missing features.
 */
export interface Field {
  readonly name: string;
  readonly type: string;
  readonly doc: string;
  readonly value: string;
  readonly choices: readonly string[];
  readonly required: boolean;
  readonly kinds: readonly ("function" | "loop" | "block" | "buffer" | "binding")[];
  readonly unavailable: Readonly<Record<string, string>>;
}

/**
 * A filled-in step that removes a problem.
 */
export interface Fix {
  readonly label: string;
  readonly data: StepData;
}

/**
 * An underlined part of a line. The columns count from 1; `end` is exclusive.
 */
export interface Mark {
  readonly line: number;
  readonly column: number;
  readonly end: number;
}

/**
 * A line of code with its number, which counts from 1.
 */
export interface CodeLine {
  readonly number: number;
  readonly text: string;
}

/**
 * Lines of a function with marks. A gap between line numbers is an omission.
 */
export interface Excerpt {
  readonly function: string;
  readonly lines: readonly CodeLine[];
  readonly marks: readonly Mark[];
}

/**
 * A violated requirement of a step, or an error listed in the Problems panel.
 *
 * `requirement` is the name of the violated requirement and `requires` its text; both are
 * empty for an error. `where` lists the parts of the program at fault, which the `excerpts`
 * underline. `location` describes the location of an error. Errors have a `title` and a
 * `traceback`, which is displayed on request.
 */
export interface Problem {
  readonly key: string;
  readonly tone: "info" | "good" | "warn" | "bad";
  readonly title: string;
  readonly message: string;
  readonly location: string;
  readonly hint: string;
  readonly requirement: string;
  readonly requires: string;
  readonly numbers: Readonly<Record<string, string>>;
  readonly counterexample: Readonly<Record<string, string>>;
  readonly where: readonly Handle[];
  readonly excerpts: readonly Excerpt[];
  readonly fixes: readonly Fix[];
  readonly traceback: string;
}

/**
 * A line of the program and the corresponding line of an intrinsic's semantics.
 *
 * `marks` are positions in :attr:`MatchView.mismatches`.
 */
export interface MatchRow {
  readonly program: string;
  readonly pattern: string;
  readonly marks: readonly number[];
}

/**
 * A difference between program and intrinsic: its kind, the two texts, and a message.
 */
export interface Mismatch {
  readonly kind: "extent" | "dtype" | "layout" | "access" | "reduction" | "scope" | "target" | "predicate";
  readonly program: string;
  readonly pattern: string;
  readonly message: string;
}

/**
 * A side-by-side view of a part of the program and the semantics of an intrinsic.
 */
export interface MatchView {
  readonly intrinsic: string;
  readonly summary: string;
  readonly rows: readonly MatchRow[];
  readonly mismatches: readonly Mismatch[];
}

/**
 * A filled-in step for the selection, legal if `problems` is empty.
 *
 * `key` identifies the suggestion among those of a selection, also after an edit. `data` is
 * the step without edits of its form. `more_problems` counts the problems that were left out.
 * `steps` is 1; for a composite step it is null, and computed by a check.
 */
export interface Suggestion {
  readonly key: string;
  readonly step: string;
  readonly family: string;
  readonly applicable: boolean;
  readonly label: string;
  readonly summary: string;
  readonly data: StepData;
  readonly fields: readonly Field[];
  readonly problems: readonly Problem[];
  readonly more_problems: number;
  readonly composite: boolean;
  readonly steps: number | null;
}

/**
 * The selected part, the parts that enclose it, outermost first, and its properties.
 */
export interface Selected {
  readonly selection: Handle | null;
  readonly path: readonly Handle[];
  readonly properties: Readonly<Record<string, string>>;
}

/**
 * The steps for a selection at a state of the history, legal ones first.
 */
export interface Menu {
  readonly state: string;
  readonly selection: Handle;
  readonly suggestions: readonly Suggestion[];
}

/**
 * The answer to a check of a step: its problems, of which `more_problems` were left out.
 *
 * A step that replaces loops by an intrinsic has the `match` of the two. `steps` is the number
 * of steps that a legal step records, null if counting them takes long.
 */
export interface Checked {
  readonly problems: readonly Problem[];
  readonly more_problems: number;
  readonly steps: number | null;
  readonly match: MatchView | null;
}

/**
 * A function that a step would change: its text without and with the step.
 *
 * Equal lines at the begin and at the end of long texts are left out: `first` is the number of
 * the first line. A text is empty if the step adds or removes the function.
 */
export interface FunctionChange {
  readonly function: string;
  readonly first: number;
  readonly before: string;
  readonly after: string;
}

/**
 * The program after a step that was not applied. `key` is that of the request.
 *
 * `state` is the state that the step was tried on. `more` counts the `changes` that were
 * left out. `problem` is the reason why the step is illegal; there are no changes then.
 */
export interface Previewed {
  readonly key: string;
  readonly state: string;
  readonly changes: readonly FunctionChange[];
  readonly more: number;
  readonly problem: Problem | null;
}

/**
 * A step that changes programs, with its parameters at their defaults.
 */
export interface StepInfo {
  readonly step: string;
  readonly family: string;
  readonly summary: string;
  readonly composite: boolean;
  readonly fields: readonly Field[];
}

/**
 * The time of one kernel, summed over its calls, in microseconds.
 *
 * `share` is its share of :attr:`Measurement.total`. `gflops` are the operations on elements
 * per nanosecond, and `gbytes` the bytes of all arguments per nanosecond; both are absent for
 * an emulator and for functions of libraries. `roof` is the attained share of the roof, and
 * `bound` the peak that limits it: `operations` or the name of a level. `instructions` is
 * the estimated number of instructions of a call, of the busiest thread, and `predicted` the
 * predicted `gflops`. All four are absent if no roof is known for the kernel, as for one that
 * does not compute with 32-bit floats.
 */
export interface KernelTime {
  readonly function: string;
  readonly calls: number;
  readonly microseconds: number;
  readonly share: number;
  readonly gflops?: number;
  readonly gbytes?: number;
  readonly roof?: number;
  readonly bound?: string;
  readonly instructions?: number;
  readonly predicted?: number;
}

/**
 * A level of the memory hierarchy, with its bytes per nanosecond.
 *
 * `capacity` is in bytes; 0 means unlimited.
 */
export interface RoofLevel {
  readonly name: string;
  readonly capacity: number;
  readonly gbytes: number;
}

/**
 * The measured peak rates of the machine: operations per nanosecond, and levels from L2 on.
 *
 * The operations are those of the widest multiply-add on 32-bit floats, `instruction`.
 */
export interface Roof {
  readonly instruction: string;
  readonly threads: number;
  readonly gflops: number;
  readonly levels: readonly RoofLevel[];
}

/**
 * The measured times of one call (all samples, microseconds) and of its kernels.
 *
 * Kernels are sorted by time, slowest first. `state` is the history node that was measured.
 * `compile_ms` is not part of the samples. `conditions` describes how the samples were taken.
 * `alone` is false if another measurement ran at the same time. `emulated` is true if the time
 * is that of an emulator. `machine` lists the facts about the machine that affect the times.
 *
 * Kernels are timed in calls of their own, so their sum may exceed the median. `total` is the
 * larger of the two, and `outside` the time of the call that no kernel takes.
 */
export interface Measurement {
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
  readonly emulated: boolean;
  readonly total: number;
  readonly outside: number;
  readonly machine?: Readonly<Record<string, string>>;
  readonly roof?: Roof;
}

/**
 * The rates of a kernel in a measurement, as in :class:`KernelTime`.
 */
export interface KernelRate {
  readonly function: string;
  readonly gflops: number;
  readonly gbytes: number;
}

/**
 * A measurement that the session keeps, by its history node, function, sizes, and conditions.
 *
 * `whole` is true if the entire program was measured, not one kernel. `microseconds` is the
 * median of a call. `kernels` are the ones with rates.
 */
export interface MeasurementRecord {
  readonly key: string;
  readonly state: string;
  readonly function: string;
  readonly shapes: string;
  readonly conditions: string;
  readonly microseconds: number;
  readonly emulated: boolean;
  readonly whole: boolean;
  readonly kernels: readonly KernelRate[];
}

/**
 * All measurements that the session keeps, oldest first.
 */
export interface MeasurementRecords {
  readonly items: readonly MeasurementRecord[];
  readonly keep?: number;
  readonly tail?: number;
}

/**
 * Numbers of the operations of a graph: `time`, from the last measurement of an entire call.
 *
 * Each of the `labels` is a call, with the name of its kernel. Three binary buffers follow, of
 * which the fields are the indices: the value of each call (float64), and for each operation its
 * uid and the position of its call (int32). `total` is the value of the whole graph.
 */
export interface Overlay {
  readonly kind: "time";
  readonly unit: string;
  readonly function: string;
  readonly total: number;
  readonly labels: readonly string[];
  readonly values: number;
  readonly uids: number;
  readonly calls: number;
}

/**
 * The cost of one operation of a graph: a term over its symbols, and the value at the sizes.
 *
 * The term is empty if no analysis knows the cost; the value is null if it is unknown.
 */
export interface OperationCost {
  readonly uid: number;
  readonly term: string;
  readonly value: number | null;
}

/**
 * The costs of the operations of a graph at a state of the history and at sample sizes.
 *
 * `flops` are the executed operations on elements, `bytes` those of all arguments, and
 * `memory` the bytes of allocated tensors and temporaries that are live during the operation.
 */
export interface GraphCosts {
  readonly kind: "flops" | "bytes" | "memory";
  readonly unit: "FLOP" | "B";
  readonly function: string;
  readonly state: string;
  readonly sizes: string;
  readonly items: readonly OperationCost[];
}

/**
 * The relation of the open kernel to the default rule of its kind.
 *
 * A kernel that `follows` the rule is not scheduled, and gets the rule when it is compiled. The
 * steps of a rule that was `taken` are part of the trace. A kernel that `left` its rule has
 * another schedule. A `compiled` kernel is part of the measured program only. The status is
 * empty for a function without a rule.
 *
 * `base` is the kernel whose rule created this one, if any. `rule` is the name of the rule,
 * and `steps` its number of steps. `predicted` is the estimated number of instructions of the
 * displayed kernel, divided by that of the kernel with the rule; null while it is computed.
 * `rule_us` and `now_us` are the measured times per call, at equal sizes if both are present.
 * `gflops` and `gbytes` are the predicted rates of the displayed kernel, as in
 * :class:`KernelTime`; absent without a roof.
 */
export interface KernelRule {
  readonly function: string;
  readonly status: "" | "follows" | "taken" | "left" | "compiled";
  readonly base: string;
  readonly rule: string;
  readonly steps: number | null;
  readonly predicted: number | null;
  readonly rule_us: number | null;
  readonly now_us: number | null;
  readonly gflops?: number;
  readonly gbytes?: number;
}

/**
 * A kernel to which the steps of another one may apply.
 *
 * `steps` of them apply in order; `reason` is empty if all do.
 */
export interface SimilarKernel {
  readonly function: string;
  readonly steps: number;
  readonly reason: string;
}

/**
 * The unscheduled kernels with the steps of `function` that they accept at a state.
 */
export interface SimilarKernels {
  readonly state: string;
  readonly function: string;
  readonly steps: number;
  readonly kernels: readonly SimilarKernel[];
}

/**
 * The comparison of compiled and interpreted results at the sample shapes.
 *
 * `error` and `bound` belong to the element with the largest ratio of the two; `message`
 * identifies this element, `derivation` states how the bound was derived.
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
 * The options of the next measurement.
 *
 * `threads` is at most `max_threads`; 0 means all of them. `budget` is in seconds.
 */
export interface MeasureOptions {
  readonly caches: "hot" | "cold";
  readonly threads: number;
  readonly max_threads: number;
  readonly pin: boolean;
  readonly budget: number;
}

/**
 * A named set of sizes as text, and the time of the program with them at the head, if any.
 *
 * `current` is true if the sample sizes are those of the set.
 */
export interface SizeSet {
  readonly name: string;
  readonly sizes: string;
  readonly microseconds: number | null;
  readonly current: boolean;
}

/**
 * A target to choose. `missing` states why this machine cannot run its code, else empty.
 */
export interface TargetOption {
  readonly key: string;
  readonly group: string;
  readonly label: string;
  readonly missing: string;
}

/**
 * An entry of the function list. `hash` identifies its pane; `calls` counts call sites.
 */
export interface FunctionItem {
  readonly name: string;
  readonly level: "graph" | "loop";
  readonly hash: string;
  readonly calls: number;
  readonly scheduled: boolean;
}

/**
 * The functions of the program, then the open one if only the measured program has it.
 */
export interface FunctionList {
  readonly items: readonly FunctionItem[];
  readonly keep?: number;
  readonly tail?: number;
}

/**
 * The header of a loop or block, with the label displayed after its line.
 *
 * `value` is the extent at the samples, null where a symbol has no sample.
 */
export interface Header {
  readonly uid: number;
  readonly kind: string;
  readonly name: string;
  readonly extent: string;
  readonly value: number | null;
  readonly label: string;
}

/**
 * The text of one function. Its spans are in the binary buffer with index `buffer`.
 *
 * `origins` maps a uid to positions in `origin_names`: the operations that the part computes.
 */
export interface Pane {
  readonly hash: string;
  readonly function: string;
  readonly level: "graph" | "loop";
  readonly text: string;
  readonly buffer: number;
  readonly origin_names: readonly string[];
  readonly origins: Readonly<Record<string, readonly number[]>>;
  readonly headers: readonly Header[];
}

/**
 * A value of a graph-level function. `path` is its namespace, outermost first.
 *
 * A loop or branch `y` is a namespace `loop y` or `if y` with its bindings and its value;
 * the branches of `if y` are the namespaces `then` and `else` in it. The values that each
 * iteration of a loop defines are of kind `carried`.
 */
export interface GraphNode {
  readonly uid: number;
  readonly name: string;
  readonly op: string;
  readonly kind: "param" | "carried" | "call" | "kernel" | "library" | "other" | "result";
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
  readonly function: string;
  readonly nodes: readonly GraphNode[];
  readonly keep?: number;
  readonly tail?: number;
}

/**
 * A step of the trace as Python text, with the decisions it recorded.
 */
export interface TraceLine {
  readonly index: number;
  readonly text: string;
  readonly step: string;
  readonly status: "done" | "query" | "opaque" | "pending";
  readonly decisions: string;
  readonly milliseconds: number | null;
}

/**
 * The lines of one composite step: `stop` is exclusive. `text` is its folded form.
 *
 * Groups are properly nested, outer ones before inner ones. `index` is the position in the list
 * of groups. `fields` are the parameters whose values can be changed.
 */
export interface TraceGroup {
  readonly index: number;
  readonly first: number;
  readonly stop: number;
  readonly step: string;
  readonly text: string;
  readonly status: "done" | "query" | "opaque" | "pending";
  readonly milliseconds: number | null;
  readonly fields: readonly Field[];
}

/**
 * The steps from the root to the head, then the pending ones, and their groups.
 *
 * `reason` is the reason why the first pending step does not apply, empty if there is none.
 */
export interface Trace {
  readonly lines: readonly TraceLine[];
  readonly groups: readonly TraceGroup[];
  readonly reason: string;
  readonly keep?: number;
  readonly tail?: number;
}

/**
 * The trace as a file, which the browser keeps: `keep` lines of the last one, then `lines`.
 *
 * `program` identifies the program at the root, `process` the Jupyter kernel. The file is
 * named `name`, and `steps` counts its steps. `notes` are those of all states, by key.
 */
export interface TraceCopy {
  readonly name: string;
  readonly program: string;
  readonly process: string;
  readonly steps: number;
  readonly keep: number;
  readonly lines: readonly string[];
  readonly notes: Readonly<Record<string, string>>;
}

/**
 * A state of the history. `parent` is the key of the previous state, empty at the root.
 *
 * `note` is a text of the user, empty without one. `steps` counts the recorded steps if the
 * state is the result of a composite step, else it is 1.
 */
export interface HistoryNode {
  readonly key: string;
  readonly parent: string;
  readonly label: string;
  readonly detail: string;
  readonly steps: number;
  readonly verified: boolean | null;
  readonly note: string;
}

/**
 * The tree of all states, oldest first, and the key of the head.
 */
export interface History {
  readonly head: string;
  readonly nodes: readonly HistoryNode[];
  readonly can_undo: boolean;
  readonly can_redo: boolean;
  readonly keep?: number;
  readonly tail?: number;
}

/**
 * A condition on the symbols, with its status and origin.
 */
export interface FactRow {
  readonly text: string;
  readonly status: "proved" | "assumed" | "checked" | "unknown" | "likely";
  readonly origin: string;
}

/**
 * A symbol with its range, divisibility, sample value, and likely values (its hints).
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
 * The symbols of the open function, the facts about them, and derived expressions.
 */
export interface Symbols {
  readonly rows: readonly SymbolRow[];
  readonly facts: readonly FactRow[];
  readonly derived: readonly Derived[];
}

/**
 * The target, the function that *Measure* runs, and the sample sizes of its symbols.
 *
 * `sets` are the named sets of sizes.
 * `missing` states why this machine cannot run code for the target; it is empty if it can.
 */
export interface Setup {
  readonly target: string;
  readonly targets: readonly TargetOption[];
  readonly missing: string;
  readonly function: string;
  readonly sizes: readonly SymbolRow[];
  readonly sets: readonly SizeSet[];
}

/**
 * Work on a background thread. `progress` is in 0..1, or -1 if it is unknown.
 *
 * `seconds` is the elapsed time at the last report. Jobs that `lower` only produce text.
 */
export interface Job {
  readonly key: string;
  readonly kind: "run" | "lower";
  readonly title: string;
  readonly state: "running" | "canceling" | "done" | "failed" | "canceled";
  readonly progress: number;
  readonly message: string;
  readonly seconds: number;
}

/**
 * A stage of lowering: the scheduled program, a pass, or a form of the generated code.
 */
export interface Stage {
  readonly name: string;
  readonly level: "loop" | "thread" | "host" | "llvm" | "assembly" | "wgsl";
  readonly summary: string;
}

/**
 * The text of a function after a stage of lowering, and the state it was lowered from.
 *
 * `previous` is the text before the stage, empty if the stage translates to another form. If
 * lowering failed, `problem` is the error and `text` the last text of this stage, empty if
 * there is none.
 */
export interface Lowered {
  readonly state: string;
  readonly function: string;
  readonly stage: string;
  readonly text: string;
  readonly previous: string;
  readonly problem?: Problem;
}

/**
 * A text that the browser copies or saves: the trace as Python or JSON.
 */
export interface Document {
  readonly name: string;
  readonly format: "python" | "json";
  readonly text: string;
}

/**
 * The outcome of a request or job, announced in the status bar.
 *
 * `functions` are the functions that changed.
 */
export interface Applied {
  readonly message: string;
  readonly tone: "info" | "good" | "warn" | "bad";
  readonly functions: readonly string[];
}

/**
 * The sections that changed, for one client.
 *
 * `revision` counts the updates of a client since its hello. `server_ms` is the time that the
 * session spent on the request.
 */
export interface Update {
  readonly version: number;
  readonly client: string;
  readonly reply: number;
  readonly revision: number;
  readonly server_ms: number;
  readonly catalog?: readonly StepInfo[];
  readonly target?: string;
  readonly open?: string;
  readonly functions?: FunctionList;
  readonly panes?: readonly Pane[];
  readonly graph?: GraphView;
  readonly selected?: Selected;
  readonly menu?: Menu;
  readonly checked?: Checked;
  readonly previewed?: Previewed;
  readonly trace?: Trace;
  readonly copy?: TraceCopy;
  readonly history?: History;
  readonly symbols?: Symbols;
  readonly setup?: Setup;
  readonly measure_options?: MeasureOptions;
  readonly measurement?: Measurement;
  readonly records?: MeasurementRecords;
  readonly heat?: Overlay;
  readonly costs?: GraphCosts;
  readonly rule?: KernelRule;
  readonly similar?: SimilarKernels;
  readonly verdict?: Verdict;
  readonly jobs?: readonly Job[];
  readonly problems?: readonly Problem[];
  readonly stages?: readonly Stage[];
  readonly lowered?: Lowered;
  readonly document?: Document;
  readonly applied?: Applied;
}

/**
 * The first request of a page; its answer contains all sections.
 */
export interface Hello {
  readonly type: "hello";
  readonly version: number;
}

/**
 * A request to show a function.
 */
export interface Open {
  readonly type: "open";
  readonly function: string;
}

/**
 * A request to select a part of the program, or nothing (`kind` empty).
 */
export interface Select {
  readonly type: "select";
  readonly kind: "function" | "loop" | "block" | "buffer" | "binding" | "";
  readonly function: string;
  readonly uid: number;
}

/**
 * A request for the menu of the selection, after an update that was not an answer.
 */
export interface Suggest {
  readonly type: "suggest";
}

/**
 * A request to check a step, for example a suggestion with the values of its form.
 */
export interface Check {
  readonly type: "check";
  readonly step: StepData;
}

/**
 * A request for the program after a step, without applying it.
 *
 * A newer request cancels the older one. `key` is repeated in the answer.
 */
export interface Preview {
  readonly type: "preview";
  readonly key: string;
  readonly step: StepData;
}

/**
 * A request to apply a step, rejected if the head is not `head`.
 */
export interface Apply {
  readonly type: "apply";
  readonly step: StepData;
  readonly head: string;
}

/**
 * A request to move the head of the history: undo, redo, or jump to `node`.
 */
export interface Navigate {
  readonly type: "navigate";
  readonly action: "undo" | "redo" | "jump";
  readonly node: string;
  readonly head: string;
}

/**
 * A request to set the sample value of a symbol of a function.
 */
export interface Sample {
  readonly type: "sample";
  readonly function: string;
  readonly symbol: string;
  readonly value: number;
}

/**
 * A request to keep the sample sizes as a named set, to remove a set, or to use its sizes.
 */
export interface EditSizeSet {
  readonly type: "edit_size_set";
  readonly action: "add" | "remove" | "use";
  readonly name: string;
}

/**
 * A request to schedule, compile and measure for another target, by its key.
 *
 * The trace is replayed for the target: steps that are not legal on it become pending. Rejected
 * if the head is not `head`.
 */
export interface SetTarget {
  readonly type: "set_target";
  readonly target: string;
  readonly head: string;
}

/**
 * A request to start a job: compile and verify, compile and measure, or measure the `roof`.
 *
 * `measure_sets` measures the entire program with each set of sizes.
 * `function` is a kernel to measure in isolation; empty means the entire program.
 */
export interface Run {
  readonly type: "run";
  readonly action: "compile" | "measure" | "measure_sets" | "roof";
  readonly function: string;
}

/**
 * A request to set the options of the next measurement.
 */
export interface SetMeasureOptions {
  readonly type: "set_measure_options";
  readonly caches: "hot" | "cold";
  readonly threads: number;
  readonly pin: boolean;
  readonly budget: number;
}

/**
 * A request to cancel a job.
 */
export interface Cancel {
  readonly type: "cancel";
  readonly job: string;
}

/**
 * A request for the text of the open function after a stage of lowering.
 *
 * A newer request cancels the older one.
 */
export interface Lower {
  readonly type: "lower";
  readonly stage: string;
}

/**
 * A request for the costs of the operations of the displayed graph, at the sample sizes.
 *
 * A newer request of the client cancels the older one.
 */
export interface CountCosts {
  readonly type: "count_costs";
  readonly kind: "flops" | "bytes" | "memory";
}

/**
 * A request to replace a composite step of the trace, rejected if the head is not `head`.
 *
 * `ungroup` keeps its steps as individual ones. `change` runs it again with other `values`,
 * and replays the steps after it; the ones that do not apply are kept as pending.
 */
export interface EditGroup {
  readonly type: "edit_group";
  readonly action: "ungroup" | "change";
  readonly index: number;
  readonly values: Readonly<Record<string, string>>;
  readonly head: string;
}

/**
 * A request to edit steps of the trace, rejected if the head is not `head`.
 *
 * `change` replaces the step `index` by `text`, and replays the steps after it. The other
 * actions are about the pending steps: `resume` tries them again, `skip` leaves out the first
 * one and those that use its results, and `discard` removes them.
 */
export interface EditTrace {
  readonly type: "edit_trace";
  readonly action: "change" | "resume" | "skip" | "discard";
  readonly index: number;
  readonly text: string;
  readonly head: string;
}

/**
 * A request about the default schedule, rejected if the head is not `head`.
 *
 * `lower` lowers the graph, so that `function` can be edited. `take` applies the default
 * rule of a kernel as editable steps, after lowering the graph if necessary. `return` removes
 * all steps that schedule a kernel, so that it gets the default rule when it is compiled.
 */
export interface UseRule {
  readonly type: "use_rule";
  readonly action: "lower" | "take" | "return";
  readonly function: string;
  readonly head: string;
}

/**
 * A request to apply the steps of a kernel to all kernels that accept them.
 *
 * With `preview`, the kernels are tried and nothing changes. Rejected if the head is not
 * `head`.
 */
export interface ApplyToSimilar {
  readonly type: "apply_to_similar";
  readonly function: string;
  readonly preview: boolean;
  readonly head: string;
}

/**
 * A request for the trace as a document.
 */
export interface SaveTrace {
  readonly type: "save";
  readonly format: "python" | "json";
}

/**
 * A request to replay a trace, as JSON or Python, on the initial module of the session.
 *
 * `notes` are kept for the states with these keys. `name` is that of the file, for errors.
 */
export interface LoadTrace {
  readonly type: "load";
  readonly text: string;
  readonly notes: Readonly<Record<string, string>>;
  readonly name?: string;
}

/**
 * A request to write a note on a state of the history; an empty text removes it.
 */
export interface SetNote {
  readonly type: "set_note";
  readonly node: string;
  readonly text: string;
}

/**
 * A request to show a measurement that the session keeps.
 */
export interface ShowMeasurement {
  readonly type: "show_measurement";
  readonly key: string;
}

/**
 * A request to remove an entry of the Problems panel.
 */
export interface Dismiss {
  readonly type: "dismiss";
  readonly key: string;
}

/**
 * A call to open the adapter, with optional features by their names in the standard.
 *
 * The buffer is the text of the module that runs the other calls.
 */
export interface GpuOpen {
  readonly kind: "open";
  readonly features: readonly string[];
  readonly language: readonly string[];
}

/**
 * A call to execute commands in order; the buffer has the bytes that they write.
 */
export interface GpuRun {
  readonly kind: "run";
  readonly commands: readonly (GpuCreate | GpuDestroy | GpuWrite | GpuWriteKept | GpuDraw | GpuCopy | GpuPipeline | GpuGroup | GpuLaunch | GpuRecord)[];
}

/**
 * A call for bytes of a buffer, in words; the answer has them.
 */
export interface GpuRead {
  readonly kind: "read";
  readonly buffer: number;
  readonly offset: number;
  readonly bytes: number;
}

/**
 * A call for the hashes of contents that the page does not keep.
 */
export interface GpuFind {
  readonly kind: "find";
  readonly hashes: readonly string[];
}

/**
 * A call to keep a content by its hash; the buffer is the part of it at an offset.
 */
export interface GpuKeep {
  readonly kind: "keep";
  readonly hash: string;
  readonly bytes: number;
  readonly offset: number;
}

/**
 * A call to time the recorded items from `first` to before `stop`.
 *
 * `repeats` is the number of repetitions in a sample; 0 lets the page choose it. Sampling ends
 * after `most` samples or after some `seconds`.
 */
export interface GpuTime {
  readonly kind: "time";
  readonly first: number;
  readonly stop: number;
  readonly repeats: number;
  readonly most: number;
  readonly seconds: number;
}

/**
 * A call that a page answers at once, also one whose timers are throttled.
 */
export interface GpuPing {
  readonly kind: "ping";
}

/**
 * A call to destroy the device and all buffers; kept contents remain.
 */
export interface GpuClose {
  readonly kind: "close";
}

/**
 * Create a buffer.
 */
export interface GpuCreate {
  readonly op: "create";
  readonly buffer: number;
  readonly bytes: number;
  readonly usage: "storage" | "uniform";
}

/**
 * Destroy a buffer.
 */
export interface GpuDestroy {
  readonly op: "destroy";
  readonly buffer: number;
}

/**
 * Write bytes of the call's buffer, from `start` on.
 */
export interface GpuWrite {
  readonly op: "write";
  readonly buffer: number;
  readonly offset: number;
  readonly start: number;
  readonly bytes: number;
}

/**
 * Write a content that the page keeps.
 */
export interface GpuWriteKept {
  readonly op: "write_kept";
  readonly buffer: number;
  readonly offset: number;
  readonly hash: string;
}

/**
 * Write random elements: floats between -1 and 1, or integers from `low` to before `high`.
 *
 * Element `k` depends on the seed and `k` only.
 */
export interface GpuDraw {
  readonly op: "draw";
  readonly buffer: number;
  readonly offset: number;
  readonly count: number;
  readonly dtype: "f32" | "i32";
  readonly seed: number;
  readonly low: number;
  readonly high: number;
}

/**
 * Copy between buffers; a copy of a record of checks is not `timed`.
 */
export interface GpuCopy {
  readonly op: "copy";
  readonly source: number;
  readonly start: number;
  readonly target: number;
  readonly offset: number;
  readonly bytes: number;
  readonly timed: boolean;
}

/**
 * Create the pipeline of a shader with a uniform buffer and `bindings` storage buffers.
 */
export interface GpuPipeline {
  readonly op: "pipeline";
  readonly pipeline: number;
  readonly name: string;
  readonly text: string;
  readonly bindings: number;
}

/**
 * Create a bind group: the buffer, offset, and bytes of each binding.
 */
export interface GpuGroup {
  readonly op: "group";
  readonly group: number;
  readonly pipeline: number;
  readonly ranges: readonly (readonly number[])[];
}

/**
 * Launch a kernel with the numbers of the uniform buffer at an offset.
 */
export interface GpuLaunch {
  readonly op: "launch";
  readonly pipeline: number;
  readonly group: number;
  readonly offset: number;
  readonly grid: readonly number[];
}

/**
 * Record the copies and launches from now on for timing, in place of earlier records.
 */
export interface GpuRecord {
  readonly op: "record";
  readonly on: boolean;
}

/**
 * A call of one page, by the name of its client.
 */
export interface GpuCall {
  readonly type: "gpu";
  readonly client: string;
  readonly call: number;
  readonly work: GpuOpen | GpuRun | GpuRead | GpuFind | GpuKeep | GpuTime | GpuPing | GpuClose;
}

/**
 * The adapter of a page.
 *
 * `software` is true if it runs kernels on the processor. `step` is the resolution of
 * timestamps in nanoseconds, 0 if there are none. `browser` is the name and version.
 */
export interface GpuFacts {
  readonly name: string;
  readonly software: boolean;
  readonly features: readonly string[];
  readonly language: readonly string[];
  readonly limits: Readonly<Record<string, number>>;
  readonly step: number;
  readonly browser: string;
}

/**
 * Times of calls in nanoseconds, each the mean of `repeats` repetitions.
 *
 * `clock` is `timestamps` for times that the GPU takes, and `submissions` for those from the
 * submission to its completion, taken by the page.
 */
export interface GpuSamples {
  readonly clock: "timestamps" | "submissions";
  readonly repeats: number;
  readonly nanoseconds: readonly number[];
  readonly items: number;
}

/**
 * The reason of a failed call; `subject` is the missing feature or the shader, if any.
 */
export interface GpuFailure {
  readonly kind: "insecure" | "old" | "disabled" | "no_adapter" | "no_feature" | "not_requested" | "module" | "lost" | "closed" | "shader" | "invalid" | "memory";
  readonly message: string;
  readonly subject: string;
}

/**
 * The answer of a page to a call; call 0 is a report, such as a lost device.
 *
 * `page` identifies the loaded page; `hidden` states whether it was hidden during the call.
 */
export interface GpuAnswer {
  readonly type: "gpu_answer";
  readonly client: string;
  readonly call: number;
  readonly page: string;
  readonly hidden: boolean;
  readonly failure?: GpuFailure;
  readonly facts?: GpuFacts;
  readonly missing?: readonly string[];
  readonly samples?: GpuSamples;
}

export type Request = Hello | Open | Select | Suggest | Check | Preview | Apply | Navigate | Sample | EditSizeSet | SetTarget | Run | SetMeasureOptions | Cancel | Lower | CountCosts | EditGroup | EditTrace | UseRule | ApplyToSimilar | SaveTrace | LoadTrace | SetNote | ShowMeasurement | Dismiss;

export type GpuWork = GpuOpen | GpuRun | GpuRead | GpuFind | GpuKeep | GpuTime | GpuPing | GpuClose;

export type GpuCommand = GpuCreate | GpuDestroy | GpuWrite | GpuWriteKept | GpuDraw | GpuCopy | GpuPipeline | GpuGroup | GpuLaunch | GpuRecord;
