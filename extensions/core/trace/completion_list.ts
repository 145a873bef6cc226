// The list of completions in the editor of the trace, with the keys of CodeMirror.
import { Prec, StateEffect, StateField, type EditorState, type Extension } from "@codemirror/state";
import { EditorView, ViewPlugin, keymap, type Command, type KeyBinding, type PluginValue, type ViewUpdate } from "@codemirror/view";
import { reveal } from "../ui/reveal";
import type { Completion } from "./completions";

/** The completions at the cursor of a document; null if there are none. */
export type Source = (state: EditorState) => Completion | null;

interface List extends Completion {
  readonly active: number;
}

const show = StateEffect.define<List | null>();

/** The number of names that PageUp and PageDown skip. */
const PAGE = 8;
/** The distance from the edges of the window in pixels. */
const MARGIN = 8;
/** The largest height in pixels: the last line is cut if there are more. */
const MAX_HEIGHT = 250;

let lists = 0;

/** Offer completions while a name is typed, or on Ctrl+Space. */
export function completion(source: Source): Extension {
  lists += 1;
  const id = `tw-completion-${String(lists)}`;
  const field = StateField.define<List | null>({
    create: () => null,
    update: (value, transaction) => {
      for (const effect of transaction.effects) if (effect.is(show)) return effect.value;
      if (!transaction.docChanged) return transaction.selection ? null : value;
      const typing = transaction.isUserEvent("input.type") || (value !== null && transaction.isUserEvent("delete"));
      return typing ? whileTyping(source(transaction.state), transaction.state) : null;
    },
    provide: (own) => EditorView.contentAttributes.compute([own], (state) => attributesOf(id, state.field(own))),
  });
  return [
    field,
    Prec.highest(keymap.of(keysOf(source, (state) => state.field(field)))),
    ViewPlugin.define((view) => new Popup(view, id, (state) => state.field(field))),
    EditorView.domEventHandlers({
      blur: (_event, view) => {
        close(view, view.state.field(field));
      },
    }),
  ];
}

/** Return the list while a name is typed; a name that is complete is not offered. */
function whileTyping(found: Completion | null, state: EditorState): List | null {
  if (!found || (found.typed === "" && state.sliceDoc(Math.max(0, found.from - 1), found.from) !== ".")) return null;
  const [first] = found.options;
  if (found.options.length === 1 && first?.text === found.typed) return null;
  return { ...found, active: 0 };
}

function attributesOf(id: string, list: List | null): Record<string, string> {
  const always = { "aria-autocomplete": "list" };
  if (!list) return always;
  return { ...always, "aria-haspopup": "listbox", "aria-controls": id, "aria-activedescendant": `${id}-${String(list.active)}` };
}

function keysOf(source: Source, listOf: (state: EditorState) => List | null): readonly KeyBinding[] {
  const open: Command = (view) => {
    if (view.state.readOnly) return false;
    const found = source(view.state);
    view.dispatch({ effects: show.of(found && { ...found, active: 0 }), scrollIntoView: true });
    return true;
  };
  const withList = (action: (view: EditorView, list: List) => void): Command => (view) => {
    const list = listOf(view.state);
    if (list) action(view, list);
    return list !== null;
  };
  const move = (by: number, wraps: boolean): Command =>
    withList((view, list) => {
      const count = list.options.length;
      const active = wraps ? (list.active + by + count) % count : Math.max(0, Math.min(list.active + by, count - 1));
      view.dispatch({ effects: show.of({ ...list, active }) });
    });
  return [
    { key: "Ctrl-Space", mac: "Alt-i", run: open },
    { key: "ArrowDown", run: move(1, true) },
    { key: "ArrowUp", run: move(-1, true) },
    { key: "PageDown", run: move(PAGE, false) },
    { key: "PageUp", run: move(-PAGE, false) },
    {
      key: "Enter",
      run: withList((view, list) => {
        accept(view, list, list.active);
        if (view.state.sliceDoc(0, view.state.selection.main.head).endsWith("=")) open(view);
      }),
    },
    { key: "Escape", run: withList(close) },
  ];
}

function accept(view: EditorView, { from, to, options }: List, index: number): void {
  const insert = options[index]?.text ?? "";
  const changes = { from, to, insert };
  view.dispatch({ changes, selection: { anchor: from + insert.length }, effects: show.of(null), userEvent: "input.complete" });
}

