// Example data of a session for the development page and the tests.
import { VERSION, type Excerpt, type Field, type Handle, type Menu, type Problem, type Selected, type Stage, type Suggestion, type TraceGroup, type Update } from "../core/protocol";
import { GRAPH_TEXT, graphNodes, LOOPS, makePane } from "./program";

function suggestion(step: string, label: string, extra: Partial<Suggestion> = {}): Suggestion {
  return {
    key: `${step}:${label}`,
    step,
    family: "loops",
    applicable: !extra.problems,
    label,
    summary: SUMMARIES[step] ?? "",
    data: { op: step, function: "fused_matmul_add_gelu", handles: {}, values: {} },
    fields: [],
    problems: [],
    more_problems: 0,
    composite: false,
    steps: 1,
    ...extra,
  };
}

/** Return a violated requirement. */
export function makeProblem(extra: Partial<Problem>): Problem {
  const text = { key: "", tone: "warn", title: "", message: "", location: "", hint: "", traceback: "" } as const;
  const requirement = { requirement: "", requires: "" };
  return { ...text, ...requirement, numbers: {}, counterexample: {}, where: [], excerpts: [], fixes: [], ...extra };
}

/** Return the lines of the loops that contain a text, with the text marked. */
export function makeExcerpt(wanted: string): Excerpt {
  const lines = LOOPS.split("\n").map((text, index) => ({ number: index + 1, text }));
  const found = lines.filter((line) => line.text.includes(wanted));
  const near = lines.filter((line) => line.number === 4 || found.some((other) => Math.abs(other.number - line.number) <= 1));
  const marks = found.map(({ number, text }) => {
    const column = text.indexOf(wanted) + 1;
    return { line: number, column, end: column + wanted.length };
  });
  return { function: "fused_matmul_add_gelu", lines: near, marks };
}

const SUMMARIES: Readonly<Record<string, string>> = {
  split: "Split a loop into nested loops whose extents multiply to at least the old extent.",
  reorder: "Change the order of nested loops.",
  unroll: "Replace a loop by copies of its body.",
  fuse: "Fuse two nested loops into one.",
  vectorize: "Execute the iterations of a loop as lanes of a vector.",
  parallel: "Execute the iterations of a loop on several threads.",
};

function stateKey(index: number): string {
  return `${"0a1b2c3d4e5f"[index] ?? "f"}f31c9d${String(index)}`;
}

const HEAD = stateKey(5);

/** Return the selection of a part of the loops. */
export function makeSelected(selection: Handle): Selected {
  return {
    selection,
    path: [
      { kind: "function", function: "fused_matmul_add_gelu", uid: 0, name: "fused_matmul_add_gelu" },
      { kind: "loop", function: "fused_matmul_add_gelu", uid: 12, name: "i_0" },
      { kind: "loop", function: "fused_matmul_add_gelu", uid: 13, name: "j_0" },
    ],
    properties: { extent: "96", kind: "serial", binds: "reduce k of matmul" },
  };
}

/** Return the menu of a loop. */
export function makeMenu(selection: Handle): Menu {
  const factors: Field = {
    name: "factors",
    type: "tuple of int or None",
    doc: "Extents of the new loops, outermost first. One may be None, which is derived by rounding up.",
    value: "(None, 8)",
    choices: ["(None, 4)", "(None, 8)", "(None, 16)"],
    required: true,
    kinds: [],
    unavailable: {},
  };
  const splits = ["(None, 4)", "(None, 8)", "(None, 16)", "(None, 32)"].map((value) =>
    suggestion("split", `factors=${value}`, {
      fields: [{ ...factors, value }],
      data: { op: "split", function: "fused_matmul_add_gelu", handles: { loop: [selection] }, values: { factors: value } },
    }),
  );
  return {
    state: HEAD,
    selection,
    suggestions: [
      ...splits,
      suggestion("reorder", "loops=(k_0, j_0)"),
      suggestion("vectorize_inner", "loop=k_0, lanes=8", { family: "library", composite: true, steps: null }),
      suggestion("unroll", "loop=k_0"),
      suggestion("fuse", "loops=(k_0, k_1)", {
        problems: [
          makeProblem({
            requirement: "serial",
            requires: "the loops are serial",
            message: "loop 'k_1' is unrolled; expected a serial loop",
            counterexample: {},
            excerpts: [makeExcerpt("k_1 in unrolled")],
            where: [{ kind: "loop", function: "fused_matmul_add_gelu", uid: 15, name: "k_1" }],
            fixes: [],
          }),
        ],
      }),
      suggestion("vectorize", "loop=k_0", {
        problems: [
          makeProblem({
            requirement: "parallel_iterations",
            requires: "the iterations of the loop write different elements",
            excerpts: [makeExcerpt("k_0 in range(96)")],
            message: "loop 'k_0' is bound to reduction variable 'k' of block 'matmul': lanes would write the same element",
            counterexample: { "k_0": "0", "k_0'": "1" },
            where: [{ kind: "block", function: "fused_matmul_add_gelu", uid: 18, name: "matmul" }],
            fixes: [{ label: "decompose_reduction(block=matmul, loop=k_0)", data: { op: "decompose_reduction", function: "fused_matmul_add_gelu", handles: {}, values: { block: "matmul", loop: "k_0" } } }],
          }),
        ],
      }),
      suggestion("parallel", "loop=k_0", {
        problems: [
          makeProblem({
            requirement: "not_nested",
            requires: "no enclosing loop is parallel",
            message: "the enclosing loop 'i_0' is already parallel",
            counterexample: {},
            where: [],
            fixes: [],
          }),
        ],
      }),
    ],
  };
}

