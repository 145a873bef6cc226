import type { EditorView } from "@codemirror/view";
import { unfoldAt } from "./fold";
import { stickyHeight } from "./sticky";

/** Scroll a line into view, unless it is visible; the bodies that hide it are unfolded. */
export function scrollToLine(view: EditorView, number: number): void {
  if (number > view.state.doc.lines) return;
  const { from } = view.state.doc.line(number);
  unfoldAt(view, from);
  const { scrollDOM } = view;
  const top = view.lineBlockAt(from).top;
  const hidden = top < scrollDOM.scrollTop + stickyHeight(view) || top > scrollDOM.scrollTop + scrollDOM.clientHeight - 40;
  if (hidden) scrollDOM.scrollTop = Math.max(0, top - scrollDOM.clientHeight / 3);
}
