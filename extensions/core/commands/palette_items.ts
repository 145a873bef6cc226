import type { State } from "../store";
import type { IconName } from "../ui/icons";
import type { Actions } from "./actions";
import { labelOf, type Command } from "./command";
import { keyText } from "./keys";

/** An item of the palette: a command, or a function to open. */
export interface Item {
  readonly key: string;
  readonly group: string;
  readonly icon: IconName | undefined;
  readonly label: string;
  /** The text behind the label: the reason why the item cannot be chosen, or its use. */
  readonly detail: string;
  readonly keys: readonly string[];
  readonly disabled: boolean;
  readonly run: () => void;
}

export interface Group {
  readonly title: string;
  readonly items: readonly Item[];
}

const FUNCTIONS = "Functions";
/** The largest number of items that are listed of each group. */
const MAX_ITEMS = 200;

/** Return the commands that have a meaning for the program, and its functions. */
export function itemsOf(actions: Actions, state: State): Item[] {
  const commands = actions.commands.filter((command) => command.id !== "tilewright:palette" && (command.visible?.(state) ?? true));
  return [...commands.map((command) => commandItem(actions, command, state)), ...state.functions.map((item) => functionItem(actions, item, state.open))];
}

function commandItem(actions: Actions, command: Command, state: State): Item {
  const enabled = actions.enabled(command);
  const label = labelOf(command, state);
  const caption = command.caption?.(state) ?? "";
  return {
    key: command.id,
    group: command.group,
    icon: command.icon,
    label,
    detail: enabled === true ? (caption === label ? "" : caption) : enabled,
    keys: command.keys.map(keyText),
    disabled: enabled !== true,
    run: () => actions.run(command),
  };
}

function functionItem(actions: Actions, { name, level, calls }: State["functions"][number], open: string): Item {
  const count = calls > 1 ? `, ${String(calls)} calls` : "";
  return {
    key: `function ${name}`,
    group: FUNCTIONS,
    icon: level === "graph" ? "graph" : "loop",
    label: name,
    detail: `${level === "graph" ? "graph" : "kernel"}${count}${name === open ? ", open" : ""}`,
    keys: [],
    disabled: false,
    run: () => {
      actions.store.send({ type: "open", function: name });
      actions.view.set("pane", "function");
    },
  };
}

/**
 * Return the items that match a text, by group, the best ones first. Items that cannot be chosen
 * follow the others of their group.
 */
export function matching(items: readonly Item[], query: string): Group[] {
  const wanted = query.trim().toLowerCase();
  const ranked = items.map((item, order) => ({ item, order, rank: rankOf(item, wanted) })).filter(({ rank }) => rank < NONE);
  const cost = ({ item, rank }: (typeof ranked)[number]): number => rank + (item.disabled ? NONE : 0);
  const sorted = ranked.sort((one, other) => cost(one) - cost(other) || one.order - other.order).map(({ item }) => item);
  const titles = [...new Set((wanted === "" ? items : sorted).map(({ group }) => group))];
  return titles
    .map((title) => ({ title, items: sorted.filter(({ group }) => group === title).slice(0, MAX_ITEMS) }))
    .filter(({ items: found }) => found.length > 0);
}

/** The rank of an item that does not match. */
const NONE = 10;

/** Return how well an item matches a text: at its start, at a word, within it, or only word by word. */
function rankOf({ label, group }: Item, wanted: string): number {
  const text = `${label} ${group}`.toLowerCase();
  const at = text.indexOf(wanted);
  if (at === 0) return 0;
  if (at > 0) return /[a-z0-9]$/.test(text.slice(0, at)) ? 2 : 1;
  return wanted.split(/\s+/).every((word) => text.includes(word)) ? 3 : NONE;
}
