import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { mount } from "../core/app";
import { Actions } from "../core/commands/actions";
import { ariaKeys, editorKeys, isPress, keyText } from "../core/commands/keys";
import { COMMANDS } from "../core/commands/registry";
import type { Store } from "../core/store";
import { View } from "../core/view_state";
import { connected, flush, makeSelected, menuOf, useFakeTimers, type FakeKernel } from "./helpers";

let kernel: FakeKernel;
let store: Store;
let page: HTMLElement;
let view: View;
let unmount: () => void;

beforeEach(async () => {
  useFakeTimers();
  ({ kernel, store } = connected());
  page = document.createElement("div");
  document.body.append(page);
  view = new View();
  unmount = mount(store, page, view);
  await flush();
});

afterEach(async () => {
  unmount();
  page.remove();
  await flush();
  vi.useRealTimers();
});

function find(selector: string): HTMLElement {
  const found = page.querySelector<HTMLElement>(selector);
  if (!found) throw new Error(`no element matches ${selector}`);
  return found;
}

function event(key: string, modifiers: KeyboardEventInit = {}): KeyboardEvent {
  return new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...modifiers });
}

async function press(selector: string, key: string, modifiers: KeyboardEventInit = {}): Promise<boolean> {
  const pressed = event(key, modifiers);
  find(selector).dispatchEvent(pressed);
  await flush();
  return pressed.defaultPrevented;
}

test("ids are unique, and no key has two commands at one element", () => {
  expect(new Set(COMMANDS.map(({ id }) => id)).size).toBe(COMMANDS.length);
  const keys = COMMANDS.flatMap((command) => command.keys.map((one) => `${one} in ${command.within ?? "all"}`));
  expect(new Set(keys).size).toBe(keys.length);
  const everywhere = new Set(COMMANDS.flatMap((command) => (command.within === undefined ? command.keys : [])));
  for (const command of COMMANDS) if (command.within !== undefined) for (const one of command.keys) expect(everywhere.has(one)).toBe(false);
});

test("keys have the notation of Lumino, and do not take those of JupyterLab and Chromium", () => {
  // Bound by JupyterLab 4.6 for the page or the notebook, or by Chromium.
  const taken = ["C", "F", "H", "B", "E", "K", "L", "U", "X", "D", "T", "N", "P", "O", "I", "J", "W"].map((letter) => `Accel Shift ${letter}`);
  const also = ["S", "B", "P", "I", "J", "G", "H", "K", "L", "E", "D", "N", "T", "W", "O", "U", "R", "F"].map((letter) => `Accel ${letter}`);
  const others = ["F1", "F5", "F6", "F11", "F12", "Alt W", "Alt A", "Alt L", "Alt D", "Alt E", "Alt F"];
  for (const command of COMMANDS)
    for (const keys of command.keys) {
      expect(keys).toMatch(/^((Accel|Alt|Shift) )*([A-Z[\]+=-]|Enter|Space|F\d|Arrow\w+)$/);
      if (command.within === undefined) expect([...taken, ...also, ...others]).not.toContain(keys);
    }
});

test("recognizes keys in any layout, and names them", () => {
  expect(isPress("Accel Z", event("z", { ctrlKey: true }))).toBe(true);
  expect(isPress("Accel Z", event("Z", { ctrlKey: true, shiftKey: true }))).toBe(false);
  expect(isPress("Accel Shift Z", event("Z", { metaKey: true, shiftKey: true }))).toBe(true);
  expect(isPress("Accel Z", event("я", { ctrlKey: true, code: "KeyZ" }))).toBe(true);
  expect(isPress("Alt P", event("π", { altKey: true, code: "KeyP" }))).toBe(true);
  expect(isPress("Alt P", event("p", { altKey: true, ctrlKey: true }))).toBe(false);
  expect(isPress("+", event("+", { shiftKey: true }))).toBe(true);
  expect(isPress("Space", event(" "))).toBe(true);
  expect(isPress("F3", event("F3", { shiftKey: true }))).toBe(false);
  expect(["Accel Shift Z", "Alt ArrowDown", "W", "-"].map(keyText)).toEqual(["Ctrl+Shift+Z", "Alt+↓", "w", "−"]);
  expect(["Accel Shift Z", "D"].map(ariaKeys)).toEqual(["Control+Shift+z", "d"]);
  expect(["Accel Shift G", "+", "Enter"].map(editorKeys)).toEqual(["Mod-Shift-g", "+", "Enter"]);
});

