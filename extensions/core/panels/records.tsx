import type { JSX } from "preact";
import { useWatch } from "../observable";
import type { HistoryNode, Measurement, MeasurementRecord } from "../protocol";
import type { Store } from "../store";
import { duration } from "../ui/format";
import { stateName } from "./states";

/** The list of all measurements, which shows the chosen one; without a choice it is not displayed. */
export function RecordPicker({ store, measurement }: { store: Store; measurement: Measurement }): JSX.Element | null {
  const records = useWatch(store.state, (state) => state.records);
  const history = useWatch(store.state, (state) => state.history);
  if (records.length < 2) return null;
  const shown = records.find((record) => isOf(record, measurement));
  return (
    <label class="tw-records">
      Measurement
      <select
        class="tw-input tw-mono"
        aria-label="Measurement"
        value={shown?.key ?? ""}
        onChange={(event) => store.send({ type: "show_measurement", key: event.currentTarget.value })}
      >
        {[...records].reverse().map((record) => (
          <option key={record.key} value={record.key} selected={record === shown}>
            {stateName(history, record.state) || "another history"} · {text(record)}
          </option>
        ))}
      </select>
      <span class="tw-quiet">of {records.length}</span>
    </label>
  );
}

/** The time of the last call of the program at a state, the number of all measurements, and the list of them as a title. */
export function NodeTimes({ node, records }: { node: HistoryNode; records: readonly MeasurementRecord[] }): JSX.Element | null {
  const found = records.filter((record) => record.state === node.key);
  const last = found.findLast((record) => record.whole) ?? found.at(-1);
  if (!last) return null;
  return (
    <span class="tw-mono tw-history-time" title={found.map(text).join("\n")}>
      {duration(last.microseconds)}
      {last.whole ? "" : ` ${last.function}`}
      {found.length > 1 ? <span class="tw-count">{found.length} measurements</span> : null}
    </span>
  );
}

function isOf(record: MeasurementRecord, { state, function: name, shapes, conditions, median }: Measurement): boolean {
  const same = record.state === state && record.function === name && record.shapes === shapes;
  return same && record.conditions === conditions && record.microseconds === median;
}

function text({ function: name, shapes, conditions, microseconds, emulated }: MeasurementRecord): string {
  return `${name} ${duration(microseconds)}${emulated ? " (emulator)" : ""} · ${shapes} · ${conditions}`;
}
