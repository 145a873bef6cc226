import type { JSX } from "preact";
import { costOf, HEAT_KINDS } from "../graph/coloring";
import { useWatch } from "../observable";
import type { Handle, Selected } from "../protocol";
import { hasMenu, type Store } from "../store";
import { Icon, type IconName } from "../ui/icons";
import { OtherSteps } from "./other_steps";
import { CompiledKernel, FirstStepNote } from "./rule";
import { Step } from "./step";
import { groups, matches, type Suggestions } from "./suggestions";
import { memo } from "../ui/memo";
import { useEntry } from "../use_view";

const SYMBOLS: Readonly<Record<Handle["kind"], IconName>> = {
  function: "graph",
  loop: "loop",
  block: "block",
  buffer: "buffer",
  binding: "graph",
};

/** The selection with its legal steps, and its illegal steps with their problems. */
export function Inspector({ store }: { store: Store }): JSX.Element {
  const selected = useWatch(store.state, (state) => state.selected);
  const current = useWatch(store.state, hasMenu);
  const [query, setQuery] = useEntry("fields", "steps", "");
  const compiled = useWatch(store.state, (state) => state.rule?.status === "compiled");
  const alive = useWatch(store.state, (state) => state.alive);
  const { selection } = selected;
  if (selection === null) return compiled ? <CompiledKernel store={store} /> : <NoSelection alive={alive} />;
  return (
    <div class="tw-inspector">
      <Selection selected={selected} store={store} />
      <label class="tw-search tw-step-search">
        <Icon name="search" size={14} />
        <input
          type="search"
          placeholder="Filter steps"
          aria-label="Filter steps"
          value={query}
          onInput={({ currentTarget: { value } }) => setQuery(() => value)}
        />
      </label>
      <FirstStepNote store={store} function={selection.function} />
      <div class="tw-steps tw-scroll" aria-busy={!current}>
        <Steps query={query} store={store} />
      </div>
    </div>
  );
}

interface StepsProps {
  readonly query: string;
  readonly store: Store;
}

/** The steps of the last menu; until the one of a new selection arrives, they are those of the earlier selection. */
const Steps = memo(function Steps({ query, store }: StepsProps): JSX.Element {
  const menu = useWatch(store.state, (state) => state.menu);
  if (menu === null) return <Legal count={0} store={store} />;
  const { selection, suggestions } = menu;
  const scope = [menu.state, selection.kind, selection.function, selection.uid].join(" ");
  const wanted = suggestions.filter((suggestion) => matches(suggestion, query));
  const legal = groups(wanted.filter((suggestion) => suggestion.applicable));
  const illegal = groups(wanted.filter((suggestion) => !suggestion.applicable));
  const list = (label: string, steps: readonly Suggestions[]): JSX.Element => (
    <ul class="tw-step-list" aria-label={label}>
      {steps.map((family) => (
        <Step key={family[0].step} suggestions={family} scope={scope} store={store} />
      ))}
    </ul>
  );
  return (
    <>
      <Legal count={legal.length} store={store} />
      {list("Legal steps", legal)}
      {illegal.length > 0 ? (
        <>
          <h3 class="tw-heading">
            Illegal <span class="tw-count">{illegal.length}</span>
          </h3>
          {list("Illegal steps", illegal)}
        </>
      ) : null}
      <OtherSteps selection={selection} suggestions={suggestions} query={query} scope={scope} store={store} />
    </>
  );
});

/** The heading of the legal steps, with a note if there are none. */
function Legal({ count, store }: { readonly count: number; readonly store: Store }): JSX.Element {
  const current = useWatch(store.state, hasMenu);
  return (
    <>
      <h3 class="tw-heading">
        Legal <span class="tw-count">{count}</span>
      </h3>
      {count === 0 ? <p class="tw-quiet">{current ? "No step is legal for the selection." : "Checking the steps…"}</p> : null}
    </>
  );
}

function NoSelection({ alive }: { alive: boolean }): JSX.Element {
  return (
    <div class="tw-empty">
      <Icon name="loop" size={22} />
      <p>{alive ? "Select a loop, block, buffer, or operation to see its steps." : "Steps are displayed while the Jupyter kernel runs."}</p>
    </div>
  );
}

const Selection = memo(function Selection({ selected, store }: { readonly selected: Selected; readonly store: Store }): JSX.Element | null {
  const { selection } = selected;
  if (selection === null) return null;
  return (
    <header class="tw-selection">
      <nav class="tw-path" aria-label="Enclosing scopes">
        {selected.path.map((handle, index) => (
          <span key={`${handle.kind}:${String(handle.uid)}`}>
            {index > 0 ? <span aria-hidden="true"> › </span> : null}
            <button type="button" class="tw-link tw-mono" onClick={() => store.select(handle)}>
              {handle.name}
            </button>
          </span>
        ))}
      </nav>
      <h2 class="tw-selected">
        <Icon name={SYMBOLS[selection.kind]} size={18} />
        <span class="tw-kind">{selection.kind === "binding" ? "operation" : selection.kind}</span>
        <span class="tw-mono">{selection.name}</span>
      </h2>
      <dl class="tw-properties">
        {Object.entries(selected.properties).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class="tw-mono">{value}</dd>
          </div>
        ))}
        <OperationCost selection={selection} store={store} />
      </dl>
    </header>
  );
});

/** The cost of a selected operation, of the kind that colors the graph. */
function OperationCost({ selection, store }: { readonly selection: Handle; readonly store: Store }): JSX.Element | null {
  const costs = useWatch(store.state, (state) => state.costs);
  const head = useWatch(store.state, ({ history }) => history.head);
  if (selection.kind !== "binding" || costs?.function !== selection.function || costs.state !== head) return null;
  const text = costOf(selection.uid, costs);
  if (text === null) return null;
  return (
    <div>
      <dt>{HEAT_KINDS[costs.kind]}</dt>
      <dd class="tw-mono">{text}</dd>
    </div>
  );
}
