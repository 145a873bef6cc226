import { openSearchPanel } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { contextMenu } from "../core/code/context_menu";
import { connect, reading } from "../core/code/editor";
import { highlighting } from "../core/code/highlight";
import { TextTools } from "../core/code/tools";
import { foldBodies, unfoldBodies, wrap } from "../core/commands/text";
import { flush, useFakeTimers } from "./helpers";

const TEXT = "def f():\n    for i in range(4):\n        a[i] = A[i]\n    return a";

let view: EditorView;
let tools: TextTools;
let disconnect: () => void;

function show(text: string): void {
  tools = new TextTools();
  const extensions = [contextMenu(tools, () => []), reading({ label: "Text", language: "script", tools }), highlighting(() => "script")];
  view = new EditorView({ parent: document.body, state: EditorState.create({ doc: text, extensions }) });
  disconnect = connect(view, tools);
}

beforeEach(useFakeTimers);

afterEach(() => {
  disconnect();
  view.destroy();
  vi.useRealTimers();
});

function key(target: Element, name: string, modifiers: KeyboardEventInit = {}): KeyboardEvent {
  const event = new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...modifiers });
  target.dispatchEvent(event);
  return event;
}

function find(selector: string): HTMLElement {
  const found = view.dom.querySelector<HTMLElement>(selector);
  if (!found) throw new Error(`no element matches ${selector}`);
  return found;
}

function wraps(): boolean {
  return find(".tw-code-text").classList.contains("cm-lineWrapping");
}

async function search(text: string): Promise<string> {
  openSearchPanel(view);
  const field = find(".tw-find input") as HTMLInputElement;
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await flush();
  return find(".tw-find [role=status]").textContent;
}

test("is a labeled text that cannot be changed", () => {
  show(TEXT);
  const content = find(".tw-code-text");
  expect(content.getAttribute("aria-label")).toBe("Text");
  expect(content.getAttribute("aria-readonly")).toBe("true");
  for (const name of ["x", "Backspace", "Delete", "Enter"]) key(content, name);
  const typed = new InputEvent("beforeinput", { inputType: "insertText", data: "x", bubbles: true, cancelable: true });
  content.dispatchEvent(typed);
  expect(typed.defaultPrevented).toBe(true);
  expect(view.state.doc.toString()).toBe(TEXT);
});

test("counts the matches of a search, and moves between them", async () => {
  show(TEXT);
  expect(await search("a[")).toBe("2");
  key(find(".tw-find input"), "Enter");
  await flush();
  expect(find(".tw-find [role=status]").textContent).toBe("1 of 2");
  find("[aria-label='Match case']").click();
  await flush();
  expect(find(".tw-find [role=status]").textContent).toBe("1 of 1");
  expect(view.dom.querySelectorAll(".cm-searchMatch")).toHaveLength(1);
  expect(await search("none of it")).toBe("None");
  find("[aria-label='Regular expression']").click();
  expect(await search("(")).toBe("Invalid expression");
  expect(key(find(".tw-find input"), "Escape").defaultPrevented).toBe(true);
  expect(view.dom.querySelector(".tw-find")).toBeNull();
});

test("wraps lines by a key or a button of the pane", () => {
  show(TEXT);
  expect(wraps()).toBe(false);
  key(find(".tw-code-text"), "w");
  expect(wraps()).toBe(true);
  wrap.run(view, tools);
  expect(wraps()).toBe(false);
});

test("folds and unfolds the body at the cursor", () => {
  show(TEXT);
  view.dispatch({ selection: { anchor: TEXT.indexOf("for") } });
  key(find(".tw-code-text"), "-");
  expect(find(".tw-folded").textContent).toBe("⋯ 1 line");
  key(find(".tw-code-text"), "+");
  expect(view.dom.querySelector(".tw-folded")).toBeNull();
  view.dispatch({ selection: { anchor: TEXT.indexOf("A[i]") } });
  key(find(".tw-code-text"), "-");
  expect(find(".tw-folded").textContent).toBe("⋯ 1 line");
  key(find(".tw-code-text"), "-");
  expect(find(".tw-folded").textContent).toBe("⋯ 3 lines");
  expect(view.state.selection.main.head).toBe(TEXT.indexOf("\n"));
  unfoldBodies.run(view, tools);
  view.dispatch({ selection: { anchor: TEXT.indexOf("A[i]") } });
  foldBodies.run(view, tools);
  expect(view.state.selection.main.head).toBe(TEXT.indexOf("\n"));
  expect(find(".tw-folded").textContent).toBe("⋯ 3 lines");
  find(".tw-folded").click();
  unfoldBodies.run(view, tools);
  expect(view.dom.querySelector(".tw-folded")).toBeNull();
});

test("opens a menu in place of the notebook's, which keys move through", () => {
  show(TEXT);
  vi.spyOn(view, "posAtCoords").mockImplementation(() => TEXT.indexOf("for"));
  const notebook = vi.fn();
  document.addEventListener("contextmenu", notebook);
  const event = new MouseEvent("contextmenu", { bubbles: true, cancelable: true });
  find(".tw-code-text").dispatchEvent(event);
  document.removeEventListener("contextmenu", notebook);
  expect(notebook).not.toHaveBeenCalled();
  expect(event.defaultPrevented).toBe(true);
  const entries = [...view.dom.querySelectorAll("[role^=menuitem]")].map((entry) => entry.querySelector("span:nth-child(2)")?.textContent);
  expect(entries).toEqual(["Find in the text", "Fold", "Fold bodies", "Unfold bodies", "Wrap lines"]);
  key(find("[role=menu] :focus"), "ArrowDown");
  expect(document.activeElement?.textContent).toContain("Fold−");
  (document.activeElement as HTMLElement).click();
  expect(view.dom.querySelector("[role=menu]")).toBeNull();
  expect(find(".tw-folded").textContent).toBe("⋯ 1 line");
  find(".tw-code-text").dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true }));
  expect(find("[role=menu]").textContent).toContain("Unfold+");
  key(find("[role=menu] :focus"), "Escape");
  expect(view.dom.querySelector("[role=menu]")).toBeNull();
});

test("displays a text of 50 MB with few elements", () => {
  const line = `        y[i // s, i % s] = x[i // s, i % s] + 1.0`;
  show(`def f():\n${`${line}\n`.repeat(1_000_000)}`);
  expect(view.state.doc.length).toBeGreaterThan(50_000_000);
  expect(view.dom.querySelectorAll("*").length).toBeLessThan(8000);
}, 60_000);
