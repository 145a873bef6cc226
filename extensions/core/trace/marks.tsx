import type { EditorState, Extension, Range } from "@codemirror/state";
import { Decoration, EditorView, GutterMarker, WidgetType, gutter, type DecorationSet } from "@codemirror/view";
import { render } from "preact";
import type { TraceLine } from "../protocol";
import { Icon, type IconName } from "../ui/icons";
import { hiddenNames, type TraceRow } from "./rows";
import { currentRow, indentOf, shownField, textOfRow, type Shown } from "./shown";

const MARKS: Readonly<Record<TraceLine["status"], readonly [IconName, string]>> = {
  done: ["check", ""],
  query: ["search", ""],
  opaque: ["info", "opaque: unknown step"],
  pending: ["clock", "pending"],
};

/** The actions on the row of a composite step. */
export interface RowActions {
  readonly onFold: (row: TraceRow) => void;
  readonly onForm: (row: TraceRow) => void;
  readonly onUngroup: (row: TraceRow) => void;
}

type ActionsOf = (view: EditorView) => RowActions | undefined;

/** The number, status, fold, labels, duration, and buttons of each row. */
export function rowMarks(actionsOf: ActionsOf): Extension {
  const isNew = (before: EditorState, after: EditorState): boolean => before.field(shownField) !== after.field(shownField);
  return [
    gutter({
      class: "tw-trace-numbers",
      lineMarker: (view, block) => new RowMarker(rowIn(view, block.from)),
      lineMarkerChange: (update) => isNew(update.startState, update.state),
    }),
    gutter({
      class: "cm-foldGutter",
      lineMarker: (view, block) => new FoldMarker(rowIn(view, block.from)),
      lineMarkerChange: (update) => isNew(update.startState, update.state),
      domEventHandlers: {
        click: (view, block) => {
          const row = rowIn(view, block.from);
          if (!row?.group) return false;
          actionsOf(view)?.onFold(row);
          return true;
        },
      },
    }),
    EditorView.decorations.compute([shownField, "selection", "doc"], (state) => decorate(state, actionsOf)),
  ];
}

function rowIn(view: EditorView, position: number): TraceRow | undefined {
  return view.state.field(shownField).rows[view.state.doc.lineAt(position).number - 1];
}

function decorate(state: EditorState, actionsOf: ActionsOf): DecorationSet {
  const shown = state.field(shownField);
  const current = currentRow(state);
  const found = shown.rows.flatMap((row, index): Range<Decoration>[] => {
    if (index >= state.doc.lines) return [];
    const { from, to } = state.doc.line(index + 1);
    const line = Decoration.line({ class: classOf(shown, row, index, current), attributes: attributesOf(row) }).range(from);
    if (index === shown.edited) return [line];
    const names = hiddenNames(textOfRow(row));
    const start = from + indentOf(row).length;
    const hidden = names ? [Decoration.replace({ widget: new MoreNames(names.count) }).range(start + names.from, start + names.to)] : [];
    const reason = row.line?.index === shown.failed ? shown.reason : "";
    return [line, ...hidden, Decoration.widget({ widget: new RowEnd(row, reason, index === current, actionsOf), side: 1 }).range(to)];
  });
  return Decoration.set(found, true);
}

function classOf(shown: Shown, row: TraceRow, index: number, current: number): string {
  const status = (row.line ?? row.group)?.status ?? "done";
  const classes = ["tw-trace-line", `is-${status}`];
  if (row.group) classes.push("tw-trace-group");
  if (index === current) classes.push("is-current");
  if (index === shown.edited) classes.push("is-edited");
  if (row.line?.index === shown.failed && shown.reason !== "") classes.push("is-failed");
  return classes.join(" ");
}

function attributesOf({ group, line }: TraceRow): Record<string, string> {
  return group ? { "data-group": group.step, title: group.text } : { title: `${line?.text ?? ""}\nDouble-click or press Enter to change the step` };
}

class RowMarker extends GutterMarker {
  private readonly number: number;
  private readonly status: TraceLine["status"];

