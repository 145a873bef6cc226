import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { MatchMark, MatchRow, MatchView } from "../protocol";
import { Icon } from "../ui/icons";
import { reveal } from "../ui/reveal";

/** A part of the program beside what an instruction computes, with every difference marked. */
export function Matching({ match }: { match: MatchView }): JSX.Element {
  const section = useRef<HTMLElement>(null);
  useEffect(() => reveal(section.current), [match.intrinsic]);
  const { mismatches } = match;
  const fits = mismatches.length === 0;
  return (
    <section ref={section} class="tw-match" aria-label={`Match with ${match.intrinsic}`}>
      <p class="tw-match-verdict">
        <Icon name={fits ? "check" : "warn"} size={13} />{" "}
        {fits ? "The loops are what the instruction computes." : differences(mismatches.length)}
      </p>
      <div class="tw-match-scroll" tabIndex={0} role="group" aria-label="Program and instruction, line by line">
        <table class="tw-match-lines">
          <thead>
            <tr>
              <th scope="col">program</th>
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

function Line({ row, mismatches }: { row: MatchRow; mismatches: readonly MatchMark[] }): JSX.Element {
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

/** A line with half its indentation: two programs share a narrow panel. */
function narrow(line: string): string {
  return line.replace(/^ +/, (indent) => indent.slice(indent.length / 2));
}

/** The numbers of the differences in a line: colour alone would not tell them. */
function Numbers({ marks }: { marks: readonly number[] }): JSX.Element | null {
  if (marks.length === 0) return null;
  return (
    <sup class="tw-match-numbers" aria-label={`difference ${marks.map((mark) => mark + 1).join(", ")}`}>
      {marks.map((mark) => mark + 1).join(",")}
    </sup>
  );
}

/** A line in which the parts that differ are marked, each where it first occurs. */
function Marked({ text, parts }: { text: string; parts: readonly string[] }): JSX.Element {
  const pieces: JSX.Element[] = [];
  let from = 0;
  for (const [start, end] of places(text, parts)) {
    if (start > from) pieces.push(<span key={from}>{text.slice(from, start)}</span>);
    pieces.push(<mark key={start}>{text.slice(start, end)}</mark>);
    from = end;
  }
  pieces.push(<span key={from}>{text.slice(from)}</span>);
  return <>{pieces}</>;
}

/** Where parts occur in a text: in order, none inside another. */
export function places(text: string, parts: readonly string[]): [number, number][] {
  const found = parts
    .filter((part) => part !== "")
    .map((part): [number, number] => [text.indexOf(part), text.indexOf(part) + part.length])
    .filter(([start]) => start >= 0)
    .sort((left, right) => left[0] - right[0] || right[1] - left[1]);
  const apart: [number, number][] = [];
  for (const place of found) {
    if (place[0] >= (apart.at(-1)?.[1] ?? 0)) apart.push(place);
  }
  return apart;
}

function differences(count: number): string {
  return count === 1 ? "One difference keeps it from matching." : `${String(count)} differences keep it from matching.`;
}
