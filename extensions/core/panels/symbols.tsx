import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { useWatch } from "../observable";
import type { FactRow, SymbolRow } from "../protocol";
import type { Store } from "../store";
import { range } from "../ui/format";
import type { Panel } from "./panel";

const MEANING: Readonly<Record<FactRow["status"], readonly [string, string]>> = {
  proved: ["✓", "proved from the program"],
  assumed: ["◆", "guaranteed by the caller"],
  checked: ["◇", "checked at run time"],
  unknown: ["?", "not proved; a guard remains"],
  likely: ["~", "a hint, never used in proofs"],
};

/** The symbols with their samples, the facts about them, and derived expressions. */
export function SymbolsPanel({ store }: { store: Store }): JSX.Element {
  const symbols = useWatch(store.state, (state) => state.symbols);
  if (symbols.rows.length === 0)
    return <p class="tw-quiet tw-pad">This function has no symbols: all shapes are constant.</p>;
  return (
    <div class="tw-symbols">
      <table class="tw-table">
        <caption>Symbols</caption>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Range</th>
            <th scope="col">Multiple of</th>
            <th scope="col">Sample</th>
            <th scope="col">Likely</th>
          </tr>
        </thead>
        <tbody>
          {symbols.rows.map((row) => (
            <SymbolLine key={row.name} row={row} store={store} />
          ))}
        </tbody>
      </table>
      <table class="tw-table">
        <caption>Facts</caption>
        <thead>
          <tr>
            <th scope="col">Status</th>
            <th scope="col">Fact</th>
            <th scope="col">Origin</th>
          </tr>
        </thead>
        <tbody>
          {symbols.facts.map((fact, index) => (
            <tr key={index}>
              <td>
                <span class={`tw-badge tw-fact-${fact.status}`} title={MEANING[fact.status][1]}>
                  <span aria-hidden="true">{MEANING[fact.status][0]}</span> {fact.status}
                </span>
              </td>
              <td class="tw-mono">{fact.text}</td>
              <td>{fact.origin}</td>
            </tr>
          ))}
          {symbols.facts.length === 0 ? (
            <tr>
              <td colSpan={3} class="tw-quiet">
                No facts beyond the ranges, and no guards.
              </td>
            </tr>
          ) : null}
        </tbody>
      </table>
      <table class="tw-table">
        <caption>Derived expressions at the samples</caption>
        <thead>
          <tr>
            <th scope="col">Item</th>
            <th scope="col">Expression</th>
            <th scope="col">Value</th>
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

export const symbolsPanel: Panel = { key: "symbols", title: "Symbols", view: SymbolsPanel, section: "symbols" };

function SymbolLine({ row, store }: { row: SymbolRow; store: Store }): JSX.Element {
  const open = useWatch(store.state, (state) => state.open);
  return (
    <tr>
      <th scope="row" class="tw-mono">
        {row.name}
      </th>
      <td class="tw-mono">{range(row.lower, row.upper)}</td>
      <td class="tw-mono">{row.multiple_of}</td>
      <td>
        <SampleField row={row} owner={open} store={store} />
      </td>
      <td class="tw-mono">{row.likely.join(", ") || "—"}</td>
    </tr>
  );
}

/** The field of a symbol's sample value; `owner` is the function of the symbol. */
export function SampleField({ row, owner, store }: { row: SymbolRow; owner: string; store: Store }): JSX.Element {
  const [error, setError] = useState("");
  const id = useId();
  const change = (event: Event): void => {
    const text = (event.currentTarget as HTMLInputElement).value;
    const problem = problemOf(text, row);
    setError(problem);
    if (problem === "") store.send({ type: "sample", function: owner, symbol: row.name, value: Number(text) });
  };
  return (
    <span class="tw-sample-field">
      <input
        type="number"
        class="tw-input tw-sample tw-mono"
        aria-label={`Sample value of ${row.name}`}
        value={row.sample}
        aria-invalid={error !== ""}
        aria-describedby={id}
        step={row.multiple_of}
        min={row.lower ?? undefined}
        max={row.upper ?? undefined}
        onChange={change}
      />
      <span id={id} class="tw-field-error" role="alert">
        {error}
      </span>
    </span>
  );
}

/** Return why a text is not a sample value of a symbol, empty if it is. */
function problemOf(text: string, row: SymbolRow): string {
  const value = Number(text);
  const limits = `${range(row.lower, row.upper)}${row.multiple_of > 1 ? `, a multiple of ${String(row.multiple_of)}` : ""}`;
  const outside = value < (row.lower ?? -Infinity) || value > (row.upper ?? Infinity) || value % row.multiple_of !== 0;
  return text.trim() === "" || !Number.isSafeInteger(value) || outside ? `Expected an integer: ${limits}` : "";
}
