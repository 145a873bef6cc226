import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { useWatch } from "../observable";
import type { Actions } from "./actions";
import { labelOf, type Command, type CommandId } from "./command";

export const ActionsContext = createContext<Actions | null>(null);

/** Return the commands of the mounted workbench. */
export function useActions(): Actions {
  const actions = useContext(ActionsContext);
  if (!actions) throw new Error("rendered outside of a frame");
  return actions;
}

/** A command at the current state. */
export interface CommandState {
  readonly command: Command;
  readonly label: string;
  readonly visible: boolean;
  /** Why the command cannot run, empty if it can. */
  readonly reason: string;
  readonly caption: string;
  readonly checked: boolean | undefined;
  readonly run: () => void;
}

/** Return a command at the current state; the component renders again when that changes. */
export function useCommand(id: CommandId): CommandState {
  const actions = useActions();
  const command = actions.command(id);
  const { store, view } = actions;
  const look = (): string => {
    const enabled = actions.enabled(command);
    return enabled === true ? "" : enabled;
  };
  const reason = useWatch(store.state, look);
  useWatch(view.state, look);
  const visible = useWatch(store.state, (state) => command.visible?.(state) ?? true);
  const label = useWatch(store.state, (state) => labelOf(command, state));
  const caption = useWatch(store.state, (state) => command.caption?.(state) ?? "");
  const checked = useWatch(view.state, (state) => command.checked?.(store.state.value, state));
  useWatch(store.state, (state) => command.checked?.(state, view.value));
  return { command, label, visible, reason, caption, checked, run: () => actions.run(command) };
}
