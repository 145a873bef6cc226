import type { Extension } from "@codemirror/state";
import { EditorView, ViewPlugin, type PluginValue, type ViewUpdate } from "@codemirror/view";
import { headersOf, structureIn } from "./structure";
import { tokenize, type Language } from "./tokenize";

const LINE_HEIGHT = 20;
const MAX_ROWS = 5;

interface Options {
  readonly language: Language;
  /** Called with the line number of a header that is clicked. */
  readonly onClick: (view: EditorView, line: number) => void;
  /** Return the note of a line, empty if it has none. */
  readonly noteOf: (view: EditorView, line: number) => string;
}

interface Layout {
  readonly lines: readonly number[];
  readonly top: number;
  readonly gutter: number;
}

/** The headers that enclose the first visible line, over the text. Screen readers read the text itself. */
class StickyHeaders implements PluginValue {
  readonly box = document.createElement("div");
  private shown = "";

  constructor(
    private readonly view: EditorView,
    private readonly options: Options,
  ) {
    this.box.className = "tw-sticky";
    this.box.ariaHidden = "true";
    view.dom.append(this.box);
    view.scrollDOM.addEventListener("scroll", this.refresh, { passive: true });
    this.refresh();
  }

  update(update: ViewUpdate): void {
    if (update.geometryChanged || update.viewportChanged) this.refresh();
  }

  destroy(): void {
    this.view.scrollDOM.removeEventListener("scroll", this.refresh);
    this.box.remove();
  }

  get height(): number {
    return this.box.childElementCount * LINE_HEIGHT;
  }

  private readonly refresh = (): void => {
    this.view.requestMeasure({ key: this, read: (view) => this.read(view), write: (layout, view) => this.write(layout, view) });
  };

  private read(view: EditorView): Layout {
    const { scrollDOM, contentDOM } = view;
    const gutter = contentDOM.getBoundingClientRect().left - scrollDOM.getBoundingClientRect().left + scrollDOM.scrollLeft;
    return { lines: stickyLines(view), top: scrollDOM.offsetTop, gutter };
  }

  private write({ lines, top, gutter }: Layout, view: EditorView): void {
    const texts = lines.map((line) => `${String(line)} ${view.state.doc.line(line).text}`);
    const key = [String(gutter), ...texts].join("\n");
    this.box.style.top = `${String(top)}px`;
    if (key === this.shown) return;
    this.shown = key;
    this.box.replaceChildren(...lines.map((line) => this.row(view, line, gutter)));
  }

  private row(view: EditorView, line: number, gutter: number): HTMLElement {
    const row = part("div", "tw-sticky-row", "");
    const number = part("span", "tw-sticky-number", String(line));
    number.style.width = `${String(gutter)}px`;
    row.append(number, codeOf(view.state.doc.line(line).text, this.options.language));
    const note = this.options.noteOf(view, line);
    if (note !== "") row.append(part("span", "tw-line-label", note));
    row.addEventListener("mousedown", (event) => event.preventDefault());
    row.addEventListener("click", () => this.options.onClick(view, line));
    return row;
  }
}

/** Return the headers that enclose the first line below them. */
function stickyLines(view: EditorView): readonly number[] {
  const structure = structureIn(view.state);
  const top = view.scrollDOM.scrollTop - view.documentPadding.top;
  if (!structure || top <= 0) return [];
  const limit = Math.min(MAX_ROWS, Math.floor(view.scrollDOM.clientHeight / LINE_HEIGHT / 3));
  let headers: number[] = [];
  for (let count = 0; count <= limit; count++) {
    const block = view.lineBlockAtHeight(top + count * LINE_HEIGHT + 1);
    headers = headersOf(structure, view.state.doc.lineAt(block.from).number);
    if (headers.length <= count) break;
  }
  return limit === 0 ? [] : headers.slice(-limit);
}

function codeOf(text: string, language: Language): HTMLElement {
  const code = document.createElement("code");
  const indent = text.search(/\S|$/);
  code.append(part("span", language === "script" ? "tw-indent" : "", text.slice(0, indent)));
  for (const token of tokenize(text.slice(indent), language)) code.append(part("span", `tw-tok-${token.kind}`, token.text));
  return code;
}

function part(tag: string, name: string, text: string): HTMLElement {
  const element = document.createElement(tag);
  element.className = name;
  element.textContent = text;
  return element;
}

const plugin = (options: Options): ViewPlugin<StickyHeaders> => ViewPlugin.define((view) => new StickyHeaders(view, options));
const heights = new WeakMap<EditorView, () => number>();

/** Show the enclosing headers over the first lines, and keep the cursor out of them. */
export function stickyHeaders(options: Options): Extension {
  const one = plugin(options);
  const heightOf = (view: EditorView): number => view.plugin(one)?.height ?? 0;
  return [
    one,
    EditorView.scrollMargins.of((view) => ({ top: heightOf(view) })),
    ViewPlugin.define((view) => {
      heights.set(view, () => heightOf(view));
      return {};
    }),
  ];
}

/** Return the height of the headers over the text in pixels. */
export function stickyHeight(view: EditorView): number {
  return heights.get(view)?.() ?? 0;
}
