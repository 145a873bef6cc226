import type { ComponentType } from "preact";
import type { Sections, State, Store } from "../store";

/** A panel of the dock: one entry of `PANELS`. */
export interface Panel {
  /** The key of the tab, unique among the panels. */
  readonly key: string;
  readonly title: string;
  readonly view: ComponentType<{ readonly store: Store }>;
  /** The section of an update that the panel displays. */
  readonly section: keyof Sections;
  /** The number beside the title; without it or for 0, none is displayed. */
  readonly count?: (state: State) => number;
  readonly tone?: "bad" | "plain";
  /** Whether the panel is opened when its section is received. */
  readonly opens?: boolean;
}
