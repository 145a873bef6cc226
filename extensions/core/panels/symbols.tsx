import type { JSX } from "preact";
import { useWatch } from "../observable";
import type { FactRow, SymbolRow } from "../protocol";
import type { Store } from "../store";
import { range } from "../ui/format";

const MEANING: Readonly<Record<FactRow["knowledge"], readonly [string, string]>> = {
  proved: ["✓", "follows from the program"],
  assumed: ["◆", "the caller promises it"],
  checked: ["◇", "checked when the function is called"],
  unknown: ["?", "not known; what needs it keeps a guard"],
  likely: ["~", "a hint, never used in a proof"],
};

/** The symbols with their samples, and what is proved, assumed or unknown of them. */
export function SymbolsPanel({ store }: { store: Store }): JSX.Element {
  const symbols = useWatch(store.state, (state) => state.symbols);
  if (symbols.rows.length === 0)
    return <p class="tw-quiet tw-pad">Every size of this function is constant.</p>;
  return (
    <div class="tw-symbols">
      <table class="tw-table">
        <caption>Symbols</caption>
        <thead>
          <tr>
            <th scope="col">name</th>
            <th scope="col">range</th>
            <th scope="col">multiple of</th>
            <th scope="col">sample</th>
            <th scope="col">likely</th>
          </tr>
        </thead>
        <tbody>
          {symbols.rows.map((row) => (
            <SymbolLine key={row.name} row={row} store={store} />
          ))}
        </tbody>
      </table>
      <table class="tw-table">
        <caption>What is known</caption>
        <thead>
          <tr>
            <th scope="col">status</th>
            <th scope="col">fact</th>
            <th scope="col">from</th>
          </tr>
        </thead>
        <tbody>
          {symbols.facts.map((fact, index) => (
            <tr key={index}>
              <td>
                <span class={`tw-badge tw-know-${fact.knowledge}`} title={MEANING[fact.knowledge][1]}>
                  <span aria-hidden="true">{MEANING[fact.knowledge][0]}</span> {fact.knowledge}
                </span>
              </td>
              <td class="tw-mono">{fact.text}</td>
              <td>{fact.origin}</td>
            </tr>
          ))}
          {symbols.facts.length === 0 ? (
            <tr>
              <td colSpan={3} class="tw-quiet">
                Nothing beyond the ranges, and nothing unknown that a step needed.
              </td>
            </tr>
          ) : null}
        </tbody>
      </table>
      <table class="tw-table">
        <caption>At the samples</caption>
        <thead>
          <tr>
            <th scope="col">what</th>
            <th scope="col">expression</th>
            <th scope="col">value</th>
          </tr>
        </thead>
        <tbody>
          {symbols.derived.map((row, index) => (
            <tr key={index}>
              <td>{row.label}</td>
              <td class="tw-mono">{row.text}</td>
              <td class="tw-mono tw-right">{row.value}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function SymbolLine({ row, store }: { row: SymbolRow; store: Store }): JSX.Element {
  const change = (event: Event): void => {
    const value = Number((event.currentTarget as HTMLInputElement).value);
    if (Number.isInteger(value)) store.send({ type: "sample", symbol: row.name, value });
  };
  return (
    <tr>
      <th scope="row" class="tw-mono">
        {row.name}
      </th>
      <td class="tw-mono">{range(row.lower, row.upper)}</td>
      <td class="tw-mono">{row.multiple_of}</td>
      <td>
        <input
          type="number"
          class="tw-input tw-sample tw-mono"
          aria-label={`Sample value of ${row.name}`}
          value={row.sample}
          step={row.multiple_of}
          min={row.lower ?? undefined}
          max={row.upper ?? undefined}
          onChange={change}
        />
      </td>
      <td class="tw-mono">{row.likely.join(", ") || "—"}</td>
    </tr>
  );
}
