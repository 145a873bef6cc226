import type { JSX } from "preact";
import { useWatch } from "../observable";
import type { Store } from "../store";
import { Icon, type IconName } from "../ui/icons";
import type { Problem } from "../protocol";

const MARK: Readonly<Record<Problem["tone"], IconName>> = { info: "info", good: "check", warn: "warn", bad: "cross" };

/** The list of errors, newest first, each with its traceback on request. */
export function ProblemsPanel({ store }: { store: Store }): JSX.Element {
  const problems = useWatch(store.state, (state) => state.problems);
  if (problems.length === 0) return <p class="tw-quiet tw-pad">No problems.</p>;
  return (
    <ul class="tw-problems" aria-label="Problems">
      {problems.map((problem) => (
        <li key={problem.key} class={`tw-problem tw-tone-${problem.tone}`}>
          <Icon name={MARK[problem.tone]} />
          <div class="tw-problem-text">
            <strong>{problem.title}</strong>
            <p>{problem.message}</p>
            {problem.location === "" ? null : <p class="tw-mono tw-quiet">at {problem.location}</p>}
            {problem.hint === "" ? null : <p class="tw-quiet">{problem.hint}</p>}
            {problem.traceback === "" ? null : (
              <details>
                <summary>Traceback</summary>
                <pre class="tw-mono">{problem.traceback}</pre>
              </details>
            )}
          </div>
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
