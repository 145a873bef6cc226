import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { tokenize } from "../code/tokenize";
import type { TraceLine } from "../protocol";
import { Icon, type IconName } from "../ui/icons";

const MARKS: Readonly<Record<TraceLine["status"], readonly [IconName, string]>> = {
  done: ["check", "applied"],
  query: ["search", "query"],
  opaque: ["info", "opaque: unknown step"],
  pending: ["clock", "pending"],
};

/** The properties that all rows of the trace have. */
export interface RowProps {
  readonly index: number;
  readonly level: number;
  readonly tabStop: boolean;
  readonly onFocus: () => void;
}

interface StepProps extends RowProps {
  readonly line: TraceLine;
  /** The reason why the step does not apply, empty for all others. */
  readonly reason: string;
  readonly editing: boolean;
  readonly onEdit: (editing: boolean) => void;
  readonly onChange: (text: string) => void;
}

/** A row with one step of the trace, which a double click or Enter makes editable. */
export function StepRow({ line, reason, editing, onEdit, onChange, ...row }: StepProps): JSX.Element {
  if (editing)
    return (
      <li {...treeItem(row)} class="tw-trace-line">
        <Gutter number={line.index} level={row.level} status={line.status} />
        <StepEditor text={line.text} onEdit={onEdit} onChange={onChange} />
      </li>
    );
  return (
    <li {...treeItem(row)} class={`tw-trace-line is-${line.status}`} title="Double-click or press Enter to change the step" onDblClick={() => onEdit(true)}>
      <Gutter number={line.index} level={row.level} status={line.status} />
      <TraceCode text={line.text}>
        {line.decisions === "" ? null : <span class="tw-line-label">{line.decisions}</span>}
        {reason === "" ? null : (
          <span class="tw-trace-reason">
            <Icon name="cross" size={12} /> {reason}
          </span>
        )}
      </TraceCode>
      <StepTime milliseconds={line.milliseconds} />
    </li>
  );
}

interface EditorProps {
  readonly text: string;
  readonly onEdit: (editing: boolean) => void;
  readonly onChange: (text: string) => void;
}

/** The text field of a step: Enter replays the changed trace, Escape cancels. */
function StepEditor({ text, onEdit, onChange }: EditorProps): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    field.current?.focus(); // before the next key
    field.current?.setSelectionRange(text.length, text.length);
  }, []);
  const keys = (event: KeyboardEvent): void => {
    if (event.key === "Escape") {
      event.stopPropagation();
      onEdit(false);
    }
    if (event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    onChange(field.current?.value ?? text);
  };
  return (
    <input ref={field} class="tw-input tw-mono tw-trace-edit" aria-label="Step as Python" defaultValue={text} spellcheck={false} autocomplete="off" onKeyDown={keys} />
  );
}

/** Return the attributes of a tree item with roving tabindex. */
export function treeItem({ index, level, tabStop, onFocus }: RowProps): JSX.IntrinsicElements["li"] {
  const roving = { "data-roving": index };
  return { role: "treeitem", "aria-level": level, tabIndex: tabStop ? 0 : -1, onFocus, ...roving };
}

interface GutterProps {
  readonly number: number;
  readonly level: number;
  readonly status: TraceLine["status"];
}

/** The number of a row, its indentation and its status. */
export function Gutter({ number, level, status }: GutterProps): JSX.Element {
  const [icon, meaning] = MARKS[status];
  return (
    <>
      <span class="tw-trace-number">{number}</span>
      <span class="tw-trace-indent" style={{ width: `${String((level - 1) * 18)}px` }} />
      <span class="tw-trace-mark" role="img" aria-label={meaning} title={meaning}>
        <Icon name={icon} size={13} />
      </span>
    </>
  );
}

/** The highlighted Python text of a row, followed by labels. */
export function TraceCode({ text, children }: { text: string; children?: ComponentChildren }): JSX.Element {
  return (
    <code title={text}>
      {tokenize(shortened(text)).map((token, index) => (
        <span key={index} class={`tw-tok-${token.kind}`}>
          {token.text}
        </span>
      ))}
      {children}
    </code>
  );
}

/** The duration of a step. */
export function StepTime({ milliseconds }: { milliseconds: number | null }): JSX.Element {
  return <span class="tw-trace-time">{milliseconds === null ? "" : `${milliseconds.toFixed(1)} ms`}</span>;
}

const MAX_NAMES = 4;

/** Return a line with only the first names of a long list of results. */
export function shortened(text: string): string {
  const at = text.indexOf(" = sch.");
  const names = text.slice(0, Math.max(0, at)).split(", ");
  if (names.length <= MAX_NAMES + 1) return text;
  return `${names.slice(0, MAX_NAMES).join(", ")}, … ${String(names.length - MAX_NAMES)} more${text.slice(at)}`;
}
