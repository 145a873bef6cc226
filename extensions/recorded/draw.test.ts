import { readFile, writeFile } from "node:fs/promises";
import { afterEach, beforeEach, expect, inject, test, vi } from "vitest";
import { mount } from "../core/app";
import type { Request, Update } from "../core/protocol";
import { Store, type Transport } from "../core/store";

declare module "vitest" {
  interface ProvidedContext {
    folder: string;
    names: string[];
    sent: string;
  }
}

interface Told {
  readonly update: Update;
  readonly buffers: readonly string[];
}

type Listener = Parameters<Transport["receive"]>[0];

/** A kernel that says again what a real one said. */
class Recorded implements Transport {
  readonly sent: Request[] = [];
  private listener: Listener = () => undefined;

  send(message: Request): void {
    this.sent.push(message);
  }

  receive(listener: Listener): void {
    this.listener = listener;
  }

  say({ update, buffers }: Told): void {
    this.listener(update, buffers.map(bytes));
  }
}

function bytes(text: string): DataView {
  return new DataView(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
}

const DOCK = ["trace", "history", "symbols", "timing", "problems"];
const complaints: unknown[][] = [];

beforeEach(() => {
  complaints.length = 0;
  // Nothing is painted here, so nothing has to wait for the next frame.
  vi.stubGlobal("requestAnimationFrame", (then: FrameRequestCallback) => setTimeout(() => then(performance.now()), 0));
  for (const kind of ["error", "warn"] as const)
    vi.spyOn(console, kind).mockImplementation((...said: unknown[]) => complaints.push(said));
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

test.each(inject("names"))("%s: every form opens, every panel is drawn", async (name) => {
  const told = JSON.parse(await readFile(`${inject("folder")}/${name}`, "utf8")) as Told[];
  const kernel = new Recorded();
  const page = document.createElement("div");
  document.body.append(page);
  const unmount = mount(new Store(kernel), page);
  let forms = 0;
  for (const item of told) {
    kernel.say(item);
    await drawn();
    if (item.update.menu) forms += await openForms(page, item.update);
    for (const tab of DOCK) await click(page, `[data-tab="${tab}"]`);
    sound(page);
  }
  expect(forms).toBeGreaterThan(3);
  await typed(page);
  unmount();
  page.remove();
  expect(complaints).toEqual([]);
  await writeFile(`${inject("sent")}/${name}`, JSON.stringify(kernel.sent));
});

/** Open the form of each step of the menu; each has a field for each parameter. */
async function openForms(page: Element, update: Update): Promise<number> {
  const names = [...page.querySelectorAll<HTMLElement>('.tw-step-name[aria-expanded="false"]')];
  for (const name of names) name.click();
  await drawn();
  const steps = new Map(update.menu?.candidates.map((candidate) => [candidate.step, candidate]));
  const open = [...page.querySelectorAll<HTMLElement>(".tw-step.is-open")];
  for (const step of open) {
    const candidate = steps.get(step.dataset.step ?? "");
    expect(step.querySelectorAll(".tw-form .tw-field")).toHaveLength(candidate?.fields.length ?? -1);
    expect(step.querySelector(".tw-match") !== null).toBe(candidate?.match !== undefined);
  }
  return open.length;
}

/** Type into one form, apply another step, open a function: what a person sends. */
async function typed(page: Element): Promise<void> {
  const input = page.querySelector<HTMLInputElement>(".tw-form .tw-input");
  if (input) {
    input.value = "(None, 4)";
    input.dispatchEvent(new Event("input", { bubbles: true }));
    input.dispatchEvent(new Event("change", { bubbles: true }));
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const picker = page.querySelector<HTMLSelectElement>(".tw-picker");
  picker?.dispatchEvent(new Event("change", { bubbles: true }));
  for (const button of page.querySelectorAll<HTMLElement>(".tw-toolbar button:not(:disabled), .tw-knob, .tw-fix, .tw-apply"))
    button.click();
  await drawn();
}

async function click(page: Element, selector: string): Promise<void> {
  page.querySelector<HTMLElement>(selector)?.click();
  await drawn();
}

/** No pane fell to its boundary, and no hole of the data shows. */
function sound(page: HTMLElement): void {
  expect([...page.querySelectorAll(".tw-empty[role=alert]")].map((pane) => pane.textContent)).toEqual([]);
  const holes = /\bundefined\b|\bNaN\b|\[object |\bnull\b/;
  const text = [...page.querySelectorAll(".tw-inspector, .tw-dock, .tw-toolbar, .tw-status")]
    .map((part) => (part.cloneNode(true) as Element))
    .map((part) => {
      for (const literal of part.querySelectorAll("pre, .tw-report")) literal.remove();
      return part.textContent;
    })
    .join("\n");
  expect(holes.exec(text)?.input).toBeUndefined();
}

async function drawn(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setTimeout(resolve, 0));
}
