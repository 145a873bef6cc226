import { expect, test } from "vitest";
import { callsOf, commonNamespaces } from "../core/graph/namespaces";
import type { GraphNode } from "../core/protocol";

function node(uid: number, path: string, callee = "f"): GraphNode {
  return { uid, name: `v${String(uid)}`, op: "call", kind: "kernel", detail: "", callee, path: path.split("/"), inputs: [], origins: [] };
}

test.each([
  [["encoder/layer.0/output"], ["encoder", "layer.0", "output"]],
  [["encoder/layer.1/output", "encoder/layer.0/output", "encoder/layer.2/output"], ["encoder", "layer.0…2", "output"]],
  [["encoder/0", "encoder/10", "encoder/3"], ["encoder", "0, 3, 10"]],
  [["encoder/query/a", "encoder/key/a"], ["encoder"]],
  [["encoder/layer.0/a/b", "encoder/layer.1"], ["encoder", "layer.0…1"]],
  [["a2b", "a3c"], []],
])("namespaces of calls in %s", (paths, expected) => {
  expect(commonNamespaces(paths.map((path, uid) => node(uid, path)))).toEqual(expected);
});

test("a function that is not called has no namespaces", () => {
  expect(commonNamespaces([])).toEqual([]);
});

test("a kernel of a measurement has the namespaces of its operations", () => {
  const nodes = [node(1, "a", ""), node(2, "b", ""), node(3, "c")];
  const heat = { kind: "time" as const, unit: "µs", function: "main", total: 1, calls: [{ kernel: "k", value: 1, uids: [2] }] };
  expect(callsOf("f", nodes, heat)).toEqual([nodes[2]]);
  expect(callsOf("k", nodes, heat)).toEqual([nodes[1]]);
  expect(callsOf("k", nodes, null)).toEqual([]);
});
