import type { EditorView } from "@codemirror/view";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { openMenu } from "../code/context_menu";
import type { Actions } from "../commands/actions";
import { CommandButton } from "../commands/button";
import { labelOf } from "../commands/command";
import { TRACE_COMMANDS } from "../commands/trace";
import { useActions } from "../commands/use_command";
import { useWatch } from "../observable";
import type { Trace, TraceGroup } from "../protocol";
import type { Store } from "../store";
import { isEditing } from "../trace/editing";
import { GroupForm, type Values } from "../trace/group_form";
import { namesOf } from "../trace/names";
import { keyOf, pendingCount, rowsOf, type TraceRow } from "../trace/rows";
import { TraceText } from "../trace/text";
import { Icon } from "../ui/icons";
import { useView } from "../use_view";
import type { Panel } from "./panel";

/** The trace as Python text, with actions that fold, copy, save and load it. */
export function TracePanel({ store }: { store: Store }): JSX.Element {
  const trace = useWatch(store.state, (state) => state.trace);
  const [keys, setKeys] = useView("unfolded");
  const unfolded = useMemo(() => new Set(keys), [keys]);
  const rows = useMemo(() => rowsOf(trace, unfolded), [trace, unfolded]);
  const groups = trace.groups.length;
  return (
    <div class="tw-panel tw-trace-panel">
      <div class="tw-panel-bar">
        <span class="tw-quiet" role="status">
          {summary(trace)}
        </span>
        {groups === 0 ? null : (
          <>
            <button type="button" class="tw-button" onClick={() => setKeys(trace.groups.map(keyOf))}>
              Unfold all
            </button>
            <button type="button" class="tw-button" onClick={() => setKeys([])}>
              Fold all
            </button>
            <span class="tw-bar-gap" />
          </>
        )}
        <CommandButton id="tilewright:copy-trace-python" label="Copy as Python" />
        <CommandButton id="tilewright:save-trace-json" label="Save" />
        <CommandButton id="tilewright:save-trace-python" label="Save as Python" />
        <CommandButton id="tilewright:load-trace" label="Load" />
      </div>
      <PendingBar store={store} trace={trace} />
      {rows.length === 0 ? (
        <p class="tw-quiet tw-pad">No steps yet. Applied steps are listed here as Python code.</p>
      ) : (
        <Rows rows={rows} trace={trace} store={store} onFold={({ key, folded }) => setKeys(changed(keys, key, folded))} />
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
  store.edit({ type: "edit_trace", action, index, text });
}

function summary(trace: Trace): string {
  const { lines, groups } = trace;
  const count = lines.length - pendingCount(trace);
  const steps = `${String(count)} ${count === 1 ? "step" : "steps"}`;
  if (groups.length === 0) return steps;
  return `${steps}, ${String(groups.length)} composite ${groups.length === 1 ? "step" : "steps"}`;
}

function changed(keys: readonly string[], key: string, present: boolean): readonly string[] {
  const others = keys.filter((other) => other !== key);
  return present ? [...others, key] : others;
}

/** Show the commands of the trace that can run now at the pointer. */
function showMenu(actions: Actions, view: EditorView, event: MouseEvent): void {
  const enabled = TRACE_COMMANDS.filter((command) => actions.enabled(command) === true);
  const entries = enabled.map((command) => ({ label: labelOf(command, actions.store.state.value), keys: "", run: () => actions.run(command) }));
  openMenu(view, "Trace", entries, event);
}

interface RowsProps {
  readonly rows: readonly TraceRow[];
  readonly trace: Trace;
  readonly store: Store;
  readonly onFold: (row: TraceRow) => void;
}

/** The rows as a text, and the form of a composite step above it. */
function Rows({ rows, trace, store, onFold }: RowsProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const text = useRef<TraceText | null>(null);
  const [form, setForm] = useState("");
  const commands = useActions();
  const steps = trace.lines.length;
  useLayoutEffect(() => {
    if (!host.current) return undefined;
    const created = new TraceText(host.current);
    text.current = created;
    return () => created.destroy();
  }, []);
  const focus = (): void => text.current?.view.focus();
  useLayoutEffect(() => {
    if (!text.current) return;
    text.current.actions = {
      onFold,
      onForm: (row) => setForm(row.key),
      onUngroup: ({ group }) => {
        focus(); // the button is removed with its row
        if (group) editGroup(store, group, "ungroup", {});
      },
      onChange: (index, line) => editTrace(store, "change", index, line),
      names: () => namesOf(store.state.value),
      onMenu: (view, event) => showMenu(commands, view, event),
    };
  });
  useLayoutEffect(() => {
    const failed = trace.lines.find((line) => line.status === "pending")?.index ?? -1;
    text.current?.update({ rows, failed, reason: trace.reason });
  }, [rows, trace]);
  useEffect(() => text.current?.scrollToEnd(), [steps]);
  const group = trace.groups.find((other) => keyOf(other) === form);
  const close = (): void => {
    setForm("");
    focus();
  };
  const run = (values: Values): void => {
    if (group) editGroup(store, group, "change", values);
    close();
  };
  // While a step is edited, undo is about its text.
  const press = (event: KeyboardEvent): void => {
    if (text.current && isEditing(text.current.view)) event.stopPropagation();
  };
  return (
    <>
      {group ? <GroupForm key={form} group={group} onSubmit={run} onClose={close} /> : null}
      <div class="tw-trace" ref={host} onKeyDown={press} />
    </>
  );
}

function editGroup(store: Store, group: TraceGroup, action: "ungroup" | "change", values: Values): void {
  store.edit({ type: "edit_group", action, index: group.index, values });
}
