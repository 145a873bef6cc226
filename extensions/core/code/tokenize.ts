import { DTYPES } from "../protocol";

/** The kinds of tokens, for highlighting. */
export type TokenKind =
  | "text"
  | "keyword"
  | "loop"
  | "name"
  | "type"
  | "call"
  | "number"
  | "string"
  | "comment"
  | "decorator"
  | "operator";

export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

export type Language = "script" | "llvm" | "assembly" | "plain";

type Rule = readonly [TokenKind, RegExp];

const ANNOTATIONS = ["Tensor", "Buffer", "Out", "InOut", "State", "Int", "Shape", "Tuple", "Prim", "Object", "Callable"];
const FOREIGN = ["float", "float16", "float32", "float64", "bfloat16", "int", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"];
const TYPE = new RegExp(`\\b(?:${[...ANNOTATIONS, ...FOREIGN, ...DTYPES].join("|")})\\b`, "y");

const SCRIPT: readonly Rule[] = [
  ["comment", /#.*/y],
  ["string", /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/y],
  ["decorator", /@[A-Za-z_][\w.]*/y],
  ["number", /\b(?:0x[\da-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?j?|\binf\b|\bnan\b)/y],
  ["keyword", /\b(?:def|for|in|if|elif|else|with|return|as|and|or|not|True|False|None|let|import|from|class|lambda|assert)\b/y],
  ["loop", /\b(?:range|serial|parallel|vectorized|unrolled|unroll|thread_binding|thread|grid|block|init|spatial|reduce|ordered|where|reads|writes)\b/y],
  ["type", TYPE],
  ["call", /\b[A-Za-z_]\w*(?=\()/y],
  ["name", /[A-Za-z_]\w*/y],
  ["operator", /->|:=|\*\*|\/\/|[<>=!]=|[-+*/%<>=@&|^~]/y],
];

const LLVM: readonly Rule[] = [
  ["comment", /;.*/y],
  ["string", /"(?:[^"\\]|\\.)*"/y],
  ["type", /\b(?:i\d+|float|double|half|bfloat|ptr|void|label)\b|<\d+ x [\w]+>/y],
  ["keyword", /\b(?:define|declare|ret|br|switch|phi|call|tail|load|store|getelementptr|inbounds|alloca|fadd|fsub|fmul|fdiv|fneg|add|sub|mul|s?u?div|s?u?rem|shl|[al]shr|and|or|xor|icmp|fcmp|select|bitcast|zext|sext|trunc|fpext|fptrunc|sitofp|fptosi|extractelement|insertelement|shufflevector|target|attributes|align|nsw|nuw|contract|reassoc|unreachable|to|x)\b/y],
  ["call", /@[\w.$-]+/y],
  ["name", /%[\w.$-]+/y],
  ["decorator", /[#!][\w.]*/y],
  ["number", /-?\b(?:0x[\dA-Fa-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)\b/y],
  ["operator", /[=*,()]/y],
];

const ASSEMBLY: readonly Rule[] = [
  ["comment", /(?:#|\/\/).*/y],
  ["decorator", /^\s*\.[\w.]+/y],
  ["call", /[\w.$]+(?=:)/y],
  ["type", /%[a-z]+\d*[a-z]*/y],
  ["type", /\b(?:[xyz]mm\d+|k[0-7]|[re]?[abcd]x|[re]?[sd]i|[re]?[sb]p|r\d+[dwb]?|rip)\b/y],
  ["number", /\$?-?\b(?:0x[\dA-Fa-f]+|\d+)\b/y],
  ["keyword", /(?<=^\s*(?:@!?%\w+\s+)?)[a-z][a-z0-9]+(?:[.:]+[a-z0-9]+)*(?=[\s;]|$)/y],
  ["name", /[A-Za-z_.$][\w.$@]*/y],
  ["operator", /[-+*,[\](){}]/y],
];

const RULES: Readonly<Record<Language, readonly Rule[]>> = {
  script: SCRIPT,
  llvm: LLVM,
  assembly: ASSEMBLY,
  plain: [],
};

/** Split a line into tokens, whose texts join to the line. */
export function tokenize(line: string, language: Language = "script"): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  let plain = "";
  const flush = (): void => {
    if (plain !== "") tokens.push({ kind: "text", text: plain });
    plain = "";
  };
  while (at < line.length) {
    const token = tokenAt(line, at, language);
    if (token === null) {
      plain += line.charAt(at++);
      continue;
    }
    flush();
    tokens.push(token);
    at += token.text.length;
  }
  flush();
  return tokens;
}

/** Return the token that starts at a column of a line, null if none does. */
export function tokenAt(line: string, at: number, language: Language): Token | null {
  for (const [kind, pattern] of RULES[language]) {
    pattern.lastIndex = at;
    const found = pattern.exec(line);
    if (found !== null && found[0] !== "") return { kind, text: found[0] };
  }
  return null;
}
