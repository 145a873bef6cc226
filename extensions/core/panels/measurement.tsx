import { extent, quantile } from "d3-array";
import { scaleLinear } from "d3-scale";
import type { JSX } from "preact";
import { heatKind } from "../graph/coloring";
import { HeatChoice } from "../graph/legend";
import { useCosts } from "../graph/use_costs";
import { useWatch } from "../observable";
import type { Measurement } from "../protocol";
import type { Store } from "../store";
import { digits, duration, percent } from "../ui/format";
import { Icon } from "../ui/icons";
import { Name } from "../ui/name";
import { useOpen, useView } from "../use_view";
import { kernelFigures, type KernelFigure } from "./kernel_figures";
import type { Panel } from "./panel";
import { RecordPicker } from "./records";
import { boundText } from "./roofline_data";
import { stateName } from "./states";

/** The last measurement: the entire call and its kernels, slowest first. */
export function MeasurementPanel({ store }: { store: Store }): JSX.Element {
  const measurement = useWatch(store.state, (state) => state.measurement);
  const head = useWatch(store.state, (state) => state.history.head);
  const open = useWatch(store.state, (state) => state.open);
  const graph = useWatch(store.state, (state) => state.graph);
  const show = useOpen(store);
  const [stored, setKind] = useView("heat");
  const kind = heatKind(stored);
  const { costs } = useCosts(store, kind === "memory" ? kind : "time"); // the others follow from the rates
  if (!measurement)
    return (
      <div class="tw-empty">
        <Icon name="clock" size={22} />
        <p>No measurement yet. “Measure” compiles the program and measures each kernel at the sample sizes.</p>
      </div>
    );
  const stale = measurement.state !== head;
  const repeat = (): void => {
    const whole = store.state.value.setup?.function === measurement.function;
    store.send({ type: "run", action: "measure", function: whole ? "" : measurement.function });
  };
  const figures = kernelFigures(measurement, kind, costs, graph);
  const rated = measurement.kernels.some((kernel) => kernel.gflops !== undefined);
  return (
    <>
      <RecordPicker store={store} measurement={measurement} />
      {stale ? (
        <p class="tw-stale">
          <Icon name="info" size={14} />
          <span>
            Measured at <MeasuredState store={store} measurement={measurement} />, not at the head. “Measure” measures the head.
          </span>
        </p>
      ) : null}
      {isNoisy(measurement) ? (
        <p class="tw-stale tw-noisy">
          <Icon name="warn" size={14} /> Noisy: the confidence interval is {percent((measurement.high - measurement.low) / measurement.median)} of the median
          {measurement.alone ? "" : ", and another measurement ran at the same time"}.
          <button type="button" class="tw-button" data-focus="repeat" onClick={repeat}>
            Measure again
          </button>
        </p>
      ) : null}
      <div class="tw-measurement">
      <Total measurement={measurement} />
      <div class="tw-kernels-scroll">
      <table class="tw-table tw-kernels">
        <caption>Kernels, slowest first; shares of the time are of the {measurement.outside > 0 ? "call" : "kernels"}</caption>
        <thead>
          <tr>
            <th scope="col">Kernel</th>
            <th scope="col" class="tw-right">
              Calls
            </th>
            <th scope="col" class="tw-right tw-per-call">
              Per call
            </th>
            <th scope="col" class="tw-right">
              Total
            </th>
            {rated ? (
              <>
                <th scope="col" class="tw-right tw-rate" title="Operations on elements per second">
                  GFLOP/s
                </th>
                <th scope="col" class="tw-right tw-rate" title="Bytes of all arguments per second">
                  GB/s
                </th>
                <th scope="col" class="tw-right tw-rate" title="Share of the machine's peak that limits the kernel; see Roofline">
                  % of roof
                </th>
              </>
            ) : null}
            <th scope="col">
              <HeatChoice label="Bars of the kernels" kind={kind} onChoose={setKind} />
            </th>
          </tr>
        </thead>
        <tbody>
          {measurement.kernels.map((kernel, index) => (
            <tr key={kernel.function} class={kernel.function === open ? "is-open" : ""}>
              <th scope="row">
                <button
                  type="button"
                  class="tw-link tw-mono"
                  data-focus={`kernel:${kernel.function}`}
                  onClick={() => show(kernel.function)}
                >
                  <Name text={kernel.function} />
                </button>
                {index === 0 && measurement.kernels.length > 1 ? <span class="tw-badge tw-slowest">Slowest</span> : null}
              </th>
              <td class="tw-mono tw-right">×{kernel.calls}</td>
              <td class="tw-mono tw-right tw-per-call">{duration(kernel.microseconds / Math.max(1, kernel.calls))}</td>
              <td class="tw-mono tw-right">{duration(kernel.microseconds)}</td>
              {rated ? (
                <>
                  <td class="tw-mono tw-right tw-rate">{rate(kernel.gflops)}</td>
                  <td class="tw-mono tw-right tw-rate">{rate(kernel.gbytes)}</td>
                  <td class="tw-mono tw-right tw-rate" title={kernel.bound === undefined ? "" : boundText(kernel.bound)}>
                    {kernel.roof === undefined ? "" : percent(kernel.roof)}
                  </td>
                </>
              ) : null}
              <Share figure={figures[index]} />
            </tr>
          ))}
          {measurement.outside > 0 ? (
            <tr class="tw-outside">
              <th scope="row">outside of kernels</th>
              <td />
              <td class="tw-per-call" />
              <td class="tw-mono tw-right">{duration(measurement.outside)}</td>
              {rated ? <td colSpan={3} class="tw-rate" /> : null}
              {kind === "time" ? <Share figure={shareOf(measurement.outside / measurement.total)} /> : <td />}
            </tr>
          ) : null}
        </tbody>
      </table>
      </div>
      </div>
      {measurement.total > measurement.median ? (
        <p class="tw-conditions tw-pad">
          The kernels take {duration(measurement.total)} together, more than the median call ({duration(measurement.median)}): they are timed one by one, in calls
          of their own.
        </p>
      ) : null}
    </>
  );
}

