import { HEAT_KINDS } from "../graph/coloring";
import type { Panel } from "../panels/panel";
import type { Command } from "./command";

const GROUP = "View";

const palette: Command = {
  id: "tilewright:palette",
  label: "Commands and functions",
  group: GROUP,
  icon: "command",
  keys: ["Alt P"],
  typing: true,
  enabled: () => true,
  run: (context) => context.show("palette"),
};

const graph: Command = {
  id: "tilewright:show-graph",
  label: "Show the graph",
  group: GROUP,
  icon: "graph",
  keys: [],
  visible: (state) => state.graph !== null,
  enabled: () => true,
  run: ({ view }) => {
    view.set("drawer", true);
    view.set("pane", "graph");
  },
};

/** The commands that color the operations of the graph. */
const colors: readonly Command[] = Object.entries(HEAT_KINDS).map(([kind, name]): Command => ({
  id: `tilewright:color-by-${kind}`,
  label: `Color the graph by ${name === "FLOPs" ? name : name.toLowerCase()}`,
  group: GROUP,
  keys: [],
  visible: (state) => state.graph !== null,
  checked: (_state, view) => view.heat === kind,
  enabled: () => true,
  run: (context) => {
    context.view.set("heat", kind);
    context.view.set("graphAs", "diagram");
    graph.run(context);
  },
}));

/** Return the commands that display panes and the panels of the dock. */
export function paneCommands(panels: readonly Panel[]): readonly Command[] {
  return [
    palette,
    graph,
    ...colors,
    ...panels.map(
      ({ key, title }): Command => ({
        id: `tilewright:show-panel-${key}`,
        label: `Show ${title}`,
        group: GROUP,
        keys: [],
        enabled: () => true,
        run: ({ view }) => {
          view.set("dock", key);
          view.set("pane", "dock");
        },
      }),
    ),
  ];
}
