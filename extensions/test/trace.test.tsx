import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { mount } from "../core/app";
import type { Store } from "../core/store";
import { connected, flush, useFakeTimers, type FakeKernel } from "./helpers";

let kernel: FakeKernel;
let store: Store;
let page: HTMLElement;
let unmount: () => void;

beforeEach(async () => {
  useFakeTimers();
  ({ kernel, store } = connected());
  page = document.createElement("div");
  document.body.append(page);
  unmount = mount(store, page);
  page.querySelector<HTMLElement>("[data-tab=trace]")?.click();
  await flush();
});

afterEach(async () => {
  unmount();
  page.remove();
  await flush();
  vi.useRealTimers();
});

function items(): HTMLElement[] {
  return [...page.querySelectorAll<HTMLElement>(".tw-trace [role=treeitem]")];
}

async function press(key: string): Promise<void> {
  document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  await flush();
}

test("folds and unfolds composite steps with keys, as one tab stop", async () => {
  expect(items().map((item) => item.dataset.group ?? "")).toEqual(["", "", "register_tile"]);
  expect(items().filter((item) => item.tabIndex === 0)).toHaveLength(1);
  items()[2]?.focus();
  await flush();
  expect(document.activeElement?.getAttribute("aria-expanded")).toBe("false");
  expect(document.activeElement?.getAttribute("aria-label")).toBe("register_tile, 5 steps");
  await press("ArrowRight");
  expect(items().map((item) => item.getAttribute("aria-level"))).toEqual(["1", "1", "1", "2", "2"]);
  await press("ArrowRight");
  expect(document.activeElement?.getAttribute("aria-label")).toBe("tile, 4 steps");
  await press("Enter");
  expect(items()).toHaveLength(9);
  await press("ArrowLeft");
  expect(items()).toHaveLength(5);
  await press("ArrowLeft");
  expect(document.activeElement).toBe(items()[2]);
});

test("unfolds and folds all composite steps", async () => {
  const button = (text: string): HTMLElement | undefined =>
    [...page.querySelectorAll<HTMLElement>(".tw-panel-bar .tw-button")].find((item) => item.textContent === text);
  button("Unfold all")?.click();
  await flush();
  expect(items()).toHaveLength(9);
  button("Fold all")?.click();
  await flush();
  expect(items()).toHaveLength(3);
});

test("ungroups a composite step, and runs it again with other values", async () => {
  const [edit, ungroup] = items()[2]?.querySelectorAll<HTMLElement>(".tw-trace-actions .tw-button") ?? [];
  ungroup?.click();
  expect(kernel.last()).toMatchObject({ type: "edit_group", action: "ungroup", index: 0, head: store.state.value.history.head });
  edit?.click();
  await flush();
  const input = page.querySelector<HTMLInputElement>(".tw-group-form .tw-input");
  if (!input) throw new Error("no form");
  input.value = "(8, 32)";
  input.dispatchEvent(new Event("input", { bubbles: true }));
  await flush();
  page.querySelector(".tw-group-form")?.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  expect(kernel.last()).toMatchObject({ type: "edit_group", action: "change", index: 0, values: { sizes: "(8, 32)" } });
});

test("counts the steps of a composite step in the history", async () => {
  page.querySelector<HTMLElement>("[data-tab=history]")?.click();
  await flush();
  const counts = [...page.querySelectorAll(".tw-history-row .tw-count")].map((item) => item.textContent);
  expect(counts).toEqual(["26 steps"]);
});

test("counts the steps of a composite step when its form is opened", async () => {
  const step = page.querySelector<HTMLElement>('[data-step="vectorize_inner"]');
  expect(step?.querySelector(".tw-step-count")?.textContent).toBe("composite");
  step?.querySelector<HTMLElement>(".tw-step-name")?.click();
  await flush();
  expect(kernel.last()).toMatchObject({ type: "check", step: { op: "vectorize_inner" } });
  kernel.answer({ checked: { problems: [], more_problems: 0, steps: 3, match: null } });
  await flush();
  expect(step?.querySelector(".tw-step-count")?.textContent).toBe("3 steps");
});

test("shows pending steps with the reason, and edits a step with the keyboard", async () => {
  const { lines } = store.state.value.trace;
  const waiting = lines.map((line) => (line.index < 5 ? line : { ...line, status: "pending" as const }));
  kernel.answer({ trace: { lines: waiting, groups: [], reason: "loop 'k' is not serial" } });
  await flush();
  expect(page.querySelector(".tw-panel-bar")?.textContent).toContain("5 steps");
  expect(page.querySelector(".tw-pending")?.textContent).toContain("2 pending steps. The first one does not apply: loop 'k' is not serial");
  expect(items()[5]?.textContent).toContain("loop 'k' is not serial");
  expect(items()[6]?.textContent).not.toContain("not serial");
  for (const [label, action] of [["Resume", "resume"], ["Skip step", "skip"], ["Discard", "discard"]] as const) {
    [...page.querySelectorAll<HTMLElement>(".tw-pending button")].find((item) => item.textContent === label)?.click();
    expect(kernel.last()).toMatchObject({ type: "edit_trace", action });
  }
  items()[5]?.focus();
  await flush();
  await press("Enter");
  const field = document.activeElement as HTMLInputElement;
  expect(field.getAttribute("aria-label")).toBe("Step as Python");
  field.value = "sch.reorder((i, j))";
  await press("Enter");
  expect(kernel.last()).toMatchObject({ type: "edit_trace", action: "change", index: 5, text: "sch.reorder((i, j))" });
  expect(document.activeElement).toBe(items()[5]);
  const sent = kernel.sent.length;
  await press("Enter");
  await press("Escape");
  expect(document.activeElement).toBe(items()[5]);
  expect(kernel.sent.length).toBe(sent);
});
