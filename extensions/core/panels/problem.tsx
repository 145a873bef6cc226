import type { JSX } from "preact";
import { ExcerptView } from "../code/excerpt";
import type { Problem } from "../protocol";
import type { Store } from "../store";
import { Icon } from "../ui/icons";
import { Prose } from "./form";

interface ProblemProps {
  readonly problem: Problem;
  readonly store: Store;
  /** Display only the marked lines of the excerpts. */
  readonly compact?: boolean;
}

/** The violated requirement of a problem: its text and its name. */
export function RequirementView({ problem }: { problem: Problem }): JSX.Element | null {
  if (problem.requires === "") return null;
  return (
    <p class="tw-requires">
      <span class="tw-requirement">Requires</span> <Prose text={problem.requires} />{" "}
      <span class="tw-requirement-name tw-mono">{problem.requirement}</span>
    </p>
  );
}

/** The excerpts of a problem, which show the part at fault. */
export function Excerpts({ problem, store, compact = false }: ProblemProps): JSX.Element | null {
  if (problem.excerpts.length === 0) return null;
  return (
    <div class="tw-excerpts">
      {problem.excerpts.map((excerpt, index) => (
        <ExcerptView key={index} excerpt={excerpt} store={store} compact={compact} />
      ))}
    </div>
  );
}

/** A violated requirement of a step: message, requirement, excerpt, counter-example, and fixes. */
export function StepProblem({ problem, store }: ProblemProps): JSX.Element {
  const example = Object.entries(problem.counterexample);
  return (
    <div class="tw-step-problem">
      <p>{problem.message}</p>
      <RequirementView problem={problem} />
      <Excerpts problem={problem} store={store} compact />
      {example.length > 0 ? (
        <p class="tw-example">
          Counter-example:{" "}
          <span class="tw-mono">{example.map(([name, value]) => `${name} = ${value}`).join(", ")}</span>
        </p>
      ) : null}
      <div class="tw-fixes">
        {problem.where.map((handle) => (
          <button type="button" key={`${handle.kind}:${String(handle.uid)}`} class="tw-link tw-mono" onClick={() => store.select(handle)}>
            {handle.name}
          </button>
        ))}
        {problem.fixes.map((fix) => (
          <button type="button" key={fix.label} class="tw-button tw-fix" onClick={() => store.apply(fix.data)}>
            <Icon name="wrench" size={13} /> <span class="tw-mono">{fix.label}</span>
          </button>
        ))}
      </div>
    </div>
  );
}
