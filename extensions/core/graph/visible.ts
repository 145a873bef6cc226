// The parts of a large graph that are rendered: those near the visible part.
import type { Area } from "./camera";
import type { Edge } from "./fold";
import type { Layout, Point, Route } from "./layout";

/** The number of cards up to which all are rendered. */
const MAX_CARDS = 400;
/** The part of a layout to render before the visible part is known. */
const FIRST: Area = { x: 0, y: 0, width: 2000, height: 2000 };

/** Return the part of a layout to render, null for all of it; `near` is the last one. */
export function partToRender(layout: Layout, near: Area | null): Area | null {
  return layout.boxes.size > MAX_CARDS ? (near ?? FIRST) : null;
}

/** Return the part around the visible one that is as large in each direction, or the last one while it suffices. */
export function partNear(last: Area | null, visible: Area): Area {
  if (last && contains(last, visible)) return last;
  const { x, y, width, height } = visible;
  return { x: x - width, y: y - height, width: 3 * width, height: 3 * height };
}

/** Return whether an area contains another one. */
export function contains(outer: Area, inner: Area): boolean {
  return (
    outer.x <= inner.x && outer.y <= inner.y && outer.x + outer.width >= inner.x + inner.width && outer.y + outer.height >= inner.y + inner.height
  );
}

/** Return whether two areas have points in common; all of a layout is null. */
export function overlaps(part: Area | null, area: Area): boolean {
  if (part === null) return true;
  return part.x <= area.x + area.width && area.x <= part.x + part.width && part.y <= area.y + area.height && area.y <= part.y + part.height;
}

/** Return the routes that are near a part of the layout. */
export function routesIn(routes: readonly Route[], part: Area | null): readonly Route[] {
  return part === null ? routes : routes.filter(({ points }) => overlaps(part, areaOf(points)));
}

function areaOf(points: readonly Point[]): Area {
  const xs = points.map((point) => point.x);
  const ys = points.map((point) => point.y);
  const [x, y] = [Math.min(...xs), Math.min(...ys)];
  return { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y };
}

/** The other ends of the edges of a card that are not routed. */
export interface Ports {
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
}

/** Return the ports by card. */
export function portsOf(edges: readonly Edge[]): ReadonlyMap<string, Ports> {
  const found = new Map<string, { inputs: string[]; outputs: string[] }>();
  const at = (key: string): { inputs: string[]; outputs: string[] } => {
    const ports = found.get(key) ?? { inputs: [], outputs: [] };
    found.set(key, ports);
    return ports;
  };
  for (const { from, to } of edges) {
    at(from).outputs.push(to);
    at(to).inputs.push(from);
  }
  return found;
}
