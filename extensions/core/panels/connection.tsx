import type { JSX } from "preact";
import { useWatch } from "../observable";
import type { Store } from "../store";
import { download } from "../trace/document";
import { Icon } from "../ui/icons";

const SAVED = "The notebook was saved with this state of the program; it is read-only.";
const LOST = "The Jupyter kernel was restarted or has stopped: this is the last state of the program.";
const EMPTY = "The notebook was saved without the state of this program.";
const CONTINUE = "To continue, run the cells up to this one again, then restore the steps.";
const RUN = "To continue, run the cells up to this one again.";

/** The bar that reports a lost connection, or offers the steps that a lost kernel left. */
export function ConnectionBar({ store }: { store: Store }): JSX.Element | null {
  const alive = useWatch(store.state, (state) => state.alive);
  const lost = useWatch(store.state, (state) => state.lost);
  const isSaved = useWatch(store.state, (state) => state.saved);
  const received = useWatch(store.state, (state) => state.connected);
  const { saved } = store;
  if (!alive)
    return (
      <div class={`tw-connection${isSaved ? "" : " is-lost"}`} role={isSaved ? "status" : "alert"}>
        <Icon name={isSaved ? "info" : "warn"} size={15} />
        <span class="tw-connection-text">{isSaved ? SAVED : received ? LOST : EMPTY} {saved && saved.steps > 0 ? CONTINUE : RUN}</span>
        {saved && saved.steps > 0 ? (
          <button type="button" class="tw-button" onClick={() => download({ name: saved.name, format: "json", text: saved.text })}>
            <Icon name="save" size={14} /> Save {steps(saved.steps)}
          </button>
        ) : null}
      </div>
    );
  if (!lost) return null;
  return (
    <div class="tw-connection" role="status">
      <Icon name="info" size={15} />
      <span class="tw-connection-text">An earlier Jupyter kernel stopped with {steps(lost.steps)} applied to this program.</span>
      <button type="button" class="tw-button tw-primary" data-focus="restore" onClick={() => store.restore(true)}>
        Restore {steps(lost.steps)}
      </button>
      <button type="button" class="tw-button" onClick={() => store.restore(false)}>
        Discard
      </button>
    </div>
  );
}

function steps(count: number): string {
  return `${String(count)} ${count === 1 ? "step" : "steps"}`;
}
