/** A line of a comparison of two texts. `skip` stands for `count` unchanged lines. */
export interface DiffLine {
  readonly kind: "same" | "added" | "removed" | "skip";
  readonly text: string;
  readonly count: number;
}

const MAX_EDITS = 1000;
const CONTEXT = 3;

/** Return the lines of both texts in order, with runs of unchanged lines shortened. */
export function diffOf(before: readonly string[], after: readonly string[]): DiffLine[] {
  return shortened(compared(before, after));
}

/** Return the lines of both texts: common ones once, removed and added ones marked. */
export function compared(before: readonly string[], after: readonly string[]): DiffLine[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const same = (text: string): DiffLine => ({ kind: "same", text, count: 1 });
  return [
    ...before.slice(0, start).map(same),
    ...edits(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...before.slice(before.length - end).map(same),
  ];
}

/** The shortest list of edits (Myers 1986); texts with too many differences are replaced as a whole. */
function edits(before: readonly string[], after: readonly string[]): DiffLine[] {
  const history = furthest(before, after);
  if (history === null)
    return [
      ...before.map((text): DiffLine => ({ kind: "removed", text, count: 1 })),
      ...after.map((text): DiffLine => ({ kind: "added", text, count: 1 })),
    ];
  const lines: DiffLine[] = [];
  let x = before.length;
  let y = after.length;
  for (let d = history.length - 1; d >= 0; d--) {
    const ends = history[d] ?? new Map<number, number>();
    const k = x - y;
    const down = d > 0 && (k === -d || (k !== d && (ends.get(k - 1) ?? -1) < (ends.get(k + 1) ?? -1)));
    const px = d === 0 ? 0 : (ends.get(down ? k + 1 : k - 1) ?? 0);
    const py = d === 0 ? 0 : px - (down ? k + 1 : k - 1);
    const stop = d === 0 ? 0 : down ? px : px + 1;
    while (x > stop) {
      x--;
      y--;
      lines.push({ kind: "same", text: before[x] ?? "", count: 1 });
    }
    if (d === 0) break;
    if (down) lines.push({ kind: "added", text: after[py] ?? "", count: 1 });
    else lines.push({ kind: "removed", text: before[px] ?? "", count: 1 });
    x = px;
    y = py;
  }
  return lines.reverse();
}

/** Return the furthest positions on each diagonal before every edit, null if there are too many edits. */
function furthest(before: readonly string[], after: readonly string[]): Map<number, number>[] | null {
  const history: Map<number, number>[] = [];
  let ends = new Map<number, number>([[1, 0]]);
  const limit = Math.min(MAX_EDITS, before.length + after.length);
  for (let d = 0; d <= limit; d++) {
    const previous = ends;
    history.push(previous);
    ends = new Map();
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (previous.get(k - 1) ?? -1) < (previous.get(k + 1) ?? -1));
      let x = down ? (previous.get(k + 1) ?? 0) : (previous.get(k - 1) ?? 0) + 1;
      while (x < before.length && x - k < after.length && before[x] === after[x - k]) x++;
      ends.set(k, x);
      if (x >= before.length && x - k >= after.length) return history;
    }
  }
  return null;
}

function shortened(lines: readonly DiffLine[]): DiffLine[] {
  const near = new Uint8Array(lines.length);
  lines.forEach((line, index) => {
    if (line.kind !== "same") near.fill(1, Math.max(0, index - CONTEXT), index + CONTEXT + 1);
  });
  const kept: DiffLine[] = [];
  let skipped: DiffLine[] = [];
  const flush = (): void => {
    if (skipped.length > 1) kept.push({ kind: "skip", text: "", count: skipped.length });
    else kept.push(...skipped);
    skipped = [];
  };
  lines.forEach((line, index) => {
    if (near[index]) {
      flush();
      kept.push(line);
    } else skipped.push(line);
  });
  flush();
  return kept;
}
