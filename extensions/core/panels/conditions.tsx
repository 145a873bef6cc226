import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useWatch } from "../observable";
import type { Conditions } from "../protocol";
import type { Store } from "../store";
import { Icon } from "../ui/icons";

/** How the next measurement is taken: a button beside “Time”, and what it opens. */
export function ConditionsButton({ store, id }: { store: Store; id: string }): JSX.Element | null {
  const conditions = useWatch(store.state, (state) => state.conditions);
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  if (conditions === null) return null;
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
        aria-label="How to measure"
        aria-haspopup="dialog"
        aria-expanded={open}
        aria-controls={id}
        title={`How to measure: ${words(conditions)}`}
        onClick={() => setOpen(!open)}
      >
        <Icon name="sliders" />
      </button>
      {open ? (
        <Popover conditions={conditions} store={store} id={id} left={button.current?.offsetLeft ?? 0} opener={button} onClose={close} />
      ) : null}
    </>
  );
}

interface PopoverProps {
  readonly conditions: Conditions;
  readonly store: Store;
  readonly id: string;
  readonly left: number;
  readonly opener: { readonly current: HTMLElement | null };
  readonly onClose: () => void;
}

function Popover({ conditions, store, id, left, opener, onClose }: PopoverProps): JSX.Element {
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
  const choose = (changed: Partial<Conditions>): void => {
    const { caches, threads, pin, budget } = { ...conditions, ...changed };
    store.send({ type: "condition", caches, threads, pin, budget });
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    onClose();
  };
  return (
    <div class="tw-popover" role="dialog" aria-label="How to measure" id={id} ref={panel} style={{ left: `${left}px` }} onKeyDown={keys}>
      <fieldset class="tw-choices">
        <legend>Caches</legend>
        {(["hot", "cold"] as const).map((caches) => (
          <label key={caches}>
            <input type="radio" name={`${id}-caches`} checked={conditions.caches === caches} onChange={() => choose({ caches })} />
            {caches === "hot" ? "hot, as left by the call before" : "cold, emptied before each call"}
          </label>
        ))}
      </fieldset>
      <label class="tw-choice">
        <span>Threads</span>
        <select
          class="tw-input"
          value={String(conditions.threads)}
          onChange={(event) => choose({ threads: Number(event.currentTarget.value) })}
        >
          <option value="0">all {conditions.most}</option>
          {Array.from({ length: conditions.most }, (_, index) => index + 1).map((count) => (
            <option key={count} value={String(count)}>
              {count}
            </option>
          ))}
        </select>
      </label>
      <label class="tw-choice">
        <span>A core for each thread</span>
        <input type="checkbox" checked={conditions.pin} onChange={(event) => choose({ pin: event.currentTarget.checked })} />
      </label>
      <label class="tw-choice">
        <span>At most, in seconds</span>
        <input
          class="tw-input"
          type="number"
          min="0.1"
          max="120"
          step="0.1"
          value={String(conditions.budget)}
          onChange={(event) => choose({ budget: event.currentTarget.valueAsNumber || conditions.budget })}
        />
      </label>
    </div>
  );
}

/** The choices in a few words. */
export function words({ caches, threads, most, pin, budget }: Conditions): string {
  const count = threads || most;
  return `${caches} caches, ${count} ${count === 1 ? "thread" : "threads"}${pin ? ", pinned" : ""}, at most ${budget} s`;
}
