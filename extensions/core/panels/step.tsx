import type { JSX } from "preact";
import { useWatch } from "../observable";
import type { Checked, Suggestion } from "../protocol";
import { hasMenu, type Store } from "../store";
import { Icon } from "../ui/icons";
import { useEntry } from "../use_view";
import type { FormState } from "../view_state";
import { useCheck } from "./checks";
import { Prose, StepForm, type Values } from "./form";
import { Matching } from "./match";
import { StepPreview } from "./preview";
import { StepProblem } from "./problem";
import { withValues, type Suggestions } from "./suggestions";

interface StepProps {
  readonly suggestions: Suggestions;
  /** The selection and the state; entered values are for one of each. */
  readonly scope: string;
  readonly store: Store;
}

const UNCHANGED: Values = {};
const EMPTY_FORM: FormState = { chosen: 0, values: {} };

/** Return whether a required parameter has no value, as those of steps that are not suggested. */
function isIncomplete({ fields }: Suggestion, values: Values): boolean {
  return fields.some((field) => field.required && (values[field.name] ?? field.value).trim() === "");
}

/** A step with its suggestions, form and problems; problems with entered values are below the form. */
export function Step({ suggestions, scope, store }: StepProps): JSX.Element {
  const [{ step, applicable }] = suggestions;
  // Suggestions of one step may be in both lists.
  const entry = applicable ? step : `${step} illegal`;
  const [open, setOpen] = useEntry("steps", entry, false);
  const [form, setForm] = useEntry("forms", `${scope} ${entry}`, EMPTY_FORM);
  const index = suggestions[form.chosen] ? form.chosen : 0;
  const suggestion = suggestions[index] ?? suggestions[0];
  const current = useWatch(store.state, (state) => open && hasMenu(state));
  // A closed step is applied as its row shows it.
  const values = (open ? form.values[index] : undefined) ?? UNCHANGED;
  // The match and the number of steps are computed only for an opened form, because they take long.
  const [result, isPresent] = useCheck(store, suggestion, values, current);
  const checked: Checked | null = isPresent || values !== UNCHANGED ? result : null;
  const problems = checked ?? suggestion;
  const legal = problems.problems.length === 0 && !isIncomplete(suggestion, values);
  const type = (next: Values): void => setForm((before) => ({ ...before, values: { ...before.values, [index]: next } }));
  const apply = (): void => {
    if (hasMenu(store.state.value)) store.apply(withValues(suggestion, values));
  };
  const toggle = (): void => setOpen((before) => !before);
  const count = isPresent && result?.steps !== undefined ? result.steps : suggestion.steps;
  return (
    <li class={`tw-step${legal ? "" : " is-illegal"}${open ? " is-open" : ""}`} data-step={suggestion.step}>
      <div class="tw-step-head">
        <StepName suggestion={suggestion} steps={count} open={open} onToggle={toggle} />
        {isIncomplete(suggestion, values) ? null : !legal ? <IllegalMark /> : open ? null : <Apply suggestion={suggestion} store={store} onApply={apply} />}
      </div>
      {legal || open ? <SuggestionChips suggestions={suggestions} chosen={suggestion} onChoose={(chosen) => setForm((before) => ({ ...before, chosen }))} /> : null}
      {open && values !== UNCHANGED ? null : <Problems list={problems} store={store} />}
      {open ? (
        <div class="tw-step-body">
          <p class="tw-summary">
            <Prose text={suggestion.summary} />
          </p>
          {result?.match ? <Matching match={result.match} /> : null}
          <StepForm
            key={suggestion.key}
            suggestion={suggestion}
            values={values}
            state={!isPresent && values !== UNCHANGED ? "checking" : legal ? "legal" : "illegal"}
            onType={type}
            onApply={apply}
          >
            {values === UNCHANGED ? null : <Problems list={problems} store={store} />}
          </StepForm>
          {legal ? <StepPreview step={withValues(suggestion, values)} store={store} /> : null}
        </div>
      ) : null}
    </li>
  );
}

