import type { JSX } from "preact";
import { HEAT_KINDS, heatKind, type Coloring, type HeatKind } from "./coloring";

interface HeatChoiceProps {
  readonly label: string;
  readonly kind: HeatKind;
  readonly onChoose: (kind: HeatKind) => void;
}

/** The choice of the figures that color the graph. */
export function HeatChoice({ label, kind, onChoose }: HeatChoiceProps): JSX.Element {
  return (
    <select class="tw-input tw-heat-choice" aria-label={label} value={kind} onChange={({ currentTarget: { value } }) => onChoose(heatKind(value))}>
      {Object.entries(HEAT_KINDS).map(([key, name]) => (
        <option key={key} value={key}>
          {name}
        </option>
      ))}
    </select>
  );
}

interface LegendProps extends Omit<HeatChoiceProps, "label"> {
  readonly coloring: Coloring;
  /** The conditions of the figures, such as the sizes; or why there are none. */
  readonly note: string;
}

/** The meaning of the colors, with their range. */
export function Legend({ kind, onChoose, coloring, note }: LegendProps): JSX.Element {
  return (
    <div class="tw-legend">
      <HeatChoice label="Color of the operations" kind={kind} onChoose={onChoose} />
      {coloring.limit === "" ? null : (
        <>
          <span class="tw-legend-scale" aria-hidden="true" /> <span class="tw-mono tw-legend-range">0 … {coloring.limit}</span>
        </>
      )}
      <span class="tw-legend-note" title={note}>
        {note}
      </span>
    </div>
  );
}
