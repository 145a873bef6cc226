import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { TraceGroup } from "../protocol";

export type Values = Readonly<Record<string, string>>;

interface FormProps {
  readonly group: TraceGroup;
  readonly onSubmit: (values: Values) => void;
  readonly onClose: () => void;
}

/**
 * The form with the values of a composite step; applying it runs the step and the later ones again.
 * Its fields have labels and descriptions, which a text cannot have, so it is above the trace.
 */
export function GroupForm({ group, onSubmit, onClose }: FormProps): JSX.Element {
  const [values, setValues] = useState<Values>({});
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => form.current?.querySelector("input")?.focus(), []);
  const submit = (event: Event): void => {
    event.preventDefault();
    onSubmit(values);
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    onClose();
  };
  return (
    <form class="tw-group-form" aria-label={`Parameters of ${group.step}`} ref={form} onSubmit={submit} onKeyDown={press}>
      <strong class="tw-mono">{group.step}</strong>
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
      <button type="button" class="tw-button" onClick={onClose}>
        Cancel
      </button>
    </form>
  );
}
