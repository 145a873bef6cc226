import { foldedRanges, unfoldAll, unfoldCode } from "@codemirror/language";
import { findNext, findPrevious, openSearchPanel } from "@codemirror/search";
import type { EditorView, KeyBinding } from "@codemirror/view";
import { foldEverything, foldHere } from "../code/fold";
import type { TextTools } from "../code/tools";
import { paneOf } from "../store";
import type { IconName } from "../ui/icons";
import type { Command, CommandId } from "./command";
import { editorKeys } from "./keys";

/** A command that acts on a text, at its cursor. */
export interface TextCommand {
  readonly id: CommandId;
  readonly label: string;
  readonly icon?: IconName;
  readonly keys: readonly string[];
  /** Whether the keys work in the search field of the text as well. */
  readonly inSearch?: boolean;
  /** Whether the browser handles the keys. */
  readonly native?: boolean;
  readonly checked?: (text: TextTools) => boolean;
  /** Whether the command has an effect at a position; without it, always. */
  readonly applies?: (view: EditorView, position: number) => boolean;
  readonly run: (view: EditorView, text: TextTools) => void;
}

export const copy: TextCommand = {
  id: "tilewright:copy",
  label: "Copy the selected text",
  icon: "copy",
  keys: ["Accel C"],
  native: true,
  applies: (view) => !view.state.selection.main.empty,
  // The clipboard of `navigator` needs HTTPS; this sends the event that CodeMirror answers.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  run: () => void document.execCommand("copy"),
};

export const find: TextCommand = {
  id: "tilewright:find",
  label: "Find in the text",
  icon: "search",
  keys: ["Accel F"],
  inSearch: true,
  run: (view) => void openSearchPanel(view),
};

const next: TextCommand = {
  id: "tilewright:find-next",
  label: "Find the next match",
  keys: ["F3", "Accel G"],
  inSearch: true,
  run: (view) => void findNext(view),
};

const previous: TextCommand = {
  id: "tilewright:find-previous",
  label: "Find the previous match",
  keys: ["Shift F3", "Accel Shift G"],
  inSearch: true,
  run: (view) => void findPrevious(view),
};

export const fold: TextCommand = {
  id: "tilewright:fold",
  label: "Fold",
  keys: ["-"],
  applies: (view, position) => !isFolded(view, position),
  run: (view) => void foldHere(view),
};

export const unfold: TextCommand = {
  id: "tilewright:unfold",
  label: "Unfold",
  keys: ["+", "="],
  applies: isFolded,
  run: (view) => void unfoldCode(view),
};

export const foldBodies: TextCommand = {
  id: "tilewright:fold-bodies",
  label: "Fold bodies",
  icon: "folded",
  keys: [],
  run: (view) => void foldEverything(view),
};

export const unfoldBodies: TextCommand = {
  id: "tilewright:unfold-bodies",
  label: "Unfold bodies",
  icon: "unfolded",
  keys: [],
  run: (view) => void unfoldAll(view),
};

export const wrap: TextCommand = {
  id: "tilewright:wrap",
  label: "Wrap lines",
  icon: "wrap",
  keys: ["W"],
  checked: (text) => text.wrap.value,
  run: (_view, text) => text.wrap.update((wraps) => !wraps),
};

/** The commands of every text. */
export const TEXT_COMMANDS: readonly TextCommand[] = [find, next, previous, fold, unfold, foldBodies, unfoldBodies, wrap];

/** Whether a body that starts in the line of a position is folded. */
function isFolded(view: EditorView, position: number): boolean {
  const { from, to } = view.state.doc.lineAt(position);
  let found = false;
  foldedRanges(view.state).between(from, to, () => {
    found = true;
  });
  return found;
}

/** Return the keys of commands for an editor. */
export function textKeys(commands: readonly TextCommand[], text: TextTools): KeyBinding[] {
  return commands.flatMap((command) =>
    (command.native ? [] : command.keys).map((keys) => ({
      key: editorKeys(keys),
      scope: command.inSearch ? "editor search-panel" : "editor",
      preventDefault: true,
      run: (view: EditorView) => {
        command.run(view, text);
        return true;
      },
    })),
  );
}

/** Return a command that acts on the text with the focus, else on that of the open function. */
export function asCommand(command: TextCommand): Command {
  const { id, label, icon, keys, inSearch } = command;
  return {
    id,
    label,
    ...(icon ? { icon } : {}),
    group: "Text",
    keys,
    native: true,
    within: inSearch ? ".cm-editor" : ".cm-content",
    enabled: (state) => paneOf(state, state.open) !== null || "No text is displayed",
    run: (context) =>
      context.withText((text) => {
        if (text.view.value) command.run(text.view.value, text);
      }),
  };
}
