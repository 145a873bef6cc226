// A workbench with the example data, mounted before each test of a file that imports it.
import { afterEach, beforeEach, vi } from "vitest";
import { mount } from "../core/app";
import type { Store } from "../core/store";
import { connected, flush, useFakeTimers, type FakeKernel } from "./helpers";

export let kernel: FakeKernel;
export let store: Store;
export let page: HTMLElement;
let unmount: () => void;

beforeEach(async () => {
  useFakeTimers();
  ({ kernel, store } = connected());
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

/** Return the first element that matches a selector. */
export function find(selector: string): HTMLElement {
  const found = page.querySelector<HTMLElement>(selector);
  if (!found) throw new Error(`no element matches ${selector}`);
  return found;
}
