import { showStage, shownStage, stageTabs } from "../panels/stages";
import { textAt } from "../merge";
import type { State } from "../store";
import type { ViewState } from "../view_state";
import type { Stage } from "../protocol";
import type { Command, CommandId } from "./command";

const GROUP = "Lowering";
const WITHIN = ".tw-lowered .cm-content";

/** Return the stage before or after the displayed one. */
function neighbor(state: State, view: ViewState, by: 1 | -1): Stage | undefined {
  const stage = shownStage(state, view);
  const at = state.stages.findIndex((other) => other.name === stage?.name);
  return at < 0 ? undefined : state.stages[at + by];
}

function move(id: CommandId, label: string, key: string, by: 1 | -1): Command {
  return {
    id,
    label,
    group: GROUP,
    icon: "chevron",
    keys: [key],
    within: WITHIN,
    visible: (state) => state.stages.length > 0,
    enabled: (state, view) => {
      if (!shownStage(state, view)) return "No stage is displayed";
      return neighbor(state, view, by) !== undefined || (by > 0 ? "The last stage is displayed" : "The first stage is displayed");
    },
    run: ({ store, view }) => {
      const stage = neighbor(store.state.value, view.value, by);
      if (stage) showStage(view, stage);
    },
  };
}

const compare: Command = {
  id: "tilewright:compare-stages",
  label: "Show the change by the stage",
  group: GROUP,
  keys: ["D"],
  within: WITHIN,
  visible: (state) => state.stages.length > 0,
  checked: (_state, view) => view.compares,
  caption: () => "Show the change by the stage",
  enabled: (state, view) => {
    const stage = shownStage(state, view);
    if (!stage) return "No stage is displayed";
    const text = textAt(state, state.history.head, state.open, stage.name);
    return text?.previous !== "" || "The stage translates to another form";
  },
  run: ({ view }) => view.set("compares", !view.value.compares),
};

function level(key: string, label: (emits: string) => string): Command {
  const tab = ({ stages, target }: State): string | undefined => stageTabs(stages, target).find((other) => other.key === key)?.label;
  return {
    id: `tilewright:show-${key}`,
    label: (state) => label(tab(state) ?? ""),
    group: GROUP,
    keys: [],
    visible: (state) => tab(state) !== undefined,
    enabled: () => true,
    run: ({ view }) => {
      view.set("level", key);
      view.set("pane", "function");
    },
  };
}

const showProgram: Command = {
  id: "tilewright:show-program",
  label: "Show the text of the program",
  group: GROUP,
  keys: [],
  enabled: () => true,
  run: ({ view }) => {
    view.set("level", "ir");
    view.set("pane", "function");
  },
};

/** The commands for the open function after the stages of lowering. */
export const STAGE_COMMANDS: readonly Command[] = [
  showProgram,
  level("passes", () => "Show the passes"),
  level("llvm", () => "Show LLVM IR"),
  level("assembly", (emits) => `Show ${emits === "PTX" ? emits : "the assembly"}`),
  level("wgsl", () => "Show WGSL"),
  move("tilewright:previous-stage", "Previous stage", "[", -1),
  move("tilewright:next-stage", "Next stage", "]", 1),
  compare,
];
