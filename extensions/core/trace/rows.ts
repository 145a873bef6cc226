import type { Trace, TraceGroup, TraceLine } from "../protocol";

/** A row of the trace: a step, or the header of a composite step with the rows of its steps below it. */
export interface TraceRow {
  readonly key: string;
  readonly level: number;
  /** The position of the row of the enclosing composite step, -1 at the outermost level. */
  readonly parent: number;
  readonly line: TraceLine | null;
  readonly group: TraceGroup | null;
  readonly folded: boolean;
}

/** Return the number of steps that were not applied. */
export function pendingCount(trace: Trace): number {
  return trace.lines.filter((line) => line.status === "pending").length;
}

/** Return the visible rows; groups are folded unless their key is in `unfolded`. */
export function rowsOf(trace: Trace, unfolded: ReadonlySet<string>): TraceRow[] {
  const rows: TraceRow[] = [];
  let next = 0;
  const add = (first: number, stop: number, level: number, parent: number, hidden: boolean): void => {
    let at = first;
    while (at < stop || startsAt(next, at, stop)) {
      const group = trace.groups[next];
      if (group?.first !== at || group.stop > stop) {
        const line = trace.lines[at++];
        if (line && !hidden) rows.push({ key: String(line.index), level, parent, line, group: null, folded: false });
        continue;
      }
      next += 1;
      const key = keyOf(group);
      const folded = !unfolded.has(key);
      if (!hidden) rows.push({ key, level, parent, line: null, group, folded });
      add(at, group.stop, level + 1, rows.length - 1, hidden || folded);
      at = group.stop;
    }
  };
  const startsAt = (index: number, at: number, stop: number): boolean => {
    const group = trace.groups[index];
    return group?.first === at && group.stop === at && at === stop;
  };
  add(0, trace.lines.length, 1, -1, false);
  return rows;
}

/** Return the key of a group, which an edit after the group does not change. */
export function keyOf(group: TraceGroup): string {
  return `${String(group.index)}:${group.step}:${String(group.first)}`;
}

/** Return the row that a key moves to, or the action of a key on a row with a group. */
export function treeKey(key: string, at: number, rows: readonly TraceRow[]): number | "fold" | "unfold" | "toggle" | null {
  const row = rows[at];
  if (!row) return null;
  switch (key) {
    case "ArrowDown":
      return Math.min(at + 1, rows.length - 1);
    case "ArrowUp":
      return Math.max(at - 1, 0);
    case "Home":
      return 0;
    case "End":
      return rows.length - 1;
    case "ArrowRight":
      if (!row.group) return null;
      return row.folded ? "unfold" : rows[at + 1]?.parent === at ? at + 1 : null;
    case "ArrowLeft":
      if (row.group && !row.folded) return "fold";
      return row.parent >= 0 ? row.parent : null;
    case "Enter":
    case " ":
      return row.group ? "toggle" : null;
    default:
      return null;
  }
}

const MAX_NAMES = 4;

/** Return the range of the names that a long list of results hides, and their number; null if none is hidden. */
export function hiddenNames(text: string): { readonly from: number; readonly to: number; readonly count: number } | null {
  const to = text.indexOf(" = sch.");
  const names = text.slice(0, Math.max(0, to)).split(", ");
  if (names.length <= MAX_NAMES + 1) return null;
  return { from: `${names.slice(0, MAX_NAMES).join(", ")}, `.length, to, count: names.length - MAX_NAMES };
}
