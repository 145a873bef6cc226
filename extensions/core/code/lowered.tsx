import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { diffOf, type DiffLine } from "./diff";
import { Line } from "./lines";
import { LINE_HEIGHT } from "./loop_gutter";
import type { Language } from "./tokenize";

interface LoweredProps {
  readonly label: string;
  readonly text: string;
  /** The text to compare with; null to display only the text. */
  readonly before: string | null;
  readonly language: Language;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

const OVERSCAN = 20;
const SIGNS: Readonly<Record<DiffLine["kind"], string>> = { same: "", added: "+", removed: "−", skip: "⋯" };

/** A text below the loop level, or its difference to another one; only visible lines are rendered. */
export function LoweredView({ label, text, before, language, onKeyDown }: LoweredProps): JSX.Element {
  const lines = useMemo(() => linesOf(text, before), [text, before]);
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const first = Math.max(0, Math.floor(top / LINE_HEIGHT) - OVERSCAN);
  const last = first + Math.ceil((box.current?.clientHeight ?? 800) / LINE_HEIGHT) + 2 * OVERSCAN;
  const width = useMemo(() => lines.reduce((w, line) => Math.max(w, line.text.length), 0), [lines]);
  const visible = lines.slice(first, last);
  return (
    <div
      class="tw-code"
      ref={box}
      tabIndex={0}
      role="region"
      aria-label={label}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={onKeyDown}
    >
      <div class="tw-code-page" style={{ height: `${lines.length * LINE_HEIGHT + 16}px` }}>
        <Gutter lines={visible} first={first} compares={before !== null} />
        <div class="tw-code-text" style={{ minWidth: `${width + 4}ch` }}>
          {visible.map((line, index) => (
            <Line
              key={first + index}
              text={line.kind === "skip" ? `${String(line.count)} unchanged lines` : line.text}
              language={line.kind === "skip" ? "plain" : language}
              top={(first + index) * LINE_HEIGHT}
              band={`is-${line.kind}`}
              label=""
            />
          ))}
        </div>
      </div>
    </div>
  );
}

function linesOf(text: string, before: string | null): DiffLine[] {
  if (text === "") return [];
  const after = split(text);
  if (before !== null) return diffOf(split(before), after);
  return after.map((line) => ({ kind: "same", text: line, count: 1 }));
}

function split(text: string): string[] {
  return text.replace(/\n$/, "").replaceAll("\t", "    ").split("\n");
}

interface GutterProps {
  readonly lines: readonly DiffLine[];
  readonly first: number;
  readonly compares: boolean;
}

/** The numbers of the lines, or the signs of a difference, which color alone does not convey. */
function Gutter({ lines, first, compares }: GutterProps): JSX.Element {
  return (
    <div class="tw-gutter" style={{ width: "48px" }}>
      <div class="tw-numbers" style={{ top: `${first * LINE_HEIGHT + 8}px` }} aria-hidden={compares ? undefined : "true"}>
        {lines.map((line, index) => (compares ? SIGNS[line.kind] : String(first + index + 1))).join("\n")}
      </div>
    </div>
  );
}
