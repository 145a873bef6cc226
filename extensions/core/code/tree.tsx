import type { Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { render } from "preact";
import type { PaneModel, Scope } from "../pane";
import { LoopGutter, loopGutterWidth, type Row } from "./loop_gutter";

interface Actions {
  readonly onSelect: (scope: Scope) => void;
  readonly onHover: (scope: Scope | null) => void;
  readonly onReveal: (scope: Scope) => void;
  readonly onMenu: (scope: Scope, event: MouseEvent) => void;
}

const trees = new WeakMap<EditorView, LoopTree>();

/** Keep the loop tree of an editor beside its lines. */
export function loopTree(): Extension {
  return EditorView.updateListener.of((update) => {
    if (update.geometryChanged || update.viewportChanged) trees.get(update.view)?.render();
  });
}

/** The loop tree beside the line numbers of an editor; it scrolls with the lines. */
export class LoopTree {
  private readonly box = document.createElement("div");
  private pane: PaneModel | null = null;
  private selected: number | null = null;
  private hovered: number | null = null;

  constructor(
    private readonly view: EditorView,
    private readonly actions: Actions,
  ) {
    this.box.className = "tw-tree-box";
    view.scrollDOM.insertBefore(this.box, view.contentDOM);
    this.box.addEventListener("contextmenu", (event) => this.menu(event));
    trees.set(view, this);
  }

  update(pane: PaneModel, selected: number | null, hovered: number | null): void {
    Object.assign(this, { pane, selected, hovered });
    this.render();
  }

  hover(uid: number | null): void {
    this.hovered = uid;
    this.render();
  }

  destroy(): void {
    render(null, this.box);
    this.box.remove();
  }

  render(): void {
    const { pane, actions, view } = this;
    if (!pane || pane.lines.length > view.state.doc.lines) return;
    this.box.style.height = `${String(view.contentHeight)}px`;
    this.box.style.width = `${String(loopGutterWidth(pane))}px`;
    view.requestMeasure({ key: this, read: () => this.box.previousElementSibling, write: (gutters) => this.follow(gutters) });
    const tree = (
      <LoopGutter
        pane={pane}
        rows={this.rows(pane)}
        height={view.contentHeight}
        selected={this.selected}
        hovered={this.hovered}
        onSelect={actions.onSelect}
        onHover={actions.onHover}
        onReveal={actions.onReveal}
      />
    );
    render(tree, this.box);
  }

  private menu(event: MouseEvent): void {
    const marker = event.target instanceof Element ? event.target.closest("[data-uid]") : null;
    const scope = this.pane?.scopes.find(({ span }) => String(span.uid) === marker?.getAttribute("data-uid"));
    if (scope) this.actions.onMenu(scope, event);
  }

  /** Stay beside the line numbers when the text scrolls to the side. */
  private follow(gutters: Element | null): void {
    if (gutters instanceof HTMLElement) this.box.style.left = `${String(gutters.offsetWidth)}px`;
  }

  /** Return the positions of the loops and blocks near the visible lines; folded ones have none. */
  private rows(pane: PaneModel): Row[] {
    const { doc } = this.view.state;
    const first = doc.lineAt(this.view.viewport.from).number - 1;
    const last = doc.lineAt(this.view.viewport.to).number - 1;
    const padding = this.view.documentPadding.top;
    const rows: Row[] = [];
    for (const index of scopesBetween(pane.scopes, first, last)) {
      const scope = pane.scopes[index];
      if (!scope) continue;
      const start = doc.line(scope.span.line + 1).from;
      const block = this.view.lineBlockAt(start);
      if (block.from !== start) continue;
      const end = this.view.lineBlockAt(doc.line(scope.span.endLine + 1).to);
      rows.push({ scope, index, top: padding + block.top, bottom: padding + end.bottom });
    }
    return rows;
  }
}

/** Return the indices of the scopes that overlap a range of lines; scopes are in the order of their lines. */
export function scopesBetween(scopes: readonly Scope[], first: number, last: number): number[] {
  let low = 0;
  let high = scopes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((scopes[middle]?.span.line ?? 0) < first) low = middle + 1;
    else high = middle;
  }
  const above: number[] = [];
  for (let scope = scopes[low - 1] ?? null; scope; scope = scope.parent)
    if (scope.span.endLine >= first) above.push(scopes.indexOf(scope));
  const found = above.reverse();
  for (let index = low; index < scopes.length && (scopes[index]?.span.line ?? 0) <= last; index++) found.push(index);
  return found;
}
