import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ChangeButtons, Comparison } from "../code/comparison";
import type { TextTools } from "../code/tools";
import type { Language } from "../code/tokenize";
import { CommandButton } from "../commands/button";
import { useWatch } from "../observable";
import type { Lowered, Stage } from "../protocol";
import { textAt } from "../merge";
import type { State, Store } from "../store";
import { Icon } from "../ui/icons";
import type { Tab } from "../ui/tabs";
import { useView, useViewOf } from "../use_view";
import type { View, ViewState } from "../view_state";
import { ProblemText } from "./problems";

const LEVELS: Readonly<Record<Stage["level"], string>> = {
  loop: "Loop IR",
  thread: "Thread IR",
  host: "Host IR",
  llvm: "LLVM IR",
  assembly: "Assembly",
  wgsl: "WGSL",
};
const LANGUAGES: Readonly<Record<Stage["level"], Language>> = {
  loop: "script",
  thread: "script",
  host: "script",
  llvm: "llvm",
  assembly: "assembly",
  wgsl: "script",
};

/** Return the tab of a stage: `passes`, `llvm`, `assembly` or `wgsl`. */
export function tabOf({ level }: Stage): string {
  return level === "llvm" || level === "assembly" || level === "wgsl" ? level : "passes";
}

/** Return the tabs of the levels below the one that is edited. */
export function stageTabs(stages: readonly Stage[], target: string): Tab[] {
  const present = new Set(stages.map(tabOf));
  const emits = target.startsWith("cpu") ? "Assembly" : "PTX";
  const tabs = [
    { key: "passes", label: "Passes" },
    { key: "llvm", label: "LLVM" },
    { key: "assembly", label: emits },
    { key: "wgsl", label: "WGSL" },
  ];
  return tabs.filter((tab) => present.has(tab.key));
}

/** Return the stage that a tab displays: the chosen one, else its first; null for other tabs. */
export function stageOf(stages: readonly Stage[], tab: string, chosen: string | undefined): Stage | null {
  const own = stages.filter((stage) => tabOf(stage) === tab);
  return own.find((stage) => stage.name === chosen) ?? own[0] ?? null;
}

/** Return the tab of the open function: `ir`, or that of a stage. */
export function shownTab({ stages, target }: State, { level }: ViewState): string {
  return stageTabs(stages, target).some(({ key }) => key === level) ? level : "ir";
}

/** Return the stage that is displayed, null for the program. */
export function shownStage(state: State, view: ViewState): Stage | null {
  const tab = shownTab(state, view);
  return stageOf(state.stages, tab, view.stages[tab]);
}

/** Display the open function after a stage. */
export function showStage(view: View, stage: Stage): void {
  view.setEntry("stages", tabOf(stage), stage.name);
  view.set("level", tabOf(stage));
}

interface StageProps {
  readonly store: Store;
  readonly stage: Stage;
  readonly tools: TextTools;
}

/** The open function after a stage of lowering, or its difference to the stage before. */
export function StagePane({ store, stage, tools }: StageProps): JSX.Element {
  const stages = useWatch(store.state, (state) => state.stages);
  const open = useWatch(store.state, (state) => state.open);
  const view = useViewOf();
  const [compares] = useView("compares");
  const text = useText(store, open, stage);
  const previous = text.shown?.previous ?? "";
  const before = compares && previous !== "" ? previous : null;
  return (
    <div class="tw-lowered">
      <div class="tw-stage-bar">
        <CommandButton id="tilewright:previous-stage" kind="tool" class="tw-previous" />
        <StagePicker stages={stages} stage={stage} onChoose={(next) => showStage(view, next)} />
        <CommandButton id="tilewright:next-stage" kind="tool" />
        <CommandButton id="tilewright:compare-stages" label="Diff" />
        {before === null ? null : <ChangeButtons tools={tools} />}
        <span class="tw-stage-summary" title={stage.summary}>{stage.summary}</span>
      </div>
      <StageNotes text={text} store={store} before={before} />
      <Comparison
        label={`${stage.name} of ${open}`}
        before={before}
        after={text.shown?.text ?? ""}
        language={LANGUAGES[stage.level]}
        tools={tools}
      />
    </div>
  );
}

interface PickerProps {
  readonly stages: readonly Stage[];
  readonly stage: Stage;
  readonly onChoose: (stage: Stage) => void;
}

/** The list of stages by level. */
function StagePicker({ stages, stage, onChoose }: PickerProps): JSX.Element {
  const levels = [...new Set(stages.map((one) => one.level))];
  const choose = (name: string): void => {
    const next = stages.find((one) => one.name === name);
    if (next) onChoose(next);
  };
  return (
    <select
      class="tw-picker tw-stage-picker tw-mono"
      aria-label="Stage"
      value={stage.name}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      {levels.map((level) => (
        <optgroup key={level} label={LEVELS[level]}>
          {stages.filter((one) => one.level === level).map((one) => (
            <option key={one.name} value={one.name} selected={one.name === stage.name}>
              {one.name}
            </option>
          ))}
        </optgroup>
      ))}
    </select>
  );
}

interface Text {
  /** The text at the head, else the last one of the function and stage. */
  readonly shown: Lowered | null;
  readonly failed: Lowered | null;
  readonly stale: boolean;
  readonly working: boolean;
  readonly request: () => void;
}

/** Messages above the text: an error, an earlier state, no difference, or running work. */
function StageNotes({ text, store, before }: { text: Text; store: Store; before: string | null }): JSX.Element | null {
  const { shown, failed, stale, working, request } = text;
  const again = (
    <button type="button" class="tw-button" onClick={request}>
      Lower again
    </button>
  );
  if (failed?.problem)
    return (
      <div class="tw-stage-error tw-problem tw-tone-bad" role="alert">
        <Icon name="cross" />
        <ProblemText problem={failed.problem} store={store} />
        {again}
      </div>
    );
  if (!shown) return working ? <p class="tw-quiet tw-pad">Lowering…</p> : <div class="tw-empty"><p>The text was not produced.</p>{again}</div>;
  if (stale && !working) return <p class="tw-stale tw-stage-note"><Icon name="info" size={14} /> The text belongs to an earlier state. {again}</p>;
  if (before !== null && before === shown.text) return <p class="tw-quiet tw-stage-note">This stage changed nothing.</p>;
  return null;
}

/** Return the text of a stage; it is requested if it is missing, or if the head moved and it is cheap. */
function useText(store: Store, open: string, stage: Stage): Text {
  const head = useWatch(store.state, (state) => state.history.head);
  const current = useWatch(store.state, (state) => textAt(state, head, open, stage.name) ?? null);
  const last = useWatch(store.state, (state) => lastText(state, open, stage.name));
  const failed = useWatch(store.state, ({ lowered }) =>
    lowered?.problem && lowered.function === open && lowered.stage === stage.name ? lowered : null,
  );
  const [asked, setAsked] = useState(false);
  const running = useWatch(store.state, isLowering);
  const working = asked || running;
  const request = (): void => {
    setAsked(true);
    store.send({ type: "lower", stage: stage.name }, () => setAsked(false));
  };
  const cheap = stage.level === "loop" || stage.level === "thread";
  useEffect(() => {
    if (!current && (cheap || !last)) request();
  }, [open, stage.name, cheap ? head : ""]);
  return { shown: current ?? last, failed, stale: current === null, working, request };
}

function lastText(state: State, name: string, stage: string): Lowered | null {
  return [...state.texts.values()].findLast((text) => text.function === name && text.stage === stage) ?? null;
}

function isLowering(state: State): boolean {
  return state.jobs.some((job) => job.kind === "lower" && job.state === "running");
}