interface ApplyProps {
  readonly suggestion: Suggestion;
  readonly store: Store;
  readonly onApply: () => void;
}

function Apply({ suggestion, store, onApply }: ApplyProps): JSX.Element {
  const disabled = useWatch(store.state, (state) => state.waiting > 0 || !hasMenu(state));
  return (
    <button
      type="button"
      class="tw-button tw-apply"
      aria-label={`Apply ${suggestion.step} ${suggestion.label}`.trimEnd()}
      aria-disabled={disabled}
      data-focus={`apply:${suggestion.step}`}
      onClick={() => {
        if (!disabled) onApply();
      }}
    >
      Apply
    </button>
  );
}

function IllegalMark(): JSX.Element {
  return (
    <span class="tw-illegal-mark">
      <Icon name="lock" size={13} /> Illegal
    </span>
  );
}

interface NameProps {
  readonly suggestion: Suggestion;
  readonly steps: number | null;
  readonly open: boolean;
  readonly onToggle: () => void;
}

function StepName({ suggestion, steps, open, onToggle }: NameProps): JSX.Element {
  return (
    <button
      type="button"
      class="tw-step-name"
      data-focus={`step:${suggestion.step}`}
      aria-expanded={open}
      title={suggestion.summary}
      onClick={onToggle}
    >
      <span class="tw-chevron" aria-hidden="true">
        <Icon name="chevron" size={12} />
      </span>
      <strong>{suggestion.step}</strong>
      {suggestion.composite ? <StepCount steps={steps} /> : null}
      <span class="tw-step-args tw-mono">{suggestion.label}</span>
    </button>
  );
}

/** The mark of a composite step, with the number of steps that it records if that is known. */
function StepCount({ steps }: { steps: number | null }): JSX.Element {
  return (
    <span class="tw-count tw-step-count" title="A composite step: a group of steps in the trace">
      {steps === null ? "composite" : `${String(steps)} ${steps === 1 ? "step" : "steps"}`}
    </span>
  );
}

interface ChipsProps {
  readonly suggestions: Suggestions;
  readonly chosen: Suggestion;
  readonly onChoose: (index: number) => void;
}

function SuggestionChips({ suggestions, chosen, onChoose }: ChipsProps): JSX.Element | null {
  if (suggestions.length < 2) return null;
  const shown = suggestions.slice(0, 6);
  const labels = distinctiveParts(shown.map((suggestion) => suggestion.label));
  return (
    <div class="tw-suggestions" role="group" aria-label={`Suggestions for ${chosen.step}`}>
      {shown.map((suggestion, index) => (
        <button
          type="button"
          key={suggestion.key}
          class="tw-chip tw-mono"
          data-focus={`chip:${chosen.step}:${String(index)}`}
          aria-pressed={suggestion.key === chosen.key}
          title={suggestion.label}
          onClick={() => onChoose(index)}
        >
          {labels[index] === "" ? "defaults" : labels[index]}
        </button>
      ))}
    </div>
  );
}

function Problems({ list, store }: { list: Pick<Checked, "problems" | "more_problems">; store: Store }): JSX.Element {
  return (
    <>
      {list.problems.map((problem, index) => (
        <StepProblem key={index} problem={problem} store={store} />
      ))}
      {list.more_problems > 0 ? <p class="tw-step-problem tw-quiet">and {list.more_problems} more {list.more_problems === 1 ? "problem" : "problems"}</p> : null}
    </>
  );
}

/** Return labels without shared parameters; the name of a single remaining parameter is omitted. */
export function distinctiveParts(labels: readonly string[]): readonly string[] {
  const parts = labels.map(parametersOf);
  const shared = (part: string): boolean => parts.every((list) => list.includes(part));
  return parts.map((list, index) => {
    const own = list.filter((part) => !shared(part));
    if (own.length === 0) return labels[index] ?? "";
    return own.length === 1 ? (own[0] ?? "").replace(/^\w+=/, "") : own.join(", ");
  });
}

/** Return the parameters of a label, separated by commas that precede a name. */
function parametersOf(label: string): readonly string[] {
  return label.split(/, (?=\w+=)/);
}
