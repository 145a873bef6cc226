import type { JSX } from "preact";
import { useWatch } from "../observable";
import type { Store } from "../store";
import { Icon, type IconName } from "../ui/icons";
import type { Report } from "../protocol";

const MARK: Readonly<Record<Report["tone"], IconName>> = { info: "info", good: "check", warn: "warn", bad: "cross" };

/** What went wrong, newest first. The raw traceback is there for who asks. */
export function ProblemsPanel({ store }: { store: Store }): JSX.Element {
  const reports = useWatch(store.state, (state) => state.reports);
  if (reports.length === 0) return <p class="tw-quiet tw-pad">No problems.</p>;
  return (
    <ul class="tw-reports" aria-label="Problems">
      {reports.map((report) => (
        <li key={report.key} class={`tw-report tw-tone-${report.tone}`}>
          <Icon name={MARK[report.tone]} />
          <div class="tw-report-text">
            <strong>{report.title}</strong>
            <p>{report.message}</p>
            {report.where === "" ? null : <p class="tw-mono tw-quiet">at {report.where}</p>}
            {report.hint === "" ? null : <p class="tw-quiet">{report.hint}</p>}
            {report.trace === "" ? null : (
              <details>
                <summary>Traceback</summary>
                <pre class="tw-mono">{report.trace}</pre>
              </details>
            )}
          </div>
          <button
            type="button"
            class="tw-tool"
            aria-label={`Dismiss ${report.title}`}
            onClick={() => store.send({ type: "dismiss", key: report.key })}
          >
            <Icon name="cross" size={13} />
          </button>
        </li>
      ))}
    </ul>
  );
}
