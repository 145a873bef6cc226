import { afterEach, beforeEach, expect, test } from "vitest";
import { mount } from "../core/app";
import { telling } from "../core/panels/step";
import { shortened } from "../core/panels/trace";
import type { Store } from "../core/store";
import { connected, makeMenu, settled, type FakeKernel } from "./helpers";

let kernel: FakeKernel;
let store: Store;
let page: HTMLElement;
let unmount: () => void;

beforeEach(async () => {
  ({ kernel, store } = connected());
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

function byText(selector: string, text: string): HTMLElement {
  const found = [...page.querySelectorAll<HTMLElement>(selector)].find((item) => item.textContent.includes(text));
  if (!found) throw new Error(`no ${selector} with ${text}`);
  return found;
}

test("the code of the open function is shown with its selection", () => {
  expect(find(".tw-code-text").textContent).toContain("for k_0 in range(96):");
  expect(find(".tw-line.is-selected").textContent).toContain("for k_0");
});

test("applicable steps come first, blocked ones say why", () => {
  const steps = [...page.querySelectorAll<HTMLElement>(".tw-step")].map((step) => step.dataset.step);
  expect(steps).toEqual(["split", "reorder", "unroll", "fuse", "vectorize", "parallel"]);
  const reason = byText(".tw-step.is-blocked", "vectorize").textContent;
  expect(reason).toContain("Requirement 3");
  expect(reason).toContain("lanes would write one element together");
});

test("one click applies, one click mends", () => {
  byText(".tw-step", "split").querySelector<HTMLElement>(".tw-apply")?.click();
  expect(kernel.last()).toMatchObject({ type: "apply", key: "split:factors=(None, 4)", values: {} });
  kernel.answer({});
  find(".tw-fix").click();
  expect(kernel.last()).toMatchObject({ type: "apply", key: "fix:1" });
});

test("another suggestion is chosen by its chip", async () => {
  byText(".tw-variants .tw-chip", "(None, 16)").click();
  await settled();
  byText(".tw-step", "split").querySelector<HTMLElement>(".tw-apply")?.click();
  expect(kernel.last()).toMatchObject({ type: "apply", key: "split:factors=(None, 16)" });
});

test("the form checks what is typed and applies with Enter", async () => {
  byText(".tw-step-name", "split").click();
  await settled();
  type("(None, 12)");
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(kernel.last()).toMatchObject({ type: "check", values: { factors: "(None, 12)" } });
  kernel.answer({});
  find(".tw-form").dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  expect(kernel.last()).toMatchObject({ type: "apply", values: { factors: "(None, 12)" } });
});

function type(text: string): void {
  const input = find(".tw-form .tw-input") as HTMLInputElement;
  input.value = text;
  input.dispatchEvent(new Event("input", { bubbles: true }));
}

test("a wrong value is told at the form, which stays where it is with what was typed", async () => {
  byText(".tw-step-name", "split").click();
  await settled();
  type("nonsense");
  await settled();
  expect(find(".tw-form-verdict").textContent).toBe("Checking…");
  await settled();
  const { menu } = store.state.value;
  const problem = { requirement: 0, message: "no value", numbers: {}, counterexample: {}, where: [], fixes: [] };
  const candidates = menu.candidates.map((candidate, index) => (index === 0 ? { ...candidate, issues: [problem] } : candidate));
  kernel.answer({ menu: { ...menu, candidates } });
  await settled();
  const steps = [...page.querySelectorAll<HTMLElement>(".tw-step")].map((step) => step.dataset.step);
  expect(steps).toEqual(["split", "reorder", "unroll", "fuse", "vectorize", "parallel"]);
  expect((find(".tw-form .tw-input") as HTMLInputElement).value).toBe("nonsense");
  expect(find(".tw-form-verdict").textContent).toBe("Not legal");
  expect(byText(".tw-step", "split").querySelector(".tw-apply")).toBeNull();
  expect(byText(".tw-step", "split").textContent).toContain("no value");
});

test("the button beside a step's name applies what its form says, once", async () => {
  byText(".tw-step-name", "split").click();
  await settled();
  type("(None, 12)");
  await settled();
  const count = kernel.sent.length;
  byText(".tw-step", "split").querySelector<HTMLElement>(".tw-apply")?.click();
  byText(".tw-step", "split").querySelector<HTMLElement>(".tw-apply")?.click();
  expect(kernel.last()).toMatchObject({ type: "apply", values: { factors: "(None, 12)" } });
  expect(kernel.sent.length).toBe(count + 1);
});

test("suggestions show what tells them apart", () => {
  expect(telling(["factors=(None, 8)", "factors=(None, 16)"])).toEqual(["(None, 8)", "(None, 16)"]);
  expect(telling(["function=f, symbol='M', lower=1", "function=f, symbol='N', lower=1"])).toEqual(["'M'", "'N'"]);
  expect(telling(["a=1, b=2", "a=2, b=3"])).toEqual(["a=1, b=2", "a=2, b=3"]);
});

test("of many results of a step the first are named", () => {
  expect(shortened("a, b, c = sch.split(loop=i)")).toBe("a, b, c = sch.split(loop=i)");
  expect(shortened("a, b, c, d, e, f = sch.fuse_ops(function=main)")).toBe("a, b, c, d, … 2 more = sch.fuse_ops(function=main)");
  expect(shortened("sch.dead_code(function=main)")).toBe("sch.dead_code(function=main)");
});

test("the loop tree is one tab stop and moves with arrows", async () => {
  const knobs = (): HTMLElement[] => [...page.querySelectorAll<HTMLElement>(".tw-knob")];
  expect(knobs().filter((knob) => knob.tabIndex === 0)).toHaveLength(1);
  knobs()[0]?.focus();
  find(".tw-rails").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
  await settled();
  expect(knobs()[1]?.tabIndex).toBe(0);
  knobs()[1]?.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  expect(kernel.last()).toMatchObject({ type: "select", kind: "loop", uid: Number(knobs()[1]?.dataset.uid) });
});

test("the graph is one tab stop and moves with arrows", async () => {
  const cards = (): SVGElement[] => [...page.querySelectorAll<SVGElement>(".tw-card")];
  expect(cards().filter((card) => card.getAttribute("tabindex") === "0")).toHaveLength(1);
  expect(cards().filter((card) => card.hasAttribute("tabIndex"))).toEqual([]);
  cards()[0]?.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
  await settled();
  expect(cards()[1]?.getAttribute("tabindex")).toBe("0");
  expect(document.activeElement).toBe(cards()[1]);
});

test("a search of the graph counts, and Enter goes to the first it found", async () => {
  const search = find(".tw-graph input[type=search]") as HTMLInputElement;
  const look = async (text: string): Promise<void> => {
    search.value = text;
    search.dispatchEvent(new Event("input", { bubbles: true }));
    await settled();
  };
  await look("no such operation");
  expect(find(".tw-found").textContent).toBe("0 found");
  await look("softmax");
  expect(find(".tw-found").textContent).toBe("1 found");
  search.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  expect(document.activeElement?.getAttribute("class")).toContain("is-found");
});

test("undo by keyboard, but not while typing", () => {
  const count = kernel.sent.length;
  const press = (target: Element): boolean =>
    target.dispatchEvent(new KeyboardEvent("keydown", { key: "z", ctrlKey: true, bubbles: true }));
  press(find("input[type=search]"));
  expect(kernel.sent.length).toBe(count);
  press(find(".tw-code"));
  expect(kernel.last()).toMatchObject({ type: "travel", how: "undo" });
});

test("a lower text that cannot be made says so, and is asked for again where one looks", async () => {
  find("[data-tab=assembly]").click();
  await settled();
  expect(kernel.last()).toMatchObject({ type: "lower", kind: "assembly" });
  expect(find("[aria-label=Function]").textContent).toContain("Compiling…");
  kernel.answer({ jobs: [{ key: "job1", title: `Lower ${store.state.value.open}`, state: "failed", progress: -1, message: "no" }] });
  await settled();
  expect(find("[aria-label=Function]").textContent).toContain("came to no end");
  const count = kernel.sent.length;
  kernel.answer({ open: "softmax" });
  await settled();
  expect(kernel.sent.slice(count)).toEqual([expect.objectContaining({ type: "lower", kind: "assembly" })]);
});

test("a timing opens the kernels, the slowest marked, with bars", async () => {
  expect(find("[data-tab=timing]").getAttribute("aria-selected")).toBe("true");
  const first = find(".tw-kernels tbody tr");
  expect(first.textContent).toContain("fused_matmul_add_gelu");
  expect(first.textContent).toContain("slowest");
  byText(".tw-kernels .tw-link", "softmax").click();
  await settled();
  expect(kernel.last()).toMatchObject({ type: "open", function: "softmax" });
});

test("jobs show progress and are cancelled", async () => {
  kernel.answer({ jobs: [{ key: "job1", title: "Compile", state: "running", progress: 0.4, message: "compiled f" }] });
  await settled();
  expect(find("[role=progressbar]").getAttribute("aria-valuenow")).toBe("40");
  byText(".tw-job .tw-button", "Cancel").click();
  expect(kernel.last()).toMatchObject({ type: "cancel", job: "job1" });
});

test("facts say in words what they are, not by colour alone", async () => {
  find("[data-tab=symbols]").click();
  await settled();
  const badges = [...page.querySelectorAll(".tw-symbols .tw-badge")].map((badge) => badge.textContent.trim());
  expect(badges).toEqual(["◇ checked", "✓ proved", "? unknown"]);
  const sample = find(".tw-sample") as HTMLInputElement;
  sample.value = "8";
  sample.dispatchEvent(new Event("change", { bubbles: true }));
  expect(kernel.last()).toEqual(expect.objectContaining({ type: "sample", symbol: "b", value: 8 }));
});

test("history goes where one clicks", async () => {
  find("[data-tab=history]").click();
  await settled();
  byText(".tw-history-row", "start").click();
  expect(kernel.last()).toMatchObject({ type: "travel", how: "jump", to: store.state.value.history.nodes[0]?.key });
});

test("text from the program stays text", async () => {
  const menu = makeMenu({ kind: "loop", function: "f", uid: 1, name: "<img src=x onerror=alert(1)>" });
  kernel.answer({ menu });
  await settled();
  expect(page.querySelector("img")).toBeNull();
  expect(find(".tw-selected").textContent).toContain("<img src=x");
});

test("a fault in one pane leaves the others", async () => {
  kernel.answer({ symbols: { rows: null } as never });
  find("[data-tab=symbols]").click();
  await settled();
  expect(find(".tw-empty[role=alert]").textContent).toContain("The dock could not be drawn");
  expect(find(".tw-code-text").textContent).toContain("for k_0 in range(96):");
});

test("provenance links what is pointed at to the graph", async () => {
  const knob = [...page.querySelectorAll<HTMLElement>(".tw-knob")].find((item) => item.dataset.name === "matmul");
  knob?.dispatchEvent(new Event("pointerenter"));
  await settled();
  const linked = [...page.querySelectorAll(".tw-card.is-linked")].map((card) => card.getAttribute("data-name"));
  expect(linked).toEqual(["mid"]);
});
