import { StateField, type Extension, type Text } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";
import type { Language } from "./tokenize";

/** The nesting of the lines of a text, by line number from 1; 0 stands for none. */
export interface Structure {
  /** The line of the innermost header that encloses a line. */
  readonly parents: Int32Array;
  /** The last line of the body of a header. */
  readonly ends: Int32Array;
}

const LABEL = /^[\w.$]+:/;
/** The level of a line without text. */
const BLANK = -1;

/** Return the nesting of the lines: by indentation, or by functions and labels in generated code. */
export function structureOf(text: Text, language: Language): Structure {
  const parents = new Int32Array(text.lines + 1);
  const ends = new Int32Array(text.lines + 1);
  const headers: number[] = [];
  const levels: number[] = [];
  let number = 0;
  let last = 0;
  const leave = (least: number): void => {
    for (; levels.length > 0 && (levels.at(-1) ?? 0) >= least; levels.pop()) {
      const header = headers.pop() ?? 0;
      if (last > header) ends[header] = last;
    }
  };
  for (const line of text.iterLines()) {
    number++;
    const start = indentOf(line);
    const level = start === line.length ? BLANK : levelOf(line, start, language);
    // A line that starts with a bracket, such as the end of the parameters, belongs to its header.
    const continues = level !== BLANK && isBracket(line.charCodeAt(start));
    if (level !== BLANK) leave(continues ? level + 1 : level);
    parents[number] = headers.at(-1) ?? 0;
    if (level === BLANK) continue;
    last = number;
    if (continues) continue;
    headers.push(number);
    levels.push(level);
  }
  leave(0);
  return { parents, ends };
}

/** Return the lines of the headers that enclose a line, outermost first. */
export function headersOf(structure: Structure, line: number): number[] {
  const headers: number[] = [];
  for (let at = structure.parents[line] ?? 0; at > 0; at = structure.parents[at] ?? 0) headers.push(at);
  return headers.reverse();
}

/** Return the line of the first function of generated code, after directives and declarations; else 1. */
export function firstFunction(text: Text, language: Language): number {
  const header = language === "assembly" ? /^(?![.$]L)[A-Za-z_$][\w.$]*:|^\s*(?:\.visible\s+)?\.entry\b/ : /^define /;
  if (language !== "assembly" && language !== "llvm") return 1;
  let number = 0;
  for (const line of text.iterLines()) {
    number++;
    if (header.test(line)) return number;
  }
  return 1;
}

function indentOf(line: string): number {
  let at = 0;
  while (at < line.length && (line.charCodeAt(at) === 32 || line.charCodeAt(at) === 9)) at++;
  return at;
}

function isBracket(code: number): boolean {
  return code === 41 || code === 93 || code === 123 || code === 125; // ) ] { }
}

function levelOf(line: string, start: number, language: Language): number {
  if (language === "plain") return BLANK;
  if (language === "script") return start;
  if (start > 0) return 2;
  if (!LABEL.test(line)) return 0;
  const isFunction = language === "assembly" && !/^[.$]L/.test(line);
  return isFunction ? 0 : 1;
}

const field = (language: Language): StateField<Structure> =>
  StateField.define({
    create: (state) => structureOf(state.doc, language),
    update: (value, transaction) => (transaction.docChanged ? structureOf(transaction.newDoc, language) : value),
  });

const FIELDS: Readonly<Record<Language, StateField<Structure>>> = {
  script: field("script"),
  llvm: field("llvm"),
  assembly: field("assembly"),
  plain: field("plain"),
};

/** Maintain the nesting of the lines of an editor. */
export function structured(language: Language): Extension {
  return FIELDS[language];
}

/** Return the nesting of the lines of an editor. */
export function structureIn(state: EditorView["state"]): Structure | null {
  for (const one of Object.values(FIELDS)) {
    const found = state.field(one, false);
    if (found) return found;
  }
  return null;
}
