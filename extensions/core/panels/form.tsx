import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import type { Candidate, Field } from "../protocol";

interface FormProps {
  readonly candidate: Candidate;
  readonly busy: boolean;
  readonly onCheck: (values: Readonly<Record<string, string>>) => void;
  readonly onApply: (values: Readonly<Record<string, string>>) => void;
}

/** The parameters of a step: written as in Python, checked as they change, applied with Enter. */
export function StepForm({ candidate, busy, onCheck, onApply }: FormProps): JSX.Element {
  const [changed, setChanged] = useState<Readonly<Record<string, string>>>({});
  const change = (name: string, value: string): void => {
    const next = { ...changed, [name]: value };
    setChanged(next);
    onCheck(next);
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    onApply(changed);
  };
  const legal = candidate.issues.length === 0;
  return (
    <form class="tw-form" onSubmit={submit} aria-label={`Parameters of ${candidate.step}`}>
      {candidate.fields.map((field) => (
        <FieldRow key={field.name} field={field} value={changed[field.name] ?? field.value} onChange={change} />
      ))}
      <div class="tw-form-end">
        <span class={`tw-form-verdict ${legal ? "is-good" : "is-bad"}`}>{legal ? "Legal" : "Not legal"}</span>
        <button type="submit" class="tw-button tw-primary" disabled={busy || !legal}>
          Apply {candidate.step} <kbd>⏎</kbd>
        </button>
      </div>
    </form>
  );
}

interface RowProps {
  readonly field: Field;
  readonly value: string;
  readonly onChange: (name: string, value: string) => void;
}

function FieldRow({ field, value, onChange }: RowProps): JSX.Element {
  const id = useId();
  return (
    <div class="tw-field">
      <label for={id}>{field.name}</label>
      {field.type === "bool" ? (
        <input
          id={id}
          type="checkbox"
          checked={value === "True"}
          onChange={(event) => onChange(field.name, event.currentTarget.checked ? "True" : "False")}
        />
      ) : (
        <input
          id={id}
          type="text"
          class="tw-input tw-mono"
          value={value}
          spellcheck={false}
          autocomplete="off"
          list={field.choices.length > 0 ? `${id}-choices` : undefined}
          aria-describedby={`${id}-doc`}
          onChange={(event) => onChange(field.name, event.currentTarget.value)}
        />
      )}
      <Choices field={field} value={value} listId={`${id}-choices`} onChange={onChange} />
      <p class="tw-field-doc" id={`${id}-doc`}>
        <span class="tw-mono">{field.type}</span> {field.doc}
      </p>
    </div>
  );
}

function Choices({ field, value, listId, onChange }: RowProps & { listId: string }): JSX.Element | null {
  if (field.choices.length === 0 || field.type === "bool") return null;
  return (
    <div class="tw-choices" role="group" aria-label={`Values for ${field.name}`}>
      <datalist id={listId}>
        {field.choices.map((choice) => (
          <option key={choice} value={choice} />
        ))}
      </datalist>
      {field.choices.slice(0, 6).map((choice) => (
        <button
          type="button"
          key={choice}
          class="tw-chip tw-mono"
          aria-pressed={choice === value}
          onClick={() => onChange(field.name, choice)}
        >
          {choice}
        </button>
      ))}
    </div>
  );
}
