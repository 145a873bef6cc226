import { EditorView } from "@codemirror/view";
import { beforeEach, expect, test } from "vitest";
import { flush } from "./helpers";
import { kernel, page, store } from "./mounted";

beforeEach(async () => {
  page.querySelector<HTMLElement>("[data-tab=trace]")?.click();
  await flush();
});

function lines(): HTMLElement[] {
  return [...page.querySelectorAll<HTMLElement>(".tw-trace .cm-line")];
}

function current(): HTMLElement {
  const found = page.querySelector<HTMLElement>(".tw-trace .cm-line.is-current");
  if (!found) throw new Error("no current row");
  return found;
}

function button(selector: string, text: string): HTMLElement {
  const found = [...page.querySelectorAll<HTMLElement>(`${selector} button`)].find((item) => item.textContent === text);
  if (!found) throw new Error(`no button ${text}`);
  return found;
}

function editor(): EditorView {
  const view = EditorView.findFromDOM(page.querySelector<HTMLElement>(".tw-trace .cm-editor") ?? page);
  if (!view) throw new Error("no editor");
  return view;
}

async function focus(row: number): Promise<void> {
  editor().focus();
  editor().dispatch({ selection: { anchor: editor().state.doc.line(row + 1).from } });
  await flush();
}

async function press(key: string, modifiers: KeyboardEventInit = {}): Promise<void> {
  document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...modifiers }));
  await flush();
}

/** Change the text of the row that is edited, as the browser reports typed text. */
function type(text: string): void {
  const { from, to } = editor().state.doc.lineAt(editor().state.selection.main.head);
  editor().dispatch({ changes: { from: from + editor().state.sliceDoc(from, to).search(/\S|$/), to, insert: text }, userEvent: "input.type" });
}

test("folds and unfolds composite steps with keys", async () => {
  expect(lines().map((line) => line.dataset.group ?? "")).toEqual(["", "", "register_tile"]);
  await focus(0);
  await press("End");
  expect(current().textContent).toContain("⋯ 5 steps");
  await press("ArrowRight");
  expect(lines()).toHaveLength(5);
  expect(current().dataset.group).toBe("register_tile");
  await press("ArrowRight");
  expect(current().dataset.group).toBe("tile");
  await press("Enter");
  expect(lines()).toHaveLength(9);
  await press("ArrowLeft");
  expect(lines()).toHaveLength(5);
  await press("ArrowLeft");
  expect(current()).toBe(lines()[2]);
  page.querySelector<HTMLElement>(".tw-trace .tw-folded")?.click();
  await flush();
  expect(lines()).toHaveLength(9);
  expect(page.querySelector(".tw-trace .tw-folded")).toBeNull();
});

test("unfolds and folds all composite steps, and folds one at its arrow", async () => {
  button(".tw-panel-bar", "Unfold all").click();
  await flush();
  expect(lines()).toHaveLength(9);
  expect(lines()[4]?.querySelector(".tw-indent")?.textContent).toBe(" ".repeat(8));
  button(".tw-panel-bar", "Fold all").click();
  await flush();
  expect(lines()).toHaveLength(3);
});

test("ungroups a composite step, and runs it again with other values", async () => {
  await focus(2);
  button(".tw-trace", "Ungroup").click();
  expect(kernel.last()).toMatchObject({ type: "edit_group", action: "ungroup", index: 0, head: store.state.value.history.head });
  button(".tw-trace", "Edit").click();
  await flush();
  const input = page.querySelector<HTMLInputElement>(".tw-group-form .tw-input");
  if (!input) throw new Error("no form");
  expect(document.activeElement).toBe(input);
  input.value = "(8, 32)";
  input.dispatchEvent(new Event("input", { bubbles: true }));
  await flush();
  page.querySelector(".tw-group-form")?.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  await flush();
  expect(kernel.last()).toMatchObject({ type: "edit_group", action: "change", index: 0, values: { sizes: "(8, 32)" } });
  expect(page.querySelector(".tw-group-form")).toBeNull();
  expect(document.activeElement).toBe(editor().contentDOM);
});

test("closes the form of a composite step with Escape", async () => {
  await focus(2);
  button(".tw-trace", "Edit").click();
  await flush();
  await press("Escape");
  expect(page.querySelector(".tw-group-form")).toBeNull();
  expect(document.activeElement).toBe(editor().contentDOM);
});

test("counts the steps of a composite step in the history", async () => {
  page.querySelector<HTMLElement>("[data-tab=history]")?.click();
  await flush();
  const counts = [...page.querySelectorAll(".tw-history-row .tw-count")].map((item) => item.textContent);
  expect(counts).toEqual(["26 steps"]);
});

