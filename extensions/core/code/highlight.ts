import { Prec, type Extension, type Range } from "@codemirror/state";
import { Decoration, EditorView, ViewPlugin, type DecorationSet, type ViewUpdate } from "@codemirror/view";
import { tokenize, type Language, type TokenKind } from "./tokenize";

const marks = new Map<TokenKind, Decoration>();
const indentation = Decoration.mark({ class: "tw-indent" });

/**
 * Color the tokens of the visible lines. No token crosses the end of a line, so that the cost does not
 * depend on the length of the text. Indentation of programs is shown with half of its width.
 */
export function highlighting(languageOf: (view: EditorView, line: number) => Language): Extension {
  const plugin = ViewPlugin.define((view) => new Tokens(view, languageOf), { decorations: (tokens) => tokens.decorations });
  return Prec.high(plugin);
}

class Tokens {
  decorations: DecorationSet;
  private wraps: boolean;

  constructor(
    view: EditorView,
    private readonly languageOf: (view: EditorView, line: number) => Language,
  ) {
    this.wraps = view.lineWrapping;
    this.decorations = this.decorate(view);
  }

  update(update: ViewUpdate): void {
    const { view } = update;
    if (!update.docChanged && !update.viewportChanged && this.wraps === view.lineWrapping) return;
    this.wraps = view.lineWrapping;
    this.decorations = this.decorate(view);
  }

  private decorate(view: EditorView): DecorationSet {
    const found: Range<Decoration>[] = [];
    eachVisibleLine(view, (from, to, number) => {
      const language = this.languageOf(view, number);
      const text = view.state.sliceDoc(from, to);
      const indent = language === "script" ? text.search(/[^ ]|$/) : 0;
      if (this.wraps && from === view.state.doc.line(number).from) found.push(continuation(indent).range(from));
      if (indent > 0) found.push(indentation.range(from, from + indent));
      let at = from;
      for (const token of tokenize(text, language)) {
        if (token.kind !== "text") found.push(markOf(token.kind).range(at, at + token.text.length));
        at += token.text.length;
      }
    });
    return Decoration.set(found);
  }
}

/** Return the indentation of the continuation of a wrapped line: four columns more than its first line. */
function continuation(indent: number): Decoration {
  const columns = indent / 2 + 4;
  return Decoration.line({ attributes: { style: `padding-left:${String(columns)}ch;text-indent:-${String(columns)}ch` } });
}

/** Call a function for the visible part of each visible line. */
export function eachVisibleLine(view: EditorView, action: (from: number, to: number, line: number) => void): void {
  let last = 0;
  for (const range of view.visibleRanges) {
    for (let at = range.from; at <= range.to; ) {
      const line = view.state.doc.lineAt(at);
      const from = Math.max(line.from, range.from);
      if (line.number > last || from > line.from) action(from, Math.min(line.to, range.to), line.number);
      last = line.number;
      at = line.to + 1;
    }
  }
}

function markOf(kind: TokenKind): Decoration {
  const known = marks.get(kind) ?? Decoration.mark({ class: `tw-tok-${kind}` });
  marks.set(kind, known);
  return known;
}
