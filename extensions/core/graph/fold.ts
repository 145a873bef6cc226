import type { GraphNode, GraphView } from "../protocol";

/** A node of the diagram: one value, or a folded namespace of several values. */
export interface Card {
  readonly key: string;
  readonly title: string;
  readonly detail: string;
  readonly kind: GraphNode["kind"] | "group";
  readonly path: readonly string[];
  readonly members: readonly GraphNode[];
}

export interface Edge {
  readonly from: string;
  readonly to: string;
}

export interface Folded {
  readonly cards: readonly Card[];
  readonly edges: readonly Edge[];
  readonly cardOf: ReadonlyMap<number, string>;
}

const SEPARATOR = "/";
const MAX_CARDS = 28;

/** Return all namespaces of a graph and the number of values in each. */
export function namespaces(view: GraphView): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const node of view.nodes)
    for (let depth = 1; depth <= node.path.length; depth++) {
      const key = node.path.slice(0, depth).join(SEPARATOR);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  return counts;
}

/** Return the namespaces to fold initially: outer levels are opened while the diagram fits a page. */
export function foldedAtFirst(view: GraphView): ReadonlySet<string> {
  let folded = new Set([...namespaces(view)].filter(([, count]) => count > 1).map(([key]) => key));
  for (;;) {
    const groups = fold(view, folded).cards.filter((card) => card.kind === "group");
    const level = Math.min(...groups.map((card) => card.path.length));
    const opened = new Set(folded);
    for (const card of groups) if (card.path.length === level) opened.delete(card.path.join(SEPARATOR));
    if (groups.length === 0 || fold(view, opened).cards.length > MAX_CARDS) return folded;
    folded = opened;
  }
}

/** Return the cards and edges of a graph; a folded namespace is one card. */
export function fold(view: GraphView, folded: ReadonlySet<string>): Folded {
  const cardOf = new Map<number, string>();
  const members = new Map<string, GraphNode[]>();
  for (const node of view.nodes) {
    const key = cardKey(node, folded);
    cardOf.set(node.uid, key);
    const list = members.get(key);
    if (list) list.push(node);
    else members.set(key, [node]);
  }
  const cards = [...members].map(([key, nodes]) => card(key, nodes));
  return { cards, edges: edgesOf(view, cardOf), cardOf };
}

function cardKey(node: GraphNode, folded: ReadonlySet<string>): string {
  for (let depth = 1; depth <= node.path.length; depth++) {
    const key = node.path.slice(0, depth).join(SEPARATOR);
    if (folded.has(key)) return `group:${key}`;
  }
  return `node:${String(node.uid)}`;
}

function card(key: string, nodes: readonly GraphNode[]): Card {
  const first = nodes[0];
  if (first === undefined) throw new Error(`card ${key} has no members`);
  if (!key.startsWith("group:"))
    return {
      key,
      title: first.callee === "" ? first.op : first.callee,
      detail: first.detail,
      kind: first.kind,
      path: first.path,
      members: nodes,
    };
  const path = key.slice("group:".length).split(SEPARATOR);
  return {
    key,
    title: path.at(-1) ?? key,
    detail: `${String(nodes.length)} operations`,
    kind: "group",
    path,
    members: nodes,
  };
}

function edgesOf(view: GraphView, cardOf: ReadonlyMap<number, string>): Edge[] {
  const seen = new Set<string>();
  const edges: Edge[] = [];
  for (const node of view.nodes) {
    const to = cardOf.get(node.uid);
    for (const input of node.inputs) {
      const from = cardOf.get(input);
      if (from === undefined || to === undefined || from === to) continue;
      const key = `${from}>${to}`;
      if (seen.has(key)) continue;
      seen.add(key);
      edges.push({ from, to });
    }
  }
  return edges;
}
