import { expect, test } from "vitest";
import { flush } from "./helpers";
import { find, kernel, page } from "./mounted";

async function press(key: string, modifiers: KeyboardEventInit = {}): Promise<void> {
  document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...modifiers }));
  await flush();
}

async function open(): Promise<HTMLInputElement> {
  find(".tw-code-text").focus();
  await press("p", { altKey: true, code: "KeyP" });
  return find("[role=combobox]") as HTMLInputElement;
}

async function type(field: HTMLInputElement, text: string): Promise<void> {
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await flush();
}

function labels(): string[] {
  return [...page.querySelectorAll("[role=option] .tw-palette-label")].map((label) => label.textContent);
}

test("lists the commands with their keys, those that cannot run with the reason, and the functions", async () => {
  const field = await open();
  expect(document.activeElement).toBe(field);
  const undo = find("[role=option]");
  expect(undo.textContent).toContain("Undo");
  expect(undo.querySelector("kbd")?.textContent).toBe("Ctrl+Z");
  const redo = [...page.querySelectorAll("[role=option]")].find((item) => item.textContent.includes("Redo"));
  expect(redo?.getAttribute("aria-disabled")).toBe("true");
  expect(redo?.textContent).toContain("Nothing to redo");
  expect(labels()).toContain("fused_matmul_add_gelu");
  expect(labels()).not.toContain("Cancel the running job");
  const titles = [...page.querySelectorAll("[role=listbox] [role=group]")].map((group) => group.getAttribute("aria-label"));
  expect(titles[0]).toBe("Edit");
  expect(titles.at(-1)).toBe("Functions");
});

test("filters while one types, and runs the chosen command with Enter", async () => {
  const field = await open();
  await type(field, "meas");
  expect(labels()[0]).toBe("Measure");
  expect(field.getAttribute("aria-activedescendant")).toBe(find("[role=option][aria-selected=true]").id);
  await press("ArrowDown");
  expect(find("[role=option][aria-selected=true]").textContent).toContain("Measure kernel");
  await press("ArrowUp");
  await press("Enter");
  expect(kernel.last()).toMatchObject({ type: "run", action: "measure", function: "" });
  expect(page.querySelector("dialog")).toBeNull();
  expect(document.activeElement).toBe(find(".tw-code-text"));
});

test("opens a function, and shows a panel", async () => {
  await type(await open(), "softmax");
  expect(labels()).toEqual(["softmax"]);
  find("[role=option]").click();
  expect(kernel.last()).toMatchObject({ type: "open", function: "softmax" });
  await flush();
  await type(await open(), "show history");
  await press("Enter");
  expect(find("[data-tab=history]").getAttribute("aria-selected")).toBe("true");
});

test("a command that cannot run is not chosen, and nothing that matches is stated", async () => {
  const field = await open();
  await type(field, "redo");
  const sent = kernel.sent.length;
  await press("Enter");
  expect(kernel.sent.length).toBe(sent);
  expect(page.querySelector("dialog")).not.toBeNull();
  await type(field, "no such thing");
  expect(find(".tw-palette-status").textContent).toBe("No command or function matches");
  expect(field.hasAttribute("aria-activedescendant")).toBe(false);
  await press("Enter");
  await press("Escape");
  expect(page.querySelector("dialog")).toBeNull();
  expect(document.activeElement).toBe(find(".tw-code-text"));
});

test("closes with a click beside it, and keeps keys from the workbench", async () => {
  const field = await open();
  const sent = kernel.sent.length;
  await press("z", { ctrlKey: true });
  expect(kernel.sent.length).toBe(sent);
  field.click();
  await flush();
  expect(page.querySelector("dialog")).not.toBeNull();
  find("dialog").click();
  await flush();
  expect(page.querySelector("dialog")).toBeNull();
});

test("opens the setup, and runs commands of the text with the focus", async () => {
  await type(await open(), "find in");
  await press("Enter");
  expect(page.querySelector(".tw-find")).not.toBeNull();
  await type(await open(), "target and");
  await press("Enter");
  expect(page.querySelector(".tw-popover")).not.toBeNull();
});
