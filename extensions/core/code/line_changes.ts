import { Change, diff } from "@codemirror/merge";

/** Limits that keep the comparison of long texts fast: the number of edits, and milliseconds. */
const LIMITS = { scanLimit: 2000, timeout: 200 };
/** The length up to which replaced lines are compared by character. */
const MAX_REFINED = 4000;
/** The codes of lines; those between are halves of surrogate pairs. */
const SURROGATES = [0xd800, 0xe000] as const;
const MAX_CODE = 0xffff;

/**
 * Return the changes from one text to another, which both end with a line break: entire lines are
 * compared first, so that a change of generated code is not mixed from letters of other lines, and
 * the parts of replaced lines afterwards.
 */
export function lineChanges(before: string, after: string): readonly Change[] {
  const codes = new Map<string, string>();
  const old = encode(before, codes);
  const now = encode(after, codes);
  if (!old || !now) return diff(before, after, LIMITS);
  return diff(old.codes, now.codes, LIMITS).flatMap((lines) => {
    const change = new Change(at(old, lines.fromA), at(old, lines.toA), at(now, lines.fromB), at(now, lines.toB));
    return refined(change, before, after);
  });
}

interface Encoded {
  /** One letter per line; equal lines have the same one. */
  readonly codes: string;
  /** The positions of the starts of the lines, and of the end of the text. */
  readonly starts: readonly number[];
}

/** Encode lines as letters, null if there are more different lines than letters. */
function encode(text: string, codes: Map<string, string>): Encoded | null {
  const lines = text.split(/(?<=\n)/);
  const starts = [0];
  let encoded = "";
  for (const line of lines) {
    let code = codes.get(line);
    if (code === undefined) {
      const [first, next] = SURROGATES;
      const number = codes.size < first ? codes.size : codes.size - first + next;
      if (number > MAX_CODE) return null;
      code = String.fromCharCode(number);
      codes.set(line, code);
    }
    encoded += code;
    starts.push((starts.at(-1) ?? 0) + line.length);
  }
  return { codes: encoded, starts };
}

function at({ starts }: Encoded, line: number): number {
  return starts[line] ?? 0;
}

/** Return the changes within replaced lines, or their replacement if they are long. */
function refined(change: Change, before: string, after: string): readonly Change[] {
  const { fromA, toA, fromB, toB } = change;
  const longest = Math.max(toA - fromA, toB - fromB);
  if (fromA === toA || fromB === toB || longest > MAX_REFINED) return [change];
  return diff(before.slice(fromA, toA), after.slice(fromB, toB), LIMITS).map(
    (part) => new Change(fromA + part.fromA, fromA + part.toA, fromB + part.fromB, fromB + part.toB),
  );
}
