import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { GraphView as Graph } from "../protocol";
import { useViewOf } from "../use_view";
import { Camera, type Area } from "./camera";
import type { Card, Folded } from "./fold";
import { KeptCamera } from "./kept_camera";
import type { Layout } from "./layout";
import { placeFrame } from "./minimap";
import { contains, partNear, partToRender } from "./visible";

/** A value that outlives the renderings of a component. */
export interface Ref<T> {
  current: T;
}

interface CameraProps {
  readonly view: Ref<HTMLDivElement | null>;
  readonly frame: Ref<SVGRectElement | null>;
  readonly camera: Ref<Camera | null>;
  readonly layout: Layout;
  readonly graph: Graph;
  readonly shown: Folded;
  readonly chosen: ReadonlySet<string>;
  readonly selected: number | null;
  readonly setActive: (change: (index: number) => number) => void;
  readonly showHint: () => void;
}

/**
 * Connect the camera with the layout and the selection. Return whether parts of the graph are hidden,
 * and the part of a large graph to render, null for all of it.
 */
export function useCamera(props: CameraProps): readonly [boolean, Area | null] {
  const { view, camera, layout, graph, selected } = props;
  const kept = useViewOf();
  const latest = useRef(props);
  latest.current = props;
  const name = useRef("");
  const [overflows, setOverflows] = useState(false);
  const [near, setNear] = useState<Area | null>(null);
  const show = (): void => camera.current?.show(latest.current.layout, chosenArea(latest.current));
  useLayoutEffect(() => {
    const element = view.current;
    if (!element) return undefined;
    const canvas = element.querySelector(".tw-graph-canvas");
    const keeper = new KeptCamera(kept);
    const created = new Camera(element, {
      onMove: (transform, visible) => {
        const { layout: now, frame, shown, setActive } = latest.current;
        canvas?.setAttribute("transform", transform.toString());
        placeFrame(frame.current, visible, now);
        setOverflows(!contains(visible, { x: 0, y: 0, ...now }));
        setNear((last) => partNear(last, visible));
        if (camera.current) keeper.keep(camera.current, latest.current.graph.function);
        // The browser scrolls the page to a tab stop that is not visible.
        if (!element.contains(document.activeElement)) setActive((index) => visibleCard(shown.cards, now, visible, index));
      },
      onPass: () => latest.current.showHint(),
    });
    camera.current = created;
    const observer = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(show);
    observer?.observe(element);
    return () => {
      observer?.disconnect();
      created.destroy();
      keeper.destroy();
      camera.current = null;
    };
  }, []);
  useLayoutEffect(() => {
    const isOther = name.current !== graph.function;
    name.current = graph.function;
    if (isOther) camera.current?.restart();
    show();
    if (isOther && camera.current) new KeptCamera(kept).restore(camera.current, graph.function);
  }, [layout, graph.function]);
  useLayoutEffect(() => {
    const area = chosenArea(latest.current);
    if (area) camera.current?.reveal(area);
  }, [selected]);
  return [overflows, partToRender(layout, near)];
}

/** Return the area of the card with the selection, null without one. */
function chosenArea({ chosen, layout }: CameraProps): Area | null {
  for (const key of chosen) return layout.boxes.get(key) ?? null;
  return null;
}

/** Return a card if it is visible, else the first one that is, else the card; parts of large cards suffice. */
function visibleCard(cards: readonly Card[], layout: Layout, visible: Area, index: number): number {
  const areaOf = (card: Card | undefined): Area | undefined => card && layout.boxes.get(card.key);
  for (const part of [(area: Area) => area, centerOf]) {
    const isVisible = (card: Card | undefined): boolean => {
      const area = areaOf(card);
      return area !== undefined && contains(visible, part(area));
    };
    if (isVisible(cards[index])) return index;
    const first = cards.findIndex(isVisible);
    if (first >= 0) return first;
  }
  return index;
}

function centerOf({ x, y, width, height }: Area): Area {
  return { x: x + width / 2, y: y + height / 2, width: 0, height: 0 };
}

/** The time in milliseconds for which a hint is shown. */
const HINT = 2000;

/** Return whether a hint is shown, and the function that shows it for a while. */
export function useHint(): readonly [boolean, () => void] {
  const [shown, setShown] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const show = (): void => {
    setShown(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setShown(false), HINT);
  };
  return [shown, show];
}
