import type { JSX } from "preact";
import { CommandButton } from "../commands/button";
import { RULE_COMMANDS, ruleOfOpen } from "../commands/rule";
import { useWatch } from "../observable";
import type { KernelRule } from "../protocol";
import { runningJob, type Store } from "../store";
import { digits, duration } from "../ui/format";
import { Icon } from "../ui/icons";
import { Name } from "../ui/name";

/** The header of a kernel: its relation to the default rule of its kind, and the way to change it. */
export function RuleBar({ store }: { store: Store }): JSX.Element | null {
  const rule = useWatch(store.state, ruleOfOpen);
  if (rule === null) return null;
  return (
    <div class={`tw-rule is-${rule.status}`} role="note" aria-label="Default rule">
      <Icon name={rule.status === "left" ? "warn" : rule.status === "taken" ? "check" : "info"} size={14} />
      <span class="tw-rule-text">{summary(rule)}</span>
      <Actions />
      <Similar rule={rule} store={store} />
    </div>
  );
}

/** The kernels that accept the steps of the open one, shown before the steps are applied to them. */
function Similar({ rule, store }: { rule: KernelRule; store: Store }): JSX.Element | null {
  const similar = useWatch(store.state, (state) => (state.similar?.state === state.history.head ? state.similar : null));
  const busy = useWatch(store.state, (state) => runningJob(state)?.kind === "run");
  if (similar?.function !== rule.function) return null;
  const accepted = similar.kernels.filter((kernel) => kernel.reason === "").length;
  return (
    <section class="tw-similar" aria-label="Similar kernels">
      <table class="tw-table">
        <caption>
          {accepted} of {similar.kernels.length} unscheduled kernels accept the {similar.steps} steps
        </caption>
        <tbody>
          {similar.kernels.map((kernel) => (
            <tr key={kernel.function}>
              <th scope="row" class="tw-mono">
                {kernel.function}
              </th>
              <td>{kernel.reason === "" ? "accepted" : `refused${kernel.steps > 0 ? ` after ${String(kernel.steps)} steps` : ""}: ${kernel.reason}`}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {accepted > 0 ? (
        <button
          type="button"
          class="tw-button tw-primary"
          data-focus="rule:similar"
          aria-disabled={busy}
          onClick={() => {
            if (!busy) store.applyToSimilar(rule.function, false);
          }}
        >
          Apply to {accepted} {accepted === 1 ? "kernel" : "kernels"}
        </button>
      ) : null}
    </section>
  );
}

/** The effect of the first step on a kernel with the default rule, shown before any step is applied. */
export function FirstStepNote({ store, function: name }: { store: Store; function: string }): JSX.Element | null {
  const rule = useWatch(store.state, ruleOfOpen);
  if (rule?.status !== "follows" || rule.function !== name) return null;
  return (
    <p class="tw-rule-note">
      The first step replaces the default rule of this kernel{loss(rule)}. Take the default schedule to start from its steps.
    </p>
  );
}

/** The inspector of a kernel that exists in the measured program only. */
export function CompiledKernel({ store }: { store: Store }): JSX.Element | null {
  const rule = useWatch(store.state, (state) => state.rule);
  if (rule === null) return null;
  return (
    <div class="tw-empty tw-compiled">
      <Icon name="loop" size={22} />
      <p>
        <span class="tw-mono">
          <Name text={rule.function} />
        </span>{" "}
        is part of the program that was measured{rule.base === "" ? "" : `; the rule of ${rule.base} created it`}. To edit it,
        lower the graph: it becomes a kernel of the program, as written.
      </p>
      <Actions />
    </div>
  );
}

/** The commands for the rule, of which the first one of a measured kernel is the usual one. */
function Actions(): JSX.Element {
  return (
    <span class="tw-rule-actions">
      {RULE_COMMANDS.map(({ id }) => (
        <CommandButton key={id} id={id} kind={id === "tilewright:lower-graph" ? "primary" : "plain"} focus={`rule:${id.slice("tilewright:".length)}`} />
      ))}
    </span>
  );
}

function summary(rule: KernelRule): string {
  const name = rule.rule === "" ? "default rule" : `default rule ${rule.rule}`;
  switch (rule.status) {
    case "compiled":
      return "As measured, with the default schedule. Not part of the program yet.";
    case "follows":
      return `Gets the ${name} when it is compiled${rule.steps === null ? "" : ` (${String(rule.steps)} steps)`}.`;
    case "taken":
      return `Has the steps of its ${name}${rule.base === "" ? "" : `, created from ${rule.base}`}.`;
    default:
      return `Left its ${name}${loss(rule)}.`;
  }
}

/** The loss by leaving the rule: measured if both times are known at equal sizes, else predicted. */
function loss(rule: KernelRule): string {
  const { rule_us: before, now_us: now, predicted } = rule;
  if (before !== null && now !== null) return `: measured ${duration(before)} with it, ${duration(now)} now (${ratio(now / before)})`;
  const measured = before === null ? "" : `; measured ${duration(before)} per call with it`;
  if (predicted === null) return measured;
  const subject = rule.status === "follows" ? "as written, predicted" : "predicted";
  return `: ${subject} ${ratio(predicted)} by the number of instructions${measured}`;
}

function ratio(value: number): string {
  if (value >= 0.995 && value < 1.005) return "no change";
  return value > 1 ? `${digits(value)} × slower` : `${digits(1 / value)} × faster`;
}
