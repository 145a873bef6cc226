import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { mount } from "../core/app";
import { connected, flush, useFakeTimers, type FakeKernel } from "./helpers";

let kernel: FakeKernel;
let page: HTMLElement;
let unmount: () => void;

beforeEach(async () => {
  useFakeTimers();
  vi.stubGlobal("ResizeObserver", class {
    observe = vi.fn();
    disconnect = vi.fn();
  });
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(600);
  const both = connected();
  kernel = both.kernel;
  page = document.createElement("div");
  document.body.append(page);
  unmount = mount(both.store, page);
  await flush();
});

afterEach(async () => {
  unmount();
  page.remove();
  await flush();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

async function choose(tab: string): Promise<void> {
  page.querySelector<HTMLElement>(`[data-tab="${tab}"]`)?.click();
  await flush();
}

function shownPane(): string | undefined {
  return page.querySelector<HTMLElement>('.tw-narrow > .tw-tabs [role="tab"][aria-selected="true"]')?.dataset.tab;
}

test.each(["kernels", "roofline"])("a kernel of the panel %s is displayed when it is opened", async (panel) => {
  await choose("dock");
  await choose(panel);
  expect(shownPane()).toBe("dock");
  page.querySelector<HTMLElement>(".tw-panel .tw-link.tw-mono[data-focus], [role=tabpanel] table .tw-link")?.click();
  await flush();
  expect(kernel.last()).toMatchObject({ type: "open" });
  expect(shownPane()).toBe("function");
});
