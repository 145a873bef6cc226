import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";
import type { Field, Suggestion } from "../protocol";

/** The entered values of a form, by field. */
export type Values = Readonly<Record<string, string>>;

interface FormProps {
  readonly suggestion: Suggestion;
  readonly values: Values;
  readonly state: "checking" | "legal" | "illegal";
  readonly onType: (values: Values) => void;
  readonly onApply: () => void;
  readonly children: ComponentChildren;
}

const STATES = { checking: "Checking…", legal: "Legal", illegal: "Illegal" } as const;
const TONES = { checking: "", legal: " is-good", illegal: " is-bad" } as const;

/** The form of a step: parameters as Python text, checked on each change, applied with Enter. */
export function StepForm({ suggestion, values, state, onType, onApply, children }: FormProps): JSX.Element {
  const change = (name: string, value: string): void => onType({ ...values, [name]: value });
  const submit = (event: Event): void => {
    event.preventDefault();
    if (state !== "illegal") onApply();
  };
  return (
    <form class="tw-form" onSubmit={submit} aria-label={`Parameters of ${suggestion.step}`}>
      {suggestion.fields.map((field) => (
        <FieldRow key={field.name} step={suggestion.step} field={field} value={values[field.name] ?? field.value} onChange={change} />
      ))}
      {children}
      <div class="tw-form-end">
        <span class={`tw-form-status${TONES[state]}`}>{STATES[state]}</span>
        <button type="submit" class="tw-button tw-primary" data-focus={`submit:${suggestion.step}`} aria-disabled={state === "illegal"}>
          Apply {suggestion.step} <kbd>⏎</kbd>
        </button>
      </div>
    </form>
  );
}

interface RowProps {
  readonly step: string;
  readonly field: Field;
  readonly value: string;
  readonly onChange: (name: string, value: string) => void;
}

function FieldRow({ step, field, value, onChange }: RowProps): JSX.Element {
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
          data-focus={`field:${step}:${field.name}`}
          value={value}
          spellcheck={false}
          autocomplete="off"
          list={field.choices.length > 0 ? `${id}-choices` : undefined}
          aria-describedby={`${id}-doc`}
          onInput={(event) => onChange(field.name, event.currentTarget.value)}
        />
      )}
      <Choices step={step} field={field} value={value} listId={`${id}-choices`} onChange={onChange} />
      <p class="tw-field-doc" id={`${id}-doc`}>
        <span class="tw-mono">{field.type}</span> <Prose text={field.doc} />
      </p>
    </div>
  );
}

/** Documentation text; text between double backticks is code. */
export function Prose({ text }: { text: string }): JSX.Element {
  const parts = text.split("``");
  return <>{parts.map((part, index) => (index % 2 === 1 ? <code key={index} class="tw-mono">{part}</code> : part))}</>;
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
      {field.choices.filter((choice) => !(choice in field.unavailable)).slice(0, 6).map((choice) => (
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
      {Object.keys(field.unavailable).length > 0 ? (
        <details class="tw-unavailable">
          <summary>{Object.keys(field.unavailable).length} not on this target</summary>
          <ul>
            {Object.entries(field.unavailable).map(([choice, reason]) => (
              <li key={choice}>
                <span class="tw-mono">{choice}</span> {reason}
              </li>
            ))}
          </ul>
        </details>
      ) : null}
    </div>
  );
}