const ANNOTATION: readonly Field[] = [
  { name: "target", type: "loop or block", doc: "The loop or block.", value: "", choices: [], required: true, kinds: ["loop", "block"], unavailable: {} },
  { name: "key", type: "text", doc: "The name of the annotation.", value: "", choices: [], required: true, kinds: [], unavailable: {} },
];

/** Return a composite step of the trace. */
export function makeGroup(step: string, index: number, first: number, stop: number): TraceGroup {
  const field = { name: "sizes", type: "tuple of int", doc: "The sizes of the tile.", value: "(6, 32)", choices: [], required: false, kinds: [], unavailable: {} };
  return { index, first, stop, step, text: `i_0, j_0, i_1, j_1 = sch.${step}(i=i, j=j, sizes=(6, 32))`, status: "done", milliseconds: 4.5, fields: [field] };
}

const STAGES: readonly Stage[] = [
  { name: "scheduled", level: "loop", summary: "Apply the default schedules to all unscheduled functions." },
  { name: "strip_mine", level: "loop", summary: "Split vectorized loops into vectors of the width of the target." },
  { name: "lift_tail_guards", level: "loop", summary: "Separate full tiles from partial ones." },
  { name: "to_thread", level: "thread", summary: "Translate loop IR to the statements of one thread." },
  { name: "llvm", level: "llvm", summary: "Generate LLVM IR." },
  { name: "llvm_optimized", level: "llvm", summary: "Run the optimization passes of LLVM." },
  { name: "assembly", level: "assembly", summary: "Generate assembly: PTX for an NVIDIA GPU." },
];

