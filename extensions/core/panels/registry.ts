import { historyPanel } from "./history";
import { measurementPanel } from "./measurement";
import type { Panel } from "./panel";
import { problemsPanel } from "./problems";
import { rooflinePanel } from "./roofline";
import { symbolsPanel } from "./symbols";
import { tracePanel } from "./trace";

/** The panels of the dock, in the order of their tabs. */
export const PANELS: readonly [Panel, ...Panel[]] = [
  tracePanel,
  historyPanel,
  symbolsPanel,
  measurementPanel,
  rooflinePanel,
  problemsPanel,
];
