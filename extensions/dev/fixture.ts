// Example data of a session for the development page and the tests.
import type { GraphNode, Handle, Header, Menu, Pane, Problem, Suggestion, Update } from "../core/protocol";
import { SPAN_KINDS } from "../core/protocol";

export const LOOPS = `\
s, b = symbols("s b", lower=1)

@prim_func(target=Target("cpu"))
def fused_matmul_add_gelu(
    x: Buffer[(b, s, 384), f32],
    w: Buffer[(384, 1536), f32],
    bias: Buffer[(1536,), f32],
    y: Out[(b, s, 1536), f32],
):
    fact(b * s <= 16384, "range of the exported program", by="entry_check")
    acc = alloc((b * s, 1536), f32)
    for i_0 in parallel(ceildiv(b * s, 6)):
        for j_0 in range(48):
            for k_0 in range(96):
                for k_1 in unrolled(4):
                    for i_1 in unrolled(6):
                        for j_1 in vectorized(32):
                            with block("matmul"):
                                i, j, k = spatial(b * s, i_0 * 6 + i_1), spatial(1536, j_0 * 32 + j_1), reduce(384, k_0 * 4 + k_1)
                                guard(i_0 * 6 + i_1 < b * s)
                                with init(): acc[i, j] = 0.0
                                acc[i, j] = acc[i, j] + x[i // s, i % s, k] * w[k, j]
            for i_1 in range(6):
                for j_1 in vectorized(32):
                    with block("add_gelu"):
                        i, j = spatial(b * s, i_0 * 6 + i_1), spatial(1536, j_0 * 32 + j_1)
                        guard(i_0 * 6 + i_1 < b * s)
                        y[i // s, i % s, j] = (acc[i, j] + bias[j]) * 0.5 * (1.0 + erf((acc[i, j] + bias[j]) * 0.70710678))
`;

const GRAPH_TEXT = `\
b, s = symbols("b s", lower=1)

@graph_func(stage="dataflow")
def main(ids: Tensor[(b, s), i64], mask: Tensor[(b, s), i64]):
    h0 = call_tir(embed_norm, (ids,), Tensor[(b, s, 384), f32])
    q = call_tir(fused_matmul_add, (h0,), Tensor[(b, s, 384), f32])
    k = call_tir(fused_matmul_add, (h0,), Tensor[(b, s, 384), f32])
    v = call_tir(fused_matmul_add, (h0,), Tensor[(b, s, 384), f32])
    scores = call_tir(fused_qk_mask, (q, k, mask), Tensor[(b, 12, s, s), f32])
    probs = call_tir(softmax, (scores,), Tensor[(b, 12, s, s), f32])
    ctx = call_tir(matmul_pv, (probs, v), Tensor[(b, s, 384), f32])
    attn = call_tir(fused_matmul_add_norm, (ctx, h0), Tensor[(b, s, 384), f32])
    mid = call_tir(fused_matmul_add_gelu, (attn,), Tensor[(b, s, 1536), f32])
    out = call_tir(fused_matmul_add_norm_1, (mid, attn), Tensor[(b, s, 384), f32])
    pooled = call_tir(mean_pool, (out, mask), Tensor[(b, 384), f32])
    return pooled
`;

interface PaneData {
  readonly pane: Pane;
  readonly buffer: DataView;
}

