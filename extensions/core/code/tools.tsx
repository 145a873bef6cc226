import { unfoldAll } from "@codemirror/language";
import { openSearchPanel } from "@codemirror/search";
import type { EditorView } from "@codemirror/view";
import type { JSX } from "preact";
import { Observable, useWatch } from "../observable";
import { Icon } from "../ui/icons";
import { foldEverything } from "./fold";

/** The actions on the text that a pane displays. */
export class TextTools {
  readonly wrap = new Observable(false);
  readonly view = new Observable<EditorView | null>(null);

  find(): void {
    if (this.view.value) openSearchPanel(this.view.value);
  }

  fold(): void {
    if (this.view.value) foldEverything(this.view.value);
  }

  unfold(): void {
    if (this.view.value) unfoldAll(this.view.value);
  }

  toggleWrap(): void {
    this.wrap.update((wrap) => !wrap);
  }
}

/** The buttons of the text of a pane. */
export function TextToolbar({ tools }: { tools: TextTools }): JSX.Element | null {
  const wrap = useWatch(tools.wrap, (value) => value);
  const present = useWatch(tools.view, (view) => view !== null);
  if (!present) return null;
  return (
    <div class="tw-text-tools" role="group" aria-label="Text">
      <button type="button" class="tw-tool" aria-label="Find in the text" title="Find in the text (Ctrl+F)" onClick={() => tools.find()}>
        <Icon name="search" size={14} />
      </button>
      <button type="button" class="tw-tool" aria-label="Fold bodies" title="Fold bodies" onClick={() => tools.fold()}>
        <Icon name="folded" size={14} />
      </button>
      <button type="button" class="tw-tool" aria-label="Unfold bodies" title="Unfold bodies" onClick={() => tools.unfold()}>
        <Icon name="unfolded" size={14} />
      </button>
      <button type="button" class="tw-tool" aria-label="Wrap lines" aria-pressed={wrap} title="Wrap lines (w)" onClick={() => tools.toggleWrap()}>
        <Icon name="wrap" size={14} />
      </button>
    </div>
  );
}
