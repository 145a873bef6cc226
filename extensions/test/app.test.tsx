import { expect, test } from "vitest";
import { distinctiveParts } from "../core/panels/step";
import { flush, makeProblem, makeSelected } from "./helpers";
import { find, kernel, page, store } from "./mounted";
import { rendered } from "./rendered";

function byText(selector: string, text: string): HTMLElement {
  const found = [...page.querySelectorAll<HTMLElement>(selector)].find((item) => item.textContent.includes(text));
  if (!found) throw new Error(`no element matches ${selector} with text ${text}`);
  return found;
}

test("displays the code of the open function with its selection", () => {
  expect(find(".tw-code-text").textContent).toContain("for k_0 in range(96):");
  expect(find(".cm-line.is-selected").textContent).toContain("for k_0");
});

test("lists legal steps first, and illegal steps with their problems", () => {
  const steps = [...page.querySelectorAll<HTMLElement>(".tw-step")].map((step) => step.dataset.step);
  expect(steps).toEqual(["split", "reorder", "vectorize_inner", "unroll", "fuse", "vectorize", "parallel", "annotate"]);
  const problem = byText(".tw-step.is-illegal", "vectorize").textContent;
  expect(problem).toContain("Requires the iterations of the loop write different elements parallel_iterations");
  expect(problem).toContain("lanes would write the same element");
});

test("applies a suggestion or a fix with one click", () => {
  byText(".tw-step", "split").querySelector<HTMLElement>(".tw-apply")?.click();
  expect(kernel.last()).toMatchObject({ type: "apply", step: { op: "split", values: { factors: "(None, 4)" } } });
  kernel.answer({});
  find(".tw-fix").click();
  expect(kernel.last()).toMatchObject({ type: "apply", step: { op: "decompose_reduction" } });
});

test("chooses another suggestion by its chip", async () => {
  byText(".tw-suggestions .tw-chip", "(None, 16)").click();
  await flush();
  byText(".tw-step", "split").querySelector<HTMLElement>(".tw-apply")?.click();
  expect(kernel.last()).toMatchObject({ type: "apply", step: { op: "split", values: { factors: "(None, 16)" } } });
});

test("checks entered values and applies the form with Enter", async () => {
  byText(".tw-step-name", "split").click();
  await flush();
  type("(None, 12)");
  await flush();
  expect(kernel.last()).toMatchObject({ type: "check", step: { values: { factors: "(None, 12)" } } });
  kernel.answer({});
  find(".tw-form").dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  expect(kernel.last()).toMatchObject({ type: "apply", step: { values: { factors: "(None, 12)" } } });
});

function type(text: string): void {
  const input = find(".tw-form .tw-input") as HTMLInputElement;
  input.value = text;
  input.dispatchEvent(new Event("input", { bubbles: true }));
}

test("displays a problem with an entered value in the form, and keeps the value and the order of steps", async () => {
  byText(".tw-step-name", "split").click();
  await flush();
  type("nonsense");
  await flush();
  expect(find(".tw-form-status").textContent).toBe("Checking…");
  await flush();
  expect(kernel.last()).toMatchObject({ type: "check", step: { op: "split", values: { factors: "nonsense" } } });
  kernel.answer({ checked: { problems: [makeProblem({ message: "invalid value" })], more_problems: 0, steps: null, match: null } });
  await flush();
  const steps = [...page.querySelectorAll<HTMLElement>(".tw-step")].map((step) => step.dataset.step);
  expect(steps).toEqual(["split", "reorder", "vectorize_inner", "unroll", "fuse", "vectorize", "parallel", "annotate"]);
  expect((find(".tw-form .tw-input") as HTMLInputElement).value).toBe("nonsense");
  expect(find(".tw-form-status").textContent).toBe("Illegal");
  expect(byText(".tw-step", "split").querySelector(".tw-apply")).toBeNull();
  expect(byText(".tw-step", "split").textContent).toContain("invalid value");
});

test("applies the entered values once with the only button of an open step", async () => {
  byText(".tw-step-name", "split").click();
  await flush();
  type("(None, 12)");
  await flush();
  const count = kernel.sent.length;
  expect(byText(".tw-step", "split").querySelector(".tw-apply")).toBeNull();
  byText(".tw-step", "split").querySelector<HTMLElement>("[type=submit]")?.click();
  byText(".tw-step", "split").querySelector<HTMLElement>("[type=submit]")?.click();
  expect(kernel.last()).toMatchObject({ type: "apply", step: { values: { factors: "(None, 12)" } } });
  expect(kernel.sent.length).toBe(count + 1);
});

test("labels suggestions with the parameters that differ", () => {
  expect(distinctiveParts(["factors=(None, 8)", "factors=(None, 16)"])).toEqual(["(None, 8)", "(None, 16)"]);
  expect(distinctiveParts(["function=f, symbol='M', lower=1", "function=f, symbol='N', lower=1"])).toEqual(["'M'", "'N'"]);
  expect(distinctiveParts(["a=1, b=2", "a=2, b=3"])).toEqual(["a=1, b=2", "a=2, b=3"]);
});

