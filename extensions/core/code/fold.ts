import { codeFolding, foldAll, foldEffect, foldGutter, foldService, foldedRanges, unfoldEffect } from "@codemirror/language";
import type { EditorState, Extension } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";
import { headersOf, structureIn } from "./structure";

/** Fold the bodies of functions, loops and blocks. */
export function folding(): Extension {
  return [
    foldService.of(bodyAt),
    codeFolding({ preparePlaceholder: countLines, placeholderDOM: placeholder }),
    foldGutter({ markerDOM: chevron }),
  ];
}

/** The number of characters by which the header of a folded body is recognized. */
const MAX_HEADER = 120;

interface Body {
  readonly from: number;
  readonly to: number;
}

/** Fold the body of the header at the cursor, else the innermost one around it that is not folded. */
export function foldHere(view: EditorView): boolean {
  const { state } = view;
  const { head } = state.selection.main;
  const { number } = state.doc.lineAt(head);
  const structure = structureIn(state);
  const lines = structure ? [...headersOf(structure, number), number].reverse() : [];
  const bodies = lines.map((line) => bodyAt(state, state.doc.line(line).from));
  const body = bodies.find((one) => one !== null && !isFolded(state, one));
  if (!body) return false;
  leave(view, body);
  view.dispatch({ effects: foldEffect.of(body) });
  return true;
}

/** Fold all bodies. */
export function foldEverything(view: EditorView): boolean {
  const { state } = view;
  const structure = structureIn(state);
  const [outermost] = structure ? headersOf(structure, state.doc.lineAt(state.selection.main.head).number) : [];
  const body = outermost === undefined ? null : bodyAt(state, state.doc.line(outermost).from);
  if (body) leave(view, body);
  return foldAll(view);
}

/** Move the cursor out of a body, because a body with the cursor would be unfolded. */
function leave(view: EditorView, body: Body): void {
  const { from, to } = view.state.selection.main;
  if (to > body.from && from <= body.to) view.dispatch({ selection: { anchor: Math.min(from, body.from) } });
}

function isFolded(state: EditorState, body: Body): boolean {
  let found = false;
  foldedRanges(state).between(body.from, body.to, (from, to) => {
    found ||= from <= body.from && to >= body.to;
  });
  return found;
}

/** Return the body of the header in a line. */
function bodyAt(state: EditorState, start: number): Body | null {
  const line = state.doc.lineAt(start);
  const end = structureIn(state)?.ends[line.number] ?? 0;
  return end > line.number ? { from: line.to, to: state.doc.line(end).to } : null;
}

function countLines(state: EditorState, { from, to }: Body): number {
  return state.doc.lineAt(to).number - state.doc.lineAt(from).number;
}

function placeholder(_view: EditorView, onClick: (event: Event) => void, lines: unknown): HTMLElement {
  const box = document.createElement("span");
  box.className = "tw-folded";
  box.textContent = `⋯ ${String(lines)} ${lines === 1 ? "line" : "lines"}`;
  box.title = "Unfold";
  box.onclick = (event): void => {
    event.stopPropagation();
    onClick(event);
  };
  return box;
}

function chevron(open: boolean): HTMLElement {
  const mark = document.createElement("span");
  mark.className = open ? "tw-fold" : "tw-fold is-folded";
  mark.title = open ? "Fold (-)" : "Unfold (+)";
  return mark;
}

/** Unfold the bodies that hide a position. */
export function unfoldAt(view: EditorView, position: number): void {
  const hidden: Body[] = [];
  foldedRanges(view.state).between(position, position, (from, to) => {
    if (from < position) hidden.push({ from, to });
  });
  if (hidden.length > 0) view.dispatch({ effects: hidden.map((range) => unfoldEffect.of(range)) });
}

/** Return the headers of the folded bodies as line number and text. */
export function foldedHeaders(state: EditorState): [number, string][] {
  const found: [number, string][] = [];
  foldedRanges(state).between(0, state.doc.length, (from) => {
    const { number, text } = state.doc.lineAt(from);
    found.push([number, text.slice(0, MAX_HEADER)]);
  });
  return found;
}

/** Fold the bodies of headers that still have the same text. */
export function foldHeaders(view: EditorView, headers: readonly (readonly [number, string])[]): void {
  const { doc } = view.state;
  const same = headers.filter(([line, text]) => line >= 1 && line <= doc.lines && doc.line(line).text.slice(0, MAX_HEADER) === text);
  const effects = same.flatMap(([line]) => {
    const body = bodyAt(view.state, doc.line(line).from);
    return body ? [foldEffect.of(body)] : [];
  });
  if (effects.length > 0) view.dispatch({ effects });
}
