import type { EditorView } from "@codemirror/view";
import type { JSX } from "preact";
import { find, foldBodies, unfoldBodies, wrap, type TextCommand } from "../commands/text";
import { ariaKeys, keyText } from "../commands/keys";
import { Observable, useWatch } from "../observable";
import { Icon } from "../ui/icons";

/** The text that a pane displays. */
export class TextTools {
  readonly wrap: Observable<boolean>;
  readonly view = new Observable<EditorView | null>(null);

  constructor(wraps = false) {
    this.wrap = new Observable(wraps);
  }
}

const BUTTONS = [find, foldBodies, unfoldBodies, wrap] as const;

/** The buttons of the text of a pane. */
export function TextToolbar({ tools }: { tools: TextTools }): JSX.Element | null {
  const present = useWatch(tools.view, (view) => view !== null);
  if (!present) return null;
  return (
    <div class="tw-text-tools" role="group" aria-label="Text">
      {BUTTONS.map((command) => (
        <TextButton key={command.id} command={command} tools={tools} />
      ))}
    </div>
  );
}

function TextButton({ command, tools }: { command: TextCommand; tools: TextTools }): JSX.Element {
  const checked = useWatch(tools.wrap, () => command.checked?.(tools));
  const { label, icon, keys } = command;
  const [first] = keys;
  return (
    <button
      type="button"
      class="tw-tool"
      aria-label={label}
      aria-pressed={checked}
      aria-keyshortcuts={first === undefined ? undefined : ariaKeys(first)}
      title={first === undefined ? label : `${label} (${keyText(first)})`}
      onClick={() => {
        if (tools.view.value) command.run(tools.view.value, tools);
      }}
    >
      {icon ? <Icon name={icon} size={14} /> : null}
    </button>
  );
}
