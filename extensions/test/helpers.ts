import { vi } from "vitest";
import { VERSION, type Menu, type Request, type TraceCopy, type Update } from "../core/protocol";
import { Store, type Transport } from "../core/store";
import { makeMenu, makeProblem, makeSelected, makeUpdate } from "../dev/fixture";

export type Sent = Request & { readonly id: number; readonly client: string };

/** A fake kernel that stores the requests and sends the answers that a test provides. */
export class FakeKernel implements Transport {
  readonly sent: Sent[] = [];
  private listener: (update: Update, buffers: readonly DataView[]) => void = () => undefined;

  send(message: Sent): void {
    this.sent.push(message);
  }

  /** Report that the connection is lost or restored. */
  alive: (alive: boolean) => void = () => undefined;

  watch(listener: (alive: boolean) => void): void {
    this.alive = listener;
  }

  receive(listener: (update: Update, buffers: readonly DataView[]) => void): void {
    this.listener = listener;
  }

  answer(sections: Partial<Update>, buffers: readonly DataView[] = []): void {
    const reply = this.sent.at(-1)?.id ?? 0;
    this.listener({ version: VERSION, client: "", reply, revision: 0, server_ms: 0, ...sections }, buffers);
  }

  /** Answer a request of the last messages that has a type. */
  reply(type: Sent["type"], sections: Partial<Update>): void {
    const found = this.sent.findLast((message) => message.type === type);
    this.answer({ reply: found?.id ?? 0, ...sections });
  }

  last(): Sent {
    const message = this.sent.at(-1);
    if (!message) throw new Error("nothing was sent");
    return message;
  }
}

/** Return a store that received the example data. */
export function connected(): { kernel: FakeKernel; store: Store } {
  const kernel = new FakeKernel();
  const store = new Store(kernel, "", "page");
  const { update, buffers } = makeUpdate();
  kernel.answer({ ...update, reply: kernel.last().id }, buffers);
  return { kernel, store };
}

/** Return the menu that a store displays. */
export function menuOf(store: Store): Menu {
  const { menu } = store.state.value;
  if (!menu) throw new Error("no menu was received");
  return menu;
}

export { makeMenu, makeProblem, makeSelected };

// jsdom has no layout, which the editor measures.
Range.prototype.getClientRects = (): DOMRectList => [] as unknown as DOMRectList;

let opener: Element | null = null;

// jsdom has no modal dialogs.
HTMLDialogElement.prototype.showModal = function (): void {
  opener = document.activeElement;
  this.open = true;
  this.querySelector("input")?.focus();
};
HTMLDialogElement.prototype.close = function (): void {
  this.open = false;
  if (opener instanceof HTMLElement || opener instanceof SVGElement) opener.focus();
};

/** Return the copy of the trace of a program, by which its view is stored. */
export function makeCopy(program: string): TraceCopy {
  return { name: `${program}.jsonl`, program, process: "a", steps: 0, keep: 0, lines: ["header"], notes: {} };
}

/** Replace the timers by fake ones, which advance only in `flush`. */
export function useFakeTimers(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "requestAnimationFrame", "cancelAnimationFrame"] });
}

/** Advance the fake timers, so that the interface renders and runs its effects and debounced actions. */
export async function flush(): Promise<void> {
  await vi.advanceTimersByTimeAsync(150);
}
