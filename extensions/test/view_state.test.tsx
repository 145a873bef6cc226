import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { mount, mountPane, PANE_NAMES } from "../core/app";
import { Store } from "../core/store";
import { INITIAL, View, readState } from "../core/view_state";
import { readView, writeView } from "../core/view_storage";
import { makeUpdate } from "../dev/fixture";
import { connected, FakeKernel, flush, makeCopy, useFakeTimers } from "./helpers";

let page: HTMLElement;
const unmounts: (() => void)[] = [];

beforeEach(() => {
  useFakeTimers();
  sessionStorage.clear();
  page = document.createElement("div");
  document.body.append(page);
});

afterEach(async () => {
  for (const unmount of unmounts.splice(0)) unmount();
  page.remove();
  await flush();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

function find(selector: string): HTMLElement {
  const found = page.querySelector<HTMLElement>(selector);
  if (!found) throw new Error(`no element matches ${selector}`);
  return found;
}

/** Mount a workbench before its program is known, as in a new page, then answer. */
async function open(program = "p"): Promise<FakeKernel> {
  const kernel = new FakeKernel();
  const store = new Store(kernel);
  unmounts.push(mount(store, page));
  await flush();
  const { update, buffers } = makeUpdate();
  kernel.answer({ ...update, copy: makeCopy(program) }, buffers);
  await flush();
  return kernel;
}

function close(): void {
  for (const unmount of unmounts.splice(0)) unmount();
}

async function click(selector: string): Promise<void> {
  find(selector).click();
  await flush();
}

async function type(selector: string, text: string): Promise<void> {
  const field = find(selector) as HTMLInputElement;
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await flush();
}

test("tabs, filters, forms, sizes and folds survive a new page, by program", async () => {
  await open();
  await click("[data-tab=history]");
  await click("[data-tab=passes]");
  await type("[aria-label='Filter steps']", "spl");
  await type("[aria-label='Find an operation']", "soft");
  await click(".tw-step-name");
  await type(".tw-form .tw-input", "(None, 12)");
  find("[aria-label='Height of the dock']").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowUp", bubbles: true }));
  await click("[aria-label='Zoom in']");
  await click("[aria-label='Wrap lines']");
  const zoom = find(".tw-graph-canvas").getAttribute("transform");
  const height = find("[aria-label='Height of the dock']").getAttribute("aria-valuenow");
  expect(height).not.toBe("200");
  close();
  const kernel = await open();
  expect(find("[data-tab=history]").getAttribute("aria-selected")).toBe("true");
  expect(find("[data-tab=passes]").getAttribute("aria-selected")).toBe("true");
  expect((find("[aria-label='Filter steps']") as HTMLInputElement).value).toBe("spl");
  expect((find("[aria-label='Find an operation']") as HTMLInputElement).value).toBe("soft");
  expect((find(".tw-form .tw-input") as HTMLInputElement).value).toBe("(None, 12)");
  expect(find("[aria-label='Height of the dock']").getAttribute("aria-valuenow")).toBe(height);
  expect(find(".tw-graph-canvas").getAttribute("transform")).toBe(zoom);
  expect(find("[aria-label='Wrap lines']").getAttribute("aria-pressed")).toBe("true");
  // The values of a restored form are checked, because the menu does not contain their problems.
  const checks = kernel.sent.filter((message) => message.type === "check");
  expect(checks).toMatchObject([{ step: { values: { factors: "(None, 12)" } } }]);
  close();
  await open("another program");
  expect((find("[aria-label='Filter steps']") as HTMLInputElement).value).toBe("");
});

test("a note that was not sent survives a new page, and is sent when the field is left", async () => {
  await open();
  await click("[data-tab=history]");
  await type(".tw-note textarea", "wider tiles");
  close();
  const kernel = await open();
  const field = find(".tw-note textarea") as HTMLTextAreaElement;
  expect(field.value).toBe("wider tiles");
  field.focus();
  field.blur();
  await flush();
  expect(kernel.last()).toMatchObject({ type: "set_note", text: "wider tiles" });
  const { history } = makeUpdate().update;
  if (!history) throw new Error("no history");
  kernel.answer({ history: { ...history, nodes: history.nodes.map((node) => (node.key === history.head ? { ...node, note: "by a cell" } : node)) } });
  await flush();
  expect(field.value).toBe("by a cell");
});

test("a closed step is applied as its row shows it", async () => {
  const kernel = await open();
  await click(".tw-step-name");
  await type(".tw-form .tw-input", "(None, 12)");
  for (const { id, type: kind } of [...kernel.sent]) if (kind === "check") kernel.answer({ reply: id });
  await click(".tw-step-name");
  await click(".tw-step .tw-apply");
  expect(kernel.last()).toMatchObject({ type: "apply", step: { values: { factors: "(None, 4)" } } });
});

test("the first update of a page does not open a panel in place of the chosen one", async () => {
  await open();
  expect(find("[data-tab=kernels]").getAttribute("aria-selected")).toBe("true");
  await click("[data-tab=symbols]");
  close();
  const kernel = await open();
  expect(find("[data-tab=symbols]").getAttribute("aria-selected")).toBe("true");
  const { measurement } = makeUpdate().update;
  if (!measurement) throw new Error("no measurement");
  kernel.answer({ measurement: { ...measurement } });
  await flush();
  expect(find("[data-tab=kernels]").getAttribute("aria-selected")).toBe("true");
});

test.each(["", "{", "null", "[]", "3", '{"view":null}', '{"view":[]}', '{"view":{"dock":5,"splits":{"dock":-1,"x":"9"},"forms":{"a":{"chosen":"0"}},"graphs":{"f":{"zoom":0}},"unfolded":[1,null]}}'])(
  "stored data that is not a view is ignored: %s",
  async (text) => {
    sessionStorage.setItem("tilewright:view:p", text);
    await open();
    expect(page.querySelector(".tw-empty[role=alert]")).toBeNull();
    expect(find(".tw-code-text").textContent).toContain("for k_0");
    expect(readView("p") ?? INITIAL).toEqual(INITIAL);
  },
);

test("a valid part of stored data is kept beside malformed ones", () => {
  const stored = { dock: "trace", splits: { dock: 300, graph: -5 }, texts: { f: { folds: [[3, "for"], [1], "x"], top: 2, shown: "" } }, more: 1 };
  expect(readState(stored)).toEqual({ ...INITIAL, dock: "trace", splits: { dock: 300 }, texts: { f: { folds: [[3, "for"]], top: 2, shown: "" } } });
});

test("a full or forbidden storage is ignored", async () => {
  vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
    throw new DOMException("full", "QuotaExceededError");
  });
  vi.spyOn(Storage.prototype, "getItem").mockImplementation(() => {
    throw new DOMException("forbidden", "SecurityError");
  });
  await open();
  await click("[data-tab=history]");
  await vi.advanceTimersByTimeAsync(500);
  expect(find("[data-tab=history]").getAttribute("aria-selected")).toBe("true");
});

