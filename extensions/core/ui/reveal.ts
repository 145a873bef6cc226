/** Scroll an item into view within its panel, without scrolling the notebook. */
export function reveal(item: Element | null | undefined): void {
  const panel = item?.closest(".tw-scroll");
  if (!item || !panel) return;
  const inner = item.getBoundingClientRect();
  const outer = panel.getBoundingClientRect();
  if (inner.bottom > outer.bottom) panel.scrollTop += inner.bottom - outer.bottom;
  else if (inner.top < outer.top) panel.scrollTop -= outer.top - inner.top;
}
