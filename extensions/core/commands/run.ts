import { missingFor } from "../gpu/available";
import { runningJob, type State } from "../store";
import type { Command } from "./command";

const GROUP = "Compile and measure";

/** Return whether compiled code can be run, or why not. */
function canRun(state: State): true | string {
  const missing = state.setup ? missingFor({ key: state.setup.target, missing: state.setup.missing }) : "";
  if (missing !== "") return missing;
  return runningJob(state)?.kind !== "run" || "A job is running";
}

/** Return the open kernel of a module with a graph, empty if there is none. */
function openKernel(state: State): string {
  const item = state.functions.find((other) => other.name === state.open);
  return state.graph !== null && item?.level === "loop" ? item.name : "";
}

const compile: Command = {
  id: "tilewright:compile",
  label: "Compile",
  group: GROUP,
  icon: "hammer",
  keys: ["Alt C"],
  caption: () => "Compile, run at the sample sizes, and compare with the interpreter",
  enabled: canRun,
  run: ({ store }) => void store.send({ type: "run", action: "compile", function: "" }),
};

const measure: Command = {
  id: "tilewright:measure",
  label: "Measure",
  group: GROUP,
  icon: "play",
  keys: ["Alt M"],
  caption: () => "Compile and measure at the sample sizes",
  enabled: canRun,
  run: ({ store }) => void store.send({ type: "run", action: "measure", function: "" }),
};

const measureKernel: Command = {
  id: "tilewright:measure-kernel",
  label: "Measure kernel",
  group: GROUP,
  icon: "clock",
  keys: ["Alt K"],
  caption: (state) => `Measure kernel: compile and measure only ${openKernel(state)} at the sizes of its caller`,
  visible: (state) => openKernel(state) !== "",
  enabled: canRun,
  run: ({ store }) => void store.send({ type: "run", action: "measure", function: openKernel(store.state.value) }),
};

const measureSets: Command = {
  id: "tilewright:measure-sets",
  label: "Measure all sets of sizes",
  group: GROUP,
  icon: "play",
  keys: [],
  caption: () => "Measure the program with each set, one after the other",
  visible: ({ setup }) => (setup?.sets.length ?? 0) > 0,
  enabled: canRun,
  run: ({ store }) => void store.send({ type: "run", action: "measure_sets", function: "" }),
};

const cancel: Command = {
  id: "tilewright:cancel",
  label: "Cancel the running job",
  group: GROUP,
  icon: "cross",
  keys: [],
  visible: (state) => runningJob(state) !== null,
  enabled: (state) => runningJob(state)?.state === "running" || "The job is being canceled",
  run: ({ store }) => {
    const job = runningJob(store.state.value);
    if (job) store.send({ type: "cancel", job: job.key });
  },
};

const setup: Command = {
  id: "tilewright:setup",
  label: "Target and sizes",
  group: GROUP,
  icon: "sliders",
  keys: [],
  visible: (state) => state.setup !== undefined && state.measure_options !== null,
  enabled: () => true,
  run: (context) => context.show("setup"),
};

/** The commands that run compiled code, and those for its conditions. */
export const RUN_COMMANDS: readonly Command[] = [compile, measure, measureKernel, measureSets, cancel, setup];
