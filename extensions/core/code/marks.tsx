import type { JSX } from "preact";
import type { PaneModel } from "../pane";
import type { Marked } from "../store";
import { LINE_HEIGHT } from "./loop_gutter";

interface Lines {
  readonly first: number;
  readonly last: number;
}

interface BoxProps {
  readonly kind: string;
  readonly line: number;
  readonly column: number;
  readonly end: number;
}

/** A box over a part of a line; line and columns start at 0. */
function Box({ kind, line, column, end }: BoxProps): JSX.Element {
  return (
    <span
      class={kind}
      aria-hidden="true"
      style={{
        transform: `translateY(${String(line * LINE_HEIGHT)}px)`,
        left: `${String(column)}ch`,
        width: `${String(Math.max(1, end - column))}ch`,
      }}
    />
  );
}

/** The underlines of the parts at fault of the problem that is pointed at. */
export function Underlines({ marked, first, last }: Lines & { marked: Marked | null }): JSX.Element {
  const marks = marked?.marks.filter((mark) => first < mark.line && mark.line <= last + 1) ?? [];
  return (
    <>
      {marks.map(({ line, column, end }) => (
        <Box key={`${String(line)}:${String(column)}`} kind="tw-underline" line={line - 1} column={column - 1} end={end - 1} />
      ))}
    </>
  );
}

/** The uses of the selected loop, buffer, block or value; its definition is marked as a line. */
export function Occurrences({ pane, uid, first, last }: Lines & { pane: PaneModel; uid: number | null }): JSX.Element {
  const uses = uid === null ? [] : pane.spans.filter((span) => span.uid === uid && !span.defined && first <= span.line && span.line <= last);
  return (
    <>
      {uses.map(({ line, column, endColumn }) => (
        <Box key={`${String(line)}:${String(column)}`} kind="tw-occurrence" line={line} column={column} end={endColumn} />
      ))}
    </>
  );
}
