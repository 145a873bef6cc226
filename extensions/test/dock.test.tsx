import { render, type JSX } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Dock } from "../core/panels/dock";
import type { Panel } from "../core/panels/panel";
import { PANELS } from "../core/panels/registry";
import { useWatch } from "../core/observable";
import type { Store } from "../core/store";
import { connected, flush, useFakeTimers } from "./helpers";

let page: HTMLElement;

beforeEach(() => {
  useFakeTimers();
  page = document.createElement("div");
  document.body.append(page);
});

afterEach(async () => {
  render(null, page);
  page.remove();
  await flush();
  vi.useRealTimers();
});

function FunctionNames({ store }: { store: Store }): JSX.Element {
  const functions = useWatch(store.state, (state) => state.functions);
  return <p class="names">{functions.map((item) => item.name).join(" ")}</p>;
}

const NAMES: Panel = {
  key: "names",
  title: "Names",
  view: FunctionNames,
  section: "functions",
  count: (state) => state.functions.length,
  opens: true,
};

test("has a unique key for each panel", () => {
  expect(new Set(PANELS.map((panel) => panel.key)).size).toBe(PANELS.length);
});

test("displays a panel that is one entry of the list, opened when its section is received", async () => {
  const { kernel, store } = connected();
  const [first] = PANELS;
  render(<Dock store={store} idBase="dock" panels={[first, NAMES]} />, page);
  await flush();
  expect(page.querySelector("[data-tab=names]")?.textContent).toBe("Names7");
  expect(page.querySelector(".names")?.textContent).toContain("softmax");
  page.querySelector<HTMLElement>("[data-tab=trace]")?.click();
  await flush();
  expect(page.querySelector(".names")).toBeNull();
  kernel.answer({ functions: { items: store.state.value.functions.slice(0, 1) } });
  await flush();
  expect(page.querySelector(".names")?.textContent).toBe("main");
});

test("lists all measurements, and shows the chosen one", async () => {
  const { kernel, store } = connected();
  render(<Dock store={store} idBase="d" />, page);
  await flush();
  page.querySelector<HTMLElement>('[data-tab="kernels"]')?.click();
  await flush();
  const list = page.querySelector<HTMLSelectElement>(".tw-records select");
  expect(list?.options).toHaveLength(3);
  expect(list?.value).toBe("m2");
  if (!list) throw new Error("no list");
  list.value = "m0";
  list.dispatchEvent(new Event("change", { bubbles: true }));
  expect(kernel.last()).toMatchObject({ type: "show_measurement", key: "m0" });
  kernel.answer({ records: { items: store.state.value.records.slice(2) } });
  await flush();
  expect(page.querySelector(".tw-records")).toBeNull();
});

test("a state has the time of its last call, or of its last kernel", async () => {
  const { kernel, store } = connected();
  const [, record] = store.state.value.records;
  if (!record) throw new Error("no record");
  const alone = { ...record, key: "k", function: "softmax", microseconds: 3, whole: false };
  kernel.answer({ records: { items: [record, alone, { ...alone, state: store.state.value.history.nodes[1]?.key ?? "" }] } });
  render(<Dock store={store} idBase="d" />, page);
  await flush();
  page.querySelector<HTMLElement>('[data-tab="history"]')?.click();
  await flush();
  const times = [...page.querySelectorAll(".tw-history-time")].map((item) => item.textContent);
  expect(times).toEqual(["3.00 µs softmax", "6.12 ms2 measurements"]);
});

test("a measurement of another state names that state, and a click makes it the head", async () => {
  const { kernel, store } = connected();
  const { history, measurement } = store.state.value;
  const root = history.nodes[0]?.key ?? "";
  if (!measurement || root === history.head) throw new Error("no other state");
  kernel.answer({ measurement: { ...measurement, state: root } });
  render(<Dock store={store} idBase="d" />, page);
  await flush();
  const link = page.querySelector<HTMLElement>(".tw-state-link");
  expect(page.querySelector(".tw-stale")?.textContent).toContain("Measured at state 1, start, not at the head.");
  link?.click();
  expect(kernel.last()).toMatchObject({ type: "navigate", action: "jump", node: root, head: history.head });
  kernel.answer({ measurement: { ...measurement, state: "unknown" } });
  await flush();
  expect(page.querySelector(".tw-stale")?.textContent).toContain("Measured at a state of another history");
});

test("a note on the head is written in the history, and shown in its row", async () => {
  const { kernel, store } = connected();
  const { history } = store.state.value;
  render(<Dock store={store} idBase="d" />, page);
  await flush();
  page.querySelector<HTMLElement>('[data-tab="history"]')?.click();
  await flush();
  expect(page.querySelector(".tw-history-note")?.textContent).toBe("six rows fit the registers");
  const field = page.querySelector<HTMLTextAreaElement>(".tw-note textarea");
  if (!field) throw new Error("no field");
  expect(page.querySelector(".tw-note")?.textContent).toBe("Note on state 6");
  field.value = "slower";
  field.dispatchEvent(new Event("change", { bubbles: true }));
  expect(kernel.last()).toMatchObject({ type: "set_note", node: history.head, text: "slower" });
  const sent = kernel.sent.length;
  field.value = "  ";
  field.dispatchEvent(new Event("change", { bubbles: true }));
  expect(kernel.sent.length).toBe(sent);
  kernel.alive(false);
  await flush();
  expect(field.readOnly).toBe(true);
});
