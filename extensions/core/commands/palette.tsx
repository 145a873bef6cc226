import type { JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useWatch } from "../observable";
import { Icon } from "../ui/icons";
import { reveal } from "../ui/reveal";
import { nextIndex } from "../ui/roving";
import type { Actions } from "./actions";
import { itemsOf, matching, type Group, type Item } from "./palette_items";

interface PaletteProps {
  readonly actions: Actions;
  /** The element that gets the focus if the one that had it no longer exists. */
  readonly root: { readonly current: HTMLElement | null };
}

/** The dialog that lists all commands with their keys and all functions, displayed while it is open. */
export function Palette({ actions, root }: PaletteProps): JSX.Element | null {
  const open = useWatch(actions.dialog, (dialog) => dialog === "palette");
  return open ? <PaletteDialog actions={actions} root={root} /> : null;
}

function PaletteDialog({ actions, root }: PaletteProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [query, setQuery] = useState("");
  const [active, setActive] = useState(0);
  const id = useId();
  const state = useWatch(actions.store.state, (value) => value);
  const groups = useMemo(() => matching(itemsOf(actions, state), query), [actions, state, query]);
  const items = groups.flatMap((group) => group.items);
  const at = Math.min(active, items.length - 1);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const close = (): void => {
    dialog.current?.close(); // returns the focus to the element that had it
    if (document.activeElement === document.body) root.current?.focus();
    actions.show("");
  };
  const choose = (item: Item | undefined): void => {
    if (!item || item.disabled) return;
    close();
    item.run();
  };
  const press = (event: KeyboardEvent): void => {
    event.stopPropagation();
    if (event.key === "Escape") {
      event.preventDefault();
      close();
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(items[at]);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setActive(nextIndex(event.key, at, items.length) ?? 0);
    } else if (event.key === "Tab") {
      event.preventDefault(); // the field is the only control
    }
  };
  return (
    <dialog
      ref={dialog}
      class="tw-palette"
      aria-label="Commands and functions"
      onKeyDown={press}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) close();
      }}
    >
      <div class="tw-palette-box">
        <label class="tw-search">
          <Icon name="search" size={14} />
          <input
            type="text"
            role="combobox"
            aria-label="Find a command or a function"
            aria-expanded="true"
            aria-autocomplete="list"
            aria-controls={`${id}-list`}
            aria-activedescendant={items.length > 0 ? `${id}-${String(at)}` : undefined}
            placeholder="Find a command or a function"
            autocomplete="off"
            spellcheck={false}
            value={query}
            onInput={({ currentTarget: { value } }) => {
              setQuery(value);
              setActive(0);
            }}
          />
        </label>
        <Options id={id} groups={groups} active={at} onPoint={setActive} onChoose={choose} />
        <p class="tw-palette-status" role="status">
          {items.length === 0 ? "No command or function matches" : `${String(items.length)} found`}
        </p>
      </div>
    </dialog>
  );
}

interface OptionsProps {
  readonly id: string;
  readonly groups: readonly Group[];
  readonly active: number;
  readonly onPoint: (index: number) => void;
  readonly onChoose: (item: Item) => void;
}

/** The list of items by group; the field keeps the focus. */
function Options({ id, groups, active, onPoint, onChoose }: OptionsProps): JSX.Element {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => reveal(list.current?.querySelector('[aria-selected="true"]')), [active, groups]);
  let index = -1;
  return (
    <div class="tw-palette-list tw-scroll" role="listbox" id={`${id}-list`} aria-label="Commands and functions" ref={list} onMouseDown={(event) => event.preventDefault()}>
      {groups.map(({ title, items }) => (
        <div key={title} role="group" aria-label={title}>
          <div class="tw-palette-group" aria-hidden="true">
            {title}
          </div>
          {items.map((item) => {
            const at = ++index;
            return (
              <Option key={item.key} id={`${id}-${String(at)}`} item={item} isActive={at === active} onPoint={() => onPoint(at)} onChoose={() => onChoose(item)} />
            );
          })}
        </div>
      ))}
    </div>
  );
}

interface OptionProps {
  readonly id: string;
  readonly item: Item;
  readonly isActive: boolean;
  readonly onPoint: () => void;
  readonly onChoose: () => void;
}

function Option({ id, item, isActive, onPoint, onChoose }: OptionProps): JSX.Element {
  return (
    <div class="tw-palette-item" role="option" id={id} aria-selected={isActive} aria-disabled={item.disabled} onPointerMove={onPoint} onClick={onChoose}>
      <span class="tw-palette-icon">{item.icon ? <Icon name={item.icon} size={14} /> : null}</span>
      <span class="tw-palette-label">{item.label}</span> <span class="tw-palette-detail">{item.detail}</span>{" "}
      {item.keys.map((keys) => (
        <kbd key={keys}>{keys}</kbd>
      ))}
    </div>
  );
}
