import type { Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { render, type JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { keyText } from "../commands/keys";
import { copy, find, fold, foldBodies, unfold, unfoldBodies, wrap, type TextCommand } from "../commands/text";
import { focusRoving, nextIndex } from "../ui/roving";
import type { TextTools } from "./tools";

/** An entry of the menu; an entry that does not apply is not listed. */
export interface Entry {
  readonly label: string;
  readonly keys: string;
  readonly checked?: boolean;
  readonly run: (view: EditorView) => unknown;
}

/** Return the entries for a position in the text. */
export type Entries = (view: EditorView, position: number) => readonly Entry[];

const MARGIN = 6;
const COMMANDS = [find, fold, unfold, foldBodies, unfoldBodies, wrap] as const;

/** Show a menu for the text under the pointer in place of the one of the notebook. */
export function contextMenu(tools: TextTools, more: Entries): Extension {
  return EditorView.domEventHandlers({
    contextmenu: (event, view) => {
      showMenu(view, tools, more, event, view.posAtCoords({ x: event.clientX, y: event.clientY }, false));
      return true;
    },
  });
}

/** Show the menu for a position of a text at the pointer. */
export function showMenu(view: EditorView, tools: TextTools, more: Entries, event: MouseEvent, position: number): void {
  const entry = entryAt(view, tools, position);
  openMenu(view, "Text", [...entry(copy), ...more(view, position), ...COMMANDS.flatMap(entry)], event);
}

/** Return the function that returns the entry of a command at a position, none if it does not apply there. */
function entryAt(view: EditorView, tools: TextTools, position: number): (command: TextCommand) => Entry[] {
  return (command) => {
    if (command.applies && !command.applies(view, position)) return [];
    const run = (): void => {
      if (command.applies && command !== copy) view.dispatch({ selection: { anchor: position } });
      command.run(view, tools);
    };
    const checked = command.checked ? { checked: command.checked(tools) } : {};
    return [{ label: command.label, keys: command.keys.slice(0, 1).map(keyText).join(), ...checked, run }];
  };
}

/** Show a menu at the pointer in place of the one of the notebook. */
export function openMenu(view: EditorView, label: string, entries: readonly Entry[], event: MouseEvent): void {
  event.preventDefault();
  event.stopPropagation();
  const host = document.createElement("div");
  const frame = view.dom.getBoundingClientRect();
  view.dom.append(host);
  const close = (refocus: boolean): void => {
    document.removeEventListener("pointerdown", leave, true);
    render(null, host);
    host.remove();
    if (refocus) view.focus();
  };
  const leave = (press: Event): void => {
    if (!(press.target instanceof Node && host.contains(press.target))) close(false);
  };
  document.addEventListener("pointerdown", leave, true);
  const run = (entry: Entry): void => {
    close(true);
    entry.run(view);
  };
  render(<Menu label={label} entries={entries} x={event.clientX - frame.left} y={event.clientY - frame.top} onRun={run} onClose={close} />, host);
}

interface MenuProps {
  readonly label: string;
  readonly entries: readonly Entry[];
  readonly x: number;
  readonly y: number;
  readonly onRun: (entry: Entry) => void;
  readonly onClose: (refocus: boolean) => void;
}

/** A menu at a position of the text; its first entry gets the focus. */
function Menu({ label, entries, x, y, onRun, onClose }: MenuProps): JSX.Element {
  const list = useRef<HTMLDivElement>(null);
  const active = useRef(0);
  useLayoutEffect(() => {
    const box = list.current;
    focusRoving(box, 0);
    const frame = box?.offsetParent;
    if (!box || !frame) return;
    box.style.left = `${String(Math.max(MARGIN, Math.min(x, frame.clientWidth - box.offsetWidth - MARGIN)))}px`;
    box.style.top = `${String(Math.max(MARGIN, Math.min(y, frame.clientHeight - box.offsetHeight - MARGIN)))}px`;
    focusRoving(box, 0);
  }, []);
  const press = (event: KeyboardEvent): void => {
    event.stopPropagation();
    if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      onClose(true);
    }
    const next = nextIndex(event.key, active.current, entries.length);
    if (next === null) return;
    event.preventDefault();
    active.current = next;
    focusRoving(list.current, next);
  };
  return (
    <div class="tw-menu" role="menu" aria-label={label} ref={list} onKeyDown={press}>
      {entries.map((entry, index) => (
        <button
          key={entry.label}
          type="button"
          role={entry.checked === undefined ? "menuitem" : "menuitemcheckbox"}
          aria-checked={entry.checked}
          tabIndex={index === 0 ? 0 : -1}
          data-roving={index}
          onClick={() => onRun(entry)}
          onPointerEnter={() => {
            active.current = index;
            focusRoving(list.current, index);
          }}
        >
          <span class="tw-menu-check" aria-hidden="true">{entry.checked ? "✓" : ""}</span>
          <span>{entry.label}</span>
          <kbd>{entry.keys}</kbd>
        </button>
      ))}
    </div>
  );
}
