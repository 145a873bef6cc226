import type { JSX } from "preact";
import type { Excerpt, Mark } from "../protocol";
import type { Store } from "../store";
import { tokenize, type TokenKind } from "./tokenize";

interface Segment {
  readonly kind: TokenKind;
  readonly text: string;
  readonly marked: boolean;
}

interface ExcerptProps {
  readonly excerpt: Excerpt;
  readonly store: Store;
  /** Display only the lines with marks. */
  readonly compact?: boolean;
}

const MAX_COMPACT = 3;

/** Numbered lines of a function with underlined parts; a click scrolls the function to them. */
export function ExcerptView({ excerpt, store, compact = false }: ExcerptProps): JSX.Element {
  const { marks } = excerpt;
  const name = excerpt.function;
  const marked = excerpt.lines.filter((line) => marks.some((mark) => mark.line === line.number));
  const lines = compact && marked.length > 0 ? marked.slice(0, MAX_COMPACT) : excerpt.lines;
  const margin = compact ? indentOf(lines.map((line) => line.text)) : 0;
  const first = marks[0]?.line ?? lines[0]?.number ?? 1;
  return (
    <button
      type="button"
      class={`tw-excerpt${compact ? " is-compact" : ""}`}
      aria-label={`Show line ${String(first)} of ${name}: ${describe(excerpt)}`}
      title={`Show in ${name}`}
      onClick={() => store.reveal(name, marks)}
      onPointerEnter={() => store.mark(name, marks)}
      onPointerLeave={() => store.mark(name, null)}
      onFocus={() => store.mark(name, marks)}
      onBlur={() => store.mark(name, null)}
    >
      {lines.map((line, index) => (
        <span key={line.number} class="tw-excerpt-line">
          {index > 0 && (lines[index - 1]?.number ?? 0) + 1 < line.number ? <span class="tw-excerpt-gap">⋯</span> : null}
          <span class="tw-excerpt-number">{line.number}</span>
          <code>
            {segmentsOf(line.text, marks.filter((mark) => mark.line === line.number), margin).map((part, at) =>
              part.marked ? (
                <mark key={at} class={`tw-tok-${part.kind}`}>{part.text}</mark>
              ) : (
                <span key={at} class={`tw-tok-${part.kind}`}>{part.text}</span>
              ),
            )}
          </code>
        </span>
      ))}
      {compact && marked.length > MAX_COMPACT ? <span class="tw-excerpt-line tw-excerpt-gap">and {marked.length - MAX_COMPACT} more</span> : null}
    </button>
  );
}

/** Return the marked texts, which the name of the button contains. */
function describe({ lines, marks }: Excerpt): string {
  const texts = marks.map((mark) => lines.find((line) => line.number === mark.line)?.text.slice(mark.column - 1, mark.end - 1));
  return [...new Set(texts)].join(", ");
}

function indentOf(lines: readonly string[]): number {
  return lines.reduce((least, line) => Math.min(least, line.length - line.trimStart().length), Infinity);
}

/** Split a line into tokens, and the tokens at the ends of the marks, from column `from` on. */
export function segmentsOf(text: string, marks: readonly Mark[], from = 0): Segment[] {
  const segments: Segment[] = [];
  let at = 0;
  for (const token of tokenize(text)) {
    const end = at + token.text.length;
    const cuts = marks.flatMap((mark) => [mark.column - 1, mark.end - 1]).filter((cut) => cut > at && cut < end);
    const points = [at, ...[...new Set(cuts)].sort((a, b) => a - b), end];
    for (const [index, start] of points.slice(0, -1).entries()) {
      const stop = points[index + 1] ?? end;
      const marked = marks.some((mark) => mark.column - 1 <= start && start < mark.end - 1);
      const part = text.slice(Math.max(start, from), stop);
      if (part !== "") segments.push({ kind: token.kind, text: visible(part), marked });
    }
    at = end;
  }
  return segments;
}

const INVISIBLE = /[^\P{C}\t\n]|[\u2028\u2029]/gu;

/** Return a text with escapes in place of control and direction-changing characters. */
export function visible(text: string): string {
  return text.replace(INVISIBLE, (letter) => `\\u${(letter.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`);
}
