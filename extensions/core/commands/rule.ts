import type { KernelRule } from "../protocol";
import { runningJob, type State } from "../store";
import type { Command, Context } from "./command";

const GROUP = "Default schedule";

/** Return the relation of the open kernel to its default rule, null without one. */
export function ruleOfOpen({ rule, open }: State): KernelRule | null {
  return rule !== null && rule.status !== "" && rule.function === open ? rule : null;
}

function has(...statuses: readonly KernelRule["status"][]): (state: State) => boolean {
  return (state) => {
    const rule = ruleOfOpen(state);
    if (!rule) return false;
    // A kernel that the rule of another one created has no rule of its own to leave.
    return statuses.includes(rule.status) && (rule.base === "" || rule.status === "compiled" || rule.status === "follows");
  };
}

function idle(state: State): true | string {
  return runningJob(state)?.kind !== "run" || "A job is running";
}

function use(action: "lower" | "take" | "return"): (context: Context) => void {
  return ({ store }) => store.useRule(action, ruleOfOpen(store.state.value)?.function ?? "");
}

const lower: Command = {
  id: "tilewright:lower-graph",
  label: "Lower the graph",
  group: GROUP,
  keys: [],
  visible: has("compiled"),
  enabled: idle,
  run: use("lower"),
};

const take: Command = {
  id: "tilewright:take-schedule",
  label: "Take the default schedule",
  group: GROUP,
  keys: [],
  visible: has("compiled", "follows"),
  enabled: idle,
  run: use("take"),
};

const similar: Command = {
  id: "tilewright:find-similar",
  label: "Apply to similar kernels…",
  group: GROUP,
  keys: [],
  visible: has("taken", "left"),
  enabled: idle,
  run: ({ store }) => store.applyToSimilar(ruleOfOpen(store.state.value)?.function ?? "", true),
};

const giveBack: Command = {
  id: "tilewright:return-to-rule",
  label: "Return to the default rule",
  group: GROUP,
  keys: [],
  visible: has("taken", "left"),
  enabled: idle,
  run: use("return"),
};

/** The commands for the default rule of the open kernel. */
export const RULE_COMMANDS: readonly Command[] = [lower, take, similar, giveBack];
