import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { definitionOf, originsOf, spanAt, type PaneModel, type Scope, type Span } from "../pane";
import type { Marked } from "../store";
import { Line } from "./lines";
import { LINE_HEIGHT, LoopGutter, loopGutterWidth } from "./loop_gutter";
import { Occurrences, Underlines } from "./marks";

interface CodeProps {
  readonly pane: PaneModel;
  readonly selected: number | null;
  readonly linked: ReadonlySet<string>;
  readonly marked: Marked | null;
  /** The last positions by function, which outlive the view. */
  readonly positions: Positions;
  readonly onSelect: (span: Span) => void;
  readonly onHover: (span: Span | null) => void;
}

/** Scroll positions in pixels, with the selection that was last scrolled to, by function. */
export type Positions = Map<string, { readonly top: number; readonly shown: string }>;

/** The width of the line numbers, without and with the loop tree beside them. */
const NUMBERS = [48, 34] as const;
const OVERSCAN = 12;
const PADDING = 8;

/** The text of a function with its loop tree in the gutter; only visible lines are rendered. */
export function CodeView(props: CodeProps): JSX.Element {
  const { pane } = props;
  const box = useRef<HTMLDivElement>(null);
  const [hovered, setHovered] = useState<Span | null>(null);
  const range = useVisibleLines(box, pane.lines.length);
  const bands = useMemo(() => bandsOf(pane, props.linked), [pane, props.linked]);
  const labels = useMemo(() => labelsOf(pane), [pane]);
  const reveal = useReveal(box, pane, props.selected, props.positions);
  useEffect(reveal, [reveal]);
  useRevealedMarks(box, props.marked);

  const locate = (event: MouseEvent): Span | null => {
    const code = (event.currentTarget as HTMLElement).querySelector<HTMLElement>(".tw-code-text");
    if (!code) return null;
    const edge = code.getBoundingClientRect();
    const line = Math.floor((event.clientY - edge.top) / LINE_HEIGHT);
    return spanAt(pane, line, Math.floor((event.clientX - edge.left) / characterWidth(code)));
  };
  const point = (span: Span | null): void => {
    if (span?.uid === hovered?.uid && span?.line === hovered?.line) return;
    setHovered(span);
    props.onHover(span);
  };
  const pick = (event: MouseEvent): void => {
    if ((event.target as HTMLElement).closest(".tw-marker")) return;
    const span = locate(event);
    if (window.getSelection()?.isCollapsed !== false && span) props.onSelect(span);
  };
  const lines = [];
  for (let index = range.first; index <= range.last; index++) {
    const text = pane.lines[index];
    if (text === undefined) continue;
    const band = lineBand(index, pane, props.selected, hovered, bands.has(index));
    lines.push(
      <Line key={index} text={text} language="script" top={index * LINE_HEIGHT} band={band} label={labels.get(index) ?? ""} />,
    );
  }
  const gutter = loopGutterWidth(pane) + NUMBERS[pane.scopes.length > 0 ? 1 : 0];
  const width = pane.lines.reduce((longest, line) => Math.max(longest, line.length), 0);
  return (
    <div class="tw-code" ref={box} tabIndex={0} role="region" aria-label={`Code of ${pane.name}`}>
      <div
        class="tw-code-page"
        style={{ height: `${pane.lines.length * LINE_HEIGHT + PADDING * 2}px`, "--tw-gutter": `${gutter}px` }}
        onClick={pick}
        onPointerMove={(event) => point(locate(event))}
        onPointerLeave={() => point(null)}
      >
        <div class="tw-gutter" style={{ width: `${gutter}px` }}>
          <Numbers first={range.first} last={Math.min(range.last, pane.lines.length - 1)} />
          <LoopGutter
            pane={pane}
            first={range.first}
            last={range.last}
            selected={props.selected}
            hovered={hovered?.uid ?? null}
            onSelect={(scope: Scope) => props.onSelect(scope.span)}
            onHover={(scope: Scope | null) => point(scope?.span ?? null)}
          />
        </div>
        <div class="tw-code-text" style={{ minWidth: `${width + 18}ch` }}>
          <Occurrences pane={pane} uid={props.selected} first={range.first} last={range.last} />
          {lines}
          <Underlines marked={props.marked} first={range.first} last={range.last} />
        </div>
      </div>
    </div>
  );
}

function Numbers({ first, last }: { first: number; last: number }): JSX.Element {
  const numbers = [];
  for (let line = first; line <= last; line++) numbers.push(line + 1);
  return (
    <div class="tw-numbers" style={{ top: `${first * LINE_HEIGHT + PADDING}px` }} aria-hidden="true">
      {numbers.join("\n")}
    </div>
  );
}

