import { EditorState, type Extension, type StateEffect } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { enclosing, spanAt, type PaneModel, type Span } from "../pane";
import { changeOf } from "./change";
import { keyText } from "../commands/keys";
import { textKeys, type TextCommand } from "../commands/text";
import type { TextPosition } from "../view_state";
import { contextMenu, showMenu, type Entry } from "./context_menu";
import { connect, reading } from "./editor";
import { highlighting } from "./highlight";
import { noteOf, programMarks, show, shownField, type Shown } from "./program_marks";
import { onMoved, positionOf, restorePosition } from "./position";
import { scrollToLine } from "./scroll";
import { stickyHeaders } from "./sticky";
import type { TextTools } from "./tools";
import { LoopTree, loopTree } from "./tree";

/** The actions of the text of a function. */
export interface Handlers {
  readonly onSelect: (span: Span) => void;
  readonly onHover: (span: Span | null) => void;
}

/** The scroll position, cursor, folds and search of a text that was shown before. */
export interface Position {
  readonly scroll: StateEffect<unknown>;
  /** The selection that was last scrolled to. */
  readonly shown: string;
  readonly state: EditorState;
}

/** The last positions by function, which outlive the editor. */
export type Positions = Map<string, Position>;

/** The last position of the text as data, which outlives the pane and the page. */
export interface Kept {
  readonly read: () => TextPosition | undefined;
  readonly write: (position: TextPosition) => void;
}

/** The command that selects the part of the program at the cursor. */
export const SELECT: TextCommand = {
  id: "tilewright:select",
  label: "Select the part at the cursor",
  keys: ["Enter", "Space"],
  run: selectAtCursor,
};

/** The function and marks that a text displays, except the part under the pointer. */
export type Display = Omit<Shown, "hovered">;

const handlers = new WeakMap<EditorView, (span: Span | null, action: "select" | "hover") => void>();

/** The editor of the text of one function. */
export class ProgramText {
  readonly view: EditorView;
  private readonly tree: LoopTree;
  private readonly disconnect: () => void;
  private readonly unwatch: () => void;
  private hovered: Span | null = null;
  private display: Display | null = null;
  private revealed: string;
  private reveals = 0;
  /** Whether the text has its last position. */
  private restored: boolean;
  actions: Handlers | null = null;

  constructor(
    parent: HTMLElement,
    private readonly name: string,
    private readonly positions: Positions,
    tools: TextTools,
    private readonly kept: Kept,
  ) {
    const last = positions.get(name);
    this.restored = last !== undefined;
    this.revealed = last?.shown ?? "";
    const state = last?.state ?? EditorState.create({ extensions: extensions(name, tools) });
    this.view = new EditorView({ parent, state, ...(last ? { scrollTo: last.scroll } : {}) });
    handlers.set(this.view, (span, action) => (action === "select" ? span && this.actions?.onSelect(span) : this.point(span)));
    this.tree = new LoopTree(this.view, {
      onSelect: (scope) => this.actions?.onSelect(scope.span),
      onHover: (scope) => this.point(scope?.span ?? null),
      onReveal: (scope) => scrollToLine(this.view, scope.span.line + 1),
      onMenu: (scope, event) => showMenu(this.view, tools, selectEntries, event, this.view.state.doc.line(scope.span.line + 1).from),
    });
    this.disconnect = connect(this.view, tools);
    this.unwatch = onMoved(this.view, this.keep);
  }

  /** Display a pane; a text that differs is changed where it differs, so that folds and the cursor stay. */
  update(display: Display): void {
    const before = this.display;
    const { pane, selected } = display;
    this.display = display;
    const changes = before?.pane === pane ? null : changeOf(this.view.state.doc.toString(), pane.lines.join("\n"));
    if (changes || before === null || !same(before, display)) {
      const shown = this.view.state.field(shownField, false);
      const hovered = shown?.pane === pane ? this.hovered : null;
      this.view.dispatch({ ...(changes ? { changes } : {}), effects: show.of({ ...display, hovered }) });
    }
    this.restore();
    this.tree.update(pane, selected, this.hovered?.uid ?? null);
    this.reveal(display);
  }

  destroy(): void {
    this.keep();
    this.unwatch();
    this.tree.destroy();
    this.disconnect();
    this.view.destroy();
  }

  private readonly keep = (): void => {
    // A hidden element has no scroll position.
    if (!this.view.scrollDOM.isConnected || this.view.scrollDOM.closest("[hidden]")) return;
    this.positions.set(this.name, { scroll: this.view.scrollSnapshot(), shown: this.revealed, state: this.view.state });
    if (this.restored) this.kept.write(positionOf(this.view, this.revealed));
  };

  /** Restore the position of an earlier page, once the text is displayed. */
  private restore(): void {
    if (this.restored) return;
    this.restored = true;
    const position = this.kept.read();
    if (!position) return;
    this.revealed = position.shown;
    restorePosition(this.view, position);
  }

