import { MergeView, goToNextChunk, goToPreviousChunk, unifiedMergeView, type Change, type MergeConfig } from "@codemirror/merge";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { changeOf } from "./change";
import { contextMenu } from "./context_menu";
import { connect, keepSearch, reading } from "./editor";
import { grammar } from "./grammar";
import { highlighting } from "./highlight";
import { lineChanges } from "./line_changes";
import { scrollToLine, scrollToTop } from "./scroll";
import { stickyHeaders } from "./sticky";
import { firstFunction } from "./structure";
import type { TextTools } from "./tools";
import type { Language } from "./tokenize";

/** A text, or the changes from another one to it. */
export interface Compared {
  readonly label: string;
  readonly before: string | null;
  readonly after: string;
  readonly language: Language;
  /** Whether both texts are shown beside each other, else removed lines above added ones. */
  readonly beside: boolean;
  /** Whether all unchanged lines are shown. */
  readonly entire: boolean;
  /** Whether the comparison is a small part of a panel: without line numbers, with less context. */
  readonly inline: boolean;
}

/** The length of removed text from which it is always shown beside: as part of one text, it would be rendered entirely. */
const MAX_REMOVED = 100_000;

/** The editor of a text, or one or two editors of a comparison. */
export class ComparedText {
  private view: EditorView | null = null;
  private sides: MergeView | null = null;
  private disconnect: (() => void)[] = [];
  private form = "";
  private last: Compared | null = null;

  constructor(
    private readonly host: HTMLElement,
    private readonly tools: TextTools,
  ) {}

  /** Display a text; the focus, the search, and the scroll position of the same text stay. */
  show(shown: Compared): void {
    const before = this.last;
    this.last = shown;
    this.put(shown, before);
    const opens = shown.before === null && shown.after !== "" && (before?.label !== shown.label || before.after === "");
    if (opens && this.view) scrollToTop(this.view, firstFunction(this.view.state.doc, shown.language));
  }

  private put(shown: Compared, before: Compared | null): void {
    if (this.sides && before && isSame(before, shown)) {
      this.sides.reconfigure(collapsing(shown));
      return;
    }
    const texts = shown.before === null ? null : comparedTexts(shown.before, shown.after);
    const beside = texts !== null && (shown.beside || longestRemoval(texts.changes) > MAX_REMOVED);
    if (this.view && !this.sides && !beside) {
      this.replace(this.view, shown, texts);
      return;
    }
    const focused = this.host.contains(document.activeElement);
    const last = this.view?.state;
    const top = this.scroller?.scrollTop ?? 0;
    this.destroy();
    const view = texts && beside ? this.openSides(shown, texts) : this.openOne(shown, texts);
    this.view = view;
    this.disconnect.push(connect(view, this.tools));
    if (last) keepSearch(last, view);
    if (this.scroller) this.scroller.scrollTop = top;
    if (focused) view.focus();
  }

  destroy(): void {
    for (const end of this.disconnect) end();
    this.disconnect = [];
    if (this.sides) this.sides.destroy();
    else this.view?.destroy();
    this.sides = null;
    this.view = null;
  }

  private get scroller(): HTMLElement | undefined {
    return this.sides?.dom ?? this.view?.scrollDOM;
  }

  private openOne(shown: Compared, texts: Texts | null): EditorView {
    this.form = formOf(shown);
    return new EditorView({ parent: this.host, state: stateOf(shown, texts, this.tools) });
  }

  private openSides(shown: Compared, texts: Texts): EditorView {
    const sides = new MergeView({
      parent: this.host,
      a: { doc: texts.before, extensions: common({ ...shown, label: `${shown.label}, before` }, this.tools) },
      b: { doc: texts.after, extensions: common({ ...shown, label: `${shown.label}, after` }, this.tools) },
      ...settings(shown, texts),
    });
    this.sides = sides;
    this.disconnect.push(connect(sides.a, this.tools));
    return sides.b;
  }

  private replace(view: EditorView, shown: Compared, texts: Texts | null): void {
    const form = formOf(shown);
    if (texts === null && form === this.form) {
      const changes = changeOf(view.state.doc.toString(), trimmed(shown.after));
      if (changes) view.dispatch({ changes });
      return;
    }
    this.form = form;
    const last = view.state;
    const top = view.scrollDOM.scrollTop;
    const state = stateOf(shown, texts, this.tools);
    view.setState(state);
    if (last.doc.eq(state.doc)) view.dispatch({ selection: last.selection });
    keepSearch(last, view);
    view.scrollDOM.scrollTop = top;
  }
}

/** Both texts of a comparison, which end with a line break, and the changes. */
interface Texts {
  readonly before: string;
  readonly after: string;
  readonly changes: readonly Change[];
}

function comparedTexts(before: string, after: string): Texts {
  const old = `${trimmed(before)}\n`;
  const now = `${trimmed(after)}\n`;
  return { before: old, after: now, changes: lineChanges(old, now) };
}

function longestRemoval(changes: readonly Change[]): number {
  return changes.reduce((length, { fromA, toA }) => Math.max(length, toA - fromA), 0);
}

function trimmed(text: string): string {
  return text.replace(/\n$/, "");
}

/** Return the properties that need a new state of the editor; a text with the same ones is changed where it differs. */
function formOf({ label, before, language }: Compared): string {
  return before === null ? `${language} ${label}` : "";
}

function stateOf(shown: Compared, texts: Texts | null, tools: TextTools): EditorState {
  if (!texts) return EditorState.create({ doc: trimmed(shown.after), extensions: plain(shown, tools) });
  const merged = unifiedMergeView({ original: texts.before, mergeControls: false, ...settings(shown, texts) });
  return EditorState.create({ doc: texts.after, extensions: [common(shown, tools), merged] });
}

/** Return whether two comparisons differ at most in the unchanged lines that they show. */
function isSame(one: Compared, other: Compared): boolean {
  return one.label === other.label && one.before === other.before && one.after === other.after && one.language === other.language && one.beside === other.beside;
}

type Settings = Pick<MergeConfig, "gutter" | "diffConfig" | "collapseUnchanged">;

function settings(shown: Compared, { changes }: Texts): Settings {
  return { gutter: false, diffConfig: { override: () => [...changes] }, ...collapsing(shown) };
}

/** Return the setting that hides unchanged lines; `undefined` shows those that were hidden before. */
function collapsing({ entire, inline }: Compared): Settings {
  return { collapseUnchanged: entire ? undefined : { margin: inline ? 1 : 3, minSize: 2 } } as Settings;
}

function plain({ label, language }: Compared, tools: TextTools): Extension {
  return [
    contextMenu(tools, () => []),
    reading({ label, language, tools }),
    lineNumbers(),
    highlighting(() => language),
    stickyHeaders({ language, onClick: scrollToLine, noteOf: () => "" }),
  ];
}

/** The extensions of the texts of a comparison; their bodies are not folded, but unchanged lines are hidden. */
function common({ label, language, inline }: Compared, tools: TextTools): Extension {
  return [
    keymap.of([
      { key: "n", run: goToNextChunk },
      { key: "p", run: goToPreviousChunk },
    ]),
    contextMenu(tools, () => []),
    reading({ label, language: "plain", tools }),
    inline ? [] : lineNumbers(),
    grammar(language),
  ];
}
