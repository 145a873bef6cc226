// The notebook widget (anywidget): the comm of a model is the transport, and its views share one store.
import "../core/style/index.css";
import { mount } from "../core/app";
import type { Update } from "../core/protocol";
import { Store, type Transport } from "../core/store";

/** The part of an anywidget model that is used here. */
interface Model {
  get(name: "_height"): number;
  send(content: unknown): void;
  on(event: "msg:custom", listener: (message: Update, buffers: readonly DataView[]) => void): void;
  /** The event of a lost or restored connection; anywidget calls the listener on the view. */
  on(event: "comm_live_update", listener: (this: View) => void): void;
  off(event: "comm_live_update", listener: (this: View) => void): void;
}

/** The part of a view that is used here: its model has a connection unless the kernel was restarted or has stopped. */
interface View {
  readonly model: { readonly comm_live: boolean };
}

const stores = new WeakMap<object, Store>();
const watchers = new WeakMap<object, (alive: boolean) => void>();

function transport(model: Model): Transport {
  return {
    watch: (listener) => void watchers.set(model, listener),
    send: (message) => model.send(message),
    receive: (listener) => model.on("msg:custom", listener),
  };
}

function storeOf(model: Model): Store {
  const existing = stores.get(model);
  if (existing) return existing;
  const store = new Store(transport(model));
  stores.set(model, store);
  return store;
}

export default {
  initialize({ model }: { model: Model }): void {
    storeOf(model);
  },
  render({ model, el }: { model: Model; el: HTMLElement }): () => void {
    el.classList.add("tw-host");
    const height = model.get("_height");
    if (height > 0) el.style.setProperty("--tw-height", `${String(height)}px`);
    function look(this: View): void {
      watchers.get(model)?.(this.model.comm_live);
    }
    model.on("comm_live_update", look);
    const unmount = mount(storeOf(model), el);
    return () => {
      model.off("comm_live_update", look);
      unmount();
    };
  },
};
