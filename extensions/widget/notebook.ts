// The metadata of a notebook in which JupyterLab stores widgets, to display them without their kernel.
import type { Observable } from "../core/observable";
import { toText } from "../core/saved";
import type { State, Store } from "../core/store";

const STATE = "application/vnd.jupyter.widget-state+json";
const VIEW = "application/vnd.jupyter.widget-view+json";

/** The traits of the widget's model that are stored; the model is created from them again. */
const TRAITS = [
  "_anywidget_id",
  "_css",
  "_esm",
  "_height",
  "_id",
  "_model_module",
  "_model_module_version",
  "_model_name",
  "_view_module",
  "_view_module_version",
  "_view_name",
] as const;

export type Trait = (typeof TRAITS)[number] | "_saved";

interface List<Item> {
  readonly length: number;
  get(index: number): Item;
}

interface Cell {
  readonly outputs?: List<{ readonly data: Readonly<Record<string, unknown>> }>;
}

/** The part of JupyterLab's model of a notebook that is used here. */
interface Notebook {
  dirty: boolean;
  readonly cells: List<Cell>;
  getMetadata(key: string): unknown;
  setMetadata(key: string, value: unknown): void;
}

/** The part of JupyterLab's context of an open notebook that is used here. */
export interface Context {
  readonly model: Notebook;
  readonly saveState: { connect(listener: (sender: unknown, state: string) => void): void };
}

interface Stored {
  readonly state: Readonly<Record<string, unknown>>;
}

/** Store the last state of a workbench in its notebook each time that the notebook is saved. */
export function keepInNotebook(context: Context, store: Store, get: (trait: Trait) => unknown): void {
  context.saveState.connect((_sender, state) => {
    if (state === "started") save(context.model, store, get);
  });
  onEdit(store.state, () => {
    context.model.dirty = true;
  });
}

/** Call a listener when a step or a measurement changes a state that was received before. */
function onEdit(states: Observable<State>, listener: () => void): void {
  let before = states.value;
  states.subscribe(() => {
    const now = states.value;
    const noted = now.history !== before.history && notes(now) !== notes(before);
    const edited = now.history.head !== before.history.head || now.measurement !== before.measurement || noted;
    if (before.connected && edited) listener();
    before = now;
  });
}

function notes({ history }: State): string {
  return JSON.stringify(history.nodes.map((node) => node.note));
}

/** Replace the entry of this workbench in the metadata, and remove those of removed outputs. */
function save(notebook: Notebook, store: Store, get: (trait: Trait) => unknown): void {
  const widgets = (notebook.getMetadata("widgets") ?? {}) as Readonly<Record<string, unknown>>;
  const stored = widgets[STATE] as { readonly state?: Readonly<Record<string, Stored>> } | undefined;
  const ids = displayed(notebook);
  const others = Object.entries(stored?.state ?? {}).filter(([id, model]) => ids.has(id) || !("_saved" in model.state));
  const state: Record<string, Stored> = Object.fromEntries(others);
  const id = String(get("_id"));
  if (ids.has(id) && store.state.value.connected) state[id] = entry(store, get);
  notebook.setMetadata("widgets", { ...widgets, [STATE]: { version_major: 2, version_minor: 0, state } });
}

function entry(store: Store, get: (trait: Trait) => unknown): Stored {
  const traits = Object.fromEntries(TRAITS.map((trait) => [trait, get(trait)]));
  const model = { model_name: get("_model_name"), model_module: get("_model_module"), model_module_version: get("_model_module_version") };
  return { ...model, state: { ...traits, _saved: toText(store.state.value, store.copy) } };
}

/** Return the ids of the widgets in the outputs of a notebook. */
function displayed(notebook: Notebook): ReadonlySet<string> {
  const outputs = items(notebook.cells).flatMap((cell) => (cell.outputs ? items(cell.outputs) : []));
  return new Set(outputs.map(({ data }) => String((data[VIEW] as { model_id?: string } | undefined)?.model_id)));
}

function items<Item>(list: List<Item>): Item[] {
  return Array.from({ length: list.length }, (_, index) => list.get(index));
}
