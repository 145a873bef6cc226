import type { JSX } from "preact";
import { visible } from "../code/excerpt";
import { useWatch } from "../observable";
import type { Problem } from "../protocol";
import type { Store } from "../store";
import { Icon, type IconName } from "../ui/icons";
import type { Panel } from "./panel";
import { Excerpts, RequirementView } from "./problem";

const MARK: Readonly<Record<Problem["tone"], IconName>> = { info: "info", good: "check", warn: "warn", bad: "cross" };

/** The list of errors, newest first, each with its excerpts, and its traceback on request. */
export function ProblemsPanel({ store }: { store: Store }): JSX.Element {
  const problems = useWatch(store.state, (state) => state.problems);
  if (problems.length === 0) return <p class="tw-quiet tw-pad">No problems.</p>;
  return (
    <ul class="tw-problems" aria-label="Problems">
      {problems.map((problem) => (
        <li key={problem.key} class={`tw-problem tw-tone-${problem.tone}`}>
          <Icon name={MARK[problem.tone]} />
          <ProblemText problem={problem} store={store} />
          <button
            type="button"
            class="tw-tool"
            aria-label={`Dismiss ${problem.title}`}
            onClick={() => store.send({ type: "dismiss", key: problem.key })}
          >
            <Icon name="cross" size={13} />
          </button>
        </li>
      ))}
    </ul>
  );
}

export const problemsPanel: Panel = {
  key: "problems",
  title: "Problems",
  view: ProblemsPanel,
  section: "problems",
  count: (state) => state.problems.length,
  tone: "bad",
};

/** The text of an error: title, message, location, excerpts, hint, and the traceback on request. */
export function ProblemText({ problem, store }: { problem: Problem; store: Store }): JSX.Element {
  return (
    <div class="tw-problem-text">
      <strong>{problem.title}</strong>
      <p>{visible(problem.message)}</p>
      {problem.location === "" ? null : <p class="tw-mono tw-quiet">at {visible(problem.location)}</p>}
      <RequirementView problem={problem} />
      <Excerpts problem={problem} store={store} />
      {problem.hint === "" ? null : <p class="tw-hint">{visible(problem.hint)}</p>}
      {problem.traceback === "" ? null : (
        <details>
          <summary>Traceback</summary>
          <pre class="tw-mono">{visible(problem.traceback)}</pre>
        </details>
      )}
    </div>
  );
}