/** The name of the measured state; a click makes it the head. */
function MeasuredState({ store, measurement }: { store: Store; measurement: Measurement }): JSX.Element {
  const history = useWatch(store.state, (state) => state.history);
  const name = stateName(history, measurement.state);
  if (name === "") return <>a state of another history</>;
  return (
    <button type="button" class="tw-link tw-mono tw-state-link" data-focus="measured-state" title={`${name}. A click makes it the head.`} onClick={() => store.navigate("jump", measurement.state)}>
      {name}
    </button>
  );
}

/** The width of the confidence interval, relative to the median, from which a measurement is noisy. */
const NOISE = 0.05;

function isNoisy({ low, high, median, alone }: Measurement): boolean {
  return !alone || high - low > NOISE * median;
}

function rate(value: number | undefined): string {
  return value === undefined ? "" : digits(value);
}

const UNKNOWN: KernelFigure = { share: null, text: "unknown" };

function shareOf(share: number): KernelFigure {
  return { share, text: percent(share) };
}

function Share({ figure = UNKNOWN }: { figure: KernelFigure | undefined }): JSX.Element {
  const { share, text } = figure;
  if (share === null) return <td class="tw-quiet">{text}</td>;
  return (
    <td>
      <div class="tw-bar" title={text}>
        <span class="tw-bar-fill" style={{ width: `${Math.max(0.5, share * 100)}%` }} />
        <span class="tw-bar-text tw-mono">{text}</span>
      </div>
    </td>
  );
}

export const measurementPanel: Panel = {
  key: "kernels",
  title: "Kernels",
  view: MeasurementPanel,
  section: "measurement",
  opens: true,
};

function Total({ measurement }: { measurement: Measurement }): JSX.Element {
  return (
    <div class="tw-total">
      <p class="tw-big">
        {duration(measurement.median)}
        <span class="tw-unit">
          {measurement.emulated ? "Time of the emulator, not of a GPU. " : ""}Median of {measurement.samples.length}, 95 % confidence interval{" "}
          <span class="tw-total-part">{`${duration(measurement.low)} – ${duration(measurement.high)}`}</span>
        </span>
      </p>
      <Strip samples={measurement.samples} median={measurement.median} />
      <dl class="tw-properties">
        <div>
          <dt>Function</dt>
          <dd class="tw-mono">{measurement.function}</dd>
        </div>
        <div>
          <dt>Sizes</dt>
          <dd class="tw-mono">{measurement.shapes}</dd>
        </div>
        <div>
          <dt>Compile time</dt>
          <dd class="tw-mono">
            {duration(measurement.compile_ms * 1000)}
          </dd>
        </div>
      </dl>
      <p class="tw-conditions">
        Conditions: {measurement.conditions}
        {measurement.alone ? "." : "; another measurement ran at the same time."}
      </p>
    </div>
  );
}

/** The share of the samples up to which the strip extends; slower ones are drawn at its end. */
const SHOWN = 0.98;

/** A strip plot of all samples with the median. */
function Strip({ samples, median }: { samples: readonly number[]; median: number }): JSX.Element {
  const [low = 0, most = 1] = extent(samples);
  const high = quantile(samples, SHOWN) ?? most;
  const at = scaleLinear().domain([low, Math.max(high, low + 1e-9)]).range([4, 256]).clamp(true);
  return (
    <svg class="tw-strip" viewBox="0 0 260 34" role="img" aria-label={`Samples from ${duration(low)} to ${duration(most)}, ${percent(SHOWN)} of them to ${duration(high)}`}>
      <line x1="4" x2="256" y1="20" y2="20" />
      {samples.map((value, index) => (
        <line key={index} class="tw-tick" x1={at(value)} x2={at(value)} y1="8" y2="20" />
      ))}
      <line class="tw-median" x1={at(median)} x2={at(median)} y1="4" y2="23" />
      <text x="4" y="32">
        {duration(low)}
      </text>
      <text x="256" y="32" text-anchor="end">
        {duration(high)}
      </text>
    </svg>
  );
}
