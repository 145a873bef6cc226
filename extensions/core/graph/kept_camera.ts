import type { GraphPosition, View } from "../view_state";
import type { Camera } from "./camera";

export const UNMOVED: GraphPosition = { folds: {}, zoom: null, x: 0, y: 0 };
/** The pause in milliseconds after a movement until the position is kept. */
const PAUSE = 150;

/** The position of the visible part of a graph in the view state. */
export class KeptCamera {
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly view: View) {}

  /** Move a camera to the kept position of a graph, if it was moved there before. */
  restore(camera: Camera, name: string): void {
    const { zoom, x, y } = this.view.entry("graphs", name) ?? UNMOVED;
    if (zoom !== null) camera.restore(zoom, x, y);
  }

  /** Keep the position of a camera that a user moved, after a pause. */
  keep(camera: Camera, name: string): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const position = camera.position;
      if (position) this.view.setEntry("graphs", name, { ...(this.view.entry("graphs", name) ?? UNMOVED), ...position });
    }, PAUSE);
  }

  destroy(): void {
    clearTimeout(this.timer);
  }
}
