import type { Heat } from "../overlay";
import type { GraphNode } from "../protocol";

/** Return the calls of a kernel: its calls in the graph, else the operations that it computed when it was measured. */
export function callsOf(kernel: string, nodes: readonly GraphNode[], heat: Heat | null): readonly GraphNode[] {
  const calls = nodes.filter((node) => node.callee === kernel);
  if (calls.length > 0) return calls;
  const uids = new Set(heat?.calls.filter((call) => call.kernel === kernel).flatMap((call) => call.uids));
  return nodes.filter((node) => uids.has(node.uid));
}

/** Return the namespaces that contain all calls, outermost first; numbers that differ are a range, such as `layer.0…5`. */
export function commonNamespaces(calls: readonly GraphNode[]): string[] {
  const depth = Math.min(...calls.map((call) => call.path.length));
  const names: string[] = [];
  for (let level = 0; level < depth && calls.length > 0; level++) {
    const name = joined([...new Set(calls.map((call) => call.path[level] ?? ""))]);
    if (name === null) break;
    names.push(name);
  }
  return names;
}

/** Return one name for several that differ in their number only, null for other names. */
function joined(names: readonly string[]): string | null {
  const [first = ""] = names;
  if (names.length === 1) return first;
  const stem = first.replace(/\d+$/, "");
  const numbers = names.map((name) => (name.startsWith(stem) ? name.slice(stem.length) : ""));
  if (!numbers.every((number) => /^\d+$/.test(number))) return null;
  const sorted = numbers.map(Number).sort((a, b) => a - b);
  const [low = 0] = sorted;
  const high = sorted.at(-1) ?? low;
  return high - low + 1 === sorted.length ? `${stem}${String(low)}…${String(high)}` : `${stem}${sorted.join(", ")}`;
}