test("counts the steps of a composite step when its form is opened", async () => {
  const step = page.querySelector<HTMLElement>('[data-step="vectorize_inner"]');
  expect(step?.querySelector(".tw-step-count")?.textContent).toBe("composite");
  step?.querySelector<HTMLElement>(".tw-step-name")?.click();
  await flush();
  expect(kernel.last()).toMatchObject({ type: "check", step: { op: "vectorize_inner" } });
  kernel.answer({ checked: { problems: [], more_problems: 0, steps: 3, match: null } });
  await flush();
  expect(step?.querySelector(".tw-step-count")?.textContent).toBe("3 steps");
});

test("shows pending steps with the reason, and edits a step with the keyboard", async () => {
  const waiting = store.state.value.trace.lines.map((line) => (line.index < 5 ? line : { ...line, status: "pending" as const }));
  kernel.answer({ trace: { lines: waiting, groups: [], reason: "loop 'k' is not serial" } });
  await flush();
  expect(page.querySelector(".tw-panel-bar")?.textContent).toContain("5 steps");
  expect(page.querySelector(".tw-pending")?.textContent).toContain("2 pending steps. The first one does not apply: loop 'k' is not serial");
  expect(lines()[5]?.textContent).toContain("loop 'k' is not serial");
  expect(lines()[5]?.classList.contains("is-failed")).toBe(true);
  expect(lines()[6]?.textContent).not.toContain("not serial");
  expect(lines().map((line) => line.textContent.includes("pending"))).toEqual([false, false, false, false, false, true, true]);
  for (const [label, action] of [["Resume", "resume"], ["Skip step", "skip"], ["Discard", "discard"]] as const) {
    button(".tw-pending", label).click();
    expect(kernel.last()).toMatchObject({ type: "edit_trace", action });
  }
  await focus(5);
  await press("Enter");
  expect(document.activeElement?.getAttribute("aria-label")).toBe("Step as Python");
  type("sch.reorder((i, j))");
  await press("Enter");
  expect(kernel.last()).toMatchObject({ type: "edit_trace", action: "change", index: 5, text: "sch.reorder((i, j))" });
  expect(document.activeElement?.getAttribute("aria-label")).toBe("Trace");
  expect(current()).toBe(lines()[5]);
  expect(current().textContent).toContain(waiting[5]?.text);
  const sent = kernel.sent.length;
  await press("Enter");
  type("something else");
  await press("Escape");
  expect(current().textContent).toContain(waiting[5]?.text);
  expect(document.activeElement).toBe(editor().contentDOM);
  expect(kernel.sent.length).toBe(sent);
});

test("changes only the row that is edited, and keeps its keys from the page", async () => {
  const text = editor().state.doc.toString();
  await focus(0);
  type("x");
  expect(editor().state.doc.toString()).toBe(text);
  await press("Enter");
  const first = editor().state.doc.line(1);
  editor().dispatch({ changes: { from: first.to + 1, insert: "x" }, userEvent: "input.type" });
  editor().dispatch({ changes: { from: first.to, insert: "\n" }, userEvent: "input.type" });
  expect(editor().state.doc.toString()).toBe(text);
  await press("a", { ctrlKey: true });
  expect(editor().state.selection.main).toMatchObject({ from: first.from, to: first.to });
  type("sch.changed()");
  const sent = kernel.sent.length;
  await press("z", { ctrlKey: true });
  expect(editor().state.doc.toString()).toBe(text);
  await press("z", { ctrlKey: true });
  expect(kernel.sent.length).toBe(sent);
  type("sch.left()");
  await press("Escape");
  await focus(1);
  await press("Enter");
  await press("z", { ctrlKey: true });
  expect(editor().state.doc.toString()).toBe(text); // the text of the first row, whose edit has ended
  await press("Escape");
  await press("z", { ctrlKey: true });
  expect(kernel.last()).toMatchObject({ type: "navigate", action: "undo" });
});

test("ends an edit when the trace changes, but not when only its times do", async () => {
  const { trace } = store.state.value;
  await focus(0);
  await press("Enter");
  type("sch.changed()");
  kernel.answer({ trace: { ...trace, lines: trace.lines.map((line) => ({ ...line, milliseconds: 3 })) } });
  await flush();
  expect(lines()[0]?.textContent).toBe("sch.changed()");
  kernel.answer({ trace: { ...trace, lines: trace.lines.map((line) => (line.index === 1 ? { ...line, text: "sch.another()" } : line)) } });
  await flush();
  expect(lines()[0]?.textContent).toContain(trace.lines[0]?.text);
  expect(document.activeElement?.getAttribute("aria-label")).toBe("Trace");
});

