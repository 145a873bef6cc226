import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Actions } from "../core/commands/actions";
import { COMMANDS } from "../core/commands/registry";
import { readTrace } from "../core/trace/document";
import { View } from "../core/view_state";
import { flush, makeCopy } from "./helpers";
import { find, kernel, page, store } from "./mounted";

const FILE = { name: "main.trace.jsonl", format: "json" as const, text: "steps\n" };
const clicked: { href: string; name: string }[] = [];

beforeEach(async () => {
  clicked.length = 0;
  vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(function (this: HTMLAnchorElement) {
    clicked.push({ href: this.href, name: this.download });
  });
  URL.createObjectURL = () => "blob:trace";
  URL.revokeObjectURL = () => undefined;
  find("[data-tab=trace]").click();
  await flush();
});

afterEach(() => {
  vi.restoreAllMocks();
  Reflect.deleteProperty(navigator, "clipboard");
  Reflect.deleteProperty(document, "execCommand");
});

function run(id: `tilewright:${string}`): void {
  const actions = new Actions(COMMANDS, store, new View());
  actions.run(actions.command(id));
}

function announced(): string {
  return find(".tw-announcement").textContent;
}

function barButton(text: string): HTMLElement {
  const found = [...page.querySelectorAll<HTMLElement>(".tw-panel-bar button")].find((button) => button.textContent.trim() === text);
  if (!found) throw new Error(`no button ${text}`);
  return found;
}

function setClipboard(writeText: (text: string) => Promise<void>): void {
  Object.defineProperty(navigator, "clipboard", { value: { writeText }, configurable: true });
}

test("the trace is saved as JSON and as Python", async () => {
  barButton("Save").click();
  expect(kernel.last()).toMatchObject({ type: "save", format: "json" });
  expect(clicked).toEqual([]);
  kernel.answer({ document: FILE });
  await flush();
  expect(clicked).toEqual([{ href: "blob:trace", name: "main.trace.jsonl" }]);
  expect(announced()).toBe("Saved main.trace.jsonl");
  barButton("Save as Python").click();
  expect(kernel.last()).toMatchObject({ type: "save", format: "python" });
  kernel.answer({ document: { name: "main.py", format: "python", text: "sch.unroll(i)\n" } });
  await flush();
  expect(announced()).toBe("Saved main.py");
});

test("the trace is copied, and a denied access is reported", async () => {
  const written: string[] = [];
  setClipboard((text) => {
    written.push(text);
    return Promise.resolve();
  });
  run("tilewright:copy-trace-json");
  expect(kernel.last()).toMatchObject({ type: "save", format: "json" });
  kernel.answer({ document: FILE });
  await flush();
  expect(written).toEqual(["steps\n"]);
  expect(clicked).toEqual([]);
  expect(announced()).toBe("Copied the trace as JSON");
  setClipboard(() => Promise.reject(new Error("denied")));
  barButton("Copy as Python").click();
  kernel.answer({ document: { name: "main.py", format: "python", text: "x" } });
  await flush();
  expect(announced()).toBe("The browser denied access to the clipboard");
});

test("on a page without HTTPS the selection is copied, and the focus returns", async () => {
  const copied: string[] = [];
  Object.defineProperty(document, "execCommand", {
    value: () => {
      copied.push((document.activeElement as HTMLTextAreaElement).value);
      return true;
    },
    configurable: true,
  });
  barButton("Copy as Python").focus();
  run("tilewright:copy-trace-python");
  kernel.answer({ document: { name: "main.py", format: "python", text: "sch.unroll(i)\n" } });
  await flush();
  expect(copied).toEqual(["sch.unroll(i)\n"]);
  expect(document.activeElement).toBe(barButton("Copy as Python"));
  expect(document.querySelector("textarea")).toBeNull();
});

test("an answer without a document copies and saves nothing", async () => {
  run("tilewright:save-trace-json");
  kernel.answer({ applied: { message: "Internal error", tone: "bad", functions: [] } });
  await flush();
  expect(clicked).toEqual([]);
  expect(announced()).toBe("Internal error");
});

test("a chosen file is loaded with its name, and one that is too large is not sent", async () => {
  await readTrace(store, new File(['{"trace": "tilewright"}'], "a.jsonl"));
  expect(kernel.last()).toMatchObject({ type: "load", text: '{"trace": "tilewright"}', notes: {}, name: "a.jsonl" });
  const sent = kernel.sent.length;
  const large = new File(["x"], "model.onnx");
  Object.defineProperty(large, "size", { value: 90 * 1024 * 1024 });
  await readTrace(store, large);
  await flush();
  expect(kernel.sent.length).toBe(sent);
  expect(announced()).toBe("model.onnx has 90.0 MiB; the file of a trace has at most 16.0 MiB");
});

test("Load opens a dialog for JSON and Python files", () => {
  const opened: string[] = [];
  vi.spyOn(HTMLInputElement.prototype, "click").mockImplementation(function (this: HTMLInputElement) {
    opened.push(`${this.type} ${this.accept}`);
  });
  barButton("Load").click();
  expect(opened).toEqual(["file .json,.jsonl,.py"]);
});

test("without the kernel the browser's copy is saved as JSON, and the other commands state why not", async () => {
  kernel.answer({ copy: { ...makeCopy("main"), steps: 1, lines: ["header", "step"] } });
  kernel.alive(false);
  await flush();
  run("tilewright:save-trace-json");
  await flush();
  expect(announced()).toBe("Saved main.jsonl");
  run("tilewright:load-trace");
  await flush();
  expect(announced()).toBe("Load a trace…: The Jupyter kernel is not connected");
  expect(barButton("Save as Python").getAttribute("aria-disabled")).toBe("true");
});

test("without steps there is nothing to copy or to save", async () => {
  kernel.answer({ trace: { lines: [], groups: [], reason: "" } });
  await flush();
  expect(barButton("Save").title).toBe("No steps yet");
  run("tilewright:copy-trace-python");
  await flush();
  expect(announced()).toBe("Copy the trace as Python: No steps yet");
});

test("a right click on the trace opens a menu with the commands", async () => {
  const line = find(".tw-trace .cm-line");
  const event = new MouseEvent("contextmenu", { bubbles: true, cancelable: true, clientX: 5, clientY: 5 });
  line.dispatchEvent(event);
  await flush();
  expect(event.defaultPrevented).toBe(true);
  const entries = [...page.querySelectorAll<HTMLElement>("[role=menu][aria-label=Trace] button")];
  expect(entries.map((entry) => entry.textContent)).toEqual([
    "Copy the trace as Python", "Copy the trace as JSON", "Save the trace as Python", "Save the trace as JSON", "Load a trace…",
  ]);
  entries[3]?.click();
  expect(kernel.last()).toMatchObject({ type: "save", format: "json" });
});
