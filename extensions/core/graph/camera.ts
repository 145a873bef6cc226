import { select, type Selection } from "d3-selection";
import { zoom, zoomIdentity, zoomTransform, type Zoom, type ZoomTransform } from "d3-zoom";

/** A rectangle in the coordinates of the layout. */
export interface Area {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

type Size = Pick<Area, "width" | "height">;

interface Listeners {
  /** Called after each movement with the visible part of the layout. */
  readonly onMove: (transform: ZoomTransform, visible: Area) => void;
  /** Called for a wheel that is left to the page. */
  readonly onPass: () => void;
}

/** The scale at which the texts of the cards have 11 pixels. */
const READABLE = 0.92;
const LARGEST = 2.5;
const SMALLEST = 0.35;
/** The margins around the layout, and around a card that is revealed, in pixels. */
const MARGIN = 24;
const NEAR = 8;
/** The margin below a layout that is partly hidden, so that no card is always behind the overview. */
const OVERVIEW = 150;
/** The largest change of the binary logarithm of the scale by one event of a wheel. */
const MAX_STEP = 0.3;
/** The pixels per line of a wheel that scrolls lines. */
const LINE = 16;
/** The movement in pixels up to which a press is a click. */
const CLICK = 4;

/**
 * The visible part of a graph, which is moved by dragging, wheel, pinch, and keys. As the page is
 * scrolled by the same wheel, the wheel moves the graph only while the focus is in it, such as after
 * a click; with Ctrl, it zooms.
 */
export class Camera {
  private readonly behavior: Zoom<HTMLElement>;
  private readonly selection: Selection<HTMLElement>;
  private content: Size = { width: 1, height: 1 };
  /** The size of the view when the graph was shown last. */
  private shown: Size | null = null;
  private started = false;

  constructor(
    private readonly view: HTMLElement,
    private readonly listeners: Listeners,
  ) {
    this.behavior = zoom<HTMLElement>()
      .extent(() => [[0, 0], [this.size.width, this.size.height]])
      .filter((event) => (event.type === "wheel" ? event.ctrlKey || event.metaKey : !event.ctrlKey && !event.button))
      .wheelDelta(wheelStep)
      .clickDistance(CLICK)
      .on("zoom", ({ transform, sourceEvent }) => {
        if (sourceEvent) this.started = true;
        this.listeners.onMove(transform, this.visible);
      });
    this.selection = select(view).call(this.behavior).on("dblclick.zoom", null);
    view.addEventListener("wheel", this.wheel, { passive: false });
  }

  destroy(): void {
    this.view.removeEventListener("wheel", this.wheel);
    this.selection.on(".zoom", null);
  }

  /** The visible part of the layout. */
  get visible(): Area {
    const { k, x, y } = zoomTransform(this.view);
    return { x: -x / k, y: -y / k, width: this.size.width / k, height: this.size.height / k };
  }

  /**
   * Display a layout. Until the user moves the graph, its start is shown, and the chosen part of it;
   * after that, the center of a view with a new size stays the same.
   */
  show(content: Size, chosen: Area | null): void {
    this.content = content;
    const { size, shown } = this;
    this.shown = size;
    const below = content.height + 2 * MARGIN > this.size.height ? OVERVIEW : MARGIN;
    const smallest = Math.min(SMALLEST, this.fitting);
    this.behavior.scaleExtent([smallest, LARGEST]).translateExtent([
      [-MARGIN, -MARGIN],
      [content.width + MARGIN, content.height + below],
    ]);
    if (this.started) this.moveBy(shown ? (size.width - shown.width) / 2 : 0, shown ? (size.height - shown.height) / 2 : 0);
    else this.start(chosen);
  }

  /** The scale and the translation in pixels, null until a user moves the graph. */
  get position(): { readonly zoom: number; readonly x: number; readonly y: number } | null {
    const { k, x, y } = zoomTransform(this.view);
    return this.started ? { zoom: k, x, y } : null;
  }

  /** Move the graph to a position as of a user. */
  restore(scale: number, x: number, y: number): void {
    this.started = true;
    this.selection.call(this.behavior.transform, zoomIdentity.translate(x, y).scale(scale));
  }

  /** Forget the movements of the user, as for another graph. */
  restart(): void {
    this.started = false;
  }

  zoomBy(factor: number): void {
    this.started = true;
    this.selection.call(this.behavior.scaleBy, factor);
  }

  /** Show the entire graph. */
  fit(): void {
    this.started = true;
    const { width, height } = this.content;
    this.moveTo(this.fitting, width / 2, height / 2);
  }

  /** Show the graph in its full size, with the same center. */
  fullSize(): void {
    this.zoomBy(1 / zoomTransform(this.view).k);
  }

  /** Move the graph in pixels. */
  moveBy(x: number, y: number): void {
    const { k } = zoomTransform(this.view);
    this.selection.call(this.behavior.translateBy, x / k, y / k);
  }

  /** Show a point of the layout in the center. */
  center(x: number, y: number): void {
    this.started = true;
    this.selection.call(this.behavior.translateTo, x, y);
  }

  /** Move an area into view, unless it is visible. */
  reveal(area: Area): void {
    const { visible } = this;
    const margin = NEAR / zoomTransform(this.view).k;
    const x = shift(area.x, area.width, visible.x, visible.width, margin);
    const y = shift(area.y, area.height, visible.y, visible.height, margin);
    if (x === 0 && y === 0) return;
    this.started = true;
    this.selection.call(this.behavior.translateBy, -x, -y);
  }

  private get size(): Size {
    return { width: this.view.clientWidth || 280, height: this.view.clientHeight || 400 };
  }

  /** The scale at which the entire layout is visible. */
  private get fitting(): number {
    const { width, height } = this.content;
    return Math.min(1, this.size.width / (width + MARGIN), this.size.height / (height + MARGIN));
  }

  private start(chosen: Area | null): void {
    const { width } = this.content;
    const scale = Math.max(READABLE, Math.min(1, this.size.width / width));
    this.moveTo(scale, width / 2, this.size.height / scale / 2);
    if (chosen) this.reveal(chosen);
    this.started = false;
  }

  private moveTo(scale: number, x: number, y: number): void {
    this.selection.call(this.behavior.transform, zoomIdentity.scale(scale));
    this.selection.call(this.behavior.translateTo, x, y);
  }

  private readonly wheel = (event: WheelEvent): void => {
    if (event.ctrlKey || event.metaKey) return;
    if (!this.view.contains(document.activeElement)) {
      this.listeners.onPass();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    const unit = event.deltaMode === 1 ? LINE : event.deltaMode === 2 ? this.size.height : 1;
    const [x, y] = event.shiftKey && event.deltaX === 0 ? [event.deltaY, 0] : [event.deltaX, event.deltaY];
    this.started = true;
    this.moveBy(-x * unit, -y * unit);
  };
}

/** Return the change of the binary logarithm of the scale: small for a pinch, limited for a wheel. */
function wheelStep({ deltaY, deltaMode }: WheelEvent): number {
  const step = -deltaY * (deltaMode === 0 ? 0.02 : 0.3);
  return Math.max(-MAX_STEP, Math.min(MAX_STEP, step));
}

/** Return the distance by which a range must move to contain a part, or the start of a longer part. */
function shift(from: number, length: number, start: number, size: number, margin: number): number {
  const before = from - margin - start;
  const after = from + length + margin - (start + size);
  if (before < 0 || length + 2 * margin > size) return before;
  return Math.max(0, after);
}
