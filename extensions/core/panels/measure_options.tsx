import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useWatch } from "../observable";
import type { MeasureOptions } from "../protocol";
import type { Store } from "../store";
import { Icon } from "../ui/icons";

/** The button that opens the options of the next measurement. */
export function MeasureOptionsButton({ store, id }: { store: Store; id: string }): JSX.Element | null {
  const options = useWatch(store.state, (state) => state.measure_options);
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  if (options === null) return null;
  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };
  return (
    <>
      <button
        type="button"
        class="tw-tool"
        ref={button}
        aria-label="Measure options"
        aria-haspopup="dialog"
        aria-expanded={open}
        aria-controls={id}
        title={`Measure options: ${optionsText(options)}`}
        onClick={() => setOpen(!open)}
      >
        <Icon name="sliders" />
      </button>
      {open ? (
        <Popover options={options} store={store} id={id} left={button.current?.offsetLeft ?? 0} opener={button} onClose={close} />
      ) : null}
    </>
  );
}

interface PopoverProps {
  readonly options: MeasureOptions;
  readonly store: Store;
  readonly id: string;
  readonly left: number;
  readonly opener: { readonly current: HTMLElement | null };
  readonly onClose: () => void;
}

function Popover({ options, store, id, left, opener, onClose }: PopoverProps): JSX.Element {
  const panel = useRef<HTMLDivElement>(null);
  useEffect(() => {
    panel.current?.querySelector<HTMLElement>("input:checked")?.focus();
    const outside = (event: Event): void => {
      const path = event.composedPath();
      const inside = [panel.current, opener.current].some((part) => part !== null && path.includes(part));
      if (!inside) onClose();
    };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, []);
  const choose = (changed: Partial<MeasureOptions>): void => {
    const { caches, threads, pin, budget } = { ...options, ...changed };
    store.send({ type: "set_measure_options", caches, threads, pin, budget });
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    onClose();
  };
  return (
    <div class="tw-popover" role="dialog" aria-label="Measure options" id={id} ref={panel} style={{ left: `${left}px` }} onKeyDown={keys}>
      <fieldset class="tw-options">
        <legend>Caches</legend>
        {(["hot", "cold"] as const).map((caches) => (
          <label key={caches}>
            <input type="radio" name={`${id}-caches`} checked={options.caches === caches} onChange={() => choose({ caches })} />
            {caches === "hot" ? "Hot (as left by the previous call)" : "Cold (flushed before each call)"}
          </label>
        ))}
      </fieldset>
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
    </div>
  );
}

/** Return the options as short text. */
export function optionsText({ caches, threads, max_threads, pin, budget }: MeasureOptions): string {
  const count = threads || max_threads;
  return `${caches} caches, ${count} ${count === 1 ? "thread" : "threads"}${pin ? ", pinned" : ""}, at most ${budget} s`;
}
