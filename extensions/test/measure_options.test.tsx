import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { mount } from "../core/app";
import { connected, flush, useFakeTimers, type FakeKernel } from "./helpers";

let kernel: FakeKernel;
let page: HTMLElement;
let unmount: () => void;

beforeEach(async () => {
  useFakeTimers();
  const { kernel: fake, store } = connected();
  kernel = fake;
  page = document.createElement("div");
  document.body.append(page);
  unmount = mount(store, page);
  await flush();
});

afterEach(async () => {
  unmount();
  page.remove();
  await flush(); // an effect of preact that is still queued would block those of the next test
  vi.useRealTimers();
});

function find(selector: string): HTMLElement {
  const found = page.querySelector<HTMLElement>(selector);
  if (!found) throw new Error(`no element matches ${selector}`);
  return found;
}

test("sets the measure options by mouse and keyboard", async () => {
  const button = find("[aria-label='Measure options']");
  expect(button.title).toContain("hot caches, 2 threads");
  button.click();
  await flush();
  const dialog = find(".tw-popover");
  expect(document.activeElement).toBe(dialog.querySelector("input:checked"));
  const cold = dialog.querySelectorAll<HTMLInputElement>("input[type=radio]")[1];
  cold?.click();
  expect(kernel.last()).toMatchObject({ type: "set_measure_options", caches: "cold", threads: 0, pin: false, budget: 1.5 });
  kernel.answer({ measure_options: { caches: "cold", threads: 0, max_threads: 2, pin: false, budget: 1.5 } });
  await flush();
  const select = find(".tw-popover select") as HTMLSelectElement;
  select.value = "1";
  select.dispatchEvent(new Event("change", { bubbles: true }));
  expect(kernel.last()).toMatchObject({ type: "set_measure_options", caches: "cold", threads: 1 });
  dialog.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  await flush();
  expect(page.querySelector(".tw-popover")).toBeNull();
  expect(document.activeElement).toBe(button);
});

test("displays the conditions of a measurement", () => {
  expect(find(".tw-conditions").textContent).toContain("hot caches, 2 threads, not pinned");
});
