import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { MatchRow, MatchView, Mismatch } from "../protocol";
import { Icon } from "../ui/icons";
import { reveal } from "../ui/reveal";

/** A part of the program and the semantics of an intrinsic side by side, with marked mismatches. */
export function Matching({ match }: { match: MatchView }): JSX.Element {
  const section = useRef<HTMLElement>(null);
  useEffect(() => reveal(section.current), [match.intrinsic]);
  const { mismatches } = match;
  const fits = mismatches.length === 0;
  return (
    <section ref={section} class="tw-match" aria-label={`Match with ${match.intrinsic}`}>
      <p class="tw-match-summary">
        <Icon name={fits ? "check" : "warn"} size={13} />{" "}
        {fits ? "The loops match the intrinsic." : mismatchText(mismatches.length)}
      </p>
      <div class="tw-match-scroll" tabIndex={0} role="group" aria-label="Program and intrinsic, line by line">
        <table class="tw-match-lines">
          <thead>
            <tr>
              <th scope="col">Program</th>
              <th scope="col">{match.intrinsic}</th>
            </tr>
          </thead>
          <tbody>
            {match.rows.map((row, index) => (
              <Line key={index} row={row} mismatches={mismatches} />
            ))}
          </tbody>
        </table>
      </div>
      {fits ? null : (
        <ol class="tw-match-list">
          {mismatches.map((mark, index) => (
            <li key={index} data-kind={mark.kind}>
              <span class="tw-match-kind">{mark.kind}</span> {mark.message}
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

function Line({ row, mismatches }: { row: MatchRow; mismatches: readonly Mismatch[] }): JSX.Element {
  const marks = row.marks.flatMap((index) => mismatches[index] ?? []);
  const kind = marks[0]?.kind;
  return (
    <tr data-kind={kind} class={kind === undefined ? undefined : "is-different"}>
      <td class="tw-mono">
        <Marked text={narrow(row.program)} parts={marks.map((mark) => mark.program)} />
        <Numbers marks={row.marks} />
      </td>
      <td class="tw-mono">
        <Marked text={narrow(row.pattern)} parts={marks.map((mark) => mark.pattern)} />
      </td>
    </tr>
  );
}

/** Return a line with half of its indentation, because the panel is narrow. */
function narrow(line: string): string {
  return line.replace(/^ +/, (indent) => indent.slice(indent.length / 2));
}

/** The numbers of the mismatches of a line, which color alone does not convey. */
function Numbers({ marks }: { marks: readonly number[] }): JSX.Element | null {
  if (marks.length === 0) return null;
  return (
    <sup class="tw-match-numbers" aria-label={`mismatch ${marks.map((mark) => mark + 1).join(", ")}`}>
      {marks.map((mark) => mark + 1).join(",")}
    </sup>
  );
}

/** A line whose differing parts are marked at their first occurrence. */
function Marked({ text, parts }: { text: string; parts: readonly string[] }): JSX.Element {
  const pieces: JSX.Element[] = [];
  let from = 0;
  for (const [start, end] of occurrences(text, parts)) {
    if (start > from) pieces.push(<span key={from}>{text.slice(from, start)}</span>);
    pieces.push(<mark key={start}>{text.slice(start, end)}</mark>);
    from = end;
  }
  pieces.push(<span key={from}>{text.slice(from)}</span>);
  return <>{pieces}</>;
}

/** Return the first occurrence of each part in a text, in order and without overlap. */
export function occurrences(text: string, parts: readonly string[]): [number, number][] {
  const found = parts
    .filter((part) => part !== "")
    .map((part): [number, number] => [text.indexOf(part), text.indexOf(part) + part.length])
    .filter(([start]) => start >= 0)
    .sort((left, right) => left[0] - right[0] || right[1] - left[1]);
  const disjoint: [number, number][] = [];
  for (const occurrence of found) {
    if (occurrence[0] >= (disjoint.at(-1)?.[1] ?? 0)) disjoint.push(occurrence);
  }
  return disjoint;
}

function mismatchText(count: number): string {
  return count === 1 ? "1 mismatch between the loops and the intrinsic." : `${String(count)} mismatches between the loops and the intrinsic.`;
}
