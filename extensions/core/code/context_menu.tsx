import { unfoldAll, unfoldCode } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { render, type JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { focusRoving, nextIndex } from "../ui/roving";
import { foldEverything, foldHere } from "./fold";
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

/** Show a menu for the text under the pointer in place of the one of the notebook. */
export function contextMenu(tools: TextTools, more: Entries): Extension {
  return EditorView.domEventHandlers({
    contextmenu: (event, view) => {
      event.preventDefault();
      event.stopPropagation();
      const position = view.posAtCoords({ x: event.clientX, y: event.clientY }, false);
      const entries = [...selectionEntries(view), ...more(view, position), ...textEntries(tools, position)];
      open(view, entries, event);
      return true;
    },
  });
}

function selectionEntries(view: EditorView): Entry[] {
  if (view.state.selection.main.empty) return [];
  // The clipboard of `navigator` needs HTTPS; this sends the event that CodeMirror answers.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  return [{ label: "Copy", keys: "Ctrl+C", run: () => document.execCommand("copy") }];
}

function textEntries(tools: TextTools, position: number): Entry[] {
  const here = (view: EditorView): void => view.dispatch({ selection: { anchor: position } });
  const fold = (view: EditorView): void => {
    here(view);
    if (!unfoldCode(view)) foldHere(view);
  };
  return [
    { label: "Find…", keys: "Ctrl+F", run: () => tools.find() },
    { label: "Fold or unfold", keys: "− +", run: fold },
    { label: "Fold bodies", keys: "", run: foldEverything },
    { label: "Unfold bodies", keys: "", run: unfoldAll },
    { label: "Wrap lines", keys: "w", checked: tools.wrap.value, run: () => tools.toggleWrap() },
  ];
}

function open(view: EditorView, entries: readonly Entry[], event: MouseEvent): void {
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
  render(<Menu entries={entries} x={event.clientX - frame.left} y={event.clientY - frame.top} onRun={run} onClose={close} />, host);
}

interface MenuProps {
  readonly entries: readonly Entry[];
  readonly x: number;
  readonly y: number;
  readonly onRun: (entry: Entry) => void;
  readonly onClose: (refocus: boolean) => void;
}

/** A menu at a position of the text; its first entry gets the focus. */
function Menu({ entries, x, y, onRun, onClose }: MenuProps): JSX.Element {
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
    <div class="tw-menu" role="menu" aria-label="Text" ref={list} onKeyDown={press}>
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
