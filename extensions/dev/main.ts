// The development page: the interface with recorded data, without a kernel.
import "../core/style/index.css";
import { mount } from "../core/app";
import { VERSION, type Handle, type Update } from "../core/protocol";
import { Store, type Transport } from "../core/store";
import { makeMenu, makeSelected, makeUpdate } from "./fixture";

const recorded = makeUpdate();

function selection(handle: Handle): Partial<Update> {
  return { selected: makeSelected(handle), menu: makeMenu(handle) };
}

const transport: Transport & { listener: (update: Update, buffers: readonly DataView[]) => void } = {
  listener: () => undefined,
  watch: () => undefined,
  receive(listener): void {
    this.listener = listener;
  },
  send(message): void {
    const reply = { version: VERSION, client: "", reply: message.id, revision: 0, server_ms: 0 };
    const select = message.type === "select" && message.kind !== "";
    const answer: Update = select
      ? { ...reply, ...selection({ kind: message.kind, function: message.function, uid: message.uid, name: "k_0" }) }
      : message.type === "hello"
        ? { ...recorded.update, reply: message.id }
        : reply;
    setTimeout(() => this.listener(answer, message.type === "hello" ? recorded.buffers : []), 5);
  },
};

const element = document.querySelector<HTMLElement>("#workbench");
if (element) {
  element.classList.add("tw-host");
  mount(new Store(transport), element);
}