  private point(span: Span | null): void {
    if (!this.display || (span?.uid === this.hovered?.uid && span?.line === this.hovered?.line)) return;
    this.hovered = span;
    this.view.dispatch({ effects: show.of({ ...this.display, hovered: span }) });
    this.tree.hover(span?.uid ?? null);
    this.actions?.onHover(span);
  }

  /** Scroll the selection into view once after it changes, and parts at fault each time that it is asked for. */
  private reveal({ pane, selected, marked }: Display): void {
    const key = `${this.name}:${String(selected)}`;
    const definition = selected === null ? undefined : pane.spans.find((span) => span.uid === selected && span.defined);
    if (definition && key !== this.revealed) {
      this.revealed = key;
      scrollToLine(this.view, definition.line + 1);
    }
    const first = marked?.marks[0];
    if (first && marked.reveal > this.reveals) scrollToLine(this.view, first.line);
    this.reveals = marked?.reveal ?? 0;
  }
}

function extensions(name: string, tools: TextTools): Extension {
  return [
    EditorView.domEventHandlers({
      click: (event, view) => pick(event, view),
      pointermove: (event, view) => act(view, spanUnder(event, view), "hover"),
      pointerleave: (_event, view) => act(view, null, "hover"),
    }),
    keymap.of(textKeys([SELECT], tools)),
    contextMenu(tools, selectEntries),
    reading({ label: `Code of ${name}`, language: "script", tools }),
    lineNumbers({ domEventHandlers: { click: (view, block) => act(view, spanInLine(view, block.from), "select") } }),
    highlighting(() => "script"),
    programMarks(),
    loopTree(),
    stickyHeaders({
      language: "script",
      onClick: (view, line) => {
        scrollToLine(view, line);
        act(view, spanInLine(view, view.state.doc.line(line).from), "select");
      },
      noteOf: (view, line) => {
        const pane = paneIn(view);
        return pane ? noteOf(pane, line - 1) : "";
      },
    }),
  ];
}

function act(view: EditorView, span: Span | null, action: "select" | "hover"): boolean {
  handlers.get(view)?.(span, action);
  return false;
}

function pick(event: MouseEvent, view: EditorView): boolean {
  if (!view.state.selection.main.empty) return false;
  return act(view, spanUnder(event, view), "select");
}

/** Return the part under the pointer; right of a line it is the part that the line defines. */
function spanUnder(event: MouseEvent, view: EditorView): Span | null {
  const found = view.posAndSideAtCoords({ x: event.clientX, y: event.clientY }, false);
  const line = view.state.doc.lineAt(found.pos);
  const right = view.coordsAtPos(line.to);
  const beyond = right !== null && event.clientX > right.right && event.clientY >= right.top;
  const column = beyond ? line.length : found.pos - line.from - (found.assoc < 0 && found.pos > line.from ? 1 : 0);
  const pane = paneIn(view);
  return pane && spanAt(pane, line.number - 1, column);
}

/** Return the part that a line defines, else the innermost loop or block around it. */
function spanInLine(view: EditorView, start: number): Span | null {
  const pane = paneIn(view);
  const line = view.state.doc.lineAt(start);
  return pane && spanAt(pane, line.number - 1, line.length);
}

/** Return the menu entries that select the part at a position, and the loop or block around it. */
function selectEntries(view: EditorView, position: number): Entry[] {
  const pane = paneIn(view);
  const line = view.state.doc.lineAt(position);
  if (!pane) return [];
  const scope = enclosing(pane, line.number - 1);
  const part = spanAt(pane, line.number - 1, position - line.from);
  const entries: Entry[] = [];
  if (part && part.uid !== scope?.span.uid) {
    const name = view.state.sliceDoc(line.from + part.column, line.from + part.endColumn);
    const label = part.line === part.endLine && part.kind === "buffer" ? `Select ${part.kind} ${name}` : `Select the ${part.kind}`;
    entries.push({ label, keys: keyText("Enter"), run: () => act(view, part, "select") });
  }
  if (scope) entries.push({ label: `Select ${scope.span.kind} ${scope.header?.name ?? ""}`, keys: "", run: () => act(view, scope.span, "select") });
  return entries;
}

function selectAtCursor(view: EditorView): void {
  const { head } = view.state.selection.main;
  const line = view.state.doc.lineAt(head);
  const pane = paneIn(view);
  const span = pane && (spanAt(pane, line.number - 1, head - line.from) ?? enclosing(pane, line.number - 1)?.span);
  act(view, span ?? null, "select");
}

function paneIn(view: EditorView): PaneModel | null {
  return view.state.field(shownField, false)?.pane ?? null;
}

function same(one: Display, other: Display): boolean {
  return one.pane === other.pane && one.selected === other.selected && one.linked === other.linked && one.marked === other.marked;
}
