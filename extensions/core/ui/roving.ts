/** Return the index that a key moves to in a list with roving tabindex. */
export function nextIndex(key: string, index: number, count: number): number | null {
  if (count === 0) return null;
  switch (key) {
    case "ArrowDown":
      return Math.min(index + 1, count - 1);
    case "ArrowUp":
      return Math.max(index - 1, 0);
    case "Home":
      return 0;
    case "End":
      return count - 1;
    default:
      return null;
  }
}

/** Focus the item of a container with this `data-roving` number, and return whether it exists. */
export function focusRoving(container: Element | null, index: number): boolean {
  const item = container?.querySelector(`[data-roving="${String(index)}"]`);
  if (!(item instanceof HTMLElement || item instanceof SVGElement)) return false;
  item.focus();
  return true;
}
