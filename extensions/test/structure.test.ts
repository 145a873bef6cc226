import { Text } from "@codemirror/state";
import { expect, test } from "vitest";
import { firstFunction, headersOf, structureOf } from "../core/code/structure";
import type { Language } from "../core/code/tokenize";
import { LOOPS } from "../dev/program";

function bodies(source: string, language: Language): Record<number, number> {
  const { ends } = structureOf(Text.of(source.split("\n")), language);
  return Object.fromEntries([...ends.entries()].filter(([, end]) => end > 0));
}

test("nests a program by indentation, with parameters on several lines", () => {
  const lines = LOOPS.split("\n");
  const structure = structureOf(Text.of(lines), "script");
  const line = (part: string): number => lines.findIndex((one) => one.includes(part)) + 1;
  const headers = headersOf(structure, line("acc[i, j] = acc")).map((number) => lines[number - 1]?.trim().split(" ", 2).join(" "));
  expect(headers).toEqual(["def fused_matmul_add_gelu(", "for i_0", "for j_0", "for k_0", "for k_1", "for i_1", "for j_1", 'with block("matmul"):']);
  expect(structure.ends[line("def fused")]).toBe(line("y[i // s"));
  expect(structure.ends[line("for k_0")]).toBe(line("acc[i, j] = acc"));
});

test("nests generated code by functions and labels", () => {
  const llvm = "declare void @g()\n\ndefine void @f() {\nentry:\n  br label %loop\n\nloop:\n  ret void\n}\nattributes #0 = {}";
  expect(bodies(llvm, "llvm")).toEqual({ 3: 9, 4: 5, 7: 8 });
  const assembly = "\t.text\nf:\n\tpush\n.LBB0_1:\n\tjne .LBB0_1\ng:\n\tret";
  expect(bodies(assembly, "assembly")).toEqual({ 2: 5, 4: 5, 6: 7 });
  const ptx = ".version 7.0\n.visible .entry f(\n\t.param .u64 p\n)\n{\n\tret;\n$L__BB0_1:\n\tbra $L__BB0_1;\n}";
  expect(bodies(ptx, "assembly")).toEqual({ 2: 9, 7: 8 });
});

test("finds the first function after directives, constants, and declarations", () => {
  const first = (source: string, language: Language): number => firstFunction(Text.of(source.split("\n")), language);
  expect(first("\t.text\n.LCPI0_0:\n\t.long 1\nf:\n\tret", "assembly")).toBe(4);
  expect(first(".version 7.0\n.target sm_90\n.visible .entry f(\n)", "assembly")).toBe(3);
  expect(first("declare void @g()\n\ndefine void @f() {\n}", "llvm")).toBe(3);
  expect(first("\t.text", "assembly")).toBe(1);
  expect(first("x = 1\ndef f():", "script")).toBe(1);
});

test("reads a long text in less than a second", () => {
  const lines = Array.from({ length: 200_000 }, (_, index) => `${" ".repeat(4 * (index % 8))}y[i] = x[i] + 1.0  # ${String(index)}`);
  const text = Text.of(lines);
  const start = performance.now();
  expect(structureOf(text, "script").ends.length).toBe(200_001);
  expect(performance.now() - start).toBeLessThan(1000);
});