  constructor(row: TraceRow | undefined) {
    super();
    this.number = row?.line?.index ?? row?.group?.first ?? 0;
    this.status = (row?.line ?? row?.group)?.status ?? "done";
    this.elementClass = `is-${this.status}`;
  }

  override eq(other: RowMarker): boolean {
    return other.number === this.number && other.status === this.status;
  }

  override toDOM(): Node {
    const [icon] = MARKS[this.status];
    const box = span("tw-trace-marks");
    const mark = span("tw-trace-mark");
    render(<Icon name={icon} size={13} />, mark);
    box.append(span("tw-trace-number", String(this.number)), mark);
    return box;
  }
}

class FoldMarker extends GutterMarker {
  private readonly kind: string;

  constructor(row: TraceRow | undefined) {
    super();
    this.kind = row?.group ? (row.folded ? "tw-fold is-folded" : "tw-fold") : "";
  }

  override eq(other: FoldMarker): boolean {
    return other.kind === this.kind;
  }

  override toDOM(): Node {
    return span(this.kind);
  }
}

class MoreNames extends WidgetType {
  constructor(private readonly count: number) {
    super();
  }

  override eq(other: MoreNames): boolean {
    return other.count === this.count;
  }

  override toDOM(): HTMLElement {
    return span("tw-quiet", `… ${String(this.count)} more`);
  }
}

/** The end of a row: its labels, its duration, and the buttons of a composite step. */
class RowEnd extends WidgetType {
  private readonly key: string;

  constructor(
    private readonly row: TraceRow,
    private readonly reason: string,
    private readonly current: boolean,
    private readonly actionsOf: ActionsOf,
  ) {
    super();
    this.key = JSON.stringify([row, reason, current]);
  }

  override eq(other: RowEnd): boolean {
    return other.key === this.key;
  }

  override ignoreEvent(): boolean {
    return true;
  }

  override toDOM(view: EditorView): HTMLElement {
    const { row, reason } = this;
    const { status, milliseconds } = row.line ?? row.group ?? { status: "done" as const, milliseconds: null };
    const box = span("tw-trace-end");
    const [, meaning] = MARKS[status];
    if (row.group) box.append(this.count(view));
    for (const label of [row.line?.decisions ?? "", meaning]) if (label !== "") box.append(span("tw-line-label", label));
    if (reason !== "") box.append(span("tw-trace-reason", `✗ ${reason}`));
    if (milliseconds !== null) box.append(span("tw-trace-time", `${milliseconds.toFixed(1)} ms`));
    if (row.group && status !== "pending") box.append(this.buttons(view, row.group.fields.length > 0));
    return box;
  }

  /** The number of steps; of a folded composite step it is a button for the pointer, as keys unfold as well. */
  private count(view: EditorView): HTMLElement {
    const { group, folded } = this.row;
    const steps = group ? group.stop - group.first : 0;
    const text = `${String(steps)} ${steps === 1 ? "step" : "steps"}`;
    if (!folded) return span("tw-count", text);
    const box = span("tw-folded", `⋯ ${text}`);
    box.title = "Unfold (right arrow)";
    box.addEventListener("click", () => this.actionsOf(view)?.onFold(this.row));
    return box;
  }

  private buttons(view: EditorView, hasForm: boolean): HTMLElement {
    const box = span("tw-trace-actions");
    if (hasForm) box.append(this.button("Edit", "Run the step again with other values", () => this.actionsOf(view)?.onForm(this.row)));
    box.append(this.button("Ungroup", "Keep the steps of the group as individual steps", () => this.actionsOf(view)?.onUngroup(this.row)));
    return box;
  }

  private button(text: string, title: string, action: () => void): HTMLElement {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "tw-button";
    button.tabIndex = this.current ? 0 : -1;
    button.textContent = text;
    button.title = title;
    button.addEventListener("click", action);
    return button;
  }
}

function span(name: string, text = ""): HTMLElement {
  const created = document.createElement("span");
  created.className = name;
  created.textContent = text;
  return created;
}
