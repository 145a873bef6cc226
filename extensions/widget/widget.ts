// The notebook widget (anywidget): the comm of a model is the transport, and its views share one store.
import "../core/style/index.css";
import { mount } from "../core/app";
import { GpuHost } from "../core/gpu/host";
import type { GpuCall, Update } from "../core/protocol";
import { Store, type Transport } from "../core/store";
import { keepInNotebook, type Context, type Trait } from "./notebook";

/** The part of an anywidget model that is used here. */
interface Model {
  get(name: "_height"): number;
  get(name: "_id" | "_saved"): string;
  get(name: Trait): unknown;
  send(content: unknown, callbacks?: unknown, buffers?: readonly ArrayBuffer[]): void;
  on(event: "msg:custom", listener: (message: Update | GpuCall, buffers: readonly DataView[]) => void): void;
  readonly widget_manager?: {
    get_model?(id: string): Promise<WidgetModel>;
    /** The open notebook, in JupyterLab and Notebook. */
    readonly context?: Context;
  };
}

/** The part of a Jupyter widget model that is used here; its comm is live while its kernel runs. */
interface WidgetModel {
  readonly comm_live: boolean;
  on(event: "comm_live_update", listener: () => void): void;
}

/** The stores by model, because anywidget passes a new object for the model to each function. */
const stores = new Map<string, Store>();

function transport(model: Model, gpu: GpuHost): Transport {
  return {
    watch: (listener) => void watch(model, listener),
    send: (message) => {
      if (message.type === "run") gpu.allow();
      model.send(message);
    },
    receive: (listener) =>
      model.on("msg:custom", (message, buffers) => {
        if ("work" in message) gpu.handle(message, buffers);
        else listener(message, buffers);
      }),
  };
}

/** Report the connection of a model and its changes, where the application provides the model. */
async function watch(model: Model, listener: (alive: boolean) => void): Promise<void> {
  const widget = await model.widget_manager?.get_model?.(model.get("_id"));
  if (typeof widget?.comm_live !== "boolean") return;
  const look = (): void => listener(widget.comm_live);
  widget.on("comm_live_update", look);
  look();
}

export default {
  initialize({ model }: { model: Model }): () => void {
    const id = model.get("_id");
    const gpu = new GpuHost((answer, buffers) => model.send(answer, undefined, buffers));
    const store = new Store(transport(model, gpu), model.get("_saved"));
    stores.set(id, store);
    const context = model.widget_manager?.context;
    if (context) keepInNotebook(context, store, (trait) => model.get(trait));
    return () => {
      gpu.dispose();
      stores.delete(id);
    };
  },
  render({ model, el }: { model: Model; el: HTMLElement }): (() => void) | undefined {
    el.classList.add("tw-host");
    const height = model.get("_height");
    if (height > 0) el.style.setProperty("--tw-height", `${String(height)}px`);
    const store = stores.get(model.get("_id"));
    return store && mount(store, el);
  },
};
