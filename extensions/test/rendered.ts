import { options, type VNode } from "preact";

/** Return how often each component is rendered during an action, by its name. */
export async function rendered(action: () => Promise<void>): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  const before = options.diffed?.bind(options);
  options.diffed = (vnode: VNode): void => {
    if (typeof vnode.type === "function") counts.set(vnode.type.name, (counts.get(vnode.type.name) ?? 0) + 1);
    before?.(vnode);
  };
  try {
    await action();
  } finally {
    if (before) options.diffed = before;
    else delete options.diffed;
  }
  return counts;
}
