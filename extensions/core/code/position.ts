import { foldEffect, unfoldEffect } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import type { TextPosition } from "../view_state";
import { foldHeaders, foldedHeaders } from "./fold";

/** Return the folds and the first visible line of a text. */
export function positionOf(view: EditorView, shown: string): TextPosition {
  const block = view.lineBlockAtHeight(view.scrollDOM.scrollTop);
  return { folds: foldedHeaders(view.state), top: view.state.doc.lineAt(block.from).number, shown };
}

/** Fold and scroll a text as it was; lines that it no longer has are ignored. */
export function restorePosition(view: EditorView, { folds, top }: TextPosition): void {
  foldHeaders(view, folds);
  if (top <= 1 || top > view.state.doc.lines) return;
  const { from } = view.state.doc.line(top);
  view.requestMeasure({
    read: () => view.lineBlockAt(from).top,
    write: (height) => {
      view.scrollDOM.scrollTop = height;
    },
  });
}

/** Call a listener when a text is scrolled or a body is folded, and return the function that ends that. */
export function onMoved(view: EditorView, listener: () => void): () => void {
  view.scrollDOM.addEventListener("scroll", listener, { passive: true });
  folds.set(view, listener);
  return () => {
    view.scrollDOM.removeEventListener("scroll", listener);
    folds.delete(view);
  };
}

const folds = new WeakMap<EditorView, () => void>();

/** Report the folds of an editor to its listener. */
export const reportFolds = EditorView.updateListener.of((update) => {
  const changes = update.transactions.some(({ effects }) => effects.some((effect) => effect.is(foldEffect) || effect.is(unfoldEffect)));
  if (changes) folds.get(update.view)?.();
});
