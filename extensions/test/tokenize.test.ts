import { expect, test } from "vitest";
import { tokenize } from "../core/code/tokenize";
import { DTYPES } from "../core/protocol";

test("tokens join to the line", () => {
  for (const line of ["    for i_0 in parallel(ceildiv(n, 8)):  # tail", 'x: Buffer[(n, 4), f32] = "a\\"b"', "%v = fadd <8 x float> %a, %b", ""])
    expect(tokenize(line).map((token) => token.text).join("")).toBe(line);
});

test("distinguishes loops, numbers, types and strings", () => {
  const kinds = new Map(tokenize('for i in vectorized(16): f32("s")').map((token) => [token.text, token.kind]));
  expect(kinds.get("for")).toBe("keyword");
  expect(kinds.get("vectorized")).toBe("loop");
  expect(kinds.get("16")).toBe("number");
  expect(kinds.get("f32")).toBe("type");
  expect(kinds.get('"s"')).toBe("string");
});

test("every dtype is a type, and a longer name is not", () => {
  expect(DTYPES).toContain("u4");
  for (const name of DTYPES) {
    const [buffer, , ...rest] = tokenize(`Buffer[${name}]`);
    expect(buffer?.kind).toBe("type");
    expect(rest[0]).toEqual({ kind: "type", text: name });
    expect(tokenize(`${name}_0`)[0]).toEqual({ kind: "name", text: `${name}_0` });
  }
});

test("a name that contains a keyword is a name", () => {
  expect(tokenize("forward").map((token) => token.kind)).toEqual(["name"]);
  expect(tokenize("x1").map((token) => token.text)).toEqual(["x1"]);
});

test("highlights opcodes and registers in assembly", () => {
  const kinds = tokenize("\tvfmadd231ps\t(%rax), %zmm1, %zmm0", "assembly");
  expect(kinds.find((token) => token.text === "vfmadd231ps")?.kind).toBe("keyword");
  expect(kinds.find((token) => token.text === "%zmm1")?.kind).toBe("type");
});

test("highlights values, types and functions in LLVM", () => {
  const kinds = new Map(tokenize("%3 = call <8 x float> @f(ptr %p)", "llvm").map((token) => [token.text, token.kind]));
  expect(kinds.get("%3")).toBe("name");
  expect(kinds.get("<8 x float>")).toBe("type");
  expect(kinds.get("@f")).toBe("call");
});

test("supports the comments, dotted opcodes and semicolons of PTX", () => {
  const kinds = (line: string): string[] => tokenize(line, "assembly").map((token) => `${token.kind}:${token.text}`);
  expect(kinds("// a comment; all of it")).toEqual(["comment:// a comment; all of it"]);
  expect(kinds("\t@%p1 bra.uni $L1;")).toContain("keyword:bra.uni");
  expect(kinds("    ld.param.u64 %rd1, [f_param_0];")).toContain("keyword:ld.param.u64");
  expect(kinds("    ld.param.u64 %rd1, [f_param_0];").some((kind) => kind.startsWith("comment"))).toBe(false);
  expect(kinds("    vmovups %zmm0, (%rax) # spill")).toEqual(expect.arrayContaining(["keyword:vmovups", "comment:# spill"]));
});
