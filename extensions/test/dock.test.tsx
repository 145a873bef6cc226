import { render, type JSX } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Dock } from "../core/panels/dock";
import type { Panel } from "../core/panels/panel";
import { PANELS } from "../core/panels/registry";
import { useWatch } from "../core/observable";
import type { Store } from "../core/store";
import { connected, flush, useFakeTimers } from "./helpers";

let page: HTMLElement;

beforeEach(() => {
  useFakeTimers();
  page = document.createElement("div");
  document.body.append(page);
});

afterEach(async () => {
  render(null, page);
  page.remove();
  await flush();
  vi.useRealTimers();
});

function FunctionNames({ store }: { store: Store }): JSX.Element {
  const functions = useWatch(store.state, (state) => state.functions);
  return <p class="names">{functions.map((item) => item.name).join(" ")}</p>;
}

const NAMES: Panel = {
  key: "names",
  title: "Names",
  view: FunctionNames,
  section: "functions",
  count: (state) => state.functions.length,
  opens: true,
};

test("has a unique key for each panel", () => {
  expect(new Set(PANELS.map((panel) => panel.key)).size).toBe(PANELS.length);
});

test("displays a panel that is one entry of the list, opened when its section is received", async () => {
  const { kernel, store } = connected();
  const [first] = PANELS;
  render(<Dock store={store} idBase="dock" panels={[first, NAMES]} />, page);
  await flush();
  expect(page.querySelector("[data-tab=names]")?.textContent).toBe("Names7");
  expect(page.querySelector(".names")?.textContent).toContain("softmax");
  page.querySelector<HTMLElement>("[data-tab=trace]")?.click();
  await flush();
  expect(page.querySelector(".names")).toBeNull();
  kernel.answer({ functions: store.state.value.functions.slice(0, 1) });
  await flush();
  expect(page.querySelector(".names")?.textContent).toBe("main");
});
