import type { JSX } from "preact";
import { useWatch } from "../observable";
import type { Timing } from "../protocol";
import type { Store } from "../store";
import { duration, percent } from "../ui/format";
import { Icon } from "../ui/icons";

/** The last measurement: the whole call, and its kernels with the slowest first. */
export function TimingPanel({ store }: { store: Store }): JSX.Element {
  const timing = useWatch(store.state, (state) => state.timing);
  const head = useWatch(store.state, (state) => state.history.head);
  const open = useWatch(store.state, (state) => state.open);
  if (!timing)
    return (
      <div class="tw-empty">
        <Icon name="clock" size={22} />
        <p>Not timed yet. “Time” compiles what you see and measures each kernel at the sample sizes.</p>
      </div>
    );
  return (
    <div class="tw-timing">
      <Whole timing={timing} stale={timing.state !== head} />
      <table class="tw-table tw-kernels">
        <caption>Kernels, slowest first</caption>
        <thead>
          <tr>
            <th scope="col">kernel</th>
            <th scope="col" class="tw-right">
              calls
            </th>
            <th scope="col" class="tw-right">
              time
            </th>
            <th scope="col">share</th>
          </tr>
        </thead>
        <tbody>
          {timing.kernels.map((kernel, index) => (
            <tr key={kernel.function + kernel.label} class={kernel.function === open ? "is-open" : ""}>
              <th scope="row">
                <button
                  type="button"
                  class="tw-link tw-mono"
                  onClick={() => store.send({ type: "open", function: kernel.function })}
                >
                  {kernel.label}
                </button>
                {index === 0 && timing.kernels.length > 1 ? <span class="tw-badge tw-slowest">slowest</span> : null}
              </th>
              <td class="tw-mono tw-right">×{kernel.calls}</td>
              <td class="tw-mono tw-right">{duration(kernel.microseconds)}</td>
              <td>
                <div class="tw-bar" title={percent(kernel.share)}>
                  <span class="tw-bar-fill" style={{ width: `${Math.max(0.5, kernel.share * 100)}%` }} />
                  <span class="tw-bar-text tw-mono">{percent(kernel.share)}</span>
                </div>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Whole({ timing, stale }: { timing: Timing; stale: boolean }): JSX.Element {
  return (
    <div class="tw-whole">
      <p class="tw-big">
        {duration(timing.median)}
        <span class="tw-unit">
          median of {timing.samples.length}, 95 % interval{" "}
          <span class="tw-whole-part">{`${duration(timing.low)} – ${duration(timing.high)}`}</span>
        </span>
      </p>
      <Strip samples={timing.samples} median={timing.median} />
      <dl class="tw-facts">
        <div>
          <dt>of</dt>
          <dd class="tw-mono">{timing.function}</dd>
        </div>
        <div>
          <dt>at</dt>
          <dd class="tw-mono">{timing.shapes}</dd>
        </div>
        <div>
          <dt>compile</dt>
          <dd class="tw-mono">
            {duration(timing.compile_ms * 1000)}
          </dd>
        </div>
      </dl>
      <p class="tw-under">
        Taken with {timing.conditions}
        {timing.alone ? "." : "; another measurement ran at the same time."}
      </p>
      {stale ? (
        <p class="tw-stale">
          <Icon name="info" size={14} /> Measured at an earlier step ({timing.state.slice(0, 7)}).
        </p>
      ) : null}
    </div>
  );
}

/** Every sample as a tick on one axis, the median marked. */
function Strip({ samples, median }: { samples: readonly number[]; median: number }): JSX.Element {
  const sorted = [...samples].sort((a, b) => a - b);
  const low = sorted[0] ?? 0;
  const high = sorted[Math.floor(sorted.length * 0.98)] ?? low + 1;
  const at = (value: number): number => 4 + (252 * (Math.min(value, high) - low)) / Math.max(high - low, 1e-9);
  return (
    <svg class="tw-strip" viewBox="0 0 260 34" role="img" aria-label={`Samples from ${duration(low)} to ${duration(high)}`}>
      <line x1="4" x2="256" y1="20" y2="20" />
      {sorted.map((value, index) => (
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
