import { standardKeymap } from "@codemirror/commands";
import { closeSearchPanel, getSearchQuery, openSearchPanel, search, searchPanelOpen, setSearchQuery } from "@codemirror/search";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView, highlightSpecialChars, keymap } from "@codemirror/view";
import { TEXT_COMMANDS, textKeys } from "../commands/text";
import { folding } from "./fold";
import { reportFolds } from "./position";
import { searchPanel } from "./search_panel";
import { structured } from "./structure";
import type { TextTools } from "./tools";
import type { Language } from "./tokenize";

const wrapping = new Compartment();

interface Options {
  readonly label: string;
  readonly language: Language;
  readonly tools: TextTools;
}

/** The extensions of every text: read-only, with search, folding and lines that can be wrapped. */
export function reading({ label, language, tools }: Options): Extension {
  return [
    EditorState.readOnly.of(true),
    EditorState.tabSize.of(4),
    EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": "true", class: "tw-code-text", tabindex: "0", inputmode: "none" }),
    EditorView.domEventHandlers({ beforeinput: (event) => event.preventDefault(), drop: () => true }),
    highlightSpecialChars(),
    reportFolds,
    structured(language),
    folding(),
    search({ top: true, createPanel: searchPanel }),
    wrapping.of(tools.wrap.value ? EditorView.lineWrapping : []),
    keymap.of([...textKeys(TEXT_COMMANDS, tools), { key: "Escape", run: closeSearchPanel, scope: "editor search-panel" }, ...standardKeymap]),
  ];
}

/** Connect an editor with the buttons of its pane, and return the function that disconnects it. */
export function connect(view: EditorView, tools: TextTools): () => void {
  const wrap = (): void => view.dispatch({ effects: wrapping.reconfigure(tools.wrap.value ? EditorView.lineWrapping : []) });
  wrap();
  view.scrollDOM.classList.add("tw-scroller");
  const unsubscribe = tools.wrap.subscribe(wrap);
  tools.view.set(view);
  return () => {
    unsubscribe();
    if (tools.view.value === view) tools.view.set(null);
  };
}

/** Take over the search of a text that this one replaces. */
export function keepSearch(before: EditorState, view: EditorView): void {
  if (!searchPanelOpen(before)) return;
  openSearchPanel(view);
  view.dispatch({ effects: setSearchQuery.of(getSearchQuery(before)) });
}
