/** A replacement of a part of a text. */
export interface Change {
  readonly from: number;
  readonly to: number;
  readonly insert: string;
}

/** Return the smallest replacement that changes a text to another one, null if they are equal. */
export function changeOf(before: string, after: string): Change | null {
  if (before === after) return null;
  const shorter = Math.min(before.length, after.length);
  let from = 0;
  while (from < shorter && before.charCodeAt(from) === after.charCodeAt(from)) from++;
  let end = 0;
  while (end < shorter - from && before.charCodeAt(before.length - 1 - end) === after.charCodeAt(after.length - 1 - end)) end++;
  return { from, to: before.length - end, insert: after.slice(from, after.length - end) };
}
