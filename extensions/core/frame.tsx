import type { ComponentChildren, JSX } from "preact";
import { useCallback, useMemo } from "preact/hooks";
import { Actions } from "./commands/actions";
import { Palette } from "./commands/palette";
import { COMMANDS } from "./commands/registry";
import { ActionsContext } from "./commands/use_command";
import { useWatch } from "./observable";
import type { Store } from "./store";
import { useKeptFocus } from "./ui/focus";
import { belongsHere, isTyping, useOwnKeys } from "./ui/keys";
import { ViewContext } from "./use_view";
import type { View } from "./view_state";

interface FrameProps {
  readonly store: Store;
  readonly view: View;
  readonly root: { current: HTMLDivElement | null };
  readonly class: string;
  readonly children: ComponentChildren;
}

/** The element around a workbench or a single pane: its commands with their keys and palette, its view, and its focus. */
export function Frame({ store, view, root, class: kind, children }: FrameProps): JSX.Element {
  const actions = useMemo(() => new Actions(COMMANDS, store, view), [store, view]);
  const mismatch = useWatch(store.state, (state) => state.mismatch);
  const connected = useWatch(store.state, (state) => state.connected && state.alive);
  const isBound = useCallback((event: KeyboardEvent) => actions.pressed(event) !== undefined, [actions]);
  useOwnKeys(root, isBound);
  useKeptFocus(root);
  return (
    <ViewContext.Provider value={view}>
      <ActionsContext.Provider value={actions}>
        <div class={`tw tw-root ${kind}`} ref={root} onKeyDown={(event) => press(event, actions, root.current)} data-connected={connected} tabIndex={-1}>
          {mismatch ? (
            <p class="tw-mismatch" role="alert">
              The page was loaded by another version of Tilewright. Reload the page, then run the cell again.
            </p>
          ) : null}
          {children}
          <Palette actions={actions} root={root} />
        </div>
      </ActionsContext.Provider>
    </ViewContext.Provider>
  );
}

/** Run the command of a key, unless a control used the key or a text field needs it. */
function press(event: KeyboardEvent, actions: Actions, root: HTMLElement | null): void {
  const command = actions.pressed(event);
  if (event.key === "Escape" && !event.defaultPrevented && isTyping(event.target)) root?.focus();
  if (belongsHere(event, command !== undefined)) event.stopPropagation();
  if (!command || event.defaultPrevented || command.native || (isTyping(event.target) && !command.typing)) return;
  event.preventDefault();
  actions.run(command);
}