/** Type at the end of the step that is edited, letter by letter. */
function typeAtEnd(text: string): void {
  for (const letter of text) {
    const { to } = editor().state.doc.lineAt(editor().state.selection.main.head);
    editor().dispatch({ changes: { from: to, insert: letter }, selection: { anchor: to + 1 }, userEvent: "input.type" });
  }
}

function options(): readonly string[] {
  const list = page.querySelector<HTMLElement>(".tw-completion");
  return list?.hidden === false ? [...list.querySelectorAll(".tw-completion-name")].map((item) => item.textContent) : [];
}

/** Return the text of the option that the editor points assistive technology to. */
function activeOption(): string {
  const id = document.activeElement?.getAttribute("aria-activedescendant") ?? "";
  const item = id === "" ? null : document.getElementById(id);
  expect(item?.getAttribute("aria-selected") ?? "true").toBe("true");
  return item?.querySelector(".tw-completion-name")?.textContent ?? "";
}

async function startEdit(): Promise<void> {
  await focus(1);
  await press("Enter");
  type("");
}

test("offers names while a step is typed, chosen by arrows and Enter", async () => {
  await startEdit();
  const sent = kernel.sent.length;
  typeAtEnd("sch.");
  expect(options()).toContain("annotate");
  typeAtEnd("get_l");
  expect(options()).toEqual(["get_loops"]);
  expect(activeOption()).toBe("get_loops");
  expect(document.activeElement?.getAttribute("aria-autocomplete")).toBe("list");
  await press("Enter");
  expect(editor().state.doc.line(2).text.trim()).toBe("sch.get_loops");
  expect(options()).toEqual([]);
  expect(kernel.sent.length).toBe(sent);
  typeAtEnd("(m");
  expect(options()[0]).toBe("matmul");
  await press("ArrowDown");
  const second = activeOption();
  expect(second).not.toBe("matmul");
  await press("ArrowUp");
  await press("ArrowUp");
  expect(activeOption()).toBe(options().at(-1));
  await press("ArrowDown");
  await press("Enter");
  typeAtEnd(")");
  expect(options()).toEqual([]);
  await press("Enter");
  expect(kernel.last()).toMatchObject({ type: "edit_trace", action: "change", index: 1, text: "sch.get_loops(matmul)" });
});

test("Ctrl+Space opens the list, Escape closes it, and a second Escape ends the edit", async () => {
  await startEdit();
  typeAtEnd("sch.annotate(");
  expect(options()).toEqual([]);
  await press(" ", { ctrlKey: true });
  expect(options().slice(0, 2)).toEqual(["target=", "key="]);
  await press("Escape");
  expect(options()).toEqual([]);
  expect(document.activeElement?.getAttribute("aria-label")).toBe("Step as Python");
  await press("Escape");
  expect(document.activeElement?.getAttribute("aria-label")).toBe("Trace");
  await press(" ", { ctrlKey: true });
  expect(options()).toEqual([]);
});

test("a parameter that is chosen offers its values, and the pointer chooses as well", async () => {
  await startEdit();
  typeAtEnd("sch.annotate(ta");
  await press("Enter");
  expect(editor().state.doc.line(2).text.trim()).toBe("sch.annotate(target=");
  expect(options()).toContain("'k_0'");
  const item = [...page.querySelectorAll(".tw-completion-item")].find((other) => other.textContent.startsWith("'k_0'"));
  item?.dispatchEvent(new MouseEvent("mousedown", { bubbles: true, cancelable: true }));
  expect(editor().state.doc.line(2).text.trim()).toBe("sch.annotate(target='k_0'");
  expect(document.activeElement).toBe(editor().contentDOM);
});

test("the list closes when the cursor or the focus leaves, and a complete name is not offered", async () => {
  await startEdit();
  typeAtEnd("sch.get_loop");
  expect(options()).toEqual(["get_loops"]);
  typeAtEnd("s");
  expect(options()).toEqual([]);
  await press(" ", { ctrlKey: true });
  expect(options()).toEqual(["get_loops"]);
  editor().dispatch({ selection: { anchor: editor().state.doc.line(2).from } });
  expect(options()).toEqual([]);
  editor().dispatch({ selection: { anchor: editor().state.doc.line(2).to } });
  await press(" ", { ctrlKey: true });
  expect(options()).toEqual(["get_loops"]);
  editor().contentDOM.blur();
  await flush();
  expect(options()).toEqual([]);
});
