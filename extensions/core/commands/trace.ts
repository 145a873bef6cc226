import type { Document } from "../protocol";
import type { State } from "../store";
import { copyTrace, loadTrace, saveTrace } from "../trace/document";
import type { Command } from "./command";

const GROUP = "Trace";
const LOST = "The Jupyter kernel is not connected";

/** Return whether the trace can be written, or why not; without the kernel, the browser has it as JSON. */
function canWrite(format: Document["format"]): (state: State) => true | string {
  return ({ trace, alive }) => {
    if (trace.lines.length === 0) return "No steps yet";
    return alive || format === "json" || LOST;
  };
}

const copyPython: Command = {
  id: "tilewright:copy-trace-python",
  label: "Copy the trace as Python",
  group: GROUP,
  icon: "copy",
  keys: [],
  caption: () => "Copy the steps as Python for a cell",
  enabled: canWrite("python"),
  run: ({ store }) => copyTrace(store, "python"),
};

const copyJson: Command = {
  id: "tilewright:copy-trace-json",
  label: "Copy the trace as JSON",
  group: GROUP,
  icon: "copy",
  keys: [],
  caption: () => "Copy the steps as JSON, with the notes",
  enabled: canWrite("json"),
  run: ({ store }) => copyTrace(store, "json"),
};

const saveJson: Command = {
  id: "tilewright:save-trace-json",
  label: "Save the trace as JSON",
  group: GROUP,
  icon: "save",
  keys: [],
  caption: () => "Save the steps as a JSON file, with the notes",
  enabled: canWrite("json"),
  run: ({ store }) => saveTrace(store, "json"),
};

const savePython: Command = {
  id: "tilewright:save-trace-python",
  label: "Save the trace as Python",
  group: GROUP,
  icon: "save",
  keys: [],
  caption: () => "Save the steps as a Python file",
  enabled: canWrite("python"),
  run: ({ store }) => saveTrace(store, "python"),
};

const load: Command = {
  id: "tilewright:load-trace",
  label: "Load a trace…",
  group: GROUP,
  icon: "load",
  keys: [],
  caption: () => "Replay the steps of a JSON or Python file on the program as it was opened; undo returns",
  enabled: ({ alive }) => alive || LOST,
  run: ({ store }) => loadTrace(store),
};

/** The commands that copy, save, and load the trace. */
export const TRACE_COMMANDS: readonly Command[] = [copyPython, copyJson, savePython, saveJson, load];
