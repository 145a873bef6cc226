import { render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ExcerptView, segmentsOf, visible } from "../core/code/excerpt";
import { makeExcerpt } from "../dev/fixture";
import { connected, flush, useFakeTimers, type FakeKernel } from "./helpers";
import type { Store } from "../core/store";

let kernel: FakeKernel;
let store: Store;
let page: HTMLElement;

beforeEach(() => {
  useFakeTimers();
  ({ kernel, store } = connected());
  page = document.createElement("div");
  document.body.append(page);
});

afterEach(async () => {
  render(null, page);
  page.remove();
  await flush();
  vi.useRealTimers();
});

const EXCERPT = makeExcerpt("k_0 in range(96)");

function lines(): string[] {
  return [...page.querySelectorAll(".tw-excerpt-line")].map((line) => line.textContent);
}

test("displays numbered lines with the part at fault marked, and gaps", () => {
  render(<ExcerptView excerpt={EXCERPT} store={store} />, page);
  expect([...page.querySelectorAll("mark")].map((mark) => mark.textContent).join("")).toBe("k_0 in range(96)");
  expect(lines()).toHaveLength(4);
  expect(lines()[0]).toBe("4def fused_matmul_add_gelu(");
  expect(lines()[1]).toContain("⋯13");
});

test("displays only the marked lines in compact form, without their common indentation", () => {
  render(<ExcerptView excerpt={EXCERPT} store={store} compact />, page);
  expect(lines()).toEqual(["14for k_0 in range(96):"]);
});

test("names the part at fault for screen readers", () => {
  render(<ExcerptView excerpt={EXCERPT} store={store} />, page);
  expect(page.querySelector("button")?.getAttribute("aria-label")).toBe("Show line 14 of fused_matmul_add_gelu: k_0 in range(96)");
});

test("underlines the part in the function while it is pointed at, and reveals it on a click", () => {
  render(<ExcerptView excerpt={EXCERPT} store={store} />, page);
  const button = page.querySelector("button");
  button?.dispatchEvent(new Event("pointerenter"));
  expect(store.marked.value).toMatchObject({ function: "fused_matmul_add_gelu", marks: EXCERPT.marks });
  button?.dispatchEvent(new Event("pointerleave"));
  expect(store.marked.value).toBeNull();
  const count = kernel.sent.length;
  button?.click();
  button?.dispatchEvent(new Event("pointerleave"));
  expect(store.marked.value?.reveal).toBe(1);
  expect(kernel.sent.length).toBe(count);
  kernel.answer({ selected: { ...store.state.value.selected } });
  expect(store.marked.value).toBeNull();
});

test("opens the function of an excerpt", () => {
  render(<ExcerptView excerpt={{ ...EXCERPT, function: "softmax" }} store={store} />, page);
  page.querySelector("button")?.click();
  expect(kernel.last()).toMatchObject({ type: "open", function: "softmax" });
  kernel.answer({ open: "softmax", selected: { ...store.state.value.selected } });
  expect(store.marked.value?.function).toBe("softmax");
});

test("splits tokens at the ends of the marks", () => {
  const marked = (column: number, end: number): string => {
    const parts = segmentsOf("acc[i, j] = 0.0", [{ line: 1, column, end }]);
    expect(parts.map((part) => part.text).join("")).toBe("acc[i, j] = 0.0");
    return parts.filter((part) => part.marked).map((part) => part.text).join("");
  };
  expect(marked(1, 4)).toBe("acc");
  expect(marked(2, 6)).toBe("cc[i");
  expect(marked(5, 6)).toBe("i");
});

test("escapes control characters, and characters that change the direction of text", () => {
  expect(visible("a\u001b[31m\u202eb\tc\n")).toBe("a\\u001b[31m\\u202eb\tc\n");
  const hostile = { function: "<img>", lines: [{ number: 1, text: "<img src=x>\u202e" }], marks: [{ line: 1, column: 1, end: 5 }] };
  render(<ExcerptView excerpt={hostile} store={store} />, page);
  expect(page.querySelector("img")).toBeNull();
  expect(page.textContent).toContain("<img src=x>\\u202e");
});
