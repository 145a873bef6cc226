import { expect, test } from "vitest";
import { clientName } from "../core/client";
import { otherSteps } from "../core/panels/suggestions";
import type { Handle, Previewed } from "../core/protocol";
import { flush, makeMenu, makeProblem, makeSelected, menuOf } from "./helpers";
import { find, kernel, page, store } from "./mounted";
import { rendered } from "./rendered";

const LOOP: Handle = { kind: "loop", function: "fused_matmul_add_gelu", uid: 14, name: "k_0" };

function open(step: string): void {
  find(`[data-step="${step}"] .tw-step-name`).click();
}

test("a step that is not suggested has the selection as its first part, and empty parameters", () => {
  const { catalog } = store.state.value;
  const [annotate, ...rest] = otherSteps(catalog, LOOP, menuOf(store).suggestions);
  expect(rest).toEqual([]);
  expect(annotate?.data).toEqual({ op: "annotate", function: LOOP.function, handles: { target: [LOOP] }, values: {} });
  expect(annotate?.fields.map((field) => field.value)).toEqual(["k_0", ""]);
  expect(otherSteps(catalog, { ...LOOP, kind: "buffer" }, [])).toEqual([]);
  const suggested = { ...(menuOf(store).suggestions[0] ?? (null as never)), step: "annotate" };
  expect(otherSteps(catalog, LOOP, [suggested])).toEqual([]);
});

test("an incomplete step has neither a verdict nor a button beside its name", async () => {
  open("annotate");
  await flush();
  const step = find('[data-step="annotate"]');
  expect(step.querySelector(".tw-apply, .tw-illegal-mark")).toBeNull();
  const submit = step.querySelector("[type=submit]");
  expect(submit?.getAttribute("aria-disabled")).toBe("true");
  const field = step.querySelectorAll<HTMLInputElement>(".tw-input")[1];
  if (!field) throw new Error("no field");
  field.value = "'unroll_depth'";
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await flush();
  expect(kernel.last()).toMatchObject({ type: "check", step: { op: "annotate", values: { key: "'unroll_depth'" } } });
  kernel.answer({ checked: { problems: [], more_problems: 0, steps: 1, match: null } });
  await flush();
  step.querySelector<HTMLElement>("[type=submit]")?.click();
  expect(kernel.last()).toMatchObject({ type: "apply", step: { handles: { target: [LOOP] } } });
});

test("the steps of the earlier selection are disabled until those of the new one arrive", async () => {
  const other: Handle = { ...LOOP, uid: 12, name: "i_0" };
  store.select(other);
  kernel.reply("select", { selected: makeSelected(other) });
  await flush();
  expect(find(".tw-selected").textContent).toContain("i_0");
  expect(find(".tw-steps").getAttribute("aria-busy")).toBe("true");
  const count = kernel.sent.length;
  find('[data-step="split"] .tw-apply').click();
  expect(kernel.sent.length).toBe(count);
  kernel.answer({ reply: 0, menu: makeMenu(other) });
  await flush();
  expect(find(".tw-steps").getAttribute("aria-busy")).toBe("false");
});

test("an answer renders the selection, and its steps when they arrive", async () => {
  const other: Handle = { ...LOOP, uid: 12, name: "i_0" };
  store.select(other);
  const answer = await rendered(async () => {
    kernel.reply("select", { selected: makeSelected(other) });
    await flush();
  });
  expect(answer.get("Selection")).toBe(1);
  expect(answer.get("Step")).toBeUndefined();
  expect(answer.get("GraphDiagram")).toBeUndefined();
  const menu = await rendered(async () => {
    kernel.answer({ reply: 0, menu: makeMenu(other) });
    await flush();
  });
  expect(menu.get("Selection")).toBeUndefined();
  expect(menu.get("Step")).toBeGreaterThan(5);
});