/** Return a pane for a text; loops, blocks and bindings are found by regular expressions. */
export function makePane(name: string, text: string, level: Pane["level"], buffer: number): PaneData {
  const lines = text.replace(/\n$/, "").split("\n");
  const spans: number[] = [];
  const headers: Header[] = [];
  const origins: Record<string, number[]> = {};
  lines.forEach((line, index) => {
    const uid = index + 1;
    const indent = line.length - line.trimStart().length;
    const loop = /^ *for (\w+) in (\w+)\((.*)\):$/.exec(line);
    const block = /^ *with block\("(\w+)"/.exec(line);
    const binding = level === "graph" ? /^ {4}(\w+) = call_tir\((\w+)/.exec(line) : null;
    const span = (kind: (typeof SPAN_KINDS)[number], last: number): void => {
      spans.push(SPAN_KINDS.indexOf(kind), uid, 1, index, indent, last, lines[last]?.length ?? 0);
    };
    if (loop) {
      span("loop", suiteEnd(lines, index, indent));
      const kind = loop[2] === "range" ? "serial" : (loop[2] ?? "serial");
      const extent = loop[3] ?? "";
      const value = /^\d+$/.test(extent) ? Number(extent) : 22;
      headers.push({ uid, kind, name: loop[1] ?? "", extent, value, label: /^\d+$/.test(extent) ? "" : "22 at b = 1, s = 128" });
    } else if (block) {
      span("block", suiteEnd(lines, index, indent));
      headers.push({ uid, kind: "block", name: block[1] ?? "", extent: "", value: null, label: "" });
      origins[String(uid)] = block[1] === "matmul" ? [0] : [1];
    } else if (binding) {
      span("binding", index);
      origins[String(uid)] = binding[1] === "mid" ? [0, 1] : [2];
    }
  });
  const data = new DataView(Int32Array.from(spans).buffer);
  const origin_names = ["encoder.layer.0.intermediate.dense", "encoder.layer.0.intermediate.act", "elsewhere"];
  return { pane: { hash: `hash-${name}-${String(text.length)}`, function: name, level, text, buffer, origin_names, origins, headers }, buffer: data };
}

function suiteEnd(lines: readonly string[], start: number, indent: number): number {
  let end = start;
  for (let index = start + 1; index < lines.length; index++) {
    const line = lines[index] ?? "";
    if (line.length - line.trimStart().length <= indent) break;
    end = index;
  }
  return end;
}

function graphNodes(): GraphNode[] {
  const lines = GRAPH_TEXT.split("\n");
  const uids = new Map<string, number>([
    ["ids", 1001],
    ["mask", 1002],
  ]);
  const nodes: GraphNode[] = [...uids].map(([name, uid]) => ({
    uid,
    name,
    op: "param",
    kind: "param",
    detail: "(b, s) i64",
    callee: "",
    path: [],
    inputs: [],
    origins: [],
  }));
  lines.forEach((line, index) => {
    const found = /^ {4}(\w+) = call_tir\((\w+), \(([^)]*)\), Tensor\[(\(.*\)), (\w+)\]\)/.exec(line);
    if (!found) return;
    const [, name = "", callee = "", inputs = "", shape = "", dtype = ""] = found;
    uids.set(name, index + 1);
    nodes.push({
      uid: index + 1,
      name,
      op: "call_tir",
      kind: "kernel",
      detail: `${shape} ${dtype}`,
      callee,
      path: ["h0", "pooled"].includes(name) ? [] : ["encoder.layer.0", ["mid", "out"].includes(name) ? "mlp" : "attention"],
      inputs: inputs.split(",").map((input) => uids.get(input.trim()) ?? -1).filter((uid) => uid > 0),
      origins: name === "mid" ? ["encoder.layer.0.intermediate.dense", "encoder.layer.0.intermediate.act"] : ["elsewhere"],
    });
  });
  nodes.push({ uid: 2000, name: "pooled", op: "result", kind: "result", detail: "", callee: "", path: [], inputs: [uids.get("pooled") ?? 0], origins: [] });
  return nodes;
}

function suggestion(step: string, label: string, extra: Partial<Suggestion> = {}): Suggestion {
  return {
    key: `${step}:${label}`,
    step,
    family: "loops",
    applicable: !extra.problems,
    label,
    summary: SUMMARIES[step] ?? "",
    fields: [],
    problems: [],
    more_problems: 0,
    ...extra,
  };
}

/** Return a violated requirement. */
export function makeProblem(extra: Partial<Problem>): Problem {
  const text = { key: "", tone: "warn", title: "", message: "", location: "", hint: "", traceback: "" } as const;
  return { ...text, requirement: 0, numbers: {}, counterexample: {}, where: [], fixes: [], ...extra };
}

const SUMMARIES: Readonly<Record<string, string>> = {
  split: "Split a loop into nested loops whose extents multiply to at least the old extent.",
  reorder: "Change the order of nested loops.",
  unroll: "Replace a loop by copies of its body.",
  fuse: "Fuse two nested loops into one.",
  vectorize: "Execute the iterations of a loop as lanes of a vector.",
  parallel: "Execute the iterations of a loop on several threads.",
};

/** Return the menu of a loop. */
export function makeMenu(selection: Handle): Menu {
  const factors = {
    name: "factors",
    type: "tuple of int or None",
    doc: "Extents of the new loops, outermost first. One may be None, which is derived by rounding up.",
    value: "(None, 8)",
    choices: ["(None, 4)", "(None, 8)", "(None, 16)"],
    required: true,
  };
  const splits = ["(None, 4)", "(None, 8)", "(None, 16)", "(None, 32)"].map((value) =>
    suggestion("split", `factors=${value}`, { fields: [{ ...factors, value }] }),
  );
  return {
    selection,
    path: [
      { kind: "function", function: "fused_matmul_add_gelu", uid: 0, name: "fused_matmul_add_gelu" },
      { kind: "loop", function: "fused_matmul_add_gelu", uid: 12, name: "i_0" },
      { kind: "loop", function: "fused_matmul_add_gelu", uid: 13, name: "j_0" },
    ],
    properties: { extent: "96", kind: "serial", binds: "reduce k of matmul" },
    suggestions: [
      ...splits,
      suggestion("reorder", "loops=(k_0, j_0)"),
      suggestion("unroll", "loop=k_0"),
      suggestion("fuse", "loops=(k_0, k_1)", {
        problems: [
          makeProblem({
            requirement: 2,
            message: "loop 'k_1' is unrolled; expected a serial loop",
            counterexample: {},
            where: [{ kind: "loop", function: "fused_matmul_add_gelu", uid: 15, name: "k_1" }],
            fixes: [],
          }),
        ],
      }),
      suggestion("vectorize", "loop=k_0", {
        problems: [
          makeProblem({
            requirement: 3,
            message: "loop 'k_0' is bound to reduction variable 'k' of block 'matmul': lanes would write the same element",
            counterexample: { "k_0": "0", "k_0'": "1" },
            where: [{ kind: "block", function: "fused_matmul_add_gelu", uid: 18, name: "matmul" }],
            fixes: [{ key: "fix:1", label: "decompose_reduction(block=matmul, loop=k_0)" }],
          }),
        ],
      }),
      suggestion("parallel", "loop=k_0", {
        problems: [
          makeProblem({
            requirement: 2,
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
    key: `${"0a1b2c3d4e5f"[index] ?? "f"}f31c9d${String(index)}`,
    parent: index === 0 ? "" : `${"0a1b2c3d4e5f"[index === 6 ? 2 : index - 1] ?? "f"}f31c9d${String(index === 6 ? 2 : index - 1)}`,
    label: index === 0 ? "start" : (/sch\.(\w+)/.exec(text)?.[1] ?? "parallel"),
    detail: index === 0 ? "MiniLM-L6" : text.replace(/.*sch\.\w+/, ""),
    microseconds: index === 0 ? 61200 : index === 4 ? 6120 : null,
    verified: index === 4 ? true : null,
  }));
  const update: Update = {
    version: 2,
    reply: 1,
    server_ms: 3,
    target: "cpu · avx512 · 2 threads",
    open: "fused_matmul_add_gelu",
    functions: [
      { name: "main", level: "graph", hash: main.pane.hash, calls: 1, scheduled: false },
      ...kernels.map(([name, calls]) => ({
        name,
        level: "loop" as const,
        hash: name === "fused_matmul_add_gelu" ? loops.pane.hash : `hash-${name}`,
        calls,
        scheduled: name === "fused_matmul_add_gelu",
      })),
    ],
    panes: [main.pane, loops.pane],
    graph: { hash: "g", function: "main", nodes: graphNodes() },
    menu: makeMenu({ kind: "loop", function: "fused_matmul_add_gelu", uid: 14, name: "k_0" }),
    trace: trace.map((text, index) => ({
      index,
      text,
      step: /sch\.(\w+)/.exec(text)?.[1] ?? "",
      status: index < 2 ? "query" : "done",
      decisions: index === 2 ? "guard: predicate" : index === 3 ? "guard: none" : "",
      milliseconds: index < 2 ? null : 1.2 + index * 0.3,
    })),
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
    measure_options: { caches: "hot", threads: 0, max_threads: 2, pin: false, budget: 1.5 },
    measurement: {
      state: history[5]?.key ?? "",
      function: "main",
      shapes: "b = 1, s = 128",
      samples: Array.from({ length: 40 }, (_, index) => 6050 + ((index * 7919) % 97) * 3),
      median: 6180,
      low: 6120,
      high: 6260,
      conditions: "hot caches, 2 threads, not pinned, 3 warm-up calls, at most 1.5 s", alone: true, compile_ms: 412,
      kernels: kernels.map(([name, calls, microseconds]) => ({ function: name, label: name, calls, microseconds, share: microseconds / total })),
    },
    verdict: { state: history[5]?.key ?? "", agrees: true, error: 3.1e-7, bound: 2e-5, shapes: "b = 1, s = 128", message: "result 0[0, 7] is 0.5, exact value 0.5: error 3.10e-07, allowed 2.00e-05", derivation: "16 standard deviations of 4 runs" },
    jobs: [],
    problems: [],
    applied: { message: "split(loop=k, factors=(None, 4)) applied (guard: none)", tone: "good", functions: [] },
  };
  return { update, buffers: [main.buffer, loops.buffer] };
}
