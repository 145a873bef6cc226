import type { Request, Update } from "../core/protocol";
import { Store, type Transport } from "../core/store";
import { makeMenu, makeUpdate } from "../dev/fixture";

type Sent = Request & { readonly id: number };

/** A kernel made of recorded data: it keeps what it is sent, and answers when told to. */
export class FakeKernel implements Transport {
  readonly sent: Sent[] = [];
  private listener: (update: Update, buffers: readonly DataView[]) => void = () => undefined;

  send(message: Sent): void {
    this.sent.push(message);
  }

  receive(listener: (update: Update, buffers: readonly DataView[]) => void): void {
    this.listener = listener;
  }

  answer(sections: Partial<Update>, buffers: readonly DataView[] = []): void {
    const reply = this.sent.at(-1)?.id ?? 0;
    this.listener({ version: 1, reply, server_ms: 0, ...sections }, buffers);
  }

  last(): Sent {
    const message = this.sent.at(-1);
    if (!message) throw new Error("nothing was sent");
    return message;
  }
}

/** A store that has been told the whole recorded session. */
export function connected(): { kernel: FakeKernel; store: Store } {
  const kernel = new FakeKernel();
  const store = new Store(kernel);
  const { update, buffers } = makeUpdate();
  kernel.answer({ ...update, reply: kernel.last().id }, buffers);
  return { kernel, store };
}

export { makeMenu };

/** Let the interface render what changed, and run its effects. */
export async function settled(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 120));
}