/** Scroll to the first mark each time it is to be revealed. */
function useRevealedMarks(box: { readonly current: HTMLElement | null }, marked: Marked | null): void {
  const line = marked?.marks[0]?.line;
  const reveal = marked?.reveal ?? 0;
  useEffect(() => {
    const element = box.current;
    if (element && line !== undefined && reveal > 0) scrollToLine(element, line - 1);
  }, [reveal]);
}

/** Scroll a line into view, unless it is visible. */
function scrollToLine(element: HTMLElement, line: number): void {
  const top = line * LINE_HEIGHT;
  const hidden = top < element.scrollTop || top > element.scrollTop + element.clientHeight - 40;
  if (hidden) element.scrollTop = Math.max(0, top - element.clientHeight / 3);
}

interface Range {
  readonly first: number;
  readonly last: number;
}

function useVisibleLines(box: { readonly current: HTMLElement | null }, count: number): Range {
  const [range, setRange] = useState<Range>({ first: 0, last: 60 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const update = (): void => {
      const first = Math.max(0, Math.floor(element.scrollTop / LINE_HEIGHT) - OVERSCAN);
      const shown = Math.ceil(element.clientHeight / LINE_HEIGHT) + 2 * OVERSCAN;
      setRange((old) => (old.first === first && old.last === first + shown ? old : { first, last: first + shown }));
    };
    update();
    element.addEventListener("scroll", update, { passive: true });
    const observer = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(update);
    observer?.observe(element);
    return () => {
      element.removeEventListener("scroll", update);
      observer?.disconnect();
    };
  }, [box, count]);
  return range;
}

/** Scroll the selection into view once after it changes; a view that is mounted again keeps its position. */
function useReveal(
  box: { readonly current: HTMLElement | null },
  pane: PaneModel,
  selected: number | null,
  positions: Positions,
): () => void {
  const shown = useRef(positions.get(pane.name)?.shown ?? "");
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    element.scrollTop = positions.get(pane.name)?.top ?? 0;
    const keep = (): void => void positions.set(pane.name, { top: element.scrollTop, shown: shown.current });
    element.addEventListener("scroll", keep, { passive: true });
    return () => element.removeEventListener("scroll", keep);
  }, [box, pane.name, positions]);
  return () => {
    const key = `${pane.name}:${String(selected)}`;
    const header = selected === null ? null : definitionOf(pane, selected);
    const element = box.current;
    if (!element || !header || shown.current === key) return;
    shown.current = key;
    positions.set(pane.name, { top: element.scrollTop, shown: key });
    scrollToLine(element, header.line);
  };
}

function lineBand(
  line: number,
  pane: PaneModel,
  selected: number | null,
  hovered: Span | null,
  linked: boolean,
): string {
  const classes = linked ? ["is-linked"] : [];
  const header = selected === null ? null : definitionOf(pane, selected);
  if (header?.line === line) classes.push("is-selected");
  else if (header && inside(header, line)) classes.push("is-inside");
  if (hovered?.line === line) classes.push("is-hovered");
  return classes.join(" ");
}

function inside(span: Span, line: number): boolean {
  return (span.kind === "loop" || span.kind === "block") && span.line < line && line <= span.endLine;
}

function bandsOf(pane: PaneModel, linked: ReadonlySet<string>): ReadonlySet<number> {
  const lines = new Set<number>();
  if (linked.size === 0) return lines;
  for (const span of pane.spans) {
    if (span.kind === "buffer" || !span.defined) continue;
    const origins = originsOf(pane, span.uid);
    if (![...origins].some((origin) => linked.has(origin))) continue;
    for (let line = span.line; line <= span.endLine; line++) lines.add(line);
  }
  return lines;
}

function labelsOf(pane: PaneModel): ReadonlyMap<number, string> {
  const labels = new Map<number, string>();
  for (const { span, header } of pane.scopes)
    if (header && header.label !== "") labels.set(span.line, header.label);
  return labels;
}

const widths = new WeakMap<HTMLElement, { font: string; width: number }>();

/** Return the width of a character of a monospaced element, cached per font. */
function characterWidth(element: HTMLElement): number {
  const { font } = getComputedStyle(element);
  const cached = widths.get(element);
  if (cached?.font === font) return cached.width;
  const context = document.createElement("canvas").getContext("2d");
  if (!context) return 8;
  context.font = font;
  const width = context.measureText("0".repeat(64)).width / 64;
  widths.set(element, { font, width });
  return width;
}
