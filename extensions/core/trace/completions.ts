// The names that fit at a position of a step, such as `sch.split(loop=i, factors=|`.
import type { Field } from "../protocol";
import { resultsBefore, type Name, type Names } from "./names";

/** The names for a range of the text, the best ones first. */
export interface Completion {
  readonly from: number;
  readonly to: number;
  /** The text before the cursor that the names match. */
  readonly typed: string;
  readonly options: readonly Name[];
}

/** An open bracket: of the call of a step, of which `argument` is open, or another one. */
interface Frame {
  readonly step: string;
  readonly used: string[];
  argument: string;
  position: number;
  start: number;
}

/** The position in a step. */
interface Place {
  readonly frames: readonly Frame[];
  /** The position of the quote of an open text, -1 outside of one. */
  readonly quote: number;
}

/** The largest number of names that are listed. */
const MAX_OPTIONS = 100;

/** Return the names that fit at the cursor of a step with an index; null if there are none. */
export function complete(text: string, cursor: number, index: number, names: Names): Completion | null {
  const place = placeAt(text.slice(0, cursor));
  const from = place.quote >= 0 ? place.quote : cursor - (/\w*$/.exec(text.slice(0, cursor))?.[0].length ?? 0);
  const typed = text.slice(from, cursor);
  const found = namesFor(text.slice(0, from), place, index, names);
  const options = matching(place.quote >= 0 ? found.filter(isQuoted) : found, typed);
  if (options.length === 0) return null;
  return { from, to: place.quote >= 0 ? endOfQuote(text, cursor, text[place.quote]) : cursor, typed, options };
}

/** Return the end of the text in quotes at the cursor, or the cursor if it is not closed. */
function endOfQuote(text: string, cursor: number, quote: string | undefined): number {
  const end = cursor + (/^[\w.]*/.exec(text.slice(cursor))?.[0].length ?? 0);
  return text[end] === quote ? end + 1 : cursor;
}

function placeAt(before: string): Place {
  const frames: Frame[] = [];
  let quote = -1;
  for (let at = 0; at < before.length; at++) {
    const sign = before[at] ?? "";
    if (quote >= 0) {
      if (sign === "\\") at += 1;
      else if (sign === before[quote]) quote = -1;
    } else if (sign === "'" || sign === '"') quote = at;
    else if ("([{".includes(sign)) frames.push(frameAt(before, at));
    else if (")]}".includes(sign)) frames.pop();
    else follow(frames.at(-1), before, at);
  }
  return { frames, quote };
}

function frameAt(before: string, at: number): Frame {
  const step = before[at] === "(" ? (/\bsch\.(\w+)$/.exec(before.slice(0, at))?.[1] ?? "") : "";
  return { step, used: [], argument: "", position: 0, start: at + 1 };
}

/** Follow the arguments of a call. */
function follow(frame: Frame | undefined, before: string, at: number): void {
  if (!frame) return;
  if (before[at] === ",") {
    frame.argument = "";
    frame.position += 1;
    frame.start = at + 1;
  } else if (before[at] === "=" && frame.argument === "") {
    const name = before.slice(frame.start, at).trim();
    if (!/^\w+$/.test(name)) return;
    frame.argument = name;
    frame.used.push(name);
  }
}

function namesFor(before: string, { frames, quote }: Place, index: number, names: Names): readonly Name[] {
  const call = frames.findLast(({ step }) => step !== "");
  if (!call) return /\bsch\.$/.test(before) ? stepsOf(names) : [];
  const fields = names.steps.find(({ step }) => step === call.step)?.fields;
  const isFirst = call === frames.at(-1) && quote < 0 && call.argument === "" && before.slice(call.start).trim() === "";
  const parameters = isFirst ? (fields ?? []).filter(({ name }) => !call.used.includes(name)) : [];
  const positional = call.used.length === 0 ? fields?.[call.position] : undefined;
  const field = call.argument === "" ? positional : fields?.find(({ name }) => name === call.argument);
  const values = fields ? valuesOf(field, index, names) : valuesOfQuery(call.step, index, names);
  return [...parameters.map(parameterOf), ...values];
}

function stepsOf({ steps, trace }: Names): readonly Name[] {
  const known = steps.map(({ step, summary }): Name => ({ text: step, kind: "step", detail: summary }));
  const others = new Set(trace.lines.map(({ step }) => step));
  for (const { step } of steps) others.delete(step);
  return [...known, ...[...others].map((step): Name => ({ text: step, kind: "step", detail: "a step of this trace" }))];
}

function parameterOf({ name, type, doc }: Field): Name {
  return { text: `${name}=`, kind: "parameter", detail: `${type}. ${doc}` };
}

/** Return the values of a parameter of a step. */
function valuesOf(field: Field | undefined, index: number, names: Names): readonly Name[] {
  if (!field) return [];
  if (field.kinds.length > 0) return [...resultsBefore(names.trace, index), ...names.parts.filter(({ kind }) => (field.kinds as readonly string[]).includes(kind))];
  const texts = [...field.choices, ...(field.type.match(/'[^']*'/g) ?? []), ...(field.type.includes("bool") ? ["True", "False"] : []), ...(field.type.includes("None") ? ["None"] : [])];
  return [...new Set(texts)].map((text) => ({ text, kind: "value", detail: detailOf(text, field) }));
}

/** Return the arguments of a step that the catalog does not contain, such as the query `get_block`. */
function valuesOfQuery(step: string, index: number, names: Names): readonly Name[] {
  const own = names.parts.filter(({ kind }) => step.includes(kind));
  const others = names.parts.filter(({ kind }) => !step.includes(kind) && (kind === "function" || kind === "block"));
  return [...resultsBefore(names.trace, index), ...own, ...others];
}

function detailOf(text: string, { value, unavailable }: Field): string {
  const missing = Object.hasOwn(unavailable, text) ? unavailable[text] : undefined;
  if (missing !== undefined) return `the target lacks ${missing}`;
  return text === value ? "the default" : "";
}

function isQuoted({ text }: Name): boolean {
  return text.startsWith("'") || text.startsWith('"');
}

/** Return the names that match a text: the same name, those that start with it, those with a word that does, the others. */
function matching(names: readonly Name[], typed: string): readonly Name[] {
  const wanted = bare(typed);
  const found = names.map((name) => [rankOf(bare(name.text), wanted), name] as const).filter(([rank]) => rank >= 0);
  return found.sort(([one], [other]) => one - other).map(([, name]) => name).slice(0, MAX_OPTIONS);
}

function rankOf(name: string, wanted: string): number {
  const at = name.indexOf(wanted);
  if (at <= 0) return at < 0 ? at : name === wanted ? 0 : 1;
  return /[_.]/.test(name[at - 1] ?? "") ? 2 : 3;
}

function bare(text: string): string {
  return text.replace(/^['"]|['"]$/g, "").toLowerCase();
}
