import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useWatch } from "../observable";
import type { Candidate, Issue, Menu, Ref } from "../protocol";
import type { Store } from "../store";
import { Icon, type IconName } from "../ui/icons";
import { StepForm } from "./form";
import { Matching } from "./match";

const SYMBOLS: Readonly<Record<Ref["kind"], IconName>> = {
  function: "graph",
  loop: "loop",
  block: "block",
  buffer: "buffer",
  binding: "graph",
};

/** What is selected, and every step for it: the applicable ones first, the others with why not. */
export function Inspector({ store }: { store: Store }): JSX.Element {
  const menu = useWatch(store.state, (state) => state.menu);
  const [query, setQuery] = useState("");
  if (menu.selection === null) return <Nothing />;
  const wanted = menu.candidates.filter((candidate) => finds(candidate, query));
  const legal = groups(wanted.filter((candidate) => candidate.issues.length === 0));
  const blocked = groups(wanted.filter((candidate) => candidate.issues.length > 0));
  return (
    <div class="tw-inspector">
      <Selection menu={menu} store={store} />
      <label class="tw-search tw-step-search">
        <Icon name="search" size={14} />
        <input
          type="search"
          placeholder="Filter steps"
          aria-label="Filter steps"
          value={query}
          onInput={(event) => setQuery(event.currentTarget.value)}
        />
      </label>
      <div class="tw-steps tw-scroll">
        <h3 class="tw-heading">
          Applicable <span class="tw-count">{legal.length}</span>
        </h3>
        {legal.length === 0 ? <p class="tw-quiet">No step applies here as it stands.</p> : null}
        <ul class="tw-step-list" aria-label="Applicable steps">
          {legal.map((family) => (
            <Step key={stepKey(menu, family)} variants={family} store={store} />
          ))}
        </ul>
        {blocked.length > 0 ? (
          <>
            <h3 class="tw-heading">
              Blocked <span class="tw-count">{blocked.length}</span>
            </h3>
            <ul class="tw-step-list" aria-label="Blocked steps">
              {blocked.map((family) => (
                <Blocked key={stepKey(menu, family)} variants={family} store={store} />
              ))}
            </ul>
          </>
        ) : null}
      </div>
    </div>
  );
}

function Nothing(): JSX.Element {
  return (
    <div class="tw-empty">
      <Icon name="loop" size={22} />
      <p>Select a loop, a block, a buffer or an operation to see the steps for it.</p>
    </div>
  );
}

function Selection({ menu, store }: { menu: Menu; store: Store }): JSX.Element | null {
  const { selection } = menu;
  if (selection === null) return null;
  return (
    <header class="tw-selection">
      <nav class="tw-path" aria-label="Around the selection">
        {menu.path.map((ref, index) => (
          <span key={`${ref.kind}:${String(ref.uid)}`}>
            {index > 0 ? <span aria-hidden="true"> › </span> : null}
            <button type="button" class="tw-link tw-mono" onClick={() => store.select(ref)}>
              {ref.name}
            </button>
          </span>
        ))}
      </nav>
      <h2 class="tw-selected">
        <Icon name={SYMBOLS[selection.kind]} size={18} />
        <span class="tw-kind">{selection.kind === "binding" ? "operation" : selection.kind}</span>
        <span class="tw-mono">{selection.name}</span>
      </h2>
      <dl class="tw-facts">
        {Object.entries(menu.facts).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class="tw-mono">{value}</dd>
          </div>
        ))}
      </dl>
    </header>
  );
}

type Variants = readonly [Candidate, ...Candidate[]];

interface StepProps {
  readonly variants: Variants;
  readonly store: Store;
}