test("makes the loop tree one tab stop with arrow key navigation", async () => {
  const markers = (): HTMLElement[] => [...page.querySelectorAll<HTMLElement>(".tw-marker")];
  expect(markers().filter((marker) => marker.tabIndex === 0)).toHaveLength(1);
  markers()[0]?.focus();
  find(".tw-loop-tree").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
  await flush();
  expect(markers()[1]?.tabIndex).toBe(0);
  markers()[1]?.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  expect(kernel.last()).toMatchObject({ type: "select", kind: "loop", uid: Number(markers()[1]?.dataset.uid) });
});

test("undoes with the keyboard, except in text fields", () => {
  const count = kernel.sent.length;
  const press = (target: Element): boolean =>
    target.dispatchEvent(new KeyboardEvent("keydown", { key: "z", ctrlKey: true, bubbles: true }));
  press(find("input[type=search]"));
  expect(kernel.sent.length).toBe(count);
  press(find(".tw-code-text"));
  expect(kernel.last()).toMatchObject({ type: "navigate", action: "undo" });
});

test("opens the Kernels panel after a measurement and marks the slowest kernel", async () => {
  expect(find("[data-tab=kernels]").getAttribute("aria-selected")).toBe("true");
  const first = find(".tw-kernels tbody tr");
  expect(first.textContent).toContain("fused_matmul_add_gelu");
  expect(first.textContent).toContain("Slowest");
  byText(".tw-kernels .tw-link", "softmax").click();
  await flush();
  expect(kernel.last()).toMatchObject({ type: "open", function: "softmax" });
});

test("displays and cancels jobs", async () => {
  kernel.answer({ jobs: [{ key: "job1", kind: "run", title: "Compile", state: "running", progress: 0.4, message: "compiled f", seconds: 2 }] });
  await flush();
  expect(find("[role=progressbar]").getAttribute("aria-valuenow")).toBe("40");
  byText(".tw-job .tw-button", "Cancel").click();
  expect(kernel.last()).toMatchObject({ type: "cancel", job: "job1" });
});

test("displays the status of facts as text, not by color alone", async () => {
  find("[data-tab=symbols]").click();
  await flush();
  const badges = [...page.querySelectorAll(".tw-symbols .tw-badge")].map((badge) => badge.textContent.trim());
  expect(badges).toEqual(["◇ checked", "✓ proved", "? unknown"]);
  const sample = find(".tw-sample") as HTMLInputElement;
  sample.value = "8";
  sample.dispatchEvent(new Event("change", { bubbles: true }));
  expect(kernel.last()).toEqual(expect.objectContaining({ type: "sample", symbol: "b", value: 8 }));
  const count = kernel.sent.length;
  for (const invalid of ["", "1.5", "0", "65"]) {
    sample.value = invalid;
    sample.dispatchEvent(new Event("change", { bubbles: true }));
    await flush();
    expect(find(".tw-field-error").textContent).toBe("Expected an integer: 1 … 64");
    expect(sample.getAttribute("aria-invalid")).toBe("true");
  }
  expect(kernel.sent.length).toBe(count);
});

test("jumps to the clicked state of the history", async () => {
  find("[data-tab=history]").click();
  await flush();
  byText(".tw-history-row", "start").click();
  expect(kernel.last()).toMatchObject({ type: "navigate", action: "jump", node: store.state.value.history.nodes[0]?.key });
});

test("a move of the head renders only the two states that it changes", async () => {
  find("[data-tab=history]").click();
  await flush();
  const { history } = store.state.value;
  const counts = await rendered(async () => {
    kernel.answer({ history: { ...history, head: history.nodes[4]?.key ?? "", nodes: [], keep: history.nodes.length } });
    await flush();
  });
  expect(history.nodes.length).toBeGreaterThan(5);
  expect(counts.get("HistoryRow")).toBe(2);
});

test("escapes text of the program", async () => {
  kernel.answer({ selected: makeSelected({ kind: "loop", function: "f", uid: 1, name: "<img src=x onerror=alert(1)>" }) });
  await flush();
  expect(page.querySelector("img[src]")).toBeNull();
  expect(find(".tw-selected").textContent).toContain("<img src=x");
});

test("an error in one pane does not affect the others", async () => {
  kernel.answer({ symbols: { rows: null } as never });
  find("[data-tab=symbols]").click();
  await flush();
  expect(find(".tw-empty[role=alert]").textContent).toContain("The dock could not be rendered");
  expect(find(".tw-code-text").textContent).toContain("for k_0 in range(96):");
});

test("highlights the operations of the hovered part in the graph", async () => {
  const marker = [...page.querySelectorAll<HTMLElement>(".tw-marker")].find((item) => item.dataset.name === "matmul");
  marker?.dispatchEvent(new Event("pointerenter"));
  await flush();
  const linked = [...page.querySelectorAll(".tw-card.is-linked")].map((card) => card.getAttribute("data-name"));
  expect(linked).toEqual(["mid"]);
});
