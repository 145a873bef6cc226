import type { JSX } from "preact";
import { Icon } from "../ui/icons";
import type { CommandId } from "./command";
import { ariaKeys, keyText } from "./keys";
import { useCommand } from "./use_command";

interface ButtonProps {
  readonly id: CommandId;
  /** `tool` displays only the icon, and `compact` hides the label in a narrow toolbar. */
  readonly kind?: "plain" | "primary" | "tool" | "compact";
  readonly size?: number;
  readonly class?: string;
  readonly label?: string;
  /** The role by which the focus is kept. */
  readonly focus?: string;
}

/** A button that runs a command; it is not displayed if the command has no meaning for the program. */
export function CommandButton({ id, kind = "plain", size = 14, class: extra = "", label, focus }: ButtonProps): JSX.Element | null {
  const { command, visible, reason, caption, checked, run, ...state } = useCommand(id);
  if (!visible) return null;
  const [keys] = command.keys;
  const text = label ?? state.label;
  const effect = caption || (kind === "tool" ? text : "");
  const title = reason || `${effect}${keys === undefined ? "" : ` (${keyText(keys)})`}`.trim();
  const classes = kind === "tool" ? "tw-tool" : `tw-button${kind === "primary" ? " tw-primary" : ""}`;
  return (
    <button
      type="button"
      class={`${classes} ${extra}`.trim()}
      aria-label={kind === "tool" || kind === "compact" ? text : undefined}
      aria-disabled={reason !== ""}
      aria-pressed={checked}
      aria-keyshortcuts={keys === undefined ? undefined : ariaKeys(keys)}
      title={title === "" ? undefined : title}
      data-focus={focus}
      onClick={run}
    >
      {command.icon ? <Icon name={command.icon} size={size} /> : null}
      {kind === "tool" ? null : <span class={kind === "compact" ? "tw-optional" : undefined}>{text}</span>}
    </button>
  );
}
