import type { JSX } from "preact";
import { CommandButton } from "../commands/button";
import type { Setup } from "../protocol";
import type { Store } from "../store";
import { duration } from "../ui/format";
import { Icon } from "../ui/icons";
import { useEntry } from "../use_view";

/** The named sets of sizes: use, remove, add the current sizes, and measure the program with all of them. */
export function SizeSets({ setup, store }: { setup: Setup; store: Store }): JSX.Element | null {
  const [name, setName] = useEntry("fields", "set", "");
  if (setup.sizes.length === 0) return null;
  const send = (action: "add" | "remove" | "use", set: string): void => void store.send({ type: "edit_size_set", action, name: set });
  const add = (): void => {
    if (name.trim() === "") return;
    send("add", name.trim());
    setName(() => "");
  };
  return (
    <fieldset class="tw-options">
      <legend>Sets of sizes</legend>
      {setup.sets.map((set) => (
        <div key={set.name} class="tw-size-set">
          <button type="button" class="tw-chip" aria-pressed={set.current} data-focus={`set:${set.name}`} title={`Use ${set.sizes}`} onClick={() => send("use", set.name)}>
            {set.name}
          </button>
          <span class="tw-mono tw-size-set-sizes">{set.sizes}</span>
          <span class="tw-mono tw-right">{set.microseconds === null ? "" : duration(set.microseconds)}</span>
          <button type="button" class="tw-tool tw-small" aria-label={`Remove set ${set.name}`} data-focus={`remove-set:${set.name}`} onClick={() => send("remove", set.name)}>
            <Icon name="cross" size={11} />
          </button>
        </div>
      ))}
      <div class="tw-size-set-new">
        <input
          class="tw-input"
          aria-label="Name of the set"
          placeholder="Name these sizes"
          maxLength={40}
          value={name}
          onInput={({ currentTarget: { value } }) => setName(() => value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") add();
          }}
        />
        <button type="button" class="tw-button" aria-disabled={name.trim() === ""} data-focus="add-set" onClick={add}>
          Add set
        </button>
      </div>
      <CommandButton id="tilewright:measure-sets" label="Measure all sets" size={12} focus="measure-sets" />
    </fieldset>
  );
}
