import type { JSX } from "preact";
import { memo } from "../ui/memo";
import { useRef, useState } from "preact/hooks";
import type { PaneModel, Scope } from "../pane";
import { focusRoving, nextIndex } from "../ui/roving";

export const LINE_HEIGHT = 20;
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

interface LoopGutterProps {
  readonly pane: PaneModel;
  readonly first: number;
  readonly last: number;
  readonly selected: number | null;
  readonly hovered: number | null;
  readonly onSelect: (scope: Scope) => void;
  readonly onHover: (scope: Scope | null) => void;
}

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
  const { pane, first, last } = props;
  const [active, setActive] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  if (pane.scopes.length === 0) return null;
  const visible = pane.scopes
    .map((scope, index) => ({ scope, index }))
    .filter(({ scope }) => scope.span.endLine >= first && scope.span.line <= last);
  const move = (event: KeyboardEvent): void => {
    const next = target(event.key, active, pane.scopes);
    if (next === null) return;
    event.preventDefault();
    setActive(next);
    focusRoving(box.current, next);
  };
  const step = columnWidth(columns(pane));
  const tabStop = Math.min(active, pane.scopes.length - 1);
  return (
    <div
      class="tw-loop-tree"
      role="tree"
      aria-label={`Loops and blocks of ${pane.name}`}
      style={{ width: `${loopGutterWidth(pane)}px` }}
      ref={box}
      onKeyDown={move}
    >
      <svg class="tw-loop-tree-lines" aria-hidden="true" width={loopGutterWidth(pane)} height={pane.lines.length * LINE_HEIGHT}>
        {visible.map(({ scope }) => (
          <path key={scope.span.uid} d={scopePath(scope, step)} class={scopeClass(scope, props)} />
        ))}
      </svg>
      {visible.map(({ scope, index }) => (
        <div
          key={scope.span.uid}
          role="treeitem"
          tabIndex={index === tabStop ? 0 : -1}
          data-roving={index}
          data-uid={scope.span.uid}
          data-name={scope.header?.name ?? ""}
          class={`tw-marker ${scopeClass(scope, props)}`}
          style={{ left: `${column(scope, step) - 7}px`, top: `${scope.span.line * LINE_HEIGHT + 3}px` }}
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

function scopePath(scope: Scope, step: number): string {
  const x = column(scope, step);
  const top = scope.span.line * LINE_HEIGHT + 17;
  const bottom = scope.span.endLine * LINE_HEIGHT + 13;
  return bottom > top ? `M${x} ${top}V${bottom}q0 4 4 4h2` : `M${x} ${top}v0`;
}

function scopeClass(scope: Scope, props: LoopGutterProps): string {
  const uid = scope.span.uid;
  const state = uid === props.selected ? " is-selected" : uid === props.hovered ? " is-hovered" : "";
  return `tw-kind-${kindOf(scope)}${state}`;
}

function target(key: string, active: number, scopes: readonly Scope[]): number | null {
  const here = scopes[active];
  if (key === "ArrowLeft") return here?.parent ? scopes.indexOf(here.parent) : null;
  if (key === "ArrowRight") return scopes[active + 1]?.parent === here ? active + 1 : null;
  return nextIndex(key, active, scopes.length);
}
