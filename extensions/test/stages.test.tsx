import { expect, test } from "vitest";
import { stageTabs } from "../core/panels/stages";
import type { Lowered } from "../core/protocol";
import { flush, makeProblem } from "./helpers";
import { find, kernel, page, store } from "./mounted";

async function open(tab: string): Promise<void> {
  find(`[data-tab=${tab}]`).click();
  await flush();
}

async function answer(stage: string, text: string, extra: Partial<Lowered> = {}): Promise<void> {
  const { history, open: name } = store.state.value;
  kernel.answer({ lowered: { state: history.head, function: name, stage, text, previous: "", ...extra } });
  await flush();
}

function shown(): string[] {
  return [...page.querySelectorAll(".tw-lowered .cm-line")].map((line) => line.textContent);
}

async function press(key: string): Promise<void> {
  find(".tw-lowered .tw-code-text").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  await flush();
}

test("has a tab for the passes, LLVM and assembly, named PTX for a GPU", () => {
  const stages = store.state.value.stages;
  expect(stageTabs(stages, "cpu · avx2").map((tab) => tab.label)).toEqual(["Passes", "LLVM", "Assembly"]);
  expect(stageTabs(stages, "cuda · sm_90").map((tab) => tab.label)).toEqual(["Passes", "LLVM", "PTX"]);
  expect(stageTabs([], "cpu")).toEqual([]);
});

test("requests and displays the text of the chosen stage", async () => {
  await open("passes");
  expect(kernel.last()).toMatchObject({ type: "lower", stage: "scheduled" });
  expect(find(".tw-lowered").textContent).toContain("Lowering…");
  await answer("scheduled", "for i in range(8):\n    y[i] = x[i]\n");
  expect(shown()).toEqual(["for i in range(8):", "    y[i] = x[i]"]);
  const picker = find("[aria-label=Stage]") as HTMLSelectElement;
  picker.value = "to_thread";
  picker.dispatchEvent(new Event("change", { bubbles: true }));
  await flush();
  expect(kernel.last()).toMatchObject({ type: "lower", stage: "to_thread" });
});

test("moves between stages and levels with keys, without requesting a text twice", async () => {
  await open("passes");
  await answer("scheduled", "first");
  await press("]");
  expect(kernel.last()).toMatchObject({ type: "lower", stage: "strip_mine" });
  await answer("strip_mine", "second", { previous: "first" });
  const count = kernel.sent.length;
  await press("[");
  expect(shown()).toEqual(["first"]);
  await press("]");
  expect(shown()).toEqual(["second"]);
  expect(kernel.sent.length).toBe(count);
  await open("assembly");
  await answer("assembly", "ret");
  await press("[");
  expect(find("[data-tab=llvm]").getAttribute("aria-selected")).toBe("true");
});

test("displays the change by a stage", async () => {
  await open("passes");
  await answer("scheduled", "a");
  await press("]");
  await answer("strip_mine", "a\nc\n", { previous: "a\nb\n" });
  await press("d");
  const marked = (selector: string): string[] => [...page.querySelectorAll(`.tw-lowered ${selector}`)].map((line) => line.textContent);
  expect(marked(".cm-deletedLine")).toEqual(["b"]);
  expect(marked(".cm-changedLine")).toEqual(["c"]);
  expect(shown()).toEqual(["a", "c", ""]);
  await press("]");
  await answer("lift_tail_guards", "a\nc\n", { previous: "a\nc\n" });
  expect(find(".tw-stage-note").textContent).toBe("This stage changed nothing.");
});

test("types into the search of a text, which has other keys than the text", async () => {
  await open("llvm");
  await answer("llvm", "define void @f()", { previous: "define void @g()" });
  find("[aria-label='Find in the text']").click();
  await flush();
  find(".tw-lowered .tw-find input").dispatchEvent(new KeyboardEvent("keydown", { key: "d", bubbles: true, cancelable: true }));
  await flush();
  expect(find("[aria-keyshortcuts=d]").getAttribute("aria-pressed")).toBe("false");
  await press("d");
  expect(find("[aria-keyshortcuts=d]").getAttribute("aria-pressed")).toBe("true");
});

test("displays an error above the last text", async () => {
  await open("llvm");
  await answer("llvm", "define void @f()");
  await answer("llvm", "define void @f()", { problem: makeProblem({ title: "Missing instruction", message: "no avx512" }) });
  expect(find(".tw-stage-error").textContent).toContain("no avx512");
  expect(find(".tw-lowered .tw-code-text").textContent).toContain("define void @f()");
  find(".tw-stage-error .tw-button").click();
  expect(kernel.last()).toMatchObject({ type: "lower", stage: "llvm" });
});

test("requests a cheap text again when the head moves, and offers it for generated code", async () => {
  await open("passes");
  await answer("scheduled", "old");
  const moved = { history: { ...store.state.value.history, head: "another" } };
  kernel.answer(moved);
  await flush();
  expect(kernel.last()).toMatchObject({ type: "lower", stage: "scheduled" });
  expect(shown()).toEqual(["old"]);
  await answer("scheduled", "new");
  expect(shown()).toEqual(["new"]);
  await open("llvm");
  await answer("llvm", "old");
  const texts = (): number => kernel.sent.filter((message) => message.type === "lower").length;
  const count = texts();
  kernel.answer({ history: { ...store.state.value.history, head: "a third one" } });
  await flush();
  expect(texts()).toBe(count);
  expect(find(".tw-stage-note").textContent).toContain("earlier state");
});

test("returns to the loops when a part of the function is revealed", async () => {
  await open("llvm");
  store.reveal(store.state.value.open, [{ line: 12, column: 9, end: 12 }]);
  await flush();
  expect(find("[data-tab=ir]").getAttribute("aria-selected")).toBe("true");
  expect(page.querySelectorAll(".tw-underline")).toHaveLength(1);
});

test("displays progress, elapsed time and a cancel button in the status bar", async () => {
  kernel.answer({ jobs: [{ key: "job1", kind: "run", title: "Measure", state: "running", progress: 0.25, message: "warming up", seconds: 61 }] });
  await flush();
  const job = find(".tw-status .tw-job");
  expect(job.textContent).toContain("Measure warming up");
  expect(job.textContent).toContain("25 % · 1 min 1 s");
  expect(find(".tw-toolbar .tw-primary").getAttribute("aria-disabled")).toBe("true");
  kernel.answer({ jobs: [{ key: "job2", kind: "lower", title: "Lower f", state: "running", progress: -1, message: "", seconds: 0 }] });
  await flush();
  expect(find(".tw-toolbar .tw-primary").getAttribute("aria-disabled")).toBe("false");
});
