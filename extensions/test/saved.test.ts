import { expect, test } from "vitest";
import { VERSION, type TraceCopy } from "../core/protocol";
import { fromText, toText } from "../core/saved";
import { paneOf, Store } from "../core/store";
import { keepInNotebook, type Context, type Trait } from "../widget/notebook";
import { connected, FakeKernel } from "./helpers";

const STATE = "application/vnd.jupyter.widget-state+json";
const copy: TraceCopy = { name: "main.jsonl", program: "p", process: "a", steps: 1, notes: { s1: "why" }, keep: 0, lines: ["header", "first"] };

test("a state is restored from its text", () => {
  const { kernel, store } = connected();
  kernel.answer({ copy });
  const other = new FakeKernel();
  const restored = new Store(other, toText(store.state.value, store.copy));
  expect(other.sent).toEqual([]);
  const { state } = store;
  for (const name of ["open", "functions", "graph", "trace", "history", "measurement", "heat", "problems"] as const)
    expect(restored.state.value[name]).toEqual(state.value[name]);
  expect(paneOf(restored.state.value, state.value.open)).toEqual(paneOf(state.value, state.value.open));
  expect(restored.state.value).toMatchObject({ alive: false, saved: true, connected: true });
  expect(restored.saved?.text).toBe("header\nfirst\n");
  expect(restored.copy).toEqual(copy);
});

test("a connection ends the saved state", () => {
  const { store } = connected();
  const kernel = new FakeKernel();
  const restored = new Store(kernel, toText(store.state.value, null));
  kernel.alive(false);
  expect(restored.state.value.saved).toBe(true);
  expect(restored.send({ type: "save", format: "json" })).toBe(0);
  expect(restored.state.value.applied?.message).toContain("Not possible without the Jupyter kernel");
  kernel.alive(true);
  expect(restored.state.value.saved).toBe(false);
  expect(kernel.last().type).toBe("hello");
});

test.each(["", "{", "null", "{}", '{"update":{"version":0},"buffers":[]}', `{"update":{"version":${String(VERSION)}}}`, `{"update":{"version":${String(VERSION)}},"buffers":["%"]}`])(
  "a text that is not a state is ignored: %s",
  (text) => {
    expect(fromText(text)).toBeNull();
    const kernel = new FakeKernel();
    expect(new Store(kernel, text).state.value.saved).toBe(false);
    expect(kernel.last().type).toBe("hello");
  },
);

/** A fake notebook with the widgets of some ids in the output of a cell. */
function notebook(ids: readonly string[]): { context: Context; save: () => Record<string, { state: Record<string, unknown> }> } {
  const outputs = ids.map((id) => ({ data: { "application/vnd.jupyter.widget-view+json": { model_id: id } } }));
  const list = <Item>(all: readonly Item[]): { length: number; get: (index: number) => Item } => ({
    length: all.length,
    get: (index) => all[index] as Item,
  });
  const metadata = new Map<string, unknown>([
    ["widgets", { [STATE]: { state: { slider: { state: { value: 3 } }, old: { state: { _saved: "x" } } } } }],
  ]);
  let started: (sender: unknown, state: string) => void = () => undefined;
  const context: Context = {
    model: {
      dirty: false,
      cells: list([{}, { outputs: list([...outputs, { data: {} }]) }]),
      getMetadata: (key) => metadata.get(key),
      setMetadata: (key, value) => void metadata.set(key, value),
    },
    saveState: { connect: (listener) => (started = listener) },
  };
  const save = (): Record<string, { state: Record<string, unknown> }> => {
    started(context, "started");
    return (metadata.get("widgets") as Record<string, { state: Record<string, { state: Record<string, unknown> }> }>)[STATE]?.state ?? {};
  };
  return { context, save };
}

const get = (trait: Trait): unknown => (trait === "_id" ? "wb" : `value of ${trait}`);

test("a notebook stores the displayed workbench, and keeps other widgets", () => {
  const { kernel, store } = connected();
  const { context, save } = notebook(["wb"]);
  keepInNotebook(context, store, get);
  const first = save();
  expect(Object.keys(first)).toEqual(["slider", "wb"]);
  expect(first.wb?.state).toMatchObject({ _id: "wb", _esm: "value of _esm" });
  expect(fromText(String(first.wb?.state._saved))?.update.open).toBe(store.state.value.open);
  kernel.answer({ open: "main" });
  expect(context.model.dirty).toBe(false);
  kernel.answer({ history: { ...store.state.value.history, head: "next" } });
  expect(context.model.dirty).toBe(true);
  context.model.dirty = false;
  const [root, ...others] = store.state.value.history.nodes;
  if (!root) throw new Error("no state");
  kernel.answer({ history: { ...store.state.value.history, nodes: [{ ...root, note: "slow" }, ...others] } });
  expect(context.model.dirty).toBe(true);
  expect(fromText(String(save().wb?.state._saved))?.update.history?.head).toBe("next");
});

test("a notebook does not store a workbench that was removed, or that received nothing", () => {
  const removed = notebook([]);
  keepInNotebook(removed.context, connected().store, get);
  expect(Object.keys(removed.save())).toEqual(["slider"]);
  const silent = notebook(["wb"]);
  keepInNotebook(silent.context, new Store(new FakeKernel()), get);
  expect(Object.keys(silent.save())).toEqual(["slider"]);
});