test("keys are named with the signs of a Mac", () => {
  vi.spyOn(navigator, "userAgent", "get").mockReturnValue("Macintosh");
  expect(["Accel Shift Z", "Alt P"].map(keyText)).toEqual(["⌘⇧Z", "⌥P"]);
  expect(ariaKeys("Accel Z")).toBe("Meta+z");
  vi.restoreAllMocks();
});

test("every command runs, or states why not", () => {
  const actions = new Actions(COMMANDS, store, view);
  const reasons = COMMANDS.filter((command) => actions.enabled(command) !== true).map((command) => [command.id, actions.enabled(command)]);
  expect(Object.fromEntries(reasons)).toEqual({
    "tilewright:redo": "Nothing to redo",
    "tilewright:show-wgsl": "Not for this program",
    "tilewright:move-loop-inward": "No loop is directly inside the selected one",
    "tilewright:cancel": "Not for this program",
    "tilewright:lower-graph": "Not for this program",
    "tilewright:take-schedule": "Not for this program",
    "tilewright:previous-stage": "No stage is displayed",
    "tilewright:next-stage": "No stage is displayed",
    "tilewright:compare-stages": "No stage is displayed",
  });
  const sent = kernel.sent.length;
  actions.run(actions.command("tilewright:redo"));
  expect(kernel.sent.length).toBe(sent);
});

test("a key of a command runs it once, and one that cannot run is consumed", async () => {
  expect(await press(".tw-code-text", "m", { altKey: true, code: "KeyM" })).toBe(true);
  expect(kernel.last()).toMatchObject({ type: "run", action: "measure", function: "" });
  const sent = kernel.sent.length;
  expect(await press(".tw-code-text", "y", { ctrlKey: true })).toBe(true);
  expect(kernel.sent.length).toBe(sent);
  expect(find(".tw-announcement").textContent).toBe("Redo: Nothing to redo");
  expect(await press("input[type=search]", "m", { altKey: true, code: "KeyM" })).toBe(false);
  expect(kernel.sent.length).toBe(sent);
});

test("Alt+Down exchanges the selected loop with the one inside it", async () => {
  const [selection] = store.state.value.selected.path.slice(-1);
  if (!selection) throw new Error("no loop");
  kernel.answer({ selected: makeSelected(selection), menu: { ...menuOf(store), selection } });
  await flush();
  await press('.tw-marker[tabindex="0"]', "ArrowDown", { altKey: true });
  expect(kernel.last()).toMatchObject({ type: "apply", step: { op: "reorder" } });
});

test("Alt+Up exchanges the selected loop with the one around it", async () => {
  await press('.tw-marker[tabindex="0"]', "ArrowUp", { altKey: true });
  const step = { op: "reorder", handles: { loops: [{ name: "k_0" }, { name: "j_0" }] } };
  expect(kernel.last()).toMatchObject({ type: "apply", step });
});

test("toolbar buttons are commands, with their keys and the reason why they cannot run", async () => {
  expect(find("[aria-label=Undo]").title).toBe("Undo (Ctrl+Z)");
  expect(find("[aria-label=Redo]").title).toBe("Nothing to redo");
  expect(find("[aria-label=Redo]").getAttribute("aria-disabled")).toBe("true");
  expect(find("[aria-label='Measure kernel']").getAttribute("aria-keyshortcuts")).toBe("Alt+k");
  kernel.answer({ jobs: [{ key: "j", kind: "run", title: "Compile", state: "running", progress: 0, message: "", seconds: 0 }] });
  await flush();
  expect(find(".tw-toolbar .tw-primary").title).toBe("A job is running");
});

test("commands act on the text with the focus, else on that of the open function", async () => {
  const actions = new Actions(COMMANDS, store, view);
  const acted: string[] = [];
  actions.withText(() => acted.push("none"));
  await flush();
  expect(acted).toEqual([]);
  expect(view.value.pane).toBe("function");
  find("[aria-label='Find in the text']").click();
  await flush();
  expect(page.querySelector(".tw-find")).not.toBeNull();
});

test("the menu of a loop is that of its line", async () => {
  const marker = find(".tw-marker");
  marker.dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true }));
  await flush();
  const entries = [...page.querySelectorAll(".tw-menu [role^=menuitem]")].map((entry) => entry.textContent);
  expect(entries[0]).toContain("Select loop");
  find(".tw-menu button").click();
  expect(kernel.last()).toMatchObject({ type: "select", kind: "loop", uid: Number(marker.dataset.uid) });
});
