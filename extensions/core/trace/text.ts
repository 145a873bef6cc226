import { standardKeymap } from "@codemirror/commands";
import { search, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, keymap, type KeyBinding } from "@codemirror/view";
import { changeOf } from "../code/change";
import { highlighting } from "../code/highlight";
import { searchPanel } from "../code/search_panel";
import { completion } from "./completion_list";
import { complete, type Completion } from "./completions";
import { editing, isEditing, replace, startEdit, type OnChange } from "./editing";
import { rowMarks, type RowActions } from "./marks";
import type { Names } from "./names";
import { treeKey, type TraceRow } from "./rows";
import { currentRow, rangeOf, shownField, textOf, type Shown } from "./shown";

/** The actions of the user on the rows. */
export interface TraceActions extends RowActions {
  readonly onChange: OnChange;
  /** Return the names that a step may contain. */
  readonly names: () => Names;
  /** Show the menu of the trace at the pointer. */
  readonly onMenu: (view: EditorView, event: MouseEvent) => void;
}

const actions = new WeakMap<EditorView, TraceActions>();

/** The editor of the trace: its rows are read like a tree with keys, and one step at a time is edited. */
export class TraceText {
  readonly view: EditorView;

  constructor(parent: HTMLElement) {
    const names = (): Names | undefined => actions.get(this.view)?.names();
    this.view = new EditorView({ parent, state: EditorState.create({ extensions: [completion((state) => completionAt(state, names())), extensions()] }) });
  }

  set actions(next: TraceActions) {
    actions.set(this.view, next);
  }

  /** Display rows. A step that is edited stays so, unless the text of the trace has changed. */
  update(next: Omit<Shown, "edited">): void {
    const { rows, edited } = this.view.state.field(shownField);
    const text = textOf(next.rows);
    const keeps = edited >= 0 && textOf(rows) === text;
    replace(this.view, keeps ? null : changeOf(this.view.state.doc.toString(), text), { ...next, edited: keeps ? edited : -1 });
  }

  /** Scroll to the last row, without scrolling the notebook. */
  scrollToEnd(): void {
    this.view.requestMeasure({
      read: ({ scrollDOM }) => scrollDOM.scrollHeight,
      write: (height, { scrollDOM }) => {
        scrollDOM.scrollTop = height;
      },
    });
  }

  destroy(): void {
    this.view.destroy();
  }
}

const SEARCH_KEYS = new Set(["Mod-f", "F3", "Mod-g", "Escape"]);

function extensions(): Extension {
  const actionsOf = (view: EditorView): TraceActions | undefined => actions.get(view);
  return [
    shownField,
    editing((view) => actionsOf(view)?.onChange),
    keymap.of([...TREE_KEYS, ...searchKeymap.filter(({ key }) => SEARCH_KEYS.has(key ?? "")), ...standardKeymap]),
    search({ top: true, createPanel: searchPanel }),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ class: "tw-trace-text", tabindex: "0", spellcheck: "false" }),
    EditorView.domEventHandlers({ dblclick: change, contextmenu: (event, view) => actionsOf(view)?.onMenu(view, event) }),
    highlighting(() => "script"),
    rowMarks(actionsOf),
  ];
}

/** Return the completions at the cursor of the step that is edited. */
function completionAt(state: EditorState, names: Names | undefined): Completion | null {
  const { rows, edited } = state.field(shownField);
  const line = rows[edited]?.line;
  if (!line || !names) return null;
  const { from, to } = rangeOf(state.doc, rows, edited);
  const found = complete(state.sliceDoc(from, to), state.selection.main.head - from, line.index, names);
  return found && { ...found, from: found.from + from, to: found.to + from };
}

/** The keys of a tree, while no step is edited. */
const TREE_KEYS: readonly KeyBinding[] = ["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Home", "End", "Enter", "Space"].map((key) => ({
  key,
  run: (view: EditorView) => !isEditing(view) && press(view, key === "Space" ? " " : key),
}));

function press(view: EditorView, key: string): boolean {
  const { rows } = view.state.field(shownField);
  const at = currentRow(view.state);
  const row = rows[at];
  if (!row) return false;
  if (key === "Enter" && row.line) {
    startEdit(view, at);
    return true;
  }
  const result = treeKey(key, at, rows);
  if (typeof result === "number") view.dispatch({ selection: { anchor: rangeOf(view.state.doc, rows, result).from }, scrollIntoView: true });
  else if (result !== null) actions.get(view)?.onFold(row);
  return result !== null;
}

/** Edit the step, or fold the composite step, that is clicked twice. */
function change(event: MouseEvent, view: EditorView): boolean {
  const { rows, edited } = view.state.field(shownField);
  if (!(event.target instanceof Node) || event.target === view.contentDOM) return false;
  const index = view.state.doc.lineAt(view.posAtDOM(event.target)).number - 1;
  const row: TraceRow | undefined = rows[index];
  if (!row || index === edited) return false;
  if (row.line) startEdit(view, index);
  else actions.get(view)?.onFold(row);
  return true;
}