/** Return the answer to `hello`, which contains all sections. */
export function makeUpdate(): { update: Update; buffers: DataView[] } {
  const main = makePane("main", GRAPH_TEXT, "graph", 0);
  const loops = makePane("fused_matmul_add_gelu", LOOPS, "loop", 1);
  const trace = [
    'matmul = sch.get_block("matmul", function="fused_matmul_add_gelu")',
    "i, j, k = sch.get_loops(matmul)",
    "i_0, i_1 = sch.split(i, factors=(None, 6))",
    "j_0, j_1 = sch.split(j, factors=(None, 32))",
    "k_0, k_1 = sch.split(k, factors=(None, 4))",
    "sch.reorder((i_0, j_0, k_0, k_1, i_1, j_1))",
    "sch.vectorize(j_1)",
  ];
  const kernels: readonly (readonly [string, number, number])[] = [
    ["fused_matmul_add_gelu", 6, 1840],
    ["fused_matmul_add_norm_1", 6, 1610],
    ["fused_matmul_add", 18, 1320],
    ["fused_qk_mask", 6, 410],
    ["softmax", 6, 265],
    ["matmul_pv", 6, 240],
  ];
  const total = kernels.reduce((sum, [, , time]) => sum + time, 0);
  const history = ["start", ...trace.slice(2), "parallel(i)"].map((text, index) => ({
    key: stateKey(index),
    parent: index === 0 ? "" : stateKey(index === 6 ? 2 : index - 1),
    label: index === 0 ? "start" : (/sch\.(\w+)/.exec(text)?.[1] ?? "parallel"),
    detail: index === 0 ? "MiniLM-L6" : text.replace(/.*sch\.\w+/, ""),
    steps: index === 1 ? 26 : 1,
    verified: index === 4 ? true : null,
    note: index === 2 ? "six rows fit the registers" : "",
  }));
  const update: Update = {
    version: VERSION,
    client: "",
    reply: 1,
    revision: 1,
    server_ms: 3,
    target: "cpu · avx512 · 2 threads",
    open: "fused_matmul_add_gelu",
    functions: { items: [
      { name: "main", level: "graph", hash: main.pane.hash, calls: 1, scheduled: false },
      ...kernels.map(([name, calls]) => ({
        name,
        level: "loop" as const,
        hash: name === "fused_matmul_add_gelu" ? loops.pane.hash : `hash-${name}`,
        calls,
        scheduled: name === "fused_matmul_add_gelu",
      })),
    ] },
    panes: [main.pane, loops.pane],
    graph: { function: "main", nodes: graphNodes() },
    selected: makeSelected({ kind: "loop", function: "fused_matmul_add_gelu", uid: 14, name: "k_0" }),
    menu: makeMenu({ kind: "loop", function: "fused_matmul_add_gelu", uid: 14, name: "k_0" }),
    catalog: [
      { step: "annotate", family: "annotate", summary: "Write an annotation on a loop or block.", composite: false, fields: ANNOTATION },
    ],
    trace: {
      lines: trace.map((text, index) => ({
        index,
        text,
        step: /sch\.(\w+)/.exec(text)?.[1] ?? "",
        status: index < 2 ? "query" : "done",
        decisions: index === 2 ? "guard: predicate" : index === 3 ? "guard: none" : "",
        milliseconds: index < 2 ? null : 1.2 + index * 0.3,
      })),
      groups: [makeGroup("register_tile", 0, 2, 7), makeGroup("tile", 1, 2, 6)],
      reason: "",
    },
    stages: STAGES,
    history: { head: history[5]?.key ?? "", nodes: history, can_undo: true, can_redo: false },
    symbols: {
      rows: [
        { name: "b", lower: 1, upper: 64, multiple_of: 1, sample: 1, likely: [1, 8] },
        { name: "s", lower: 1, upper: 256, multiple_of: 1, sample: 128, likely: [8, 32, 128] },
      ],
      facts: [
        { text: "b * s <= 16384", status: "checked", origin: "range of the exported program" },
        { text: "(b*s) // s == b", status: "proved", origin: "shape of x" },
        { text: "(b*s) % 6 == 0", status: "unknown", origin: "guard of block matmul" },
      ],
      derived: [
        { label: "loop i_0", text: "ceildiv(b*s, 6)", value: "22" },
        { label: "buffer acc", text: "b*s * 1536 * 4", value: "768 KiB" },
      ],
    },
    setup: {
      target: "cpu",
      targets: [
        { key: "cpu", group: "This machine", label: "cpu: avx512", missing: "" },
        { key: "cpu avx2", group: "x86-64", label: "cpu with avx2", missing: "" },
        { key: "cuda sm_90a", group: "NVIDIA GPU", label: "cuda sm_90a", missing: "this machine has no NVIDIA GPU" },
      ],
      missing: "",
      function: "main",
      sizes: [{ name: "s", lower: 1, upper: 256, multiple_of: 1, sample: 128, likely: [8, 32, 128] }],
      sets: [
        { name: "short", sizes: "s = 16", microseconds: 910, current: false },
        { name: "long", sizes: "s = 128", microseconds: null, current: true },
      ],
    },
    measure_options: { caches: "hot", threads: 0, max_threads: 2, pin: false, budget: 1.5 },
    measurement: {
      state: history[5]?.key ?? "",
      function: "main",
      shapes: "b = 1, s = 128",
      samples: Array.from({ length: 40 }, (_, index) => 6050 + ((index * 7919) % 97) * 3),
      median: 6180,
      low: 6120,
      high: 6260,
      conditions: "hot caches, 2 threads, not pinned, 3 warm-up calls, at most 1.5 s", alone: true, emulated: false, total, outside: 0, compile_ms: 412,
      kernels: kernels.map(([name, calls, microseconds]) => ({ function: name, calls, microseconds, share: microseconds / total, gflops: 42.5, gbytes: 7.125, roof: 0.34, bound: "operations" })),
      roof: {
        instruction: "vfmadd.512",
        threads: 2,
        gflops: 125,
        levels: [
          { name: "L2 cache", capacity: 4194304, gbytes: 180 },
          { name: "memory", capacity: 0, gbytes: 21 },
        ],
      },
    },
    records: { items: [[0, 61200], [4, 6120], [5, 6180]].map(([index = 0, microseconds = 0], number) => ({
      key: `m${String(number)}`,
      state: history[index]?.key ?? "",
      function: "main",
      shapes: "b = 1, s = 128",
      conditions: "hot caches, 2 threads, not pinned, 3 warm-up calls, at most 1.5 s",
      microseconds,
      emulated: false,
      whole: true,
      kernels: [{ function: "fused_matmul_add_gelu", gflops: 255_000 / microseconds, gbytes: 42_750 / microseconds }],
    })) },
    heat: { kind: "time", unit: "µs", function: "main", total, labels: [], values: 0, uids: 0, calls: 0 },
    rule: { function: "fused_matmul_add_gelu", status: "left", base: "", rule: "schedule_matmul", steps: 57, predicted: 12, rule_us: null, now_us: null },
    verdict: { state: history[5]?.key ?? "", agrees: true, error: 3.1e-7, bound: 2e-5, shapes: "b = 1, s = 128", message: "result 0[0, 7] is 0.5, exact value 0.5: error 3.10e-07, allowed 2.00e-05", derivation: "16 standard deviations of 4 runs" },
    jobs: [],
    problems: [],
    applied: { message: "split(loop=k, factors=(None, 4)) applied (guard: none)", tone: "good", functions: [] },
  };
  return { update, buffers: [main.buffer, loops.buffer] };
}
