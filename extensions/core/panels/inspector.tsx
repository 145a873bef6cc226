import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useWatch } from "../observable";
import type { Candidate, Menu, Ref } from "../protocol";
import type { Store } from "../store";
import { Icon, type IconName } from "../ui/icons";
import { Step, type Variants } from "./step";

const SYMBOLS: Readonly<Record<Ref["kind"], IconName>> = {
  function: "graph",
  loop: "loop",
  block: "block",
  buffer: "buffer",
  binding: "graph",
};

/** What is selected, and every step for it: the applicable ones first, the others with why not. */
export function Inspector({ store }: { store: Store }): JSX.Element {
  const menu = useWatch(store.state, (state) => state.menu);
  const [query, setQuery] = useState("");
  if (menu.selection === null) return <Nothing />;
  const wanted = menu.candidates.filter((candidate) => finds(candidate, query));
  const legal = groups(wanted.filter((candidate) => candidate.applies));
  const blocked = groups(wanted.filter((candidate) => !candidate.applies));
  return (
    <div class="tw-inspector">
      <Selection menu={menu} store={store} />
      <label class="tw-search tw-step-search">
        <Icon name="search" size={14} />
        <input
          type="search"
          placeholder="Filter steps"
          aria-label="Filter steps"
          value={query}
          onInput={(event) => setQuery(event.currentTarget.value)}
        />
      </label>
      <div class="tw-steps tw-scroll">
        <h3 class="tw-heading">
          Applicable <span class="tw-count">{legal.length}</span>
        </h3>
        {legal.length === 0 ? <p class="tw-quiet">No step applies here as it stands.</p> : null}
        <ul class="tw-step-list" aria-label="Applicable steps">
          {legal.map((family) => (
            <Step key={stepKey(menu, family)} variants={family} store={store} />
          ))}
        </ul>
        {blocked.length > 0 ? (
          <>
            <h3 class="tw-heading">
              Blocked <span class="tw-count">{blocked.length}</span>
            </h3>
            <ul class="tw-step-list" aria-label="Blocked steps">
              {blocked.map((family) => (
                <Step key={stepKey(menu, family)} variants={family} store={store} />
              ))}
            </ul>
          </>
        ) : null}
      </div>
    </div>
  );
}

function Nothing(): JSX.Element {
  return (
    <div class="tw-empty">
      <Icon name="loop" size={22} />
      <p>Select a loop, a block, a buffer or an operation to see the steps for it.</p>
    </div>
  );
}

function Selection({ menu, store }: { menu: Menu; store: Store }): JSX.Element | null {
  const { selection } = menu;
  if (selection === null) return null;
  return (
    <header class="tw-selection">
      <nav class="tw-path" aria-label="Around the selection">
        {menu.path.map((ref, index) => (
          <span key={`${ref.kind}:${String(ref.uid)}`}>
            {index > 0 ? <span aria-hidden="true"> › </span> : null}
            <button type="button" class="tw-link tw-mono" onClick={() => store.select(ref)}>
              {ref.name}
            </button>
          </span>
        ))}
      </nav>
      <h2 class="tw-selected">
        <Icon name={SYMBOLS[selection.kind]} size={18} />
        <span class="tw-kind">{selection.kind === "binding" ? "operation" : selection.kind}</span>
        <span class="tw-mono">{selection.name}</span>
      </h2>
      <dl class="tw-facts">
        {Object.entries(menu.facts).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class="tw-mono">{value}</dd>
          </div>
        ))}
      </dl>
    </header>
  );
}

function groups(candidates: readonly Candidate[]): Variants[] {
  const found = new Map<string, [Candidate, ...Candidate[]]>();
  for (const candidate of candidates) {
    const list = found.get(candidate.step);
    if (list) list.push(candidate);
    else found.set(candidate.step, [candidate]);
  }
  return [...found.values()];
}

function stepKey(menu: Menu, variants: Variants): string {
  return `${menu.selection?.function ?? ""}:${String(menu.selection?.uid)}:${variants[0].step}`;
}

function finds(candidate: Candidate, query: string): boolean {
  const words = `${candidate.step} ${candidate.label} ${candidate.summary} ${candidate.family}`;
  return words.toLowerCase().includes(query.trim().toLowerCase());
}
