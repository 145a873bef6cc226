import type { Scale } from "d3-scale";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { useWatch } from "../observable";
import type { Measurement, Roof } from "../protocol";
import type { Store } from "../store";
import { digits, percent } from "../ui/format";
import { Icon } from "../ui/icons";
import { Name } from "../ui/name";
import { saveSvg } from "../ui/svg_file";
import { useOpen } from "../use_view";
import type { Panel } from "./panel";
import {
  boundText,
  branchPath,
  ceiling,
  gridOf,
  headPrediction,
  logScale,
  measuredPoints,
  predictedPoints,
  type Measured,
  type PathPoint,
  type Point,
} from "./roofline_data";
import { stateName } from "./states";

const WIDTH = 460;
const HEIGHT = 270;
const MARGIN = { left: 52, right: 14, top: 12, bottom: 40 };
/** The number of kernels whose names are written beside their points: the slowest ones. */
const NAMED = 3;

/** The measured kernels below the peak rates of the machine, and the path of one kernel through the history. */
export function RooflinePanel({ store }: { store: Store }): JSX.Element {
  const measurement = useWatch(store.state, (state) => state.measurement);
  const points = measurement ? measuredPoints(measurement) : [];
  if (!measurement || points.length === 0) return <Empty measurement={measurement} />;
  const { roof } = measurement;
  if (!roof) return <p class="tw-quiet tw-pad">The peak rates of this machine were not measured with this measurement. Measure again.</p>;
  return <Roofline store={store} measurement={measurement} roof={roof} points={points} />;
}

function Empty({ measurement }: { measurement: Measurement | null }): JSX.Element {
  const text = !measurement
    ? "No measurement yet. “Measure” times the kernels and, once per machine, its peak rates."
    : measurement.emulated
      ? "The times of an emulator have no roof."
      : "No kernel of the measurement has known operations and bytes.";
  return (
    <div class="tw-empty">
      <Icon name="clock" size={22} />
      <p>{text}</p>
    </div>
  );
}

interface RooflineProps {
  readonly store: Store;
  readonly measurement: Measurement;
  readonly roof: Roof;
  readonly points: readonly Measured[];
}

function Roofline({ store, measurement, roof, points }: RooflineProps): JSX.Element {
  const history = useWatch(store.state, (state) => state.history);
  const records = useWatch(store.state, (state) => state.records);
  const open = useWatch(store.state, (state) => state.open);
  const rule = useWatch(store.state, (state) => state.rule);
  const chart = useRef<SVGSVGElement>(null);
  const traced = points.find((point) => point.kernel === open)?.kernel ?? points[0]?.kernel ?? "";
  const path = branchPath(history, records, measurement, traced);
  const next = headPrediction(history, measurement, rule);
  const predicted = predictedPoints(measurement);
  const remeasure = (): void => void store.send({ type: "run", action: "roof", function: "" });
  return (
    <div class="tw-roofline">
      <div class="tw-roofline-figure">
        <Chart chart={chart} roof={roof} points={points} predicted={predicted} next={next} path={path} traced={traced} name={(state) => stateName(history, state)} />
        <Legend roof={roof} traced={traced} hasPath={path.length > 1} hasPredictions={predicted.length > 0 || next !== null} />
        <p class="tw-roofline-actions">
          <button type="button" class="tw-button" data-focus="save-roofline" onClick={() => chart.current && saveSvg(chart.current, "roofline.svg")}>
            <Icon name="save" size={14} /> Save as SVG
          </button>
          <button type="button" class="tw-button" data-focus="remeasure-roof" title="The roof is measured once per machine; measure it again if the machine was busy" onClick={remeasure}>
            Measure the roof again
          </button>
        </p>
      </div>
      <Table store={store} points={points} />
    </div>
  );
}

interface ChartProps {
  readonly chart: { current: SVGSVGElement | null };
  readonly roof: Roof;
  readonly points: readonly Measured[];
  readonly predicted: readonly Point[];
  /** The prediction of the open kernel at the head, which is not measured. */
  readonly next: Point | null;
  readonly path: readonly PathPoint[];
  readonly traced: string;
  readonly name: (state: string) => string;
}

