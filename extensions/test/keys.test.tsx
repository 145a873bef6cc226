import { expect, test } from "vitest";
import { belongsHere } from "../core/ui/keys";
import { flush, makeProblem, menuOf } from "./helpers";
import { kernel, page, store } from "./mounted";

function key(name: string, modifiers: KeyboardEventInit = {}): KeyboardEvent {
  return new KeyboardEvent("keydown", { key: name, ...modifiers });
}

test("leaves combinations with Ctrl to JupyterLab, except those of commands and running the cell", () => {
  for (const name of ["s", "b", "f", "p"]) expect(belongsHere(key(name, { ctrlKey: true }), false)).toBe(false);
  expect(belongsHere(key("F1"), false)).toBe(false);
  expect(belongsHere(key("z", { ctrlKey: true }), true)).toBe(true);
  expect(belongsHere(key("Enter", { ctrlKey: true }), false)).toBe(true);
  for (const name of ["d", "x", "Enter", "ArrowDown"]) expect(belongsHere(key(name), false)).toBe(true);
});

test("marks keys for JupyterLab before they reach the document", () => {
  const root = page.querySelector<HTMLElement>(".tw-root");
  const seen: (boolean | undefined)[] = [];
  const look = (): void => void seen.push(root?.hasAttribute("data-lm-suppress-shortcuts"));
  document.addEventListener("keydown", look, true);
  const keys = [key("s", { ctrlKey: true, bubbles: true }), key("d", { bubbles: true }), key("f", { ctrlKey: true, bubbles: true }), key("p", { altKey: true, bubbles: true })];
  for (const event of keys) page.querySelector(".tw-code-text")?.dispatchEvent(event);
  page.querySelector(".tw-status")?.dispatchEvent(key("f", { ctrlKey: true, bubbles: true }));
  document.removeEventListener("keydown", look, true);
  expect(seen).toEqual([false, true, true, true, false]);
});

test("moves the focus of a removed step to its successor, else to the selection", async () => {
  const apply = page.querySelector<HTMLElement>('[data-focus="apply:split"]');
  apply?.focus();
  const menu = menuOf(store);
  kernel.answer({ menu: { ...menu, suggestions: menu.suggestions.map((item) => (item.step === "split" ? { ...item, problems: [makeProblem({})] } : item)) } });
  await flush();
  expect(document.activeElement?.getAttribute("data-focus")).toBe("step:split");
  kernel.answer({ menu: { ...menu, suggestions: [] } });
  await flush();
  expect(document.activeElement?.classList.contains("tw-marker")).toBe(true);
});
