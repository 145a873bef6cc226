import { expect, test, vi } from "vitest";
import { VERSION } from "../core/protocol";
import { hasMenu, paneOf, Store } from "../core/store";
import { connected, FakeKernel, makeMenu, makeSelected, type Sent } from "./helpers";

test("sends hello first", () => {
  const kernel = new FakeKernel();
  const store = new Store(kernel, "", "page");
  expect(kernel.sent).toEqual([{ type: "hello", version: VERSION, id: 1, client: "page" }]);
  expect(store.state.value.connected).toBe(false);
});

test("keeps the sections that an update omits", () => {
  const { kernel, store } = connected();
  const before = store.state.value;
  store.select({ kind: "loop", function: "fused_matmul_add_gelu", uid: 12 });
  kernel.answer({ symbols: { rows: [], facts: [], derived: [] } });
  const after = store.state.value;
  expect(after.symbols.rows).toEqual([]);
  expect(after.trace).toBe(before.trace);
  expect(after.panes).toBe(before.panes);
  expect(after.waiting).toBe(0);
});

test("caches panes by hash, so that an undo needs no text", () => {
  const { kernel, store } = connected();
  const old = paneOf(store.state.value, "main");
  const items = store.state.value.functions;
  kernel.answer({ functions: { items: items.map((item) => ({ ...item, hash: "missing" })) } });
  expect(paneOf(store.state.value, "main")).toBeNull();
  kernel.answer({ functions: { items } });
  expect(paneOf(store.state.value, "main")).toBe(old);
});

test("sends an edit with the displayed head", () => {
  const { kernel, store } = connected();
  const step = { op: "split", function: "main", handles: {}, values: { factors: "(None, 4)" } };
  store.apply(step);
  expect(kernel.last()).toMatchObject({ type: "apply", step, head: store.state.value.history.head });
  kernel.answer({});
  store.navigate("undo");
  expect(kernel.last()).toMatchObject({ type: "navigate", action: "undo", head: store.state.value.history.head });
});

const SPLIT = { op: "split", function: "main", handles: {}, values: {} };

test("sends an undo that follows an edit after the answer, with the new head", () => {
  const { kernel, store } = connected();
  const history = store.state.value.history;
  const moves = (): Sent[] => kernel.sent.filter((message) => message.type === "navigate");
  store.apply(SPLIT);
  store.navigate("undo");
  store.navigate("undo");
  expect(moves()).toEqual([]);
  kernel.reply("apply", { history: { ...history, head: "after the split" } });
  expect(moves()).toMatchObject([{ action: "undo", head: "after the split" }]);
  kernel.reply("navigate", { history: { ...history, head: "before" } });
  expect(moves()).toMatchObject([{ head: "after the split" }, { action: "undo", head: "before" }]);
  kernel.reply("navigate", { history: { ...history, head: "first" } });
  expect(moves()).toHaveLength(2);
  expect(store.state.value.editing).toBe(false);
});

test("drops an undo that follows an edit that failed or was lost", () => {
  const { kernel, store } = connected();
  const moves = (): Sent[] => kernel.sent.filter((message) => message.type === "navigate");
  store.apply(SPLIT);
  store.navigate("undo");
  kernel.reply("apply", {});
  store.apply(SPLIT);
  store.navigate("undo");
  kernel.alive(false);
  kernel.alive(true);
  expect(moves()).toEqual([]);
  expect(store.state.value.editing).toBe(false);
  store.navigate("undo");
  expect(moves()).toHaveLength(1);
});

test("rejects updates of another protocol version", () => {
  const { kernel, store } = connected();
  const before = store.state.value.trace;
  kernel.answer({ version: 2, trace: { lines: [], groups: [], reason: "" } });
  expect(store.state.value.mismatch).toBe(true);
  expect(store.state.value.trace).toBe(before);
});

test("waits for the steps that follow an answer, and asks for them after another update, once", () => {
  const { kernel, store } = connected();
  const selection = { kind: "loop" as const, function: "fused_matmul_add_gelu", uid: 12, name: "i_0" };
  const count = (): number => kernel.sent.filter((message) => message.type === "suggest").length;
  store.select(selection);
  kernel.reply("select", { selected: makeSelected(selection) });
  expect(hasMenu(store.state.value)).toBe(false);
  kernel.answer({ reply: 0, menu: makeMenu(selection) });
  expect(hasMenu(store.state.value)).toBe(true);
  kernel.answer({ symbols: { rows: [], facts: [], derived: [] } });
  expect(count()).toBe(0);
  const { history } = store.state.value;
  kernel.answer({ reply: 0, history: { ...history, head: history.nodes[1]?.key ?? "" } });
  expect(count()).toBe(1);
  kernel.answer({ reply: 0, symbols: { rows: [], facts: [], derived: [] } });
  expect(count()).toBe(1);
});

test("measures a request until the paint of its answer, and steps until their paint", async () => {
  const { kernel, store } = connected();
  const selection = { kind: "loop" as const, function: "fused_matmul_add_gelu", uid: 12, name: "i_0" };
  store.select(selection);
  kernel.reply("select", { selected: makeSelected(selection), menu: makeMenu(selection) });
  const types = (): unknown[] => performance.getEntriesByName("tw:round-trip").map((entry) => ((entry as PerformanceMeasure).detail as { type: string }).type);
  await vi.waitFor(() => expect(types().slice(-2)).toEqual(["select", "menu"]));
  const before = types().length;
  kernel.answer({ reply: 0, symbols: { rows: [], facts: [], derived: [] } });
  kernel.answer({ reply: 0, menu: makeMenu(selection) });
  await vi.waitFor(() => expect(types().slice(before)).toEqual(["menu"]));
});

test("ignores updates of other pages", () => {
  const { kernel, store } = connected();
  kernel.answer({ client: "other", open: "softmax" });
  expect(store.state.value.open).toBe("fused_matmul_add_gelu");
  kernel.answer({ client: "page", open: "softmax" });
  expect(store.state.value.open).toBe("softmax");
});

test("asks for everything if an update was missed", () => {
  const { kernel } = connected();
  const hellos = (): number => kernel.sent.filter((message) => message.type === "hello").length;
  kernel.answer({ revision: 2, reply: 0 });
  expect(hellos()).toBe(1);
  kernel.answer({ revision: 4, reply: 0 });
  expect(hellos()).toBe(2);
});

test("replaces the changed part of a list", () => {
  const { kernel, store } = connected();
  const { nodes } = store.state.value.history;
  const added = { key: "new", parent: "", label: "fuse", detail: "", steps: 1, verified: null, note: "" };
  kernel.answer({ history: { head: "new", nodes: [added], can_undo: true, can_redo: false, keep: nodes.length } });
  expect(store.state.value.history.nodes).toEqual([...nodes, added]);
  kernel.answer({ history: { head: "new", nodes: [added], can_undo: true, can_redo: false, keep: 1, tail: 2 } });
  expect(store.state.value.history.nodes.map((node) => node.key)).toEqual([nodes[0]?.key, "new", nodes.at(-1)?.key, "new"]);
});

test("a check is answered, or fails with the connection", async () => {
  const { kernel, store } = connected();
  const step = { op: "split", function: "main", handles: {}, values: {} };
  const checked = { problems: [], more_problems: 0, steps: 1, match: null };
  const first = store.check(step);
  kernel.answer({ checked });
  expect(await first).toEqual(checked);
  const second = store.check(step);
  kernel.alive(false);
  expect(await second).toBeNull();
  expect(await store.check(step)).toBeNull();
});
