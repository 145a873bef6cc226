import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useWatch } from "../observable";
import type { Candidate, Issue } from "../protocol";
import type { Store } from "../store";
import { Icon } from "../ui/icons";
import { Prose, StepForm, type Values } from "./form";
import { Matching } from "./match";

/** The candidates of one step, at least one. */
export type Variants = readonly [Candidate, ...Candidate[]];

interface StepProps {
  readonly variants: Variants;
  readonly store: Store;
}

const UNCHANGED: Values = {};

/**
 * A step with its suggestions: it applies with one click, or says why it does not. What is wrong with
 * a value that was typed is said below the form.
 */
export function Step({ variants, store }: StepProps): JSX.Element {
  const [open, setOpen] = useState(false);
  const [candidate, choose] = useChosen(variants);
  const [typed, setTyped] = useState<ReadonlyMap<string, Values>>(new Map());
  const busy = useWatch(store.state, (state) => state.waiting > 0);
  const [check, checking] = useDebounced((values: Values) => store.send({ type: "check", key: candidate.key, values }));
  const values = typed.get(candidate.key) ?? UNCHANGED;
  const legal = candidate.issues.length === 0;
  const type = (next: Values): void => {
    setTyped(new Map(typed).set(candidate.key, next));
    check(next);
  };
  const apply = (): void => store.apply(candidate.key, values);
  return (
    <li class={`tw-step${legal ? "" : " is-blocked"}${open ? " is-open" : ""}`} data-step={candidate.step}>
      <div class="tw-step-head">
        <StepName candidate={candidate} open={open} onToggle={() => setOpen(!open)} />
        {legal ? <Apply candidate={candidate} disabled={busy && values === UNCHANGED} onApply={apply} /> : <BlockedMark />}
      </div>
      {legal || open ? <Suggestions variants={variants} chosen={candidate} onChoose={choose} /> : null}
      {open && values !== UNCHANGED ? null : <Reasons candidate={candidate} store={store} />}
      {open ? (
        <div class="tw-step-body">
          <p class="tw-summary">
            <Prose text={candidate.summary} />
          </p>
          {candidate.match === undefined ? null : <Matching match={candidate.match} />}
          <StepForm
            key={candidate.key}
            candidate={candidate}
            values={values}
            checking={checking || (busy && values !== UNCHANGED)}
            onType={type}
            onApply={apply}
          >
            {values === UNCHANGED ? null : <Reasons candidate={candidate} store={store} />}
          </StepForm>
        </div>
      ) : null}
    </li>
  );
}

interface ApplyProps {
  readonly candidate: Candidate;
  readonly disabled: boolean;
  readonly onApply: () => void;
}

function Apply({ candidate, disabled, onApply }: ApplyProps): JSX.Element {
  return (
    <button
      type="button"
      class="tw-button tw-apply"
      aria-label={`Apply ${candidate.step} ${candidate.label}`}
      disabled={disabled}
      onClick={onApply}
    >
      Apply
    </button>
  );
}

function BlockedMark(): JSX.Element {
  return (
    <span class="tw-blocked-mark">
      <Icon name="lock" size={13} /> blocked
    </span>
  );
}

/** The candidate of a step that is shown, and how another one is chosen. */
function useChosen(variants: Variants): [Candidate, (key: string) => void] {
  const [chosen, setChosen] = useState(variants[0].key);
  return [variants.find((variant) => variant.key === chosen) ?? variants[0], setChosen];
}

interface NameProps {
  readonly candidate: Candidate;
  readonly open: boolean;
  readonly onToggle: () => void;
}

function StepName({ candidate, open, onToggle }: NameProps): JSX.Element {
  return (
    <button
      type="button"
      class="tw-step-name"
      aria-expanded={open}
      title={candidate.summary}
      onClick={onToggle}
    >
      <span class="tw-turn" aria-hidden="true">
        <Icon name="chevron" size={12} />
      </span>
      <strong>{candidate.step}</strong>
      <span class="tw-step-args tw-mono">{candidate.label}</span>
    </button>
  );
}

interface SuggestionsProps {
  readonly variants: Variants;
  readonly chosen: Candidate;
  readonly onChoose: (key: string) => void;
}

function Suggestions({ variants, chosen, onChoose }: SuggestionsProps): JSX.Element | null {
  if (variants.length < 2) return null;
  const shown = variants.slice(0, 6);
  const labels = telling(shown.map((variant) => variant.label));
  return (
    <div class="tw-variants" role="group" aria-label={`Suggestions for ${chosen.step}`}>
      {shown.map((variant, index) => (
        <button
          type="button"
          key={variant.key}
          class="tw-chip tw-mono"
          aria-pressed={variant.key === chosen.key}
          title={variant.label}
          onClick={() => onChoose(variant.key)}
        >
          {labels[index]}
        </button>
      ))}
    </div>
  );
}

function Reasons({ candidate, store }: { candidate: Candidate; store: Store }): JSX.Element {
  return (
    <>
      {candidate.issues.map((issue, index) => (
        <Reason key={index} issue={issue} store={store} />
      ))}
      {candidate.more_issues > 0 ? <p class="tw-reason tw-quiet">and {candidate.more_issues} more {candidate.more_issues === 1 ? "reason" : "reasons"}</p> : null}
    </>
  );
}

/** Why a step does not apply: what fails, where, with which numbers, and what mends it. */
function Reason({ issue, store }: { issue: Issue; store: Store }): JSX.Element {
  const example = Object.entries(issue.counterexample);
  return (
    <div class="tw-reason">
      <p>
        {issue.requirement > 0 ? <span class="tw-requirement">Requirement {issue.requirement}. </span> : null}
        {issue.message}
      </p>
      {example.length > 0 ? (
        <p class="tw-example">
          For example at{" "}
          <span class="tw-mono">{example.map(([name, value]) => `${name} = ${value}`).join(", ")}</span>
        </p>
      ) : null}
      <div class="tw-fixes">
        {issue.where.map((ref) => (
          <button type="button" key={ref.uid} class="tw-link tw-mono" onClick={() => store.select(ref)}>
            {ref.name}
          </button>
        ))}
        {issue.fixes.map((fix) => (
          <button type="button" key={fix.key} class="tw-button tw-fix" onClick={() => store.apply(fix.key)}>
            <Icon name="wrench" size={13} /> <span class="tw-mono">{fix.label}</span>
          </button>
        ))}
      </div>
    </div>
  );
}

/** Call the newest of a burst of changes, a moment after it; tells whether one is to come. */
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

/** What tells suggestions apart: their labels without the parameters that they share, and without the name of a single one. */
export function telling(labels: readonly string[]): readonly string[] {
  const parts = labels.map(parameters);
  const shared = (part: string): boolean => parts.every((list) => list.includes(part));
  return parts.map((list, index) => {
    const own = list.filter((part) => !shared(part));
    if (own.length === 0) return labels[index] ?? "";
    return own.length === 1 ? (own[0] ?? "").replace(/^\w+=/, "") : own.join(", ");
  });
}

/** The parameters of a label: its commas outside of brackets divide them. */
function parameters(label: string): readonly string[] {
  return label.split(/, (?=\w+=)/);
}