function Step({ variants, store }: StepProps): JSX.Element {
  const [open, setOpen] = useState(false);
  const [candidate, choose] = useChosen(variants);
  const busy = useWatch(store.state, (state) => state.waiting > 0);
  return (
    <li class={`tw-step${open ? " is-open" : ""}`} data-step={candidate.step}>
      <div class="tw-step-head">
        <StepName candidate={candidate} open={open} onToggle={() => setOpen(!open)} />
        <button
          type="button"
          class="tw-button tw-apply"
          aria-label={`Apply ${candidate.step} ${candidate.label}`}
          disabled={busy}
          onClick={() => store.apply(candidate.key)}
        >
          Apply
        </button>
      </div>
      <Suggestions variants={variants} chosen={candidate} onChoose={choose} />
      {open ? <StepBody candidate={candidate} busy={busy} store={store} /> : null}
    </li>
  );
}

function Blocked({ variants, store }: StepProps): JSX.Element {
  const [open, setOpen] = useState(false);
  const [candidate, choose] = useChosen(variants);
  return (
    <li class={`tw-step is-blocked${open ? " is-open" : ""}`} data-step={candidate.step}>
      <div class="tw-step-head">
        <StepName candidate={candidate} open={open} onToggle={() => setOpen(!open)} />
        <span class="tw-blocked-mark">
          <Icon name="lock" size={13} /> blocked
        </span>
      </div>
      {open ? <Suggestions variants={variants} chosen={candidate} onChoose={choose} /> : null}
      {candidate.issues.map((issue, index) => (
        <Reason key={index} issue={issue} store={store} />
      ))}
      {candidate.more_issues > 0 ? <p class="tw-reason tw-quiet">and {candidate.more_issues} more reasons</p> : null}
      {open ? <StepBody candidate={candidate} busy={false} store={store} /> : null}
    </li>
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
  return (
    <div class="tw-variants" role="group" aria-label={`Suggestions for ${chosen.step}`}>
      {variants.slice(0, 6).map((variant) => (
        <button
          type="button"
          key={variant.key}
          class="tw-chip tw-mono"
          aria-pressed={variant.key === chosen.key}
          onClick={() => onChoose(variant.key)}
        >
          {short(variant.label)}
        </button>
      ))}
    </div>
  );
}

interface BodyProps {
  readonly candidate: Candidate;
  readonly busy: boolean;
  readonly store: Store;
}

/** What a step is, the match with its instruction where it has one, and its parameters. */
function StepBody({ candidate, busy, store }: BodyProps): JSX.Element {
  const check = useDebounced((values: Readonly<Record<string, string>>) =>
    store.send({ type: "check", key: candidate.key, values }),
  );
  return (
    <div class="tw-step-body">
      <p class="tw-summary">{candidate.summary}</p>
      {candidate.match === undefined ? null : <Matching match={candidate.match} />}
      <StepForm
        key={candidate.key}
        candidate={candidate}
        busy={busy}
        onCheck={check}
        onApply={(values) => store.apply(candidate.key, values)}
      />
    </div>
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

/** Call the newest of a burst of changes, a moment after it. */
function useDebounced<T>(action: (value: T) => void): (value: T) => void {
  const latest = useRef(action);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  latest.current = action;
  useEffect(() => () => clearTimeout(timer.current), []);
  return (value) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => latest.current(value), 120);
  };
}

function groups(candidates: readonly Candidate[]): Variants[] {
  const found = new Map<string, [Candidate, ...Candidate[]]>();
  for (const candidate of candidates) {
    const list = found.get(candidate.step);
    if (list) list.push(candidate);
    else found.set(candidate.step, [candidate]);
  }
  return [...found.values()];
}

/** A label of one parameter without the parameter's name, as its suggestions all share it. */
function short(label: string): string {
  return /^\w+=(\([^=]*\)|[^=,]*)$/.exec(label)?.[1] ?? label;
}

function stepKey(menu: Menu, variants: Variants): string {
  return `${menu.selection?.function ?? ""}:${String(menu.selection?.uid)}:${variants[0].step}`;
}

function finds(candidate: Candidate, query: string): boolean {
  const words = `${candidate.step} ${candidate.label} ${candidate.summary} ${candidate.family}`;
  return words.toLowerCase().includes(query.trim().toLowerCase());
}
