import { SPAN_FIELDS, SPAN_KINDS, type Header, type Pane } from "./protocol";

export type SpanKind = (typeof SPAN_KINDS)[number];

/** A range of text that belongs to one part of the program; lines and columns start at 0. */
export interface Span {
  readonly kind: SpanKind;
  readonly uid: number;
  readonly defined: boolean;
  readonly line: number;
  readonly column: number;
  readonly endLine: number;
  readonly endColumn: number;
}

/** A loop or block in the gutter, from its header to the last line of its body. */
export interface Scope {
  readonly span: Span;
  readonly depth: number;
  readonly parent: Scope | null;
  readonly header: Header | undefined;
}

/** A decoded pane with its source: lines, spans by line, and the tree of loops and blocks. */
export interface PaneModel {
  readonly pane: Pane;
  readonly buffer: DataView;
  readonly hash: string;
  readonly name: string;
  readonly level: Pane["level"];
  readonly lines: readonly string[];
  readonly spans: readonly Span[];
  readonly byLine: ReadonlyMap<number, readonly Span[]>;
  readonly scopes: readonly Scope[];
  readonly origins: ReadonlyMap<number, ReadonlySet<string>>;
}

const NO_ORIGINS: ReadonlySet<string> = new Set();

/** Decode a pane and the binary buffer of its spans. */
export function readPane(pane: Pane, buffer: DataView): PaneModel {
  const spans = readSpans(buffer);
  const headers = new Map(pane.headers.map((header) => [header.uid, header]));
  return {
    pane,
    buffer,
    hash: pane.hash,
    name: pane.function,
    level: pane.level,
    lines: pane.text.replace(/\n$/, "").split("\n"),
    spans,
    byLine: indexByLine(spans),
    scopes: nest(spans, headers),
    origins: readOrigins(pane),
  };
}

/** Return the operations of the source model that the part with this uid belongs to. */
export function originsOf(pane: PaneModel, uid: number): ReadonlySet<string> {
  return pane.origins.get(uid) ?? NO_ORIGINS;
}

/** Return the smallest span at a position, else the innermost enclosing scope. */
export function spanAt(pane: PaneModel, line: number, column: number): Span | null {
  const here = pane.byLine.get(line) ?? [];
  const exact = here.filter((span) => contains(span, line, column));
  const byStart = here.filter((span) => span.line === line && span.defined && span.kind !== "buffer");
  return smallest(exact) ?? smallest(byStart) ?? enclosing(pane, line)?.span ?? null;
}

/** Return the innermost loop or block that encloses a line. */
export function enclosing(pane: PaneModel, line: number): Scope | null {
  let best: Scope | null = null;
  for (const scope of pane.scopes)
    if (scope.span.line <= line && line <= scope.span.endLine) best = scope;
  return best;
}

/** Return the span where a part is defined. */
export function definitionOf(pane: PaneModel, uid: number): Span | null {
  return pane.spans.find((span) => span.uid === uid && span.defined) ?? null;
}

function readSpans(buffer: DataView): Span[] {
  const spans: Span[] = [];
  const step = SPAN_FIELDS * 4;
  for (let at = 0; at + step <= buffer.byteLength; at += step) {
    const number = (index: number): number => buffer.getInt32(at + index * 4, true);
    const kind = SPAN_KINDS[number(0)];
    if (kind === undefined) throw new Error(`unknown span kind ${number(0)}`);
    spans.push({
      kind,
      uid: number(1),
      defined: number(2) === 1,
      line: number(3),
      column: number(4),
      endLine: number(5),
      endColumn: number(6),
    });
  }
  return spans;
}

function indexByLine(spans: readonly Span[]): Map<number, Span[]> {
  const index = new Map<number, Span[]>();
  const put = (line: number, span: Span): void => {
    const list = index.get(line);
    if (list) list.push(span);
    else index.set(line, [span]);
  };
  for (const span of spans) {
    put(span.line, span);
    if (span.kind !== "loop" && span.kind !== "block")
      for (let line = span.line + 1; line <= span.endLine; line++) put(line, span);
  }
  return index;
}

function nest(spans: readonly Span[], headers: ReadonlyMap<number, Header>): Scope[] {
  const open: Scope[] = [];
  const scopes: Scope[] = [];
  const trees = spans
    .filter((span) => span.defined && (span.kind === "loop" || span.kind === "block"))
    .sort((a, b) => a.line - b.line || b.endLine - a.endLine || a.column - b.column);
  for (const span of trees) {
    while (open.length > 0 && (open.at(-1)?.span.endLine ?? -1) < span.line) open.pop();
    const scope = { span, depth: open.length, parent: open.at(-1) ?? null, header: headers.get(span.uid) };
    scopes.push(scope);
    open.push(scope);
  }
  return scopes;
}

function readOrigins(pane: Pane): Map<number, ReadonlySet<string>> {
  const found = new Map<number, ReadonlySet<string>>();
  for (const [uid, positions] of Object.entries(pane.origins)) {
    const names = positions.map((position) => pane.origin_names[position] ?? "");
    found.set(Number(uid), new Set(names.filter((name) => name !== "")));
  }
  return found;
}

function contains(span: Span, line: number, column: number): boolean {
  const after = line > span.line || column >= span.column;
  const before = line < span.endLine || column < span.endColumn;
  return after && before;
}

function smallest(spans: readonly Span[]): Span | null {
  const size = (span: Span): number =>
    (span.endLine - span.line) * 10_000 + (span.endColumn - span.column);
  return spans.reduce<Span | null>(
    (best, span) => (best === null || size(span) <= size(best) ? span : best),
    null,
  );
}
