import { expect, test } from "vitest";
import type { GraphCosts } from "../core/protocol";
import { flush, makeSelected } from "./helpers";
import { find, kernel, page, store } from "./mounted";

/** Choose the figures that color the graph. */
async function choose(value: string, label = "Color of the operations"): Promise<void> {
  const choice = find(`select[aria-label="${label}"]`) as HTMLSelectElement;
  choice.value = value;
  choice.dispatchEvent(new Event("change", { bubbles: true }));
  await flush();
}

function nodes(): readonly { readonly uid: number; readonly name: string }[] {
  return store.state.value.graph?.nodes ?? [];
}

function makeCosts(kind: GraphCosts["kind"], state = store.state.value.history.head): GraphCosts {
  const items = nodes()
    .slice(2, 5)
    .map(({ uid }, index) => ({ uid, term: index === 2 ? "" : `b * ${String(index + 1)}`, value: index === 2 ? null : (index + 1) * 1e6 }));
  return { kind, unit: kind === "flops" ? "FLOP" : "B", function: "main", state, sizes: "b = 1, s = 128", items };
}

function cardOf(index: number): Element {
  return find(`.tw-card[data-name="${nodes()[index]?.name ?? ""}"]`);
}

function asked(): number {
  return kernel.sent.filter(({ type }) => type === "count_costs").length;
}

test("without a measurement the legend states it, and nothing is requested", () => {
  expect(find(".tw-legend").textContent).toContain("not measured");
  expect(page.querySelector(".tw-legend-scale")).toBeNull();
  expect(asked()).toBe(0);
});

test("the costs are requested, and are on the cards, in the labels, the tooltips, and the legend", async () => {
  await choose("flops");
  expect(kernel.last()).toMatchObject({ type: "count_costs", kind: "flops" });
  expect(find(".tw-legend").textContent).toContain("counting…");
  kernel.answer({ costs: makeCosts("flops") });
  await flush();
  expect(find(".tw-legend").textContent).toContain("0 … 2.00 MFLOP");
  expect(find(".tw-legend-note").textContent).toBe("at b = 1, s = 128");
  const known = cardOf(3);
  expect(known.querySelector(".tw-card-share")?.textContent).toBe("2.00 M");
  expect(known.getAttribute("aria-label")).toContain("FLOPs 2.00 MFLOP");
  expect(known.querySelector("title")?.textContent).toContain("b * 2 = 2000000 at b = 1, s = 128");
  expect(known.classList.contains("is-hot")).toBe(true);
  const unknown = cardOf(4);
  expect(unknown.querySelector(".tw-card-share")?.textContent).toBe("unknown");
  expect(unknown.querySelector(".tw-card-heat")).toBeNull();
  expect(unknown.getAttribute("aria-label")).toContain("FLOPs unknown");
});

test("they are requested again for another state or other sizes, and once for each", async () => {
  await choose("memory");
  expect(asked()).toBe(1);
  kernel.answer({ costs: makeCosts("memory") });
  const { history, setup } = store.state.value;
  kernel.answer({ history: { ...history, head: history.nodes[0]?.key ?? "" } });
  await flush();
  expect(asked()).toBe(2);
  expect(find(".tw-legend").textContent).toContain("counting…");
  expect(find(".tw-legend-range").textContent).toContain("1.91 MiB");
  if (setup) kernel.answer({ setup: { ...setup, sizes: setup.sizes.map((row) => ({ ...row, sample: 64 })) } });
  await flush();
  expect(asked()).toBe(3);
  kernel.answer({ applied: { message: "nothing changed", tone: "info", functions: [] } });
  await flush();
  expect(asked()).toBe(3);
});

test("costs of another kind or of another graph are not displayed", async () => {
  await choose("bytes");
  kernel.answer({ costs: makeCosts("flops") });
  await flush();
  expect(page.querySelector(".tw-card-share")).toBeNull();
  kernel.answer({ costs: { ...makeCosts("bytes"), function: "other" } });
  await flush();
  expect(page.querySelector(".tw-card-share")).toBeNull();
  kernel.alive(false);
  await flush();
  expect(find(".tw-legend-note").textContent).toBe("not known without the Jupyter kernel");
});

test("a command colors the graph, and displays it", async () => {
  find('[data-tab="text"]').click();
  await flush();
  expect(page.querySelector(".tw-legend")).toBeNull();
  find(".tw-root").dispatchEvent(new KeyboardEvent("keydown", { key: "p", altKey: true, bubbles: true }));
  await flush();
  const field = find(".tw-palette input") as HTMLInputElement;
  field.value = "color the graph by bytes";
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await flush();
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  await flush();
  expect((find('select[aria-label="Color of the operations"]') as HTMLSelectElement).value).toBe("bytes");
  expect(kernel.last()).toMatchObject({ type: "count_costs", kind: "bytes" });
});

test("the list of kernels has the same choice", async () => {
  find("[data-tab=kernels]").click();
  await flush();
  await choose("flops", "Bars of the kernels");
  const [first] = page.querySelectorAll(".tw-kernels .tw-bar-text");
  expect(first?.textContent).toBe("78.2 MFLOP");
  expect((find('select[aria-label="Color of the operations"]') as HTMLSelectElement).value).toBe("flops");
  await choose("memory", "Bars of the kernels");
  expect(page.querySelector(".tw-kernels tbody td:last-child")?.textContent).toBe("unknown");
});

test("the inspector displays the cost of the selected operation as a term and at the sample sizes", async () => {
  await choose("flops");
  const handle = { kind: "binding" as const, function: "main", uid: nodes()[3]?.uid ?? 0, name: nodes()[3]?.name ?? "" };
  store.select(handle);
  kernel.reply("select", { selected: makeSelected(handle) });
  await flush();
  expect(find(".tw-properties").textContent).not.toContain("FLOPs");
  kernel.answer({ costs: makeCosts("flops") });
  await flush();
  expect(find(".tw-properties").textContent).toContain("FLOPsb * 2 = 2.00 MFLOP at b = 1, s = 128");
  kernel.answer({ costs: makeCosts("flops", "another state") });
  await flush();
  expect(find(".tw-properties").textContent).not.toContain("FLOPs");
});
