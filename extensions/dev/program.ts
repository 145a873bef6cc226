// An example program: a kernel and the graph that calls it.
import { SPAN_KINDS, type GraphNode, type Header, type Pane } from "../core/protocol";

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

export const GRAPH_TEXT = `\
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

/** Return the nodes of the graph, found by a regular expression. */
export function graphNodes(): GraphNode[] {
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
