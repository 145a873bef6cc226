import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useActions } from "../commands/use_command";
import { isInPage, missingFor } from "../gpu/available";
import { useWatch } from "../observable";
import type { MeasureOptions, Setup, TargetOption } from "../protocol";
import type { Store } from "../store";
import { Icon } from "../ui/icons";
import { SizeSets } from "./size_sets";
import { SampleField } from "./symbols";

/** The button that shows the target, the sizes, and the threads, and opens the dialog to change them. */
export function SetupButton({ store, id }: { store: Store; id: string }): JSX.Element | null {
  const options = useWatch(store.state, (state) => state.measure_options);
  const setup = useWatch(store.state, (state) => state.setup);
  const target = useWatch(store.state, (state) => state.target);
  const { dialog } = useActions();
  const open = useWatch(dialog, (value) => value === "setup");
  const button = useRef<HTMLButtonElement>(null);
  if (options === null || setup === undefined) return null;
  const close = (): void => {
    dialog.set("");
    button.current?.focus();
  };
  const missing = missingFor({ key: setup.target, missing: setup.missing });
  const sizes = setup.sizes.map((row) => `${row.name} = ${String(row.sample)}`);
  return (
    <>
      <button
        type="button"
        class="tw-button tw-setup-button"
        ref={button}
        aria-label="Target and sizes"
        aria-haspopup="dialog"
        aria-expanded={open}
        aria-controls={id}
        title={`Target ${target}; ${optionsText(options)}${missing ? `; ${missing}` : ""}`}
        onClick={() => dialog.set(open ? "" : "setup")}
      >
        <Icon name={missing ? "warn" : "sliders"} size={14} />
        <span class="tw-mono tw-setup-text">{[setup.target, ...sizes, threadsText(options)].join(" · ")}</span>
      </button>
      {open ? <Popover options={options} setup={setup} store={store} id={id} opener={button} onClose={close} /> : null}
    </>
  );
}

interface PopoverProps {
  readonly options: MeasureOptions;
  readonly setup: Setup;
  readonly store: Store;
  readonly id: string;
  readonly opener: { readonly current: HTMLElement | null };
  readonly onClose: () => void;
}

function Popover({ options, setup, store, id, opener, onClose }: PopoverProps): JSX.Element {
  const panel = useRef<HTMLDivElement>(null);
  useEffect(() => {
    panel.current?.querySelector<HTMLElement>("select")?.focus();
    const outside = (event: Event): void => {
      const path = event.composedPath();
      const inside = [panel.current, opener.current].some((part) => part !== null && path.includes(part));
      if (!inside) onClose();
    };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, []);
  const keys = (event: KeyboardEvent): void => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    onClose();
  };
  return (
    <div class="tw-popover" role="dialog" aria-label="Target and sizes" id={id} ref={panel} onKeyDown={keys}>
      <Targets setup={setup} store={store} />
      <fieldset class="tw-options">
        <legend>
          Sizes of <span class="tw-mono">{setup.function}</span>
        </legend>
        {setup.sizes.length === 0 ? <p class="tw-quiet">All sizes are constant.</p> : null}
        {setup.sizes.map((row) => (
          <div key={row.name} class="tw-choice">
            <span class="tw-mono">{row.name}</span>
            <SampleField row={row} owner={setup.function} store={store} />
          </div>
        ))}
      </fieldset>
      <SizeSets setup={setup} store={store} />
      <Conditions options={options} store={store} id={id} />
    </div>
  );
}

/** The list of targets by group, and the reason why the chosen one cannot run. */
function Targets({ setup, store }: { setup: Setup; store: Store }): JSX.Element {
  const groups = [...new Set(setup.targets.map((option) => option.group))];
  const choose = (target: string): void => {
    store.edit({ type: "set_target", target });
  };
  const missing = missingFor({ key: setup.target, missing: setup.missing });
  const entry = (option: TargetOption): JSX.Element => {
    const reason = missingFor(option);
    return (
      <option key={option.key} value={option.key} selected={option.key === setup.target} title={reason}>
        {option.label}
        {reason ? ` (not ${isInPage(option.key) ? "in this page" : "on this machine"})` : ""}
      </option>
    );
  };
  return (
    <fieldset class="tw-options">
      <legend>Target</legend>
      <select class="tw-input" aria-label="Target" value={setup.target} onChange={(event) => choose(event.currentTarget.value)}>
        {groups.map((group) => (
          <optgroup key={group} label={group}>
            {setup.targets.filter((option) => option.group === group).map(entry)}
          </optgroup>
        ))}
      </select>
      {missing ? (
        <p class="tw-setup-missing">
          <Icon name="warn" size={13} /> Cannot run: {missing}.
        </p>
      ) : null}
    </fieldset>
  );
}

/** The conditions of the next measurement. */
function Conditions({ options, store, id }: { options: MeasureOptions; store: Store; id: string }): JSX.Element {
  const choose = (changed: Partial<MeasureOptions>): void => {
    const { caches, threads, pin, budget } = { ...options, ...changed };
    store.send({ type: "set_measure_options", caches, threads, pin, budget });
  };
  return (
    <fieldset class="tw-options">
      <legend>Measurement</legend>
      <label class="tw-choice">
        <span>Threads</span>
        <select
          class="tw-input"
          value={String(options.threads)}
          onChange={(event) => choose({ threads: Number(event.currentTarget.value) })}
        >
          <option value="0">All ({options.max_threads})</option>
          {Array.from({ length: options.max_threads }, (_, index) => index + 1).map((count) => (
            <option key={count} value={String(count)}>
              {count}
            </option>
          ))}
        </select>
      </label>
      {(["hot", "cold"] as const).map((caches) => (
        <label key={caches}>
          <input type="radio" name={`${id}-caches`} checked={options.caches === caches} onChange={() => choose({ caches })} />
          {caches === "hot" ? "Hot caches (as left by the previous call)" : "Cold caches (flushed before each call)"}
        </label>
      ))}
      <label class="tw-choice">
        <span>Pin threads to cores</span>
        <input type="checkbox" checked={options.pin} onChange={(event) => choose({ pin: event.currentTarget.checked })} />
      </label>
      <label class="tw-choice">
        <span>Time limit in seconds</span>
        <input
          class="tw-input"
          type="number"
          min="0.1"
          max="120"
          step="0.1"
          value={String(options.budget)}
          onChange={(event) => choose({ budget: event.currentTarget.valueAsNumber || options.budget })}
        />
      </label>
    </fieldset>
  );
}

function threadsText({ threads, max_threads }: MeasureOptions): string {
  const count = threads || max_threads;
  return `${String(count)} ${count === 1 ? "thread" : "threads"}`;
}

/** Return the options as short text. */
export function optionsText(options: MeasureOptions): string {
  return `${options.caches} caches, ${threadsText(options)}${options.pin ? ", pinned" : ""}, at most ${String(options.budget)} s`;
}
