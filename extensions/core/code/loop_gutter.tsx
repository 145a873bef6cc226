import type { JSX } from "preact";
import { memo } from "../ui/memo";
import { useRef, useState } from "preact/hooks";
import type { PaneModel, Scope } from "../pane";
import { focusRoving, nextIndex } from "../ui/roving";

const COLUMN_WIDTH = 13;
/** The smallest width of a column, in deep trees. */
const NARROW_COLUMN = 8;
const TREE_WIDTH = 65;
const MAX_COLUMNS = 9;

const LETTERS: Readonly<Record<string, string>> = {
  serial: "",
  parallel: "P",
  vectorized: "V",
  unrolled: "U",
  thread: "T",
  block: "",
};

/** The position of a loop or block in pixels, from the top of its header to the end of its body. */
export interface Row {
  readonly scope: Scope;
  readonly index: number;
  readonly top: number;
  readonly bottom: number;
}

interface LoopGutterProps {
  readonly pane: PaneModel;
  readonly rows: readonly Row[];
  readonly height: number;
  readonly selected: number | null;
  readonly hovered: number | null;
  readonly onSelect: (scope: Scope) => void;
  readonly onHover: (scope: Scope | null) => void;
  /** Scroll to a loop or block, and unfold the bodies that hide it. */
  readonly onReveal: (scope: Scope) => void;
}

/** The time in milliseconds after which a scope that was scrolled to has a marker. */
const RENDERED = 60;

/** Return the width of the loop tree in the gutter, in pixels. */
export function loopGutterWidth(pane: PaneModel): number {
  const count = columns(pane);
  return count * columnWidth(count) + (count > 0 ? 8 : 0);
}

function columns(pane: PaneModel): number {
  return Math.min(1 + pane.scopes.reduce((depth, scope) => Math.max(depth, scope.depth), -1), MAX_COLUMNS);
}

function columnWidth(count: number): number {
  return Math.max(NARROW_COLUMN, Math.min(COLUMN_WIDTH, Math.floor(TREE_WIDTH / Math.max(1, count))));
}

/** Return the kind of a loop, or `block`. */
export function kindOf(scope: Scope): string {
  return scope.span.kind === "block" ? "block" : (scope.header?.kind ?? "serial");
}

/** The loop tree in the gutter: one line per loop and block, with a marker at its header. */
export const LoopGutter = memo(function LoopGutter(props: LoopGutterProps): JSX.Element | null {
  const { pane, rows, height } = props;
  const [active, setActive] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  if (pane.scopes.length === 0) return null;
  const tabStop = rows.some(({ index }) => index === active) ? active : (rows[0]?.index ?? 0);
  const move = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return; // a command
    const next = target(event.key, tabStop, pane.scopes, rows);
    const scope = next === null ? undefined : pane.scopes[next];
    if (next === null || !scope) return;
    event.preventDefault();
    setActive(next);
    props.onReveal(scope);
    if (!focusRoving(box.current, next)) setTimeout(() => focusRoving(box.current, next), RENDERED);
  };
  const step = columnWidth(columns(pane));
  return (
    <div
      class="tw-loop-tree"
      role="tree"
      aria-label={`Loops and blocks of ${pane.name}`}
      style={{ width: `${loopGutterWidth(pane)}px` }}
      ref={box}
      onKeyDown={move}
    >
      <svg class="tw-loop-tree-lines" aria-hidden="true" width={loopGutterWidth(pane)} height={height}>
        {rows.map(({ scope, top, bottom }) => (
          <path key={scope.span.uid} d={scopePath(column(scope, step), top, bottom)} class={scopeClass(scope, props)} />
        ))}
      </svg>
      {rows.map(({ scope, index, top }) => (
        <div
          key={scope.span.uid}
          role="treeitem"
          tabIndex={index === tabStop ? 0 : -1}
          data-roving={index}
          data-uid={scope.span.uid}
          data-name={scope.header?.name ?? ""}
          class={`tw-marker ${scopeClass(scope, props)}`}
          style={{ left: `${column(scope, step) - 7}px`, top: `${top + 3}px` }}
          aria-level={scope.depth + 1}
          aria-selected={scope.span.uid === props.selected}
          aria-label={describe(scope)}
          title={describe(scope)}
          onClick={() => {
            setActive(index);
            props.onSelect(scope);
          }}
          onKeyDown={(event) => {
            if (event.key !== "Enter" && event.key !== " ") return;
            event.preventDefault();
            props.onSelect(scope);
          }}
          onPointerEnter={() => props.onHover(scope)}
          onPointerLeave={() => props.onHover(null)}
        >
          {LETTERS[kindOf(scope)] ?? ""}
        </div>
      ))}
    </div>
  );
});

function describe(scope: Scope): string {
  const { span, header } = scope;
  if (span.kind === "block") return `block ${header?.name ?? ""}`;
  const extent = header ? `, extent ${header.extent}` : "";
  return `${kindOf(scope)} loop ${header?.name ?? ""}${extent}`;
}

function column(scope: Scope, step: number): number {
  return Math.min(scope.depth, MAX_COLUMNS - 1) * step + 9;
}

function scopePath(x: number, top: number, bottom: number): string {
  const start = top + 17;
  const end = bottom - 7;
  return end > start ? `M${x} ${start}V${end}q0 4 4 4h2` : `M${x} ${start}v0`;
}

function scopeClass(scope: Scope, props: LoopGutterProps): string {
  const uid = scope.span.uid;
  const state = uid === props.selected ? " is-selected" : uid === props.hovered ? " is-hovered" : "";
  return `tw-kind-${kindOf(scope)}${state}`;
}

/** Return the scope that a key moves to; up and down skip folded ones. */
function target(key: string, active: number, scopes: readonly Scope[], rows: readonly Row[]): number | null {
  const here = scopes[active];
  if (key === "ArrowLeft") return here?.parent ? scopes.indexOf(here.parent) : null;
  if (key === "ArrowRight") return scopes[active + 1]?.parent === here ? active + 1 : null;
  if (key === "ArrowDown") return rows.find(({ index }) => index > active)?.index ?? null;
  if (key === "ArrowUp") return rows.findLast(({ index }) => index < active)?.index ?? null;
  return nextIndex(key, active, scopes.length);
}
