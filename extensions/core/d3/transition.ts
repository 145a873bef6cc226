// Replaces the package d3-transition, which animates changes, in the built widget.
import { selection } from "d3-selection";

/** Stop the animation of an element; there are none. */
export function interrupt(): void {
  return undefined;
}

selection.prototype.interrupt = function stop<T>(this: T): T {
  return this;
};
