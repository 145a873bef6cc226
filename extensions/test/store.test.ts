import { expect, test } from "vitest";
import { VERSION } from "../core/protocol";
import { paneOf } from "../core/store";
import { connected, FakeKernel } from "./helpers";
import { Store } from "../core/store";

test("sends hello first", () => {
  const kernel = new FakeKernel();
  const store = new Store(kernel);
  expect(kernel.sent).toEqual([{ type: "hello", version: VERSION, id: 1 }]);
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
  kernel.answer({ functions: items.map((item) => ({ ...item, hash: "missing" })) });
  expect(paneOf(store.state.value, "main")).toBeNull();
  kernel.answer({ functions: items });
  expect(paneOf(store.state.value, "main")).toBe(old);
});

test("sends an edit with the displayed head", () => {
  const { kernel, store } = connected();
  store.apply("c1", { factors: "(None, 4)" });
  expect(kernel.last()).toMatchObject({ type: "apply", key: "c1", head: store.state.value.history.head });
  store.navigate("undo");
  expect(kernel.last()).toMatchObject({ type: "navigate", action: "undo", head: store.state.value.history.head });
});

test("rejects updates of another protocol version", () => {
  const { kernel, store } = connected();
  const before = store.state.value.trace;
  kernel.answer({ version: 2, trace: { lines: [], groups: [], reason: "" } });
  expect(store.state.value.mismatch).toBe(true);
  expect(store.state.value.trace).toBe(before);
});
