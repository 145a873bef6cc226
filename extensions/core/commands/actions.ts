import type { TextTools } from "../code/tools";
import { Observable } from "../observable";
import type { Store } from "../store";
import type { View } from "../view_state";
import { labelOf, type Command, type CommandId, type Context, type Dialog } from "./command";
import { isPress } from "./keys";

/** The name of the pane with the text that commands act on if no text has the focus. */
const MAIN = "function";

/** The commands of one mounted workbench, with its store, view, and texts. */
export class Actions implements Context {
  readonly dialog = new Observable<Dialog>("");
  private readonly texts = new Map<string, TextTools>();

  constructor(
    readonly commands: readonly Command[],
    readonly store: Store,
    readonly view: View,
  ) {}

  command(id: CommandId): Command {
    const found = this.commands.find((command) => command.id === id);
    if (!found) throw new Error(`no command '${id}'`);
    return found;
  }

  /** Return whether a command can run now: true, or why not. */
  enabled(command: Command): true | string {
    const state = this.store.state.value;
    if (command.visible && !command.visible(state)) return "Not for this program";
    return command.enabled(state, this.view.value);
  }

  /** Run a command, or report why it cannot run now. */
  run(command: Command): void {
    const enabled = this.enabled(command);
    if (enabled === true) command.run(this);
    else this.store.announce(`${labelOf(command, this.store.state.value)}: ${enabled}`);
  }

  show(dialog: Dialog): void {
    this.dialog.set(dialog);
  }

  /** Let commands act on the text of a pane, and return the function that ends that. */
  addText(pane: string, text: TextTools): () => void {
    this.texts.set(pane, text);
    return () => {
      if (this.texts.get(pane) === text) this.texts.delete(pane);
    };
  }

  withText(action: (text: TextTools) => void): void {
    const focused = [...this.texts.values()].find(({ view }) => view.value?.hasFocus);
    if (focused) {
      action(focused);
      return;
    }
    this.view.set("pane", MAIN);
    // The narrow layout displays the pane in the next frame.
    requestAnimationFrame(() => {
      const text = this.texts.get(MAIN);
      text?.view.value?.focus();
      if (text) action(text);
    });
  }

  /** Return the command of the keys that were pressed, undefined if there is none at the target. */
  pressed(event: KeyboardEvent): Command | undefined {
    return this.commands.find((command) => isWithin(command, event.target) && command.keys.some((keys) => isPress(keys, event)));
  }
}

function isWithin({ within }: Command, target: EventTarget | null): boolean {
  return within === undefined || (target instanceof Element && target.closest(within) !== null);
}
