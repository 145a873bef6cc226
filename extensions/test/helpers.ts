import { vi } from "vitest";
import { VERSION, type Request, type Update } from "../core/protocol";
import { Store, type Transport } from "../core/store";
import { makeMenu, makeProblem, makeUpdate } from "../dev/fixture";

type Sent = Request & { readonly id: number };

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
    this.listener({ version: VERSION, reply, server_ms: 0, ...sections }, buffers);
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
  const store = new Store(kernel);
  const { update, buffers } = makeUpdate();
  kernel.answer({ ...update, reply: kernel.last().id }, buffers);
  return { kernel, store };
}

export { makeMenu, makeProblem };

// jsdom has no layout, which the editor measures.
Range.prototype.getClientRects = (): DOMRectList => [] as unknown as DOMRectList;

/** Replace the timers by fake ones, which advance only in `flush`. */
export function useFakeTimers(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "requestAnimationFrame", "cancelAnimationFrame"] });
}

/** Advance the fake timers, so that the interface renders and runs its effects and debounced actions. */
export async function flush(): Promise<void> {
  await vi.advanceTimersByTimeAsync(150);
}
