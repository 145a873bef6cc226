import type { ComponentChildren, JSX } from "preact";
import { useRef } from "preact/hooks";

export interface Tab {
  readonly key: string;
  readonly label: string;
  readonly count?: number;
  readonly tone?: "bad" | "plain";
}

interface TabsProps {
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly current: string;
  readonly onChange: (key: string) => void;
  readonly trailing?: ComponentChildren;
  readonly idBase: string;
}

/** A row of tabs with arrow key navigation. */
export function Tabs(props: TabsProps): JSX.Element {
  const bar = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const at = props.tabs.findIndex((tab) => tab.key === props.current);
    const next = props.tabs[(at + step + props.tabs.length) % props.tabs.length];
    if (!next) return;
    props.onChange(next.key);
    bar.current?.querySelector<HTMLElement>(`[data-tab="${next.key}"]`)?.focus();
  };
  return (
    <div class="tw-tabs">
      <div role="tablist" aria-label={props.label} class="tw-tablist" ref={bar} onKeyDown={move}>
        {props.tabs.map((tab) => (
          <button
            key={tab.key}
            type="button"
            role="tab"
            class="tw-tab"
            data-tab={tab.key}
            id={`${props.idBase}-tab-${tab.key}`}
            aria-selected={tab.key === props.current}
            aria-controls={`${props.idBase}-panel`}
            tabIndex={tab.key === props.current ? 0 : -1}
            onClick={() => props.onChange(tab.key)}
          >
            {tab.label}
            {tab.count ? <span class={`tw-count tw-tone-${tab.tone ?? "plain"}`}>{tab.count}</span> : null}
          </button>
        ))}
      </div>
      {props.trailing}
    </div>
  );
}
