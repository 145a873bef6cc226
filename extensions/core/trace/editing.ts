import { history, redo, undo } from "@codemirror/commands";
import { Compartment, EditorState, Transaction, type Extension, type TransactionSpec } from "@codemirror/state";
import { EditorView, keymap, type Command } from "@codemirror/view";
import type { Change } from "../code/change";
import { rangeOf, show, shownField, textOfRow, type Shown } from "./shown";

/** The changes of the step that is edited; those of an earlier edit cannot be undone. */
const changes = new Compartment();

/** Called with the index of a step and its new text. */
export type OnChange = (index: number, text: string) => void;

/** Make only the row that is edited editable: Enter accepts the new text, Escape restores the old one. */
export function editing(onChange: (view: EditorView) => OnChange | undefined): Extension {
  const accept: Command = (view) => {
    const { rows, edited } = view.state.field(shownField);
    const line = rows[edited]?.line;
    if (!line) return false;
    const { from, to } = rangeOf(view.state.doc, rows, edited);
    const text = view.state.sliceDoc(from, to);
    endEdit(view);
    if (text !== line.text) onChange(view)?.(line.index, text);
    return true;
  };
  return [
    changes.of([]),
    keymap.of([
      { key: "Enter", run: accept },
      { key: "Escape", run: endEdit },
      { key: "ArrowUp", run: isEditing },
      { key: "ArrowDown", run: isEditing },
      { key: "Mod-z", run: whileEditing(undo) },
      { key: "Mod-Shift-z", run: whileEditing(redo) },
      { key: "Mod-y", run: whileEditing(redo) },
    ]),
    EditorState.readOnly.from(shownField, ({ edited }) => edited < 0),
    EditorState.transactionFilter.of(withinRow),
    EditorView.clipboardInputFilter.of((text) => text.replace(/\n$/, "").replace(/\s*\n\s*/g, " ")),
    EditorView.domEventHandlers({
      beforeinput: (event, view) => {
        if (!isEditing(view)) event.preventDefault();
      },
      drop: () => true,
    }),
    EditorView.contentAttributes.compute([shownField], (state) =>
      state.field(shownField).edited < 0
        ? { "aria-label": "Trace", "aria-readonly": "true", inputmode: "none" }
        : { "aria-label": "Step as Python", "aria-readonly": "false", inputmode: "text" },
    ),
  ];
}

export function isEditing(view: EditorView): boolean {
  return view.state.field(shownField).edited >= 0;
}

/** Return a command that keeps a key from the page while a step is edited, even if it has no effect. */
function whileEditing(command: Command): Command {
  return (view) => {
    const edits = isEditing(view);
    if (edits) command(view);
    return edits;
  };
}

/** Make a step editable, with the cursor at its end. */
export function startEdit(view: EditorView, index: number): void {
  endEdit(view);
  const shown = view.state.field(shownField);
  const { to } = rangeOf(view.state.doc, shown.rows, index);
  view.dispatch({ effects: [show.of({ ...shown, edited: index }), changes.reconfigure(history())], selection: { anchor: to } });
}

/** Restore the text of the row that is edited, and return whether one was. */
function endEdit(view: EditorView): boolean {
  const shown = view.state.field(shownField);
  const row = shown.rows[shown.edited];
  if (!row) return false;
  const { from, to } = rangeOf(view.state.doc, shown.rows, shown.edited);
  replace(view, { from, to, insert: textOfRow(row) }, { ...shown, edited: -1 }, from);
  return true;
}

/** Replace text without the filter for the user's input; undo does not restore it. */
export function replace(view: EditorView, change: Change | null, shown: Shown, cursor?: number): void {
  const ends = isEditing(view) && shown.edited < 0;
  view.dispatch({
    ...(change ? { changes: change } : {}),
    ...(cursor === undefined ? {} : { selection: { anchor: cursor } }),
    effects: [show.of(shown), ...(ends ? [changes.reconfigure([])] : [])],
    filter: false,
    annotations: Transaction.addToHistory.of(false),
  });
}

/** Reject changes of other rows, and keep the cursor in the row that is edited. */
function withinRow(transaction: Transaction): TransactionSpec | readonly TransactionSpec[] {
  const { rows, edited } = transaction.startState.field(shownField);
  if (edited < 0) return transaction.docChanged ? [] : transaction;
  const before = rangeOf(transaction.startState.doc, rows, edited);
  let inside = transaction.newDoc.lines === transaction.startState.doc.lines;
  transaction.changes.iterChangedRanges((from, to) => {
    inside &&= from >= before.from && to <= before.to;
  });
  if (!inside) return [];
  const { from, to } = rangeOf(transaction.newDoc, rows, edited);
  const { anchor, head } = transaction.newSelection.main;
  const within = (position: number): number => Math.max(from, Math.min(position, to));
  if (within(anchor) === anchor && within(head) === head) return transaction;
  return [transaction, { selection: { anchor: within(anchor), head: within(head) }, sequential: true }];
}
