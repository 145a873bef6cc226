import { writeOverlay } from "./overlay";
import { VERSION, type Pane, type TraceCopy, type Update } from "./protocol";
import type { State } from "./store";

/** An update that contains an entire state, with the buffers of its panes. */
export interface Snapshot {
  readonly update: Update;
  readonly buffers: readonly DataView[];
}

/** The sections of a state that a notebook stores; the others are for requests and jobs. */
const SECTIONS = [
  "target",
  "open",
  "selected",
  "graph",
  "trace",
  "history",
  "symbols",
  "setup",
  "measure_options",
  "measurement",
  "costs",
  "rule",
  "verdict",
  "problems",
  "stages",
  "lowered",
] as const satisfies readonly (keyof State & keyof Update)[];

/** Return a state as text, with the panes of the functions that are displayed and the trace as a file. */
export function toText(state: State, copy: TraceCopy | null): string {
  const shown = new Set([state.open, state.graph?.function]);
  const hashes = state.functions.filter((item) => shown.has(item.name)).map((item) => item.hash);
  const models = hashes.flatMap((hash) => state.panes.get(hash) ?? []);
  const panes = models.map((model, buffer): Pane => ({ ...model.pane, buffer }));
  const sections = Object.fromEntries(SECTIONS.map((name) => [name, state[name] ?? undefined]));
  const [heat, values] = state.heat ? writeOverlay(state.heat, models.length) : [undefined, []];
  const lists = { functions: { items: state.functions }, records: { items: state.records } };
  const head = { version: VERSION, client: "", reply: 0, revision: 0, server_ms: 0 };
  const update = { ...head, ...sections, ...lists, heat, panes, ...(copy ? { copy } : {}) };
  return JSON.stringify({ update, buffers: [...models.map((model) => model.buffer), ...values].map(base64) });
}

/** Return the state of a text; null if the text is not one, or one of another version. */
export function fromText(text: string): Snapshot | null {
  try {
    const { update, buffers } = JSON.parse(text) as { update: Update; buffers: readonly string[] };
    return update.version === VERSION ? { update, buffers: buffers.map(bytes) } : null;
  } catch {
    return null;
  }
}

function base64(buffer: DataView): string {
  const letters = Array.from({ length: buffer.byteLength }, (_, index) => String.fromCharCode(buffer.getUint8(index)));
  return btoa(letters.join(""));
}

function bytes(text: string): DataView {
  return new DataView(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
}