test("an open form applies its step only while it belongs to the selection", async () => {
  open("split");
  await flush();
  kernel.answer({ checked: { problems: [], more_problems: 0, steps: 1, match: null } });
  await flush();
  const submit = (): void => page.querySelector<HTMLElement>('[data-step="split"] [type=submit]')?.click();
  const applied = (): number => kernel.sent.filter((message) => message.type === "apply").length;
  const other: Handle = { ...LOOP, uid: 12, name: "i_0" };
  kernel.answer({ selected: makeSelected(other) });
  await flush();
  submit();
  expect(applied()).toBe(0);
  kernel.answer({ reply: 0, menu: makeMenu(other) });
  await flush();
  submit();
  expect(applied()).toBe(1);
});

test("entered values belong to one selection", async () => {
  open("split");
  await flush();
  kernel.answer({ checked: { problems: [], more_problems: 0, steps: 1, match: null } });
  const field = find('[data-step="split"] .tw-input') as HTMLInputElement;
  field.value = "(None, 12)";
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await flush();
  const other: Handle = { ...LOOP, uid: 12, name: "i_0" };
  kernel.answer({ selected: makeSelected(other), menu: makeMenu(other) });
  await flush();
  expect((find('[data-step="split"] .tw-input') as HTMLInputElement).value).toBe("(None, 4)");
});

function previewed(extra: Partial<Previewed>): { previewed: Previewed } {
  const request = kernel.sent.findLast((message) => message.type === "preview");
  if (request?.type !== "preview") throw new Error("no preview was requested");
  return { previewed: { key: request.key, state: "", changes: [], more: 0, problem: null, ...extra } };
}

test("a preview is requested when it is unfolded, and shows the changed lines", async () => {
  open("unroll");
  await flush();
  kernel.answer({ checked: { problems: [], more_problems: 0, steps: 1, match: null } });
  await flush();
  expect(kernel.sent.some((message) => message.type === "preview")).toBe(false);
  (find(".tw-preview") as HTMLDetailsElement).open = true;
  find(".tw-preview").dispatchEvent(new Event("toggle"));
  await flush();
  await flush();
  expect(kernel.last()).toMatchObject({ type: "preview", step: { op: "unroll" } });
  expect(find(".tw-preview").textContent).toContain("Trying the step");
  kernel.answer(previewed({ key: "of an earlier request" }));
  await flush();
  expect(find(".tw-preview").textContent).toContain("Trying the step");
  kernel.answer(previewed({ changes: [{ function: "f", first: 1, before: "a\nb", after: "a\nc" }], more: 2 }));
  await flush();
  expect(find(".tw-preview").textContent).toContain("and 2 more functions");
  expect(find(".tw-preview").textContent).toContain("c");
  kernel.answer(previewed({ problem: makeProblem({ message: "the loop is not serial" }) }));
  await flush();
  expect(find(".tw-preview").textContent).toContain("The step is illegal: the loop is not serial");
  kernel.answer(previewed({}));
  await flush();
  expect(find(".tw-preview").textContent).toContain("The step changes nothing");
});

test("a page has one name", () => {
  expect(clientName()).toBe(clientName());
  expect(clientName()).toMatch(/^[a-z0-9]{8,64}$/);
});

test("the focus of a removed step does not move to its folded entry", async () => {
  page.querySelector<HTMLElement>('[data-focus="apply:unroll"]')?.focus();
  const menu = menuOf(store);
  const folded = { step: "unroll", family: "loops", summary: "", composite: false, fields: [{ name: "loop", type: "loop", doc: "", value: "", choices: [], required: true, kinds: ["loop"] as const, unavailable: {} }] };
  kernel.answer({ menu: { ...menu, suggestions: menu.suggestions.filter((item) => item.step !== "unroll") }, catalog: [folded] });
  await flush();
  expect(page.querySelector('.tw-other-steps [data-focus="step:unroll"]')).not.toBeNull();
  expect(document.activeElement?.classList.contains("tw-marker")).toBe(true);
});
