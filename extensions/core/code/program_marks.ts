import { StateEffect, StateField, type Extension, type Range, type Text } from "@codemirror/state";
import { Decoration, ViewPlugin, WidgetType, type DecorationSet, type EditorView, type ViewUpdate } from "@codemirror/view";
import { definitionOf, originsOf, type PaneModel, type Span } from "../pane";
import type { Marked } from "../store";
import { eachVisibleLine } from "./highlight";

/** The function and marks that a text displays. */
export interface Shown {
  readonly pane: PaneModel;
  readonly selected: number | null;
  readonly hovered: Span | null;
  readonly linked: ReadonlySet<string>;
  readonly marked: Marked | null;
}

export const show = StateEffect.define<Shown>();

export const shownField = StateField.define<Shown | null>({
  create: () => null,
  update: (value, transaction) => transaction.effects.reduce((found, effect) => (effect.is(show) ? effect.value : found), value),
});

/** The parts of a pane by kind of mark, computed once per pane and selection. */
interface Parts {
  readonly shown: Shown;
  readonly definition: Span | null;
  readonly uses: ReadonlyMap<number, readonly Span[]>;
  readonly linked: ReadonlySet<number>;
}

const occurrence = Decoration.mark({ class: "tw-occurrence" });
const underline = Decoration.mark({ class: "tw-underline" });
const lineMarks = new Map<string, Decoration>();

/** Mark the selection and its uses, the linked and the hovered lines, parts at fault, and notes. */
export function programMarks(): Extension {
  return [shownField, ViewPlugin.define((view) => new Marks(view), { decorations: (marks) => marks.decorations })];
}

class Marks {
  decorations: DecorationSet = Decoration.none;
  private parts: Parts | null = null;

  constructor(view: EditorView) {
    this.refresh(view);
  }

  update(update: ViewUpdate): void {
    const changed = update.startState.field(shownField) !== update.state.field(shownField);
    if (changed || update.docChanged || update.viewportChanged) this.refresh(update.view);
  }

  private refresh(view: EditorView): void {
    const shown = view.state.field(shownField);
    if (!shown) return;
    if (this.parts === null || !sameParts(this.parts.shown, shown)) this.parts = partsOf(shown);
    this.decorations = decorate(view, shown, this.parts);
  }
}

function sameParts(one: Shown, other: Shown): boolean {
  return one.pane === other.pane && one.selected === other.selected && one.linked === other.linked;
}

function partsOf(shown: Shown): Parts {
  const { pane, selected, linked } = shown;
  const uses = new Map<number, Span[]>();
  if (selected !== null)
    for (const span of pane.spans)
      if (span.uid === selected && !span.defined) uses.set(span.line, [...(uses.get(span.line) ?? []), span]);
  const definition = selected === null ? null : definitionOf(pane, selected);
  return { shown, definition, uses, linked: linkedLines(pane, linked) };
}

function linkedLines(pane: PaneModel, linked: ReadonlySet<string>): ReadonlySet<number> {
  const lines = new Set<number>();
  if (linked.size === 0) return lines;
  for (const span of pane.spans) {
    if (span.kind === "buffer" || !span.defined) continue;
    if (![...originsOf(pane, span.uid)].some((origin) => linked.has(origin))) continue;
    for (let line = span.line; line <= span.endLine; line++) lines.add(line);
  }
  return lines;
}

function decorate(view: EditorView, shown: Shown, parts: Parts): DecorationSet {
  const found: Range<Decoration>[] = [];
  const { doc } = view.state;
  eachVisibleLine(view, (from, to, number) => {
    const line = number - 1;
    const start = doc.line(number).from;
    const classes = lineClasses(line, shown, parts);
    if (classes !== "" && from === start) found.push(lineMark(classes).range(start));
    for (const span of parts.uses.get(line) ?? []) put(found, occurrence, doc, start + span.column, start + span.endColumn);
    for (const mark of shown.marked?.marks ?? [])
      if (mark.line === number) put(found, underline, doc, start + mark.column - 1, Math.min(start + mark.end - 1, doc.line(number).to));
    const note = noteOf(shown.pane, line);
    if (note !== "" && to === doc.line(number).to) found.push(Decoration.widget({ widget: new Note(note), side: 1 }).range(to));
  });
  return Decoration.set(found, true);
}

function put(found: Range<Decoration>[], mark: Decoration, doc: Text, from: number, to: number): void {
  if (from < to && to <= doc.length) found.push(mark.range(from, to));
}

function lineClasses(line: number, { hovered }: Shown, { definition, linked }: Parts): string {
  const classes = linked.has(line) ? ["is-linked"] : [];
  if (definition?.line === line) classes.push("is-selected");
  else if (definition && inside(definition, line)) classes.push("is-inside");
  if (hovered?.line === line) classes.push("is-hovered");
  return classes.join(" ");
}

function lineMark(classes: string): Decoration {
  const known = lineMarks.get(classes) ?? Decoration.line({ class: classes });
  lineMarks.set(classes, known);
  return known;
}

function inside(span: Span, line: number): boolean {
  return (span.kind === "loop" || span.kind === "block") && span.line < line && line <= span.endLine;
}

const notes = new WeakMap<PaneModel, ReadonlyMap<number, string>>();

/** Return the note of a line, such as the extent of its loop at the sample sizes. */
export function noteOf(pane: PaneModel, line: number): string {
  let known = notes.get(pane);
  if (!known) {
    const labeled = pane.scopes.filter(({ header }) => header && header.label !== "");
    known = new Map(labeled.map(({ span, header }) => [span.line, header?.label ?? ""]));
    notes.set(pane, known);
  }
  return known.get(line) ?? "";
}

/** A note after a line, which stays visible when the text scrolls. */
class Note extends WidgetType {
  constructor(private readonly text: string) {
    super();
  }

  override eq(other: Note): boolean {
    return other.text === this.text;
  }

  override toDOM(): HTMLElement {
    const note = document.createElement("span");
    note.className = "tw-line-label";
    note.textContent = this.text;
    return note;
  }
}
