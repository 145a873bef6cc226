import { readFile, writeFile } from "node:fs/promises";
import { EditorView } from "@codemirror/view";
import { afterEach, beforeEach, expect, inject, test, vi } from "vitest";
import { mount } from "../core/app";
import type { Request, StepInfo, Trace, Update } from "../core/protocol";
import { PANELS } from "../core/panels/registry";
import { Store, type Transport } from "../core/store";

// jsdom has no layout, which the editor measures.
Range.prototype.getClientRects = (): DOMRectList => [] as unknown as DOMRectList;
// jsdom has no modal dialogs.
HTMLDialogElement.prototype.showModal = function (): void {
  this.open = true;
};

declare module "vitest" {
  interface ProvidedContext {
    folder: string;
    names: string[];
    sent: string;
  }
}

interface Message {
  readonly update: Update;
  readonly buffers: readonly string[];
}

type Listener = Parameters<Transport["receive"]>[0];

/** A fake kernel that replays recorded updates. */
class Recorded implements Transport {
  readonly sent: Request[] = [];
  private listener: Listener = () => undefined;

  send(message: Request): void {
    this.sent.push(message);
  }

  watch(): void {
    // The connection of a recording is never lost.
  }

  receive(listener: Listener): void {
    this.listener = listener;
  }

  replay({ update, buffers }: Message): void {
    this.listener(update, buffers.map(bytes));
  }
}

function bytes(text: string): DataView {
  return new DataView(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
}

const DOCK = PANELS.map((panel) => panel.key);
/** The fields of each update, and the sections that no panel of the dock shows. */
const WITHOUT_PANEL = new Set(["version", "client", "reply", "revision", "server_ms", "checked", "menu", "selected"]);
const warnings: unknown[][] = [];

beforeEach(() => {
  warnings.length = 0;
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "requestAnimationFrame", "cancelAnimationFrame"] });
  for (const kind of ["error", "warn"] as const)
    vi.spyOn(console, kind).mockImplementation((...values: unknown[]) => warnings.push(values));
});

afterEach(async () => {
  await flush();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

test.each(inject("names"))("%s: renders every form and every panel", async (name) => {
  const messages = JSON.parse(await readFile(`${inject("folder")}/${name}`, "utf8")) as Message[];
  const kernel = new Recorded();
  const page = document.createElement("div");
  document.body.append(page);
  const store = new Store(kernel, "", "page");
  const unmount = mount(store, page);
  let forms = 0;
  for (const item of messages) {
    kernel.replay(item);
    await flush();
    if (item.update.menu) forms += await openForms(page, item.update, store.state.value.catalog);
    if (Object.keys(item.update).some((section) => !WITHOUT_PANEL.has(section))) for (const tab of DOCK) await click(page, `[data-tab="${tab}"]`);
    if (item.update.trace) await unfoldTrace(page, store.state.value.trace);
    if (item.update.lowered) await openStage(page, item.update);
    expectComplete(page);
  }
  expect(forms).toBeGreaterThan(3);
  await useControls(page);
  unmount();
  page.remove();
  expect(warnings).toEqual([]);
  await writeFile(`${inject("sent")}/${name}`, JSON.stringify(kernel.sent));
});

/** Open the form of each step of the menu and check that it has a field per parameter. */
async function openForms(page: Element, update: Update, catalog: readonly StepInfo[]): Promise<number> {
  const names = [...page.querySelectorAll<HTMLElement>('.tw-step-name[aria-expanded="false"]')];
  for (const name of names) name.click();
  await flush();
  const steps = new Map([...catalog, ...(update.menu?.suggestions ?? [])].map((item) => [item.step, item]));
  const open = [...page.querySelectorAll<HTMLElement>(".tw-step.is-open")];
  for (const step of open) {
    const suggestion = steps.get(step.dataset.step ?? "");
    expect(step.querySelectorAll(".tw-form .tw-field")).toHaveLength(suggestion?.fields.length ?? -1);
  }
  return open.length;
}

/** Unfold the composite steps and check that each step has a row. */
async function unfoldTrace(page: Element, { lines, groups }: Trace): Promise<void> {
  await click(page, '[data-tab="trace"]');
  await click(page, ".tw-panel-bar .tw-button");
  if (groups.length === 0) return;
  const editor = page.querySelector<HTMLElement>(".tw-trace .cm-editor");
  expect(editor && EditorView.findFromDOM(editor)?.state.doc.lines).toBe(lines.length + groups.length);
}

/** Open the tab of a stage and check that its text is displayed. */
async function openStage(page: Element, update: Update): Promise<void> {
  const { lowered } = update;
  if (!lowered || lowered.problem) return;
  await click(page, '[data-tab="passes"]');
  const picker = page.querySelector<HTMLSelectElement>("[aria-label=Stage]");
  if (!picker) throw new Error("no list of stages");
  picker.value = lowered.stage;
  picker.dispatchEvent(new Event("change", { bubbles: true }));
  await flush();
  const first = lowered.text.split("\n")[0] ?? "";
  expect(page.querySelector(".tw-lowered .tw-code-text")?.textContent).toContain(first);
  await click(page, '[data-tab="ir"]');
}

/** Enter a value into one form, then use the controls of the page. */
async function useControls(page: Element): Promise<void> {
  const input = page.querySelector<HTMLInputElement>(".tw-form .tw-input");
  if (input) {
    input.value = "(None, 4)";
    input.dispatchEvent(new Event("input", { bubbles: true }));
    input.dispatchEvent(new Event("change", { bubbles: true }));
    await vi.advanceTimersByTimeAsync(200);
  }
  const picker = page.querySelector<HTMLSelectElement>(".tw-picker");
  picker?.dispatchEvent(new Event("change", { bubbles: true }));
  for (const button of page.querySelectorAll<HTMLElement>(".tw-toolbar button:not(:disabled), .tw-marker, .tw-fix, .tw-apply"))
    button.click();
  await flush();
}

async function click(page: Element, selector: string): Promise<void> {
  page.querySelector<HTMLElement>(selector)?.click();
  await flush();
}

/** Check that no pane failed to render and that no value is missing. */
function expectComplete(page: HTMLElement): void {
  expect([...page.querySelectorAll(".tw-empty[role=alert]")].map((pane) => pane.textContent)).toEqual([]);
  const missing = /\bundefined\b|\bNaN\b|\[object |\bnull\b/;
  const text = [...page.querySelectorAll(".tw-inspector, .tw-dock, .tw-toolbar, .tw-status")]
    .map((part) => (part.cloneNode(true) as Element))
    .map((part) => {
      for (const literal of part.querySelectorAll("pre, .tw-problem")) literal.remove();
      return part.textContent;
    })
    .join("\n");
  expect(missing.exec(text)?.input).toBeUndefined();
}

/** Advance the fake timers by two frames. */
async function flush(): Promise<void> {
  await vi.advanceTimersByTimeAsync(34);
}
