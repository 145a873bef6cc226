import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useWatch } from "../observable";
import type { History, HistoryNode } from "../protocol";
import type { Store } from "../store";
import { memo } from "../ui/memo";
import { reveal } from "../ui/reveal";
import { focusRoving, nextIndex } from "../ui/roving";
import { useDraft } from "../use_view";
import type { Panel } from "./panel";
import { NodeTimes } from "./records";

interface Row {
  readonly node: HistoryNode;
  readonly lane: number;
  readonly parentRow: number;
}

const ROW = 26;
const LANE = 16;

/** The tree of all states; a click moves the head to a state. */
export function HistoryPanel({ store }: { store: Store }): JSX.Element {
  const history = useWatch(store.state, (state) => state.history);
  const rows = useMemo(() => arrange(history.nodes), [history]);
  const box = useRef<HTMLDivElement>(null);
  const headRow = rows.findIndex((row) => row.node.key === history.head);
  const [active, setActive] = useState<number | null>(null);
  useEffect(() => {
    reveal(box.current?.querySelector('[aria-selected="true"]'));
  }, [history.head]);
  const lanes = rows.reduce((most, row) => Math.max(most, row.lane), 0) + 1;
  const move = (event: KeyboardEvent): void => {
    const next = nextIndex(event.key, active ?? headRow, rows.length);
    if (next === null) return;
    event.preventDefault();
    setActive(next);
    focusRoving(box.current, next);
  };
  const head = history.nodes.find((node) => node.key === history.head);
  return (
    <>
    <div class="tw-history" role="listbox" aria-label="History" ref={box} onKeyDown={move}>
      <svg class="tw-history-lines" width={lanes * LANE + 8} height={rows.length * ROW} aria-hidden="true">
        {rows.map((row, index) => (
          <path key={row.node.key} d={link(row, index, rows)} />
        ))}
        {rows.map((row, index) => (
          <circle
            key={row.node.key}
            class={row.node.key === history.head ? "is-head" : ""}
            cx={row.lane * LANE + 12}
            cy={index * ROW + ROW / 2}
            r="4.5"
          />
        ))}
      </svg>
      {rows.map((row, index) => (
        <HistoryRow
          key={row.node.key}
          node={row.node}
          index={index}
          indent={lanes * LANE + 12}
          isHead={row.node.key === history.head}
          tabStop={index === (active ?? Math.max(0, headRow))}
          store={store}
        />
      ))}
    </div>
    {head ? <NoteField key={head.key} node={head} number={headRow + 1} store={store} /> : null}
    </>
  );
}

/** The field for the note on the head; it is sent when the field is left. */
function NoteField({ node, number, store }: { node: HistoryNode; number: number; store: Store }): JSX.Element {
  const alive = useWatch(store.state, (state) => state.alive);
  const [draft, setDraft] = useDraft(`note ${node.key}`);
  const isRestored = useRef(draft !== undefined);
  const last = useRef(node.note);
  const change = (text: string): void => {
    isRestored.current = false;
    if (text.trim() !== node.note) store.send({ type: "set_note", node: node.key, text });
  };
  useEffect(() => {
    if (last.current !== node.note) setDraft(undefined);
    last.current = node.note;
  }, [node.note]);
  return (
    <label class="tw-note">
      <span>Note on state {number}</span>
      <textarea
        class="tw-input"
        rows={1}
        maxLength={2000}
        placeholder="What is tried here, and what was found?"
        readOnly={!alive}
        value={draft ?? node.note}
        onInput={(event) => setDraft(event.currentTarget.value)}
        onChange={(event) => change(event.currentTarget.value)}
        onBlur={() => {
          // Text that was typed before a reload is not a change for the browser.
          if (isRestored.current && draft !== undefined) change(draft);
        }}
      />
    </label>
  );
}

export const historyPanel: Panel = { key: "history", title: "History", view: HistoryPanel, section: "history" };

interface RowProps {
  readonly node: HistoryNode;
  readonly index: number;
  readonly indent: number;
  readonly isHead: boolean;
  readonly tabStop: boolean;
  readonly store: Store;
}

/** A state; one that did not change is not rendered again after a move of the head. */
const HistoryRow = memo(function HistoryRow({ node, index, indent, isHead, tabStop, store }: RowProps): JSX.Element {
  const records = useWatch(store.state, (state) => state.records);
  const go = (): void => store.navigate("jump", node.key);
  return (
    <div
      role="option"
      class={`tw-history-row${isHead ? " is-head" : ""}`}
      style={{ paddingLeft: `${indent}px` }}
      aria-selected={isHead}
      tabIndex={tabStop ? 0 : -1}
      data-roving={index}
      onClick={go}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        go();
      }}
    >
      <strong>{node.label}</strong>
      {node.steps > 1 ? <span class="tw-count">{node.steps} steps</span> : null}
      <span class="tw-mono tw-history-detail">{node.detail}</span>
      {node.note === "" ? null : (
        <span class="tw-history-note" title={node.note}>
          {node.note}
        </span>
      )}
      {isHead ? <span class="tw-badge tw-head">Head</span> : null}
      {node.verified === null ? null : (
        <span class={`tw-badge ${node.verified ? "is-good" : "is-bad"}`}>
          {node.verified ? "✓ Verified" : "✗ Differs"}
        </span>
      )}
      <NodeTimes node={node} records={records} />
      <span class="tw-mono tw-history-key" title={`The content of this state is ${node.key}`}>
        state {index + 1}
      </span>
    </div>
  );
});

/** Assign lanes to branches: the first child continues its parent's lane, others start new lanes. */
function arrange(nodes: History["nodes"]): Row[] {
  const rows = new Map<string, number>();
  const lanes = new Map<string, number>();
  const taken = new Set<string>();
  let used = 0;
  return nodes.map((node, index) => {
    const continues = lanes.has(node.parent) && !taken.has(node.parent);
    const lane = continues ? (lanes.get(node.parent) ?? 0) : node.parent === "" ? used : ++used;
    taken.add(node.parent);
    lanes.set(node.key, lane);
    rows.set(node.key, index);
    return { node, lane, parentRow: rows.get(node.parent) ?? -1 };
  });
}

function link(row: Row, index: number, rows: readonly Row[]): string {
  const parent = rows[row.parentRow];
  if (!parent) return "";
  const x = row.lane * LANE + 12;
  const px = parent.lane * LANE + 12;
  const y = index * ROW + ROW / 2;
  const py = row.parentRow * ROW + ROW / 2;
  if (x === px) return `M${x} ${py}V${y}`;
  return `M${px} ${py}C${px} ${py + 14} ${x} ${py + 6} ${x} ${py + 20}V${y}`;
}
