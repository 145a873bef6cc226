import { EditorState, type Extension, type Range } from "@codemirror/state";
import { Decoration, EditorView, GutterMarker, ViewPlugin, gutter, lineNumbers, type DecorationSet, type ViewUpdate } from "@codemirror/view";
import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { isTyping } from "../ui/keys";
import { changeOf } from "./change";
import { contextMenu } from "./context_menu";
import { diffOf, type DiffLine } from "./diff";
import { connect, keepSearch, reading } from "./editor";
import { eachVisibleLine, highlighting } from "./highlight";
import { scrollToLine } from "./scroll";
import { stickyHeaders } from "./sticky";
import type { TextTools } from "./tools";
import type { Language } from "./tokenize";

interface LoweredProps {
  readonly label: string;
  readonly text: string;
  /** The text to compare with; null to display only the text. */
  readonly before: string | null;
  readonly language: Language;
  readonly tools: TextTools;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

const SIGNS: Readonly<Record<DiffLine["kind"], string>> = { same: "", added: "+", removed: "−", skip: "⋯" };

/** A text below the loop level, or its difference to another one. */
export function LoweredView({ label, text, before, language, tools, onKeyDown }: LoweredProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<EditorView | null>(null);
  const form = useRef("");
  const lines = useMemo(() => (before === null ? null : diffOf(split(before), split(text))), [text, before]);
  useLayoutEffect(() => {
    if (!host.current) return undefined;
    const view = new EditorView({ parent: host.current });
    editor.current = view;
    return () => view.destroy();
  }, []);
  useLayoutEffect(() => {
    const view = editor.current;
    if (!view) return undefined;
    const doc = lines ? lines.map(textOf).join("\n") : split(text).join("\n");
    const kind = lines ? "" : `${language} ${label}`;
    if (kind !== "" && kind === form.current) {
      const changes = changeOf(view.state.doc.toString(), doc);
      if (changes) view.dispatch({ changes });
      return undefined;
    }
    form.current = kind;
    const last = view.state;
    const top = view.scrollDOM.scrollTop;
    view.setState(EditorState.create({ doc, extensions: extensions(label, language, lines, tools) }));
    keepSearch(last, view);
    view.scrollDOM.scrollTop = top;
    return undefined;
  }, [text, lines, language, label]);
  useLayoutEffect(() => (editor.current ? connect(editor.current, tools) : undefined), [tools]);
  // The search field is inside as well.
  const press = (event: KeyboardEvent): void => {
    if (!isTyping(event.target)) onKeyDown(event);
  };
  return <div class="tw-code" ref={host} onKeyDown={press} />;
}

function split(text: string): string[] {
  return text.replace(/\n$/, "").split("\n");
}

function textOf(line: DiffLine): string {
  return line.kind === "skip" ? `${String(line.count)} unchanged lines` : line.text;
}

function extensions(label: string, language: Language, lines: readonly DiffLine[] | null, tools: TextTools): Extension {
  const structure = lines ? "plain" : language;
  return [
    contextMenu(tools, () => []),
    reading({ label, language: structure, tools }),
    lines ? signs(lines) : lineNumbers(),
    highlighting((_view, line) => (lines?.[line - 1]?.kind === "skip" ? "plain" : language)),
    stickyHeaders({ language, onClick: scrollToLine, noteOf: () => "" }),
  ];
}

class Sign extends GutterMarker {
  constructor(private readonly text: string) {
    super();
  }

  override eq(other: Sign): boolean {
    return other.text === this.text;
  }

  override toDOM(): Node {
    return document.createTextNode(this.text);
  }
}

/** The signs and bands of the lines of a difference; color alone does not convey them. */
function signs(lines: readonly DiffLine[]): Extension {
  const kindOf = (number: number): DiffLine["kind"] => lines[number - 1]?.kind ?? "same";
  return [
    gutter({
      class: "tw-signs",
      lineMarker: (view, block) => new Sign(SIGNS[kindOf(view.state.doc.lineAt(block.from).number)]),
    }),
    ViewPlugin.define((view) => new Bands(view, kindOf), { decorations: (bands) => bands.decorations }),
  ];
}

class Bands {
  decorations: DecorationSet;

  constructor(
    view: EditorView,
    private readonly kindOf: (line: number) => DiffLine["kind"],
  ) {
    this.decorations = this.decorate(view);
  }

  update(update: ViewUpdate): void {
    if (update.docChanged || update.viewportChanged) this.decorations = this.decorate(update.view);
  }

  private decorate(view: EditorView): DecorationSet {
    const found: Range<Decoration>[] = [];
    eachVisibleLine(view, (_from, _to, number) => {
      found.push(Decoration.line({ class: `is-${this.kindOf(number)}` }).range(view.state.doc.line(number).from));
    });
    return Decoration.set(found, true);
  }
}
