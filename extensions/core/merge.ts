// Merging of updates into the state: sections are replaced, lists are spliced, texts are cached.
import { readOverlay } from "./overlay";
import { readPane, type PaneModel } from "./pane";
import type { FunctionItem, GraphView, History, Lowered, MeasurementRecord, Pane, Trace, Update } from "./protocol";
import type { State } from "./store";

const MAX_PANES = 64;
const MAX_TEXTS = 24;

/** The part of a list that changed: all but its first `keep` and its last `tail` elements. */
interface Change {
  readonly keep?: number;
  readonly tail?: number;
}

/** Return a list after a change. */
function spliced<Item>(list: readonly Item[], items: readonly Item[], { keep = 0, tail = 0 }: Change): readonly Item[] {
  return [...list.slice(0, keep), ...items, ...list.slice(list.length - tail)];
}

/** Return a section without the numbers of a change. */
function whole<Section extends Change>(section: Section): Section {
  const entries = Object.entries(section).filter(([name]) => name !== "keep" && name !== "tail");
  return Object.fromEntries(entries) as unknown as Section;
}

/** The sections of a state whose lists are sent as changes. */
interface Lists {
  readonly functions: readonly FunctionItem[];
  readonly records: readonly MeasurementRecord[];
  readonly graph: GraphView | null;
  readonly trace: Trace;
  readonly history: History;
}

function lists(state: Lists, { functions, records, graph, trace, history }: Partial<Pick<Update, keyof Lists>>): Lists {
  return {
    functions: functions ? spliced(state.functions, functions.items, functions) : state.functions,
    records: records ? spliced(state.records, records.items, records) : state.records,
    graph: graph ? { ...whole(graph), nodes: spliced(state.graph?.nodes ?? [], graph.nodes, graph) } : state.graph,
    trace: trace ? { ...whole(trace), lines: spliced(state.trace.lines, trace.lines, trace) } : state.trace,
    history: history ? { ...whole(history), nodes: spliced(state.history.nodes, history.nodes, history) } : state.history,
  };
}

/** Return a state with an update. */
export function merge(state: State, update: Update, buffers: readonly DataView[]): State {
  const { panes, functions, records, graph, trace, history, heat, ...sections } = update;
  return {
    ...state,
    ...sections,
    ...lists(state, { functions, records, graph, trace, history } as Partial<Pick<Update, keyof Lists>>),
    heat: heat ? readOverlay(heat, buffers) : state.heat,
    panes: panes ? addPanes(state.panes, panes, buffers) : state.panes,
    texts: update.lowered ? addText(state.texts, update.lowered) : state.texts,
    connected: true,
  };
}

/** Return the text of a function after a stage at a state, undefined if it was not received. */
export function textAt(state: State, head: string, name: string, stage: string): Lowered | undefined {
  return state.texts.get(textKey(head, name, stage));
}

function textKey(head: string, name: string, stage: string): string {
  return `${head} ${stage} ${name}`;
}

function addText(texts: ReadonlyMap<string, Lowered>, lowered: Lowered): ReadonlyMap<string, Lowered> {
  if (lowered.problem) return texts;
  const key = textKey(lowered.state, lowered.function, lowered.stage);
  const kept = [...texts].filter(([other]) => other !== key).slice(1 - MAX_TEXTS);
  return new Map([...kept, [key, lowered]]);
}

function addPanes(
  cached: ReadonlyMap<string, PaneModel>,
  received: readonly Pane[],
  buffers: readonly DataView[],
): ReadonlyMap<string, PaneModel> {
  const panes = new Map(cached);
  for (const pane of received) {
    panes.delete(pane.hash);
    panes.set(pane.hash, readPane(pane, buffers[pane.buffer] ?? new DataView(new ArrayBuffer(0))));
  }
  for (const hash of panes.keys()) {
    if (panes.size <= MAX_PANES) break;
    panes.delete(hash);
  }
  return panes;
}
