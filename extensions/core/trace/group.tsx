import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { TraceGroup } from "../protocol";
import type { Store } from "../store";
import { Icon } from "../ui/icons";
import { Gutter, StepTime, TraceCode, treeItem, type RowProps } from "./step";

interface GroupProps extends RowProps {
  readonly group: TraceGroup;
  readonly folded: boolean;
  readonly store: Store;
  readonly onFold: (folded: boolean) => void;
}

/** A row with a composite step, which folds and unfolds the rows of its steps. */
export function GroupRow({ group, folded, store, onFold, ...row }: GroupProps): JSX.Element {
  const [editing, setEditing] = useState(false);
  const pending = group.status === "pending";
  const count = group.stop - group.first;
  const steps = `${String(count)} ${count === 1 ? "step" : "steps"}`;
  return (
    <li
      {...treeItem(row)}
      class={`tw-trace-line tw-trace-group is-${group.status}`}
      aria-expanded={!folded}
      aria-label={`${group.step}, ${steps}`}
      data-group={group.step}
    >
      <Gutter number={group.first} level={row.level} status={group.status} />
      <span class="tw-trace-fold" aria-hidden="true" onClick={() => onFold(!folded)}>
        <span class="tw-chevron">
          <Icon name="chevron" size={12} />
        </span>
      </span>
      <span class="tw-trace-head" onClick={() => onFold(!folded)}>
        <TraceCode text={group.text} />
        <span class="tw-count">{steps}</span>
      </span>
      {pending ? null : (
        <span class="tw-trace-actions">
          {group.fields.length === 0 ? null : (
            <button type="button" class="tw-button" tabIndex={row.tabStop ? 0 : -1} aria-expanded={editing} onClick={() => setEditing(!editing)}>
              Edit
            </button>
          )}
          <button
            type="button"
            class="tw-button"
            tabIndex={row.tabStop ? 0 : -1}
            title="Keep the steps of the group as individual steps"
            onClick={() => edit(store, group, "ungroup", {})}
          >
            Ungroup
          </button>
        </span>
      )}
      <StepTime milliseconds={group.milliseconds} />
      {editing ? <GroupForm group={group} store={store} onClose={() => setEditing(false)} /> : null}
    </li>
  );
}

type Values = Readonly<Record<string, string>>;

function edit(store: Store, group: TraceGroup, action: "ungroup" | "change", values: Values): void {
  store.send({ type: "edit_group", action, index: group.index, values, head: store.state.value.history.head });
}

interface FormProps {
  readonly group: TraceGroup;
  readonly store: Store;
  readonly onClose: () => void;
}

/** The form with the values of a composite step; applying it runs the step and the later ones again. */
function GroupForm({ group, store, onClose }: FormProps): JSX.Element {
  const [values, setValues] = useState<Values>({});
  const submit = (event: Event): void => {
    event.preventDefault();
    edit(store, group, "change", values);
    onClose();
  };
  return (
    <form class="tw-group-form" aria-label={`Parameters of ${group.step}`} onSubmit={submit}>
      {group.fields.map((field) => (
        <label key={field.name} title={field.doc}>
          <span>{field.name}</span>
          <input
            class="tw-input tw-mono"
            type="text"
            spellcheck={false}
            value={values[field.name] ?? field.value}
            onInput={(event) => setValues({ ...values, [field.name]: event.currentTarget.value })}
          />
        </label>
      ))}
      <button type="submit" class="tw-button tw-primary">
        Run again
      </button>
    </form>
  );
}