test("the size of a stored view, its entries, and the number of programs are bounded", () => {
  const view = new View();
  for (let index = 0; index < 100; index++) view.setEntry("fields", `f${String(index)}`, "x".repeat(3900));
  expect(Object.keys(view.value.fields)).toHaveLength(64);
  expect(view.entry("fields", "f99")).toBeDefined();
  writeView("large", view.value);
  expect(sessionStorage.getItem("tilewright:view:large")?.length).toBeLessThan(100_000);
  expect(Object.keys(readView("large")?.fields ?? {})).toContain("f99");
  for (let index = 0; index < 30; index++) {
    vi.spyOn(Date, "now").mockReturnValue(index + 1);
    writeView(`p${String(index)}`, INITIAL);
  }
  const keys = Object.keys(sessionStorage).filter((key) => key.startsWith("tilewright:view:"));
  expect(keys).toHaveLength(12);
  expect(keys).toContain("tilewright:view:p29");
});

test("names of entries are not those of objects", () => {
  const view = new View();
  expect(view.entry("fields", "toString")).toBeUndefined();
  view.setEntry("fields", "__proto__", "x");
  expect(view.entry("fields", "__proto__")).toBe("x");
});

test.each(PANE_NAMES)("mounts %s alone", async (name) => {
  const { store } = connected();
  unmounts.push(mountPane(store, name, page));
  await flush();
  expect(find(".tw-root.is-alone").textContent.length).toBeGreaterThan(10);
  expect(page.querySelector(".tw-toolbar")).toBeNull();
  expect(page.querySelector(".tw-empty[role=alert]")).toBeNull();
  close();
  expect(page.childElementCount).toBe(0);
});

test("panes that share a view have commands and state in common", async () => {
  const { kernel, store } = connected();
  const view = new View();
  const other = document.createElement("div");
  page.append(other);
  const dock = page.appendChild(document.createElement("div"));
  unmounts.push(mountPane(store, "function", other, view), mountPane(store, "dock", dock, view));
  await flush();
  const undo = new KeyboardEvent("keydown", { key: "z", ctrlKey: true, bubbles: true, cancelable: true });
  other.querySelector(".tw-code-text")?.dispatchEvent(undo);
  expect(kernel.last()).toMatchObject({ type: "navigate", action: "undo" });
  view.set("dock", "symbols");
  await flush();
  expect(dock.querySelector("[data-tab=symbols]")?.getAttribute("aria-selected")).toBe("true");
  expect(() => mountPane(store, "none", other)).toThrow("no pane 'none'; the panes are graph, function, steps, dock, trace");
});
