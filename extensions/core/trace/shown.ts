import { StateEffect, StateField, type EditorState } from "@codemirror/state";
import type { TraceRow } from "./rows";

/** The rows that the text of the trace displays, one per line. */
export interface Shown {
  readonly rows: readonly TraceRow[];
  /** The index of the step that does not apply, -1 if there is none, and why. */
  readonly failed: number;
  readonly reason: string;
  /** The number of the row that is edited, -1 if none is. */
  readonly edited: number;
}

const NOTHING: Shown = { rows: [], failed: -1, reason: "", edited: -1 };

export const show = StateEffect.define<Shown>();

export const shownField = StateField.define<Shown>({
  create: () => NOTHING,
  update: (value, transaction) => transaction.effects.reduce((found, effect) => (effect.is(show) ? effect.value : found), value),
});

const INDENT = "    ";

/** Return the text of rows as Python; the steps of a composite step are indented. */
export function textOf(rows: readonly TraceRow[]): string {
  return rows.map((row) => indentOf(row) + textOfRow(row)).join("\n");
}

export function textOfRow({ line, group }: TraceRow): string {
  return (line ?? group)?.text ?? "";
}

export function indentOf({ level }: TraceRow): string {
  return INDENT.repeat(level - 1);
}

/** Return the number of the row at the cursor. */
export function currentRow(state: EditorState): number {
  return state.doc.lineAt(state.selection.main.head).number - 1;
}

/** Return the range of the text of a row in a document, without its indentation. */
export function rangeOf(doc: EditorState["doc"], rows: readonly TraceRow[], index: number): { readonly from: number; readonly to: number } {
  const line = doc.line(index + 1);
  const row = rows[index];
  return { from: line.from + (row ? indentOf(row).length : 0), to: line.to };
}
