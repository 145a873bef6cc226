import { beforeEach, expect, test } from "vitest";
import type { GraphNode, GraphView } from "../core/protocol";
import { flush } from "./helpers";
import { kernel, page } from "./mounted";

const BODY = ["loop y"];

function node(uid: number, name: string, kind: GraphNode["kind"], inputs: number[], path = BODY): GraphNode {
  return { uid, name, op: kind === "carried" ? "carried" : name, kind, detail: "", callee: "", path, inputs, origins: [] };
}

const GRAPH: GraphView = {
  function: "main",
  nodes: [
    node(1, "x", "param", [], []),
    { ...node(2, "c", "carried", [1]), detail: "(t, 4) f32, next: d" },
    node(3, "d", "call", [2]),
    node(4, "y", "other", [3]),
    node(5, "z", "call", [4], []),
  ],
};

beforeEach(async () => {
  kernel.answer({ graph: GRAPH });
  await flush();
});

function names(): (string | null)[] {
  return [...page.querySelectorAll(".tw-card")].map((card) => card.getAttribute("data-name"));
}

async function click(selector: string): Promise<void> {
  const found = page.querySelector(selector);
  if (!found) throw new Error(`no element matches ${selector}`);
  found.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  await flush();
}

test("shows the body of a loop with its carried values", () => {
  expect(names()).toEqual(["x", "c", "d", "y", "z"]);
  const carried = page.querySelector(".tw-card-carried");
  expect(carried?.textContent).toContain("c  (t, 4) f32, next: d");
  expect(carried?.getAttribute("aria-label")).toContain("carried c");
});

test("folds a loop to one node, and opens it", async () => {
  await click(".tw-crumb");
  const folded = page.querySelector(".tw-card-group");
  expect(folded?.textContent).toContain("loop y");
  expect(folded?.getAttribute("aria-expanded")).toBe("false");
  expect(page.querySelectorAll(".tw-card")).toHaveLength(3);
  expect(page.querySelectorAll(".tw-edge")).toHaveLength(2);
  await click(".tw-card-group");
  expect(names()).toEqual(["x", "c", "d", "y", "z"]);
});

test("selects a binding in a loop", async () => {
  await click('.tw-card[data-name="d"]');
  expect(kernel.last()).toMatchObject({ type: "select", kind: "binding", function: "main", uid: 3 });
});