function Chart({ chart, roof, points, predicted, next, path, traced, name }: ChartProps): JSX.Element {
  const memory = roof.levels.at(-1)?.gbytes ?? 1;
  const all: readonly Point[] = [...points, ...predicted, ...path, ...(next ? [next] : [])];
  const start = next && (path.at(-1)?.kernel === next.kernel ? path.at(-1) : points.find((point) => point.kernel === next.kernel));
  const ridge = roof.gflops / memory;
  const x = logScale([...all.map((point) => point.intensity), ridge / 4, ridge * 4], [MARGIN.left, WIDTH - MARGIN.right]);
  const y = logScale([...all.map((point) => point.gflops), roof.gflops], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  const curve = (corners: readonly Omit<Point, "kernel">[]): string => corners.map((point) => `${x(point.intensity).toFixed(1)},${y(point.gflops).toFixed(1)}`).join(" ");
  const [from, to] = x.domain();
  return (
    <svg class="tw-roofline-chart" viewBox={`0 0 ${String(WIDTH)} ${String(HEIGHT)}`} role="img" aria-label={description(roof, points, path, traced) + predictionText(predicted, next)} ref={chart}>
      <Axes x={x} y={y} />
      <clipPath id="tw-roofline-clip">
        <rect x={MARGIN.left} y={MARGIN.top} width={WIDTH - MARGIN.left - MARGIN.right} height={HEIGHT - MARGIN.top - MARGIN.bottom} />
      </clipPath>
      <g clip-path="url(#tw-roofline-clip)">
        {roof.levels.map((level, index) => {
          const bend = Math.min(to, Math.max(from, roof.gflops / level.gbytes));
          const corners = [from, bend, to].map((intensity) => ({ intensity, gflops: ceiling(roof, level.gbytes, intensity) }));
          return <polyline key={level.name} class={`tw-roof tw-roof-${String(roof.levels.length - 1 - index)}`} points={curve(corners)} />;
        })}
        {path.length > 1 ? <polyline class="tw-roofline-path" points={curve(path)} /> : null}
        {next && start ? (
          <line class="tw-roofline-next" x1={x(start.intensity)} y1={y(start.gflops)} x2={x(next.intensity)} y2={y(next.gflops)} />
        ) : null}
      </g>
      {path.slice(0, -1).map((point) => (
        <circle key={point.state} class="tw-roofline-earlier" cx={x(point.intensity)} cy={y(point.gflops)} r="4">
          <title>{`${point.kernel} at ${name(point.state)}: ${digits(point.gflops)} GFLOP/s`}</title>
        </circle>
      ))}
      {points.map((point, index) => (
        <g key={point.kernel}>
          <circle class={`tw-roofline-point${point.kernel === traced ? " is-traced" : ""}`} cx={x(point.intensity)} cy={y(point.gflops)} r={4 + 5 * Math.sqrt(point.share)}>
            <title>{pointText(point)}</title>
          </circle>
          {index < NAMED ? <Label x={x(point.intensity)} y={y(point.gflops)} text={point.kernel} /> : null}
        </g>
      ))}
      {[...predicted, ...(next ? [next] : [])].map((point) => (
        <circle key={`${point.kernel}${point === next ? " at the head" : ""}`} class="tw-roofline-predicted" cx={x(point.intensity)} cy={y(point.gflops)} r="5">
          <title>{`${point.kernel}${point === next ? " at the head" : ""}: ${digits(point.gflops)} GFLOP/s predicted`}</title>
        </circle>
      ))}
    </svg>
  );
}

function Label({ x, y, text }: { x: number; y: number; text: string }): JSX.Element {
  const end = x > WIDTH / 2;
  return (
    <text class="tw-roofline-label" x={end ? x - 11 : x + 11} y={y + 4} text-anchor={end ? "end" : "start"}>
      {text}
    </text>
  );
}

function Axes({ x, y }: { x: Scale; y: Scale }): JSX.Element {
  const base = HEIGHT - MARGIN.bottom;
  return (
    <g>
      {gridOf(x).map(({ value, label }) => (
        <g key={value}>
          <line class={gridClass(label)} x1={x(value)} x2={x(value)} y1={MARGIN.top} y2={base} />
          <text x={x(value)} y={base + 15} text-anchor="middle">
            {label}
          </text>
        </g>
      ))}
      {gridOf(y).map(({ value, label }) => (
        <g key={value}>
          <line class={gridClass(label)} x1={MARGIN.left} x2={WIDTH - MARGIN.right} y1={y(value)} y2={y(value)} />
          <text x={MARGIN.left - 6} y={y(value) + 4} text-anchor="end">
            {label}
          </text>
        </g>
      ))}
      <text x={(MARGIN.left + WIDTH - MARGIN.right) / 2} y={HEIGHT - 6} text-anchor="middle">
        Operations per byte of the arguments
      </text>
      <text transform={`translate(12 ${String((MARGIN.top + base) / 2)}) rotate(-90)`} text-anchor="middle">
        GFLOP/s
      </text>
    </g>
  );
}

function gridClass(label: string): string {
  return label === "" ? "tw-roofline-grid is-minor" : "tw-roofline-grid";
}

interface LegendProps {
  readonly roof: Roof;
  readonly traced: string;
  readonly hasPath: boolean;
  readonly hasPredictions: boolean;
}

/** The legend: the roofs with their rates, and the marks. */
function Legend({ roof, traced, hasPath, hasPredictions }: LegendProps): JSX.Element {
  const threads = `${String(roof.threads)} ${roof.threads === 1 ? "thread" : "threads"}`;
  return (
    <ul class="tw-roofline-legend" aria-label="Legend">
      {roof.levels.map((level, index) => (
        <li key={level.name}>
          <svg width="26" height="10" aria-hidden="true">
            <line class={`tw-roof tw-roof-${String(roof.levels.length - 1 - index)}`} x1="1" x2="25" y1="5" y2="5" />
          </svg>
          {level.name}: {digits(level.gbytes)} GB/s
        </li>
      ))}
      <li>
        Horizontal: {digits(roof.gflops)} GFLOP/s ({roof.instruction} on f32, {threads})
      </li>
      <li>
        <svg width="26" height="14" aria-hidden="true">
          <circle class="tw-roofline-point" cx="13" cy="7" r="5" />
        </svg>
        measured kernel; the area shows its share of the time
      </li>
      {hasPredictions ? (
        <li>
          <svg width="26" height="14" aria-hidden="true">
            <circle class="tw-roofline-predicted" cx="13" cy="7" r="5" />
          </svg>
          predicted by the estimated instructions and the bytes of the arguments
        </li>
      ) : null}
      {hasPath ? (
        <li>
          <svg width="26" height="14" aria-hidden="true">
            <path class="tw-roofline-path" d="M4 11L22 3" />
            <circle class="tw-roofline-earlier" cx="4" cy="11" r="3" />
          </svg>
          <span>
            <span class="tw-mono">{traced}</span> at the earlier states of this branch
          </span>
        </li>
      ) : null}
    </ul>
  );
}

function Table({ store, points }: { store: Store; points: readonly Measured[] }): JSX.Element {
  const show = useOpen(store);
  return (
    <table class="tw-table">
      <caption>Kernels below the roof</caption>
      <thead>
        <tr>
          <th scope="col">Kernel</th>
          <th scope="col" class="tw-right">
            FLOP/byte
          </th>
          <th scope="col" class="tw-right">
            GFLOP/s
          </th>
          <th scope="col" class="tw-right">
            % of roof
          </th>
          <th scope="col">Limit</th>
        </tr>
      </thead>
      <tbody>
        {points.map((point) => (
          <tr key={point.kernel}>
            <th scope="row">
              <button type="button" class="tw-link tw-mono" data-focus={`roofline:${point.kernel}`} onClick={() => show(point.kernel)}>
                <Name text={point.kernel} />
              </button>
            </th>
            <td class="tw-mono tw-right">{digits(point.intensity)}</td>
            <td class="tw-mono tw-right">{digits(point.gflops)}</td>
            <td class="tw-mono tw-right">{point.roof === undefined ? "" : percent(point.roof)}</td>
            <td>{point.bound ?? "no f32 kernel"}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function pointText({ kernel, gflops, intensity, share, roof, bound }: Measured): string {
  const limit = roof === undefined || bound === undefined ? "" : `, ${percent(roof)} of the roof, ${boundText(bound)}`;
  return `${kernel}: ${digits(gflops)} GFLOP/s at ${digits(intensity)} operations per byte${limit}; ${percent(share)} of the time`;
}

function predictionText(predicted: readonly Point[], next: Point | null): string {
  const parts = predicted.map((point) => `${point.kernel} ${digits(point.gflops)} GFLOP/s`);
  if (next) parts.push(`${next.kernel} at the head ${digits(next.gflops)} GFLOP/s`);
  return parts.length > 0 ? ` Predicted: ${parts.join(", ")}.` : "";
}

/** Return the alternative text of the chart. */
function description(roof: Roof, points: readonly Measured[], path: readonly PathPoint[], traced: string): string {
  const levels = roof.levels.map((level) => `${level.name} ${digits(level.gbytes)} GB/s`).join(", ");
  const first = path[0];
  const last = path.at(-1);
  const moved = first && last && path.length > 1 ? ` ${traced} changed from ${digits(first.gflops)} to ${digits(last.gflops)} GFLOP/s in ${String(path.length)} measured states.` : "";
  return `Roofline. Peaks: ${digits(roof.gflops)} GFLOP/s, ${levels}. ${points.map(pointText).join(". ")}.${moved}`;
}

export const rooflinePanel: Panel = { key: "roofline", title: "Roofline", view: RooflinePanel, section: "measurement" };
