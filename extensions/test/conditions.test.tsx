import { afterEach, beforeEach, expect, test } from "vitest";
import { mount } from "../core/app";
import { connected, settled, type FakeKernel } from "./helpers";

let kernel: FakeKernel;
let page: HTMLElement;
let unmount: () => void;

beforeEach(async () => {
  const { kernel: made, store } = connected();
  kernel = made;
  page = document.createElement("div");
  document.body.append(page);
  unmount = mount(store, page);
  await settled();
});

afterEach(() => {
  unmount();
  page.remove();
});

function find(selector: string): HTMLElement {
  const found = page.querySelector<HTMLElement>(selector);
  if (!found) throw new Error(`no ${selector}`);
  return found;
}

test("how to measure is chosen beside Time, by keyboard too", async () => {
  const button = find("[aria-label='How to measure']");
  expect(button.title).toContain("hot caches, 2 threads");
  button.click();
  await settled();
  const dialog = find(".tw-popover");
  expect(document.activeElement).toBe(dialog.querySelector("input:checked"));
  const cold = dialog.querySelectorAll<HTMLInputElement>("input[type=radio]")[1];
  cold?.click();
  expect(kernel.last()).toMatchObject({ type: "condition", caches: "cold", threads: 0, pin: false, budget: 1.5 });
  kernel.answer({ conditions: { caches: "cold", threads: 0, most: 2, pin: false, budget: 1.5 } });
  await settled();
  const select = find(".tw-popover select") as HTMLSelectElement;
  select.value = "1";
  select.dispatchEvent(new Event("change", { bubbles: true }));
  expect(kernel.last()).toMatchObject({ type: "condition", caches: "cold", threads: 1 });
  dialog.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  await settled();
  expect(page.querySelector(".tw-popover")).toBeNull();
  expect(document.activeElement).toBe(button);
});

test("a time says under which conditions it was taken", () => {
  expect(find(".tw-under").textContent).toContain("hot caches, 2 threads, not pinned");
});
