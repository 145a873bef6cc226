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
}

const stores = new WeakMap<object, Store>();

function transport(model: Model): Transport {
  return {
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
    return mount(storeOf(model), el);
  },
};
