import type { JSX } from "preact";
import { useWatch } from "../observable";
import type { KernelRule } from "../protocol";
import { runningJob, type State, type Store } from "../store";
import { digits, duration } from "../ui/format";
import { Icon } from "../ui/icons";

/** The header of a kernel: its relation to the default rule of its kind, and the way to change it. */
export function RuleBar({ store }: { store: Store }): JSX.Element | null {
  const rule = useWatch(store.state, ruleOfOpen);
  if (rule === null) return null;
  return (
    <div class={`tw-rule is-${rule.status}`} role="note" aria-label="Default rule">
      <Icon name={rule.status === "left" ? "warn" : rule.status === "taken" ? "check" : "info"} size={14} />
      <span class="tw-rule-text">{summary(rule)}</span>
      <Actions rule={rule} store={store} />
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
        <span class="tw-mono">{rule.function}</span> is part of the program that was measured{rule.base === "" ? "" : `; the rule of ${rule.base} created it`}. To edit it,
        lower the graph: it becomes a kernel of the program, as written.
      </p>
      <Actions rule={rule} store={store} />
    </div>
  );
}

function ruleOfOpen(state: State): KernelRule | null {
  return state.rule !== null && state.rule.status !== "" && state.rule.function === state.open ? state.rule : null;
}

function Actions({ rule, store }: { rule: KernelRule; store: Store }): JSX.Element {
  const busy = useWatch(store.state, (state) => runningJob(state)?.kind === "run");
  const act = (action: "lower" | "take" | "return") => (): void => {
    if (!busy) store.useRule(action, rule.function);
  };
  const find = (): void => {
    if (!busy) store.applyToSimilar(rule.function, true);
  };
  const button = (action: "lower" | "take" | "return", label: string, primary = false): JSX.Element => (
    <button type="button" class={`tw-button${primary ? " tw-primary" : ""}`} data-focus={`rule:${action}`} aria-disabled={busy} onClick={act(action)}>
      {label}
    </button>
  );
  switch (rule.status) {
    case "compiled":
      return (
        <span class="tw-rule-actions">
          {button("lower", "Lower the graph", true)}
          {button("take", "Take the default schedule")}
        </span>
      );
    case "follows":
      return <span class="tw-rule-actions">{button("take", "Take the default schedule")}</span>;
    default:
      if (rule.base !== "") return <span class="tw-rule-actions" />;
      return (
        <span class="tw-rule-actions">
          <button type="button" class="tw-button" data-focus="rule:find" aria-disabled={busy} onClick={find}>
            Apply to similar kernels…
          </button>
          {button("return", "Return to the default rule")}
        </span>
      );
  }
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
