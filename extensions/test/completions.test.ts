import { expect, test } from "vitest";
import { complete } from "../core/trace/completions";
import { namesOf, resultsBefore } from "../core/trace/names";
import type { Field, StepInfo } from "../core/protocol";
import { paneOf, type State } from "../core/store";
import { connected } from "./helpers";

const STATE = withBuffers(connected().store.state.value);

/** Return the example state, whose text has no buffers, with those of its kernel. */
function withBuffers(state: State): State {
  const pane = paneOf(state, state.open);
  if (!pane) throw new Error("no text");
  const spans = ["x", "w", "acc"].map((name, index) => {
    const line = pane.lines.findIndex((text) => new RegExp(`^\\s+${name}( =|:)`).test(text));
    return { kind: "buffer" as const, uid: 900 + index, defined: true, line, column: 4, endLine: line, endColumn: 4 + name.length };
  });
  return { ...state, panes: new Map([...state.panes, [pane.hash, { ...pane, spans: [...pane.spans, ...spans] }]]) };
}

function field(name: string, extra: Partial<Field> = {}): Field {
  return { name, type: "integer", doc: `The ${name}.`, value: "", choices: [], required: true, kinds: [], unavailable: {}, ...extra };
}

function info(step: string, fields: readonly Field[]): StepInfo {
  return { step, family: "loops", summary: `Apply ${step}.`, composite: false, fields: [...fields] };
}

const LOOP = field("loop", { type: "loop", kinds: ["loop"] });
const STEPS = [
  info("split", [LOOP, field("factors"), field("tail", { type: "'predicate' or 'epilogue'", value: "'predicate'", choices: ["'predicate'", "'epilogue'"] })]),
  info("unroll", [LOOP, field("explicit", { type: "bool" })]),
  info("reorder", [field("loops", { type: "a tuple of loop", kinds: ["loop"] })]),
  info("tensorize", [field("intrinsic", { type: "text", choices: ["'avx2.add'", "'avx512.fma'"], unavailable: { "'avx512.fma'": "avx512" } })]),
  info("cache_read", [field("buffer", { type: "buffer", kinds: ["buffer"] })]),
];
const NAMES = { ...namesOf(STATE), steps: STEPS };

/** Return the texts of the completions at the bar in a step. */
function at(step: string, index = 7): readonly string[] {
  const cursor = step.indexOf("|");
  return complete(step.replace("|", ""), cursor, index, NAMES)?.options.map(({ text }) => text) ?? [];
}

test("names of steps, of the catalog and of the trace, with those that start with the text first", () => {
  expect(at("sch.|")).toEqual(expect.arrayContaining(["split", "unroll", "get_block", "get_loops", "vectorize"]));
  expect(at("i, j = sch.sp|")).toEqual(["split"]);
  expect(at("sch.re|")).toEqual(["reorder", "cache_read"]);
  expect(at("sch.R|")[0]).toBe("reorder");
  expect(at("x|")).toEqual([]);
  expect(at("other.|")).toEqual([]);
});

test("names of parameters that the step has and that are not given", () => {
  const found = at("sch.split(|");
  expect(found.slice(0, 3)).toEqual(["loop=", "factors=", "tail="]);
  expect(at("sch.split(loop=i, |")).toEqual(["factors=", "tail="]);
  expect(at("sch.split(loop=i, ta|)")).toEqual(["tail="]);
  expect(at("sch.unknown(|")).not.toContain("loop=");
});

test("values of an enumeration, inside and outside of quotes", () => {
  expect(at("sch.split(i, factors=(None, 8), tail=|)")).toEqual(["'predicate'", "'epilogue'"]);
  expect(at("sch.split(i, tail='ep|')")).toEqual(["'epilogue'"]);
  expect(at("sch.unroll(i, explicit=|)")).toEqual(["True", "False"]);
  expect(at("sch.split(i, factors=|)")).toEqual([]);
  const found = complete("sch.tensorize(intrinsic=", 24, 7, NAMES);
  expect(found?.options.map(({ text, detail }) => [text, detail])).toEqual([["'avx2.add'", ""], ["'avx512.fma'", "the target lacks avx512"]]);
});

test("the text in quotes is replaced with its quotes", () => {
  expect(complete("sch.split(i, tail='ep')", 21, 7, NAMES)).toMatchObject({ from: 18, to: 22, typed: "'ep" });
  expect(complete("sch.split(i, tail=\"ep", 21, 7, NAMES)).toMatchObject({ from: 18, to: 21 });
  expect(complete("sch.split(i, tail='epilogue')", 21, 7, NAMES)).toMatchObject({ from: 18, to: 28 });
  expect(complete("sch.sp", 6, 7, NAMES)).toMatchObject({ from: 4, to: 6 });
});

test("results of earlier steps, and parts of the program of the kinds that a parameter accepts", () => {
  const found = at("sch.unroll(loop=|");
  expect(found).toEqual(expect.arrayContaining(["j_1", "i", "'k_0'", "'i_0'"]));
  expect(found).not.toContain("'matmul'");
  expect(found).not.toContain("'acc'");
  expect(at("sch.reorder(loops=(i, j_|")).toEqual(expect.arrayContaining(["j_0", "j_1", "'j_0'"]));
  expect(at("sch.cache_read(buffer='|")).toEqual(expect.arrayContaining(["'acc'", "'x'", "'w'"]));
  expect(at("sch.unroll(|")).toEqual(expect.arrayContaining(["explicit=", "j_1", "'k_0'"]));
});

test("a query, which the catalog does not contain, has names of functions and blocks", () => {
  expect(at("sch.get_block('|')")).toEqual(expect.arrayContaining(["'matmul'", "'add_gelu'", "'main'"]));
  expect(at("sch.get_block(name='mat|', function=")).toEqual(["'matmul'", "'matmul_pv'", "'fused_matmul_add_gelu'", "'fused_matmul_add_norm_1'", "'fused_matmul_add'"]);
});

test("only results of steps before the edited one are listed, the last one first", () => {
  const { trace } = STATE;
  expect(resultsBefore(trace, 2).map(({ text }) => text)).toEqual(["k", "j", "i", "matmul"]);
  expect(resultsBefore(trace, 3)[0]).toEqual({ text: "i_1", kind: "result", detail: "result of split, step 2" });
  expect(at("sch.unroll(loop=i_|", 2)).not.toContain("i_0");
});

test("names contain each part once, those of the open function first", () => {
  const { parts } = namesOf(STATE);
  const loops = parts.filter(({ kind }) => kind === "loop").map(({ text }) => text);
  expect(new Set(loops).size).toBe(loops.length);
  expect(parts[0]).toMatchObject({ text: "'fused_matmul_add_gelu'", kind: "function" });
  expect(parts).toContainEqual({ text: "'matmul'", kind: "block", detail: "block in fused_matmul_add_gelu" });
  expect(parts).toContainEqual({ text: "'acc'", kind: "buffer", detail: "buffer of fused_matmul_add_gelu" });
  expect(parts).toContainEqual({ text: "'probs'", kind: "binding", detail: "call_tir in main" });
});
