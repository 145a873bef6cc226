import type { ComponentChildren, JSX } from "preact";
import { useRef } from "preact/hooks";
import { useEntry } from "../use_view";

interface SplitProps {
  /** The name under which the size is kept. */
  readonly name: string;
  readonly label: string;
  readonly direction: "row" | "column";
  readonly initial: number;
  readonly sized: "first" | "second";
  readonly minimum?: number;
  readonly first: ComponentChildren;
  readonly second: ComponentChildren;
}

const STEP = 24;

/** Two panes and a separator that pointer and arrow keys move. */
export function Split(props: SplitProps): JSX.Element {
  const { name, direction, sized, minimum = 120 } = props;
  const [size, setSize] = useEntry("splits", name, props.initial);
  const box = useRef<HTMLDivElement>(null);
  const bound = (value: number): number => {
    const whole = direction === "row" ? box.current?.clientWidth : box.current?.clientHeight;
    return Math.round(Math.max(minimum, Math.min(value, (whole ?? 2000) - minimum)));
  };
  const drag = (event: PointerEvent): void => {
    const bar = event.currentTarget as HTMLElement;
    if (!bar.hasPointerCapture(event.pointerId) || !box.current) return;
    const edge = box.current.getBoundingClientRect();
    const at = direction === "row" ? event.clientX - edge.left : event.clientY - edge.top;
    const whole = direction === "row" ? edge.width : edge.height;
    setSize(() => bound(sized === "first" ? at : whole - at));
  };
  const key = (event: KeyboardEvent): void => {
    const grow = direction === "row" ? "ArrowRight" : "ArrowDown";
    const shrink = direction === "row" ? "ArrowLeft" : "ArrowUp";
    if (event.key !== grow && event.key !== shrink) return;
    event.preventDefault();
    const sign = (event.key === grow) === (sized === "first") ? 1 : -1;
    setSize((before) => bound(before + sign * STEP));
  };
  // A size that was kept may be too large for this window.
  const limit = `calc(100% - ${String(minimum)}px)`;
  const fixed = { flex: `0 0 ${size}px`, ...(direction === "row" ? { maxWidth: limit } : { maxHeight: limit }) };
  return (
    <div class={`tw-split tw-split-${direction}`} ref={box}>
      <div class="tw-split-part" style={sized === "first" ? fixed : { flex: "1 1 0" }}>
        {props.first}
      </div>
      <div
        class="tw-split-bar"
        role="separator"
        tabIndex={0}
        aria-label={props.label}
        aria-orientation={direction === "row" ? "vertical" : "horizontal"}
        aria-valuenow={size}
        aria-valuemin={minimum}
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={drag}
        onKeyDown={key}
      />
      <div class="tw-split-part" style={sized === "second" ? fixed : { flex: "1 1 0" }}>
        {props.second}
      </div>
    </div>
  );
}
