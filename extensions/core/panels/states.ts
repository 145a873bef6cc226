import type { History } from "../protocol";

/** Return the name of a state as the history shows it, such as `state 3, split(i, 8)`; empty if it is not kept. */
export function stateName({ nodes }: History, key: string): string {
  const index = nodes.findIndex((node) => node.key === key);
  const node = nodes[index];
  if (!node) return "";
  const step = node.parent === "" ? node.label : `${node.label}${node.detail}`;
  return `state ${String(index + 1)}, ${step}`;
}
