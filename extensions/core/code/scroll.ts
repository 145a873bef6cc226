import { EditorView } from "@codemirror/view";
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

/** Scroll a line to the top, with the line before it; the first line needs nothing. */
export function scrollToTop(view: EditorView, number: number): void {
  if (number <= 1) return;
  const { from } = view.state.doc.line(number);
  view.dispatch({ effects: EditorView.scrollIntoView(from, { y: "start", yMargin: view.defaultLineHeight }) });
}