function close(view: EditorView, list: List | null): void {
  if (list) view.dispatch({ effects: show.of(null) });
}

/** The list, in the top layer of the page, because the editor may be low. */
class Popup implements PluginValue {
  private readonly box = document.createElement("div");
  private shown: List | null = null;
  private readonly place = { key: this, read: (view: EditorView) => this.read(view), write: (at: Position | null) => this.write(at) };
  private readonly moved = (): void => {
    if (this.shown) this.view.requestMeasure(this.place);
  };

  constructor(
    private readonly view: EditorView,
    private readonly id: string,
    private readonly listOf: (state: EditorState) => List | null,
  ) {
    const { box } = this;
    box.className = "tw-completion tw-scroll";
    box.id = id;
    box.hidden = true;
    box.setAttribute("role", "listbox");
    box.setAttribute("aria-label", "Completions");
    box.setAttribute("popover", "manual");
    box.addEventListener("mousedown", (event) => this.choose(event));
    box.addEventListener("wheel", (event) => this.scroll(event), { passive: false });
    view.dom.append(box);
    window.addEventListener("scroll", this.moved, true);
  }

  update(update: ViewUpdate): void {
    const list = this.listOf(update.state);
    if (list === this.shown) {
      if (update.geometryChanged) this.moved();
      return;
    }
    const isNew = list?.options !== this.shown?.options;
    this.shown = list;
    if (isNew) this.render(list);
    for (const [index, item] of [...this.box.children].entries()) item.setAttribute("aria-selected", String(index === list?.active));
    this.show(list !== null);
    this.moved();
  }

  destroy(): void {
    window.removeEventListener("scroll", this.moved, true);
    this.box.remove();
  }

  private choose(event: MouseEvent): void {
    event.preventDefault(); // keeps the focus in the text
    const item = event.target instanceof Element ? event.target.closest("[role=option]") : null;
    if (this.shown && item) accept(this.view, this.shown, [...this.box.children].indexOf(item));
  }

  /** Scroll the list by the wheel; a scroll box of the browser would have to be a tab stop. */
  private scroll(event: WheelEvent): void {
    event.preventDefault();
    event.stopPropagation();
    this.box.scrollTop += event.deltaY;
  }

  private render(list: List | null): void {
    const items = (list?.options ?? []).map(({ text, kind, detail }, index) => {
      const item = element("div", "tw-completion-item");
      item.id = `${this.id}-${String(index)}`;
      item.setAttribute("role", "option");
      item.title = detail;
      item.append(element("span", "tw-completion-name", text), element("span", "tw-completion-kind", kind), element("span", "tw-completion-detail", detail));
      return item;
    });
    this.box.replaceChildren(...items);
  }

  private show(visible: boolean): void {
    const { box } = this;
    if (box.hidden !== visible) return;
    box.hidden = !visible;
    if (!("showPopover" in box)) return; // an old browser
    if (visible) box.showPopover();
    else box.hidePopover();
  }

  private read(view: EditorView): Position | null {
    const at = this.shown && view.coordsAtPos(this.shown.from);
    if (!at) return null;
    const below = window.innerHeight - at.bottom - MARGIN;
    const above = at.top - MARGIN;
    const height = Math.min(this.box.scrollHeight + 2, MAX_HEIGHT);
    const isBelow = height <= below || below >= above;
    const left = Math.max(MARGIN, Math.min(at.left, window.innerWidth - this.box.offsetWidth - MARGIN));
    const top = isBelow ? at.bottom : at.top - Math.min(height, above);
    // The cursor itself may be outside of the window.
    const lowest = window.innerHeight - MARGIN - Math.min(height, Math.max(below, above));
    return { left, top: Math.max(MARGIN, Math.min(top, lowest)), height: isBelow ? below : above };
  }

  private write(at: Position | null): void {
    if (!at) return;
    const { style } = this.box;
    style.left = `${String(at.left)}px`;
    style.top = `${String(at.top)}px`;
    style.maxHeight = `min(${String(at.height)}px, ${String(MAX_HEIGHT)}px)`;
    reveal(this.box.querySelector("[aria-selected=true]"));
  }
}

interface Position {
  readonly left: number;
  readonly top: number;
  /** The available height. */
  readonly height: number;
}

function element(tag: "div" | "span", name: string, text = ""): HTMLElement {
  const created = document.createElement(tag);
  created.className = name;
  created.textContent = text;
  return created;
}
