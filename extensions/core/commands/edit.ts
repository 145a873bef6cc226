import { hasMenu, type State } from "../store";
import type { StepData, Suggestion } from "../protocol";
import type { Command } from "./command";

const GROUP = "Edit";

const undo: Command = {
  id: "tilewright:undo",
  label: "Undo",
  group: GROUP,
  icon: "undo",
  keys: ["Accel Z"],
  // The undo of a pending edit waits for its answer.
  enabled: ({ history, editing }) => history.can_undo || editing || "Nothing to undo",
  run: ({ store }) => store.navigate("undo"),
};

const redo: Command = {
  id: "tilewright:redo",
  label: "Redo",
  group: GROUP,
  icon: "redo",
  keys: ["Accel Shift Z", "Accel Y"],
  enabled: ({ history }) => history.can_redo || "Nothing to redo",
  run: ({ store }) => store.navigate("redo"),
};

/** Return the suggested interchange of the selected loop with the loop directly inside it. */
function interchange(state: State): Suggestion | undefined {
  const { selection } = state.selected;
  if (selection?.kind !== "loop" || !hasMenu(state)) return undefined;
  return state.menu?.suggestions.find(({ step, label }) => step === "reorder" && label.endsWith(`, ${selection.name})`));
}

const moveInward: Command = {
  id: "tilewright:move-loop-inward",
  label: "Move the loop inward",
  group: GROUP,
  icon: "loop",
  keys: ["Alt ArrowDown"],
  caption: () => "Exchange the selected loop with the loop directly inside it",
  visible: ({ functions, open }) => functions.some(({ name, level }) => name === open && level === "loop"),
  enabled: (state) => {
    if (state.selected.selection?.kind !== "loop") return "No loop is selected";
    if (!hasMenu(state)) return "The steps of the selection are being checked";
    const found = interchange(state);
    if (!found) return "No loop is directly inside the selected one";
    return found.problems.length === 0 || (found.problems[0]?.message ?? "Illegal");
  },
  run: ({ store }) => {
    const found = interchange(store.state.value);
    if (found) store.apply(found.data);
  },
};

/** Return the interchange of the selected loop with the loop directly around it. */
function interchangeOutward({ selected: { selection, path } }: State): StepData | undefined {
  const around = path.at(-1);
  if (selection?.kind !== "loop" || around?.kind !== "loop") return undefined;
  return { op: "reorder", function: selection.function, handles: { loops: [selection, around] }, values: {} };
}

const moveOutward: Command = {
  id: "tilewright:move-loop-outward",
  label: "Move the loop outward",
  group: GROUP,
  icon: "loop",
  keys: ["Alt ArrowUp"],
  caption: () => "Exchange the selected loop with the loop directly around it",
  visible: ({ functions, open }) => functions.some(({ name, level }) => name === open && level === "loop"),
  enabled: (state) => {
    if (state.selected.selection?.kind !== "loop") return "No loop is selected";
    return interchangeOutward(state) !== undefined || "No loop is directly around the selected one";
  },
  run: ({ store }) => {
    const found = interchangeOutward(store.state.value);
    if (found) store.apply(found);
  },
};

/** The commands that change the program. */
export const EDIT_COMMANDS: readonly Command[] = [undo, redo, moveInward, moveOutward];
