// The names that a step of the trace may contain: steps, results of earlier steps, and parts of the program.
import type { PaneModel } from "../pane";
import type { Handle, StepInfo, Trace } from "../protocol";
import { paneOf, type State } from "../store";

/** A name with its meaning. */
export interface Name {
  /** The name as Python text; that of a part of the program is in quotes. */
  readonly text: string;
  readonly kind: "step" | "parameter" | "value" | "result" | Handle["kind"];
  readonly detail: string;
}

/** The names at a state. */
export interface Names {
  readonly steps: readonly StepInfo[];
  readonly trace: Trace;
  readonly parts: readonly Name[];
}

/** Return the names at a state; those of the open function are first. */
export function namesOf(state: State): Names {
  const { functions, open, graph, catalog, trace } = state;
  const order = [...functions].sort((one, other) => Number(other.name === open) - Number(one.name === open));
  const parts = [
    ...order.map(({ name, level }) => part(name, "function", level === "graph" ? "graph" : "kernel")),
    ...order.flatMap(({ name }) => partsOf(paneOf(state, name))),
    ...(graph?.nodes ?? []).filter(({ kind }) => kind !== "result").map(({ name, op }) => part(name, "binding", `${op} in ${graph?.function ?? ""}`)),
  ];
  return { steps: catalog, trace, parts: distinct(parts) };
}

/** Return the loops, blocks, and buffers of a function. */
function partsOf(pane: PaneModel | null): readonly Name[] {
  if (pane?.level !== "loop") return [];
  const scopes = pane.scopes.flatMap(({ header }) => {
    if (!header) return [];
    const isBlock = header.kind === "block";
    const detail = isBlock ? "block" : `loop of ${header.extent}`;
    return [part(header.name, isBlock ? "block" : "loop", `${detail} in ${pane.name}`)];
  });
  const buffers = pane.spans.flatMap(({ kind, defined, line, column }) => {
    const name = kind === "buffer" && defined ? /^\s*(\w+)/.exec((pane.lines[line] ?? "").slice(column))?.[1] : undefined;
    return name === undefined ? [] : [part(name, "buffer", `buffer of ${pane.name}`)];
  });
  return [...scopes, ...buffers];
}

function part(name: string, kind: Handle["kind"], detail: string): Name {
  return { text: `'${name}'`, kind, detail };
}

/** Return the results of the steps before a step, the last one first. */
export function resultsBefore({ lines }: Trace, index: number): readonly Name[] {
  const results = lines.slice(0, index).flatMap(({ text, step, index: at }) => {
    const names = /^([\w, ]+?),? = sch\./.exec(text)?.[1] ?? "";
    return names.split(",").map((name): Name => ({ text: name.trim(), kind: "result", detail: `result of ${step}, step ${String(at)}` }));
  });
  return distinct(results.filter(({ text }) => text !== "").reverse());
}

/** Return the names without repeated ones. */
function distinct(names: readonly Name[]): readonly Name[] {
  const found = new Map<string, Name>();
  for (const name of names) {
    const key = `${name.kind} ${name.text}`;
    if (!found.has(key)) found.set(key, name);
  }
  return [...found.values()];
}
