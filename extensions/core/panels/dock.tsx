import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { useWatch } from "../observable";
import type { State, Store } from "../store";
import { Boundary } from "../ui/boundary";
import { Tabs } from "../ui/tabs";
import { useView } from "../use_view";
import type { Panel } from "./panel";
import { PANELS } from "./registry";

interface DockProps {
  readonly store: Store;
  readonly idBase: string;
  readonly panels?: readonly [Panel, ...Panel[]];
}

/** The panels as tabs; only the open one is rendered. */
export function Dock({ store, idBase, panels = PANELS }: DockProps): JSX.Element {
  const [chosen, setTab] = useView("dock");
  const first = useWatch(store.state, (state) => firstTab(state, panels));
  const tab = panels.some((panel) => panel.key === chosen) ? chosen : first;
  const counts = useWatch(store.state, (state) => panels.map((panel) => panel.count?.(state) ?? 0).join());
  useOpened(store, panels, tab, setTab);
  const numbers = counts.split(",");
  const tabs = panels.map((panel, index) => ({
    key: panel.key,
    label: panel.title,
    count: Number(numbers[index]),
    tone: panel.tone ?? ("plain" as const),
  }));
  const { key, view: View } = panels.find((panel) => panel.key === tab) ?? panels[0];
  return (
    <section class="tw-pane tw-dock" aria-label="Dock">
      <Tabs label="Dock" tabs={tabs} current={key} onChange={setTab} idBase={idBase} />
      <div key={key} class="tw-pane-body tw-scroll" role="tabpanel" id={`${idBase}-panel`} aria-labelledby={`${idBase}-tab-${key}`} tabIndex={0}>
        <Boundary name="dock">
          <View store={store} />
        </Boundary>
      </div>
    </section>
  );
}

/** Open a panel when the section that it waits for is received, unless the current panel shows it as well. */
function useOpened(store: Store, panels: readonly Panel[], current: string, open: (key: string) => void): void {
  useEffect(() => {
    const shown = panels.find((panel) => panel.key === current)?.section;
    let before = store.state.value;
    return store.state.subscribe(() => {
      const now = store.state.value;
      // The first update of a page is not an event: it opens a panel by default only.
      const opened = before.connected ? panels.find(({ opens, section }) => opens && now[section] && now[section] !== before[section]) : undefined;
      before = now;
      if (opened && opened.section !== shown) open(opened.key);
    });
  }, [store, panels, current]);
}

/** Return the panel that is open until one is chosen: one whose awaited section was received, else the first one. */
function firstTab(state: State, panels: readonly [Panel, ...Panel[]]): string {
  return (panels.find(({ opens, section }) => opens && state[section]) ?? panels[0]).key;
}
