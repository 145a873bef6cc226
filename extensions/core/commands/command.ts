import type { TextTools } from "../code/tools";
import type { State, Store } from "../store";
import type { IconName } from "../ui/icons";
import type { View, ViewState } from "../view_state";

/** The id of a command, unique in an application such as JupyterLab. */
export type CommandId = `tilewright:${string}`;

/** The dialogs of a workbench; empty if none is open. */
export type Dialog = "" | "palette" | "setup";

/** The parts of a workbench that a command acts on. */
export interface Context {
  readonly store: Store;
  readonly view: View;
  /** Open a dialog. */
  show(dialog: Dialog): void;
  /** Act on the text with the focus, else on that of the open function, which is displayed first. */
  withText(action: (text: TextTools) => void): void;
}

/**
 * An action of the workbench. Toolbar, menus, keys and palette display and run it.
 *
 * The parts map to a command of Lumino's `CommandRegistry`: `label`, `caption`, `isVisible`,
 * `isToggled`, `isEnabled` (`enabled` returns true) and `execute`. Each of `keys` is a key binding
 * with the selector `within`.
 */
export interface Command {
  readonly id: CommandId;
  readonly label: string | ((state: State) => string);
  /** The heading in the palette. */
  readonly group: string;
  readonly icon?: IconName;
  /** Alternative keys, in the notation of Lumino: `Accel Shift Z`. */
  readonly keys: readonly string[];
  /** The selector of the elements in which the keys work; without it, the entire workbench. */
  readonly within?: string;
  /** Whether the keys work in text fields as well. */
  readonly typing?: boolean;
  /** Whether the focused text or the browser handles the keys, which are listed and kept from JupyterLab. */
  readonly native?: boolean;
  /** A sentence about the effect. */
  readonly caption?: (state: State) => string;
  /** Whether the command has a meaning for the program; without it, always. */
  readonly visible?: (state: State) => boolean;
  readonly checked?: (state: State, view: ViewState) => boolean;
  /** Return whether the command can run now: true, or why not. */
  readonly enabled: (state: State, view: ViewState) => true | string;
  readonly run: (context: Context) => void;
}

/** Return the label of a command. */
export function labelOf({ label }: Command, state: State): string {
  return typeof label === "string" ? label : label(state);
}
