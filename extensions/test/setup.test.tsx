import { expect, test } from "vitest";
import { flush } from "./helpers";
import { find, kernel, page, store } from "./mounted";

test("chooses target, sizes and threads by mouse and keyboard", async () => {
  const button = find("[aria-label='Target and sizes']");
  expect(button.textContent).toContain("cpu · s = 128 · 2 threads");
  expect(button.title).toContain("hot caches, 2 threads");
  button.click();
  await flush();
  const dialog = find(".tw-popover");
  const target = find(".tw-popover select[aria-label=Target]") as HTMLSelectElement;
  expect(document.activeElement).toBe(target);
  expect([...target.options].map((option) => option.text)).toContain("cuda sm_90a (not on this machine)");
  target.value = "cpu avx2";
  target.dispatchEvent(new Event("change", { bubbles: true }));
  expect(kernel.last()).toMatchObject({ type: "set_target", target: "cpu avx2" });
  const size = find(".tw-popover [aria-label='Sample value of s']") as HTMLInputElement;
  const sent = kernel.sent.length;
  size.value = "257";
  size.dispatchEvent(new Event("change", { bubbles: true }));
  await flush();
  expect(dialog.textContent).toContain("Expected an integer: 1 … 256");
  expect(kernel.sent.length).toBe(sent);
  size.value = "64";
  size.dispatchEvent(new Event("change", { bubbles: true }));
  expect(kernel.last()).toMatchObject({ type: "sample", function: "main", symbol: "s", value: 64 });
  dialog.querySelectorAll<HTMLInputElement>("input[type=radio]")[1]?.click();
  expect(kernel.last()).toMatchObject({ type: "set_measure_options", caches: "cold", threads: 0, pin: false, budget: 1.5 });
  kernel.answer({ measure_options: { caches: "cold", threads: 0, max_threads: 2, pin: false, budget: 1.5 } });
  await flush();
  const threads = find(".tw-popover label select") as HTMLSelectElement;
  threads.value = "1";
  threads.dispatchEvent(new Event("change", { bubbles: true }));
  expect(kernel.last()).toMatchObject({ type: "set_measure_options", caches: "cold", threads: 1 });
  dialog.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  await flush();
  expect(page.querySelector(".tw-popover")).toBeNull();
  expect(document.activeElement).toBe(button);
});

test("does not measure for a target that this machine cannot run", async () => {
  const setup = store.state.value.setup;
  if (!setup) throw new Error("no setup");
  kernel.answer({ setup: { ...setup, target: "cuda sm_90a", missing: "this machine has no NVIDIA GPU" } });
  await flush();
  const sent = kernel.sent.length;
  const measure = [...page.querySelectorAll<HTMLElement>(".tw-toolbar button")].find((item) => item.textContent.trim() === "Measure");
  measure?.click();
  expect(kernel.sent.length).toBe(sent);
  expect(measure?.title).toBe("this machine has no NVIDIA GPU");
});

test("displays the conditions of a measurement", () => {
  expect(find(".tw-conditions").textContent).toContain("hot caches, 2 threads, not pinned");
});

test("displays rates, and offers to repeat a noisy measurement", async () => {
  expect(find(".tw-kernels thead").textContent).toContain("GFLOP/s");
  expect(find(".tw-kernels tbody tr").textContent).toContain("42.5");
  expect(page.querySelector(".tw-noisy")).toBeNull();
  const { measurement } = store.state.value;
  if (!measurement) throw new Error("no measurement");
  kernel.answer({ measurement: { ...measurement, high: measurement.median * 1.2 } });
  await flush();
  expect(find(".tw-noisy").textContent).toContain("Noisy: the confidence interval is 21 % of the median");
  find(".tw-noisy button").click();
  expect(kernel.last()).toMatchObject({ type: "run", action: "measure", function: "" });
});

test("names the sizes as a set, uses and removes sets, and measures all of them", async () => {
  find("[aria-label='Target and sizes']").click();
  await flush();
  const [short, long] = [...page.querySelectorAll<HTMLElement>(".tw-size-set")];
  expect(short?.textContent).toBe("shorts = 16910 µs");
  expect(long?.querySelector(".tw-chip")?.getAttribute("aria-pressed")).toBe("true");
  short?.querySelector<HTMLElement>(".tw-chip")?.click();
  expect(kernel.last()).toMatchObject({ type: "edit_size_set", action: "use", name: "short" });
  find("[aria-label='Remove set long']").click();
  expect(kernel.last()).toMatchObject({ type: "edit_size_set", action: "remove", name: "long" });

  // An empty name adds nothing.
  const sent = kernel.sent.length;
  find("[data-focus='add-set']").click();
  expect(kernel.sent.length).toBe(sent);
  const name = find("[aria-label='Name of the set']") as HTMLInputElement;
  name.value = " medium ";
  name.dispatchEvent(new Event("input", { bubbles: true }));
  await flush();
  name.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  expect(kernel.last()).toMatchObject({ type: "edit_size_set", action: "add", name: "medium" });
  await flush();
  expect(name.value).toBe("");
  find("[data-focus='measure-sets']").click();
  expect(kernel.last()).toMatchObject({ type: "run", action: "measure_sets" });
});
