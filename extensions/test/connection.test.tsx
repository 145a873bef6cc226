import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { mount } from "../core/app";
import type { TraceCopy } from "../core/protocol";
import { Store } from "../core/store";
import { makeUpdate } from "../dev/fixture";
import { FakeKernel, flush, useFakeTimers } from "./helpers";

let page: HTMLElement;
let unmount: () => void = () => undefined;

beforeEach(() => {
  useFakeTimers();
  localStorage.clear();
  page = document.createElement("div");
  document.body.append(page);
});

afterEach(async () => {
  unmount();
  page.remove();
  await flush();
  vi.useRealTimers();
});

function copy(process: string, steps: number, keep = 0): TraceCopy {
  const lines = ["header", "first", "second", "third"].slice(keep, steps + 1);
  return { name: "main.trace.jsonl", program: "p", process, steps, notes: { s1: "why" }, keep, lines };
}

async function open(first: TraceCopy): Promise<FakeKernel> {
  const kernel = new FakeKernel();
  const store = new Store(kernel);
  const { update, buffers } = makeUpdate();
  kernel.answer({ ...update, reply: 1, copy: first }, buffers);
  unmount = mount(store, page);
  await flush();
  return kernel;
}

function button(text: string): HTMLButtonElement {
  const found = [...page.querySelectorAll("button")].find((item) => item.textContent.trim() === text);
  if (!found) throw new Error(`no button ${text}`);
  return found;
}

test("a lost kernel is shown, and the copy of the trace is saved", async () => {
  const kernel = await open(copy("a", 1));
  kernel.answer({ copy: copy("a", 2, 2) });
  kernel.alive(false);
  await flush();
  expect(page.querySelector(".tw-connection[role=alert]")?.textContent).toContain("restarted or has stopped");
  expect(page.querySelector(".tw-root")?.getAttribute("data-connected")).toBe("false");
  const sent = kernel.sent.length;
  button("Measure").click();
  expect(kernel.sent.length).toBe(sent);
  const files: Blob[] = [];
  URL.createObjectURL = (file: Blob): string => (files.push(file), "blob:x");
  URL.revokeObjectURL = () => undefined;
  vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(() => undefined);
  button("Save 2 steps").click();
  expect(await files[0]?.text()).toBe("header\nfirst\nsecond\n");
  kernel.alive(true);
  await flush();
  expect(page.querySelector(".tw-connection")).toBeNull();
});

test("another kernel of the same program restores the steps, or discards them", async () => {
  await open(copy("a", 3));
  unmount();
  const kernel = await open(copy("b", 0));
  button("Restore 3 steps").click();
  expect(kernel.last()).toMatchObject({ type: "load", text: "header\nfirst\nsecond\nthird\n", notes: { s1: "why" } });
  await flush();
  expect(page.querySelector(".tw-connection")).toBeNull();
  unmount();
  await open(copy("c", 0));
  button("Discard").click();
  unmount();
  await open(copy("d", 0));
  expect(page.querySelector(".tw-connection")).toBeNull();
});

test("a second workbench of the same kernel is not offered the steps of the first", async () => {
  await open(copy("a", 3));
  unmount();
  await open(copy("a", 0));
  expect(page.querySelector(".tw-connection")).toBeNull();
});
