import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { memo } from "../ui/memo";
import type { Area, Camera } from "./camera";
import type { Card } from "./fold";
import type { Layout, Placed } from "./layout";
import { partToRender } from "./visible";

interface MinimapProps {
  readonly camera: { readonly current: Camera | null };
  readonly cards: readonly Card[];
  readonly layout: Layout;
  readonly chosen: ReadonlySet<string>;
  readonly found: ReadonlySet<string> | null;
  /** The frame of the visible part, which the camera moves. */
  readonly frame: { current: SVGRectElement | null };
}

/** The largest width and height in pixels. */
const WIDTH = 110;
const HEIGHT = 130;

/** An overview of the graph with a frame around its visible part; a press or drag moves that part. */
export const Minimap = memo(function Minimap({ camera, cards, layout, chosen, found, frame }: MinimapProps): JSX.Element {
  const { width, height } = layout;
  const isLarge = partToRender(layout, null) !== null;
  const outline = useMemo(() => (isLarge ? [...layout.boxes.values()].map(boxPath).join("") : ""), [isLarge, layout]);
  const scale = Math.min(WIDTH / width, HEIGHT / height);
  const svg = useRef<SVGSVGElement>(null);
  useLayoutEffect(() => {
    if (camera.current) placeFrame(frame.current, camera.current.visible, layout);
  }, [layout]);
  const move = (event: PointerEvent): void => {
    const box = svg.current?.getBoundingClientRect();
    if (!box || event.buttons !== 1) return;
    camera.current?.center((event.clientX - box.left) / scale, (event.clientY - box.top) / scale);
  };
  const press = (event: PointerEvent): void => {
    event.preventDefault(); // the focus stays where it is
    svg.current?.setPointerCapture(event.pointerId);
    move(event);
  };
  return (
    <svg
      ref={svg}
      class="tw-minimap"
      aria-hidden="true"
      width={width * scale}
      height={height * scale}
      viewBox={`0 0 ${width} ${height}`}
      onPointerDown={press}
      onPointerMove={move}
    >
      {isLarge ? <path class="is-call" d={outline} /> : null}
      {(isLarge ? cards.filter((card) => chosen.has(card.key) || found?.has(card.key)) : cards).map((card) => {
        const place = layout.boxes.get(card.key);
        const marks = `${chosen.has(card.key) ? " is-selected" : ""}${found?.has(card.key) ? " is-found" : ""}`;
        return place ? <rect key={card.key} class={`is-${card.kind}${marks}`} x={place.x} y={place.y} width={place.width} height={place.height} /> : null;
      })}
      <rect class="tw-minimap-frame" ref={frame} />
    </svg>
  );
});

/** Return the outline of a card; one path of all cards of a large graph is drawn faster than each. */
function boxPath({ x, y, width, height }: Placed): string {
  return `M${x.toFixed(0)} ${y.toFixed(0)}h${width.toFixed(0)}v${height.toFixed(0)}h${(-width).toFixed(0)}z`;
}

/** Move the frame to the visible part of the layout. */
export function placeFrame(frame: SVGRectElement | null, visible: Area, layout: Pick<Layout, "width" | "height">): void {
  if (!frame) return;
  const left = Math.max(0, visible.x);
  const top = Math.max(0, visible.y);
  const right = Math.min(layout.width, visible.x + visible.width);
  const bottom = Math.min(layout.height, visible.y + visible.height);
  frame.setAttribute("x", left.toFixed(1));
  frame.setAttribute("y", top.toFixed(1));
  frame.setAttribute("width", Math.max(0, right - left).toFixed(1));
  frame.setAttribute("height", Math.max(0, bottom - top).toFixed(1));
}
