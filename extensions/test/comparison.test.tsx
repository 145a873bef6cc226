import { getChunks } from "@codemirror/merge";
import { render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ChangeButtons, Comparison } from "../core/code/comparison";
import { tokenize } from "../core/code/tokenize";
import { TextTools } from "../core/code/tools";
import { flush, useFakeTimers } from "./helpers";

const LINES = Array.from({ length: 30 }, (_, index) => `    a[${String(index)}] = 0`);
const BEFORE = ["def f():", ...LINES].join("\n");
const AFTER = ["def f():", ...LINES.map((line, index) => (index === 4 || index === 20 ? `${line}  # new` : line))].join("\n");

let page: HTMLElement;
let tools: TextTools;

beforeEach(() => {
  useFakeTimers();
  page = document.createElement("div");
  document.body.append(page);
  tools = new TextTools();
});

afterEach(async () => {
  render(null, page);
  page.remove();
  await flush();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

async function show(before: string | null, after: string, extra: { inline?: boolean; onKeyDown?: (event: KeyboardEvent) => void } = {}): Promise<void> {
  const both = (
    <>
      <ChangeButtons tools={tools} />
      <Comparison label="Change" before={before} after={after} language="script" tools={tools} {...extra} />
    </>
  );
  render(both, page);
  await flush();
}

function texts(selector: string): string[] {
  return [...page.querySelectorAll(selector)].map((element) => element.textContent);
}

async function press(key: string): Promise<void> {
  const target = [...page.querySelectorAll(".tw-code-text")].at(-1);
  target?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  await flush();
}

function cursorLine(): string {
  const state = tools.view.value?.state;
  return state ? state.doc.lineAt(state.selection.main.head).text : "";
}

test("shows removed lines above added ones, and hides unchanged lines", async () => {
  await show(BEFORE, AFTER);
  expect(texts(".cm-deletedLine")).toEqual(["    a[4] = 0", "    a[20] = 0"]);
  expect(texts(".cm-changedLine")).toEqual(["    a[4] = 0  # new", "    a[20] = 0  # new"]);
  expect(texts(".cm-changedText").map((text) => text.trim())).toEqual(["# new", "# new"]);
  expect(texts(".cm-collapsedLines")).toEqual(["2 unchanged lines", "9 unchanged lines", "7 unchanged lines"]);
});

test("colors the tokens and the indentation of added and removed lines alike", async () => {
  await show(BEFORE, AFTER);
  const kinds = (selector: string): string[] => [...page.querySelectorAll(`${selector} [class*=tw-tok-], ${selector} .tw-indent`)].map((part) => `${part.className} ${part.textContent}`);
  const removed = kinds(".cm-deletedLine").slice(0, 3);
  expect(removed).toEqual(["tw-indent     ", "tw-tok-name a", "tw-tok-number 4"]);
  expect(kinds(".cm-changedLine").slice(0, 3)).toEqual(removed);
});

test.each([
  ["script", '@prim_func(x) for i in range(8): y: Buffer[f32] = call(x, "a") + 1  # b'],
  ["llvm", 'define void @f(ptr %x) #0 { ; "b"'],
  ["assembly", "vaddps %ymm0, %ymm1  # b"],
] as const)("colors every kind of token of %s like the text itself", async (language, line) => {
  render(<Comparison label="Change" before={line} after={`${line}b`} language={language} tools={tools} />, page);
  await flush();
  const parts = [...page.querySelectorAll(".cm-deletedLine [class*=tw-tok-]")].map((part) => [/tw-tok-(\w+)/.exec(part.className)?.[1], part.textContent]);
  const tokens = tokenize(line, language).filter(({ kind }) => kind !== "text");
  expect(parts.length).toBeGreaterThanOrEqual(tokens.length); // a changed part of a token is a part of its own
  for (const { kind, text } of tokens.slice(0, -1)) expect(parts).toContainEqual([kind, text]);
});

test("moves to the next and the previous change by keys and buttons", async () => {
  await show(BEFORE, AFTER);
  await press("n");
  expect(cursorLine()).toBe("    a[4] = 0  # new");
  page.querySelector<HTMLElement>("[aria-label='Next change']")?.click();
  expect(cursorLine()).toBe("    a[20] = 0  # new");
  await press("p");
  expect(cursorLine()).toBe("    a[4] = 0  # new");
});

test("shows all lines by a key, and passes other keys on", async () => {
  const keys: string[] = [];
  await show(BEFORE, AFTER, { onKeyDown: (event) => keys.push(event.key) });
  await press("n");
  await press("e");
  expect(texts(".cm-collapsedLines")).toEqual([]);
  expect(cursorLine()).toBe("    a[4] = 0  # new");
  await press("e");
  expect(texts(".cm-collapsedLines")).toHaveLength(3);
  await press("]");
  expect(keys).toEqual(["]"]);
  await show(null, AFTER, { onKeyDown: (event) => keys.push(event.key) });
  await press("e");
  expect(keys).toEqual(["]", "e"]);
});

test("keeps the focus between a text, a comparison, and another one", async () => {
  await show(null, AFTER);
  tools.view.value?.focus();
  for (const before of [BEFORE, "def g():", null]) {
    await show(before, AFTER);
    expect(document.activeElement?.classList.contains("tw-code-text")).toBe(true);
    expect(page.contains(document.activeElement)).toBe(true);
  }
});

test("shows both texts beside each other where they fit, except inline", async () => {
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(1000);
  await show(BEFORE, AFTER);
  const labels = [...page.querySelectorAll(".cm-mergeView .tw-code-text")].map((text) => text.getAttribute("aria-label"));
  expect(labels).toEqual(["Change, before", "Change, after"]);
  expect(texts(".cm-merge-a .cm-changedLine")).toEqual(["    a[4] = 0", "    a[20] = 0"]);
  expect(texts(".cm-merge-b .cm-changedLine")).toEqual(["    a[4] = 0  # new", "    a[20] = 0  # new"]);
  await press("n");
  await press("e");
  expect(texts(".cm-collapsedLines")).toEqual([]);
  expect(cursorLine()).toBe("    a[4] = 0  # new");
  await press("e");
  expect(texts(".cm-merge-b .cm-collapsedLines")).toHaveLength(3);
  render(null, page);
  await show(BEFORE, AFTER, { inline: true });
  expect(page.querySelector(".cm-mergeView")).toBeNull();
  expect(texts(".cm-collapsedLines")).toEqual(["4 unchanged lines", "13 unchanged lines", "9 unchanged lines"]);
  expect(page.querySelector(".cm-lineNumbers")).toBeNull();
});

test("shows a long removed part beside the added one, because it would be rendered entirely", async () => {
  const long = Array.from({ length: 5000 }, (_, index) => `removed line number ${String(index)}`).join("\n");
  await show(`${long}\nend`, "end");
  expect(page.querySelector(".cm-mergeView")).not.toBeNull();
  expect(page.querySelectorAll("*").length).toBeLessThan(3000);
});

test("an added last line does not change the line before it", async () => {
  await show("a\nb", "a\nb\nc");
  expect(texts(".cm-changedLine")).toEqual(["c"]);
  expect(texts(".cm-deletedLine")).toEqual([]);
  expect(tools.view.value && getChunks(tools.view.value.state)?.chunks).toHaveLength(1);
});
