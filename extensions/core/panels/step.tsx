import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useWatch } from "../observable";
import type { Suggestion } from "../protocol";
import type { Store } from "../store";
import { Icon } from "../ui/icons";
import { Prose, StepForm, type Values } from "./form";
import { Matching } from "./match";
import { StepProblem } from "./problem";

/** The suggestions of one step, never empty. */
export type Suggestions = readonly [Suggestion, ...Suggestion[]];

interface StepProps {
  readonly suggestions: Suggestions;
  readonly store: Store;
}

const UNCHANGED: Values = {};

/** A step with its suggestions, form and problems; problems with entered values are below the form. */
export function Step({ suggestions, store }: StepProps): JSX.Element {
  const [open, setOpen] = useState(false);
  const [suggestion, choose] = useChosen(suggestions);
  const [typed, setTyped] = useState<ReadonlyMap<string, Values>>(new Map());
  const busy = useWatch(store.state, (state) => state.waiting > 0);
  const [check, checking] = useDebounced((values: Values) => store.send({ type: "check", key: suggestion.key, values }));
  const values = typed.get(suggestion.key) ?? UNCHANGED;
  const legal = suggestion.problems.length === 0;
  const type = (next: Values): void => {
    setTyped(new Map(typed).set(suggestion.key, next));
    check(next);
  };
  const apply = (): void => store.apply(suggestion.key, values);
  const toggle = (): void => {
    // The number of steps is computed only for an opened form, because it takes as long as the step.
    if (!open && suggestion.composite && suggestion.steps === null && legal) store.send({ type: "check", key: suggestion.key, values });
    setOpen(!open);
  };
  return (
    <li class={`tw-step${legal ? "" : " is-illegal"}${open ? " is-open" : ""}`} data-step={suggestion.step}>
      <div class="tw-step-head">
        <StepName suggestion={suggestion} open={open} onToggle={toggle} />
        {!legal ? <IllegalMark /> : open ? null : <Apply suggestion={suggestion} disabled={busy && values === UNCHANGED} onApply={apply} />}
      </div>
      {legal || open ? <SuggestionChips suggestions={suggestions} chosen={suggestion} onChoose={choose} /> : null}
      {open && values !== UNCHANGED ? null : <Problems suggestion={suggestion} store={store} />}
      {open ? (
        <div class="tw-step-body">
          <p class="tw-summary">
            <Prose text={suggestion.summary} />
          </p>
          {suggestion.match === undefined ? null : <Matching match={suggestion.match} />}
          <StepForm
            key={suggestion.key}
            suggestion={suggestion}
            values={values}
            checking={checking || (busy && values !== UNCHANGED)}
            onType={type}
            onApply={apply}
          >
            {values === UNCHANGED ? null : <Problems suggestion={suggestion} store={store} />}
          </StepForm>
        </div>
      ) : null}
    </li>
  );
}

interface ApplyProps {
  readonly suggestion: Suggestion;
  readonly disabled: boolean;
  readonly onApply: () => void;
}

function Apply({ suggestion, disabled, onApply }: ApplyProps): JSX.Element {
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

/** Return the displayed suggestion of a step and a function that replaces it. */
function useChosen(suggestions: Suggestions): [Suggestion, (key: string) => void] {
  const [chosen, setChosen] = useState(suggestions[0].key);
  return [suggestions.find((other) => other.key === chosen) ?? suggestions[0], setChosen];
}

interface NameProps {
  readonly suggestion: Suggestion;
  readonly open: boolean;
  readonly onToggle: () => void;
}

function StepName({ suggestion, open, onToggle }: NameProps): JSX.Element {
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
      {suggestion.composite ? <StepCount suggestion={suggestion} /> : null}
      <span class="tw-step-args tw-mono">{suggestion.label}</span>
    </button>
  );
}

/** The mark of a composite step, with the number of steps that it records if that is known. */
function StepCount({ suggestion }: { suggestion: Suggestion }): JSX.Element {
  const { steps } = suggestion;
  return (
    <span class="tw-count tw-step-count" title="A composite step: a group of steps in the trace">
      {steps === null ? "composite" : `${String(steps)} ${steps === 1 ? "step" : "steps"}`}
    </span>
  );
}

interface ChipsProps {
  readonly suggestions: Suggestions;
  readonly chosen: Suggestion;
  readonly onChoose: (key: string) => void;
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
          onClick={() => onChoose(suggestion.key)}
        >
          {labels[index] === "" ? "defaults" : labels[index]}
        </button>
      ))}
    </div>
  );
}

function Problems({ suggestion, store }: { suggestion: Suggestion; store: Store }): JSX.Element {
  return (
    <>
      {suggestion.problems.map((problem, index) => (
        <StepProblem key={index} problem={problem} store={store} />
      ))}
      {suggestion.more_problems > 0 ? <p class="tw-step-problem tw-quiet">and {suggestion.more_problems} more {suggestion.more_problems === 1 ? "problem" : "problems"}</p> : null}
    </>
  );
}

/** Return a debounced action, and whether a call is pending. */
function useDebounced<T>(action: (value: T) => void): [(value: T) => void, boolean] {
  const latest = useRef(action);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const [waiting, setWaiting] = useState(false);
  latest.current = action;
  useEffect(() => () => clearTimeout(timer.current), []);
  const call = (value: T): void => {
    clearTimeout(timer.current);
    setWaiting(true);
    timer.current = setTimeout(() => {
      setWaiting(false);
      latest.current(value);
    }, 120);
  };
  return [call, waiting];
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
