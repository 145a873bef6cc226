import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useWatch } from "../observable";
import type { Trace } from "../protocol";
import type { Store } from "../store";
import { useDocument } from "../trace/document";
import { GroupRow } from "../trace/group";
import { keyOf, pendingCount, rowsOf, treeKey, type TraceRow } from "../trace/rows";
import { StepRow } from "../trace/step";
import { reveal } from "../ui/reveal";
import { Icon } from "../ui/icons";
import { focusRoving } from "../ui/roving";
import type { Panel } from "./panel";

/** The trace as Python text, with actions that fold, copy, save and load it. */
export function TracePanel({ store }: { store: Store }): JSX.Element {
  const trace = useWatch(store.state, (state) => state.trace);
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
  const [message, setMessage] = useState("");
  const rows = useMemo(() => rowsOf(trace, unfolded), [trace, unfolded]);
  const groups = trace.groups.length;
  return (
    <div class="tw-panel">
      <div class="tw-panel-bar">
        <span class="tw-quiet" role="status">
          {message || summary(trace)}
        </span>
        {groups === 0 ? null : (
          <>
            <button type="button" class="tw-button" onClick={() => setUnfolded(new Set(trace.groups.map(keyOf)))}>
              Unfold all
            </button>
            <button type="button" class="tw-button" onClick={() => setUnfolded(new Set())}>
              Fold all
            </button>
            <span class="tw-bar-gap" />
          </>
        )}
        <Actions store={store} announce={setMessage} />
      </div>
      <PendingBar store={store} trace={trace} />
      {rows.length === 0 ? (
        <p class="tw-quiet tw-pad">No steps yet. Applied steps are listed here as Python code.</p>
      ) : (
        <Rows rows={rows} store={store} onFold={(key, folded) => setUnfolded(changed(unfolded, key, !folded))} />
      )}
    </div>
  );
}

export const tracePanel: Panel = {
  key: "trace",
  title: "Trace",
  view: TracePanel,
  section: "trace",
  count: (state) => state.trace.lines.length - pendingCount(state.trace),
};

/** The pending steps: their number, why they wait, and the actions on them. */
function PendingBar({ store, trace }: { store: Store; trace: Trace }): JSX.Element | null {
  const count = pendingCount(trace);
  if (count === 0) return null;
  const edit = (action: "resume" | "skip" | "discard"): void => editTrace(store, action, 0, "");
  return (
    <div class="tw-pending">
      <Icon name="clock" size={14} />
      <span class="tw-pending-text">
        {count} pending {count === 1 ? "step" : "steps"}. {trace.reason === "" ? "" : `The first one does not apply: ${trace.reason}`}
      </span>
      <button type="button" class="tw-button" data-focus="pending:resume" title="Apply the pending steps to the head" onClick={() => edit("resume")}>
        Resume
      </button>
      <button type="button" class="tw-button" data-focus="pending:skip" title="Continue without the first one and the steps that use its results" onClick={() => edit("skip")}>
        Skip step
      </button>
      <button type="button" class="tw-button" data-focus="pending:discard" onClick={() => edit("discard")}>
        Discard
      </button>
    </div>
  );
}

function editTrace(store: Store, action: "change" | "resume" | "skip" | "discard", index: number, text: string): void {
  store.send({ type: "edit_trace", action, index, text, head: store.state.value.history.head });
}

function summary(trace: Trace): string {
  const { lines, groups } = trace;
  const count = lines.length - pendingCount(trace);
  const steps = `${String(count)} ${count === 1 ? "step" : "steps"}`;
  if (groups.length === 0) return steps;
  return `${steps}, ${String(groups.length)} composite ${groups.length === 1 ? "step" : "steps"}`;
}

function changed(set: ReadonlySet<string>, key: string, present: boolean): ReadonlySet<string> {
  const next = new Set(set);
  if (present) next.add(key);
  else next.delete(key);
  return next;
}

function Actions({ store, announce }: { store: Store; announce: (text: string) => void }): JSX.Element {
  const request = useDocument(store, announce);
  const file = useRef<HTMLInputElement>(null);
  const load = (event: Event): void => {
    const input = event.currentTarget as HTMLInputElement;
    void input.files?.[0]?.text().then((text) => {
      input.value = ""; // otherwise choosing the same file again would not fire an event
      store.send({ type: "load", text, notes: {} });
    });
  };
  return (
    <>
      <button type="button" class="tw-button" onClick={() => request("python", "copy")}>
        <Icon name="copy" size={14} /> Copy as Python
      </button>
      <button type="button" class="tw-button" onClick={() => request("json", "save")}>
        <Icon name="save" size={14} /> Save
      </button>
      <button type="button" class="tw-button" onClick={() => file.current?.click()}>
        <Icon name="load" size={14} /> Load
      </button>
      <input ref={file} type="file" accept=".json,.jsonl" hidden aria-label="Trace file" onChange={load} />
    </>
  );
}

function index_(row: TraceRow): number {
  return row.line?.index ?? -1;
}

interface RowsProps {
  readonly rows: readonly TraceRow[];
  readonly store: Store;
  readonly onFold: (key: string, folded: boolean) => void;
}

/** The rows as a tree with one tab stop. */
function Rows({ rows, store, onFold }: RowsProps): JSX.Element {
  const [active, setActive] = useState(0);
  const list = useRef<HTMLOListElement>(null);
  const steps = useWatch(store.state, (state) => state.trace.lines.length);
  const [edited, setEdited] = useState(-1);
  const trace = useWatch(store.state, (state) => state.trace);
  const failed = trace.lines.find((line) => line.status === "pending")?.index;
  const change = (line: number, text: string): void => {
    setEdited(-1);
    focusRoving(list.current, tabStop);
    if (text !== trace.lines[line]?.text) editTrace(store, "change", line, text);
  };
  useEffect(() => {
    reveal(list.current?.lastElementChild);
  }, [steps]);
  const tabStop = Math.min(active, rows.length - 1);
  const press = (event: KeyboardEvent): void => {
    if (!(event.target instanceof HTMLElement) || event.target.getAttribute("role") !== "treeitem") return;
    const result = treeKey(event.key, tabStop, rows);
    const row = rows[tabStop];
    if (event.key === "Enter" && row?.line) {
      event.preventDefault();
      setEdited(row.line.index);
    }
    if (result === null || !row) return;
    event.preventDefault();
    if (typeof result === "string") onFold(row.key, result === "toggle" ? !row.folded : result === "fold");
    else {
      setActive(result);
      focusRoving(list.current, result);
    }
  };
  return (
    <ol class="tw-trace" role="tree" aria-label="Trace" ref={list} onKeyDown={press}>
      {rows.map((row, index) => {
        const shared = { index, level: row.level, tabStop: index === tabStop, onFocus: () => setActive(index) };
        return row.group ? (
          <GroupRow
            key={row.key}
            group={row.group}
            folded={row.folded}
            store={store}
            onFold={(folded) => onFold(row.key, folded)}
            {...shared}
          />
        ) : row.line ? (
          <StepRow
            key={row.key}
            line={row.line}
            reason={row.line.index === failed ? trace.reason : ""}
            editing={row.line.index === edited}
            onEdit={(editing) => {
              setEdited(editing ? index_(row) : -1);
              if (!editing) focusRoving(list.current, index);
            }}
            onChange={(text) => change(index_(row), text)}
            {...shared}
          />
        ) : null;
      })}
    </ol>
  );
}
