import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { Lowered } from "../protocol";
import { Line } from "./lines";
import { LINE_HEIGHT } from "./loop_gutter";

const OVERSCAN = 20;

/** LLVM or assembly text, read-only; only visible lines are rendered. */
export function LoweredView({ lowered }: { lowered: Lowered }): JSX.Element {
  const lines = useMemo(() => lowered.text.split("\n"), [lowered.text]);
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const first = Math.max(0, Math.floor(top / LINE_HEIGHT) - OVERSCAN);
  const last = first + Math.ceil((box.current?.clientHeight ?? 800) / LINE_HEIGHT) + 2 * OVERSCAN;
  const width = useMemo(() => lines.reduce((w, line) => Math.max(w, line.length), 0), [lines]);
  return (
    <div
      class="tw-code"
      ref={box}
      tabIndex={0}
      role="region"
      aria-label={`${lowered.kind === "llvm" ? "LLVM" : "Assembly"} of ${lowered.function}`}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <div class="tw-code-page" style={{ height: `${lines.length * LINE_HEIGHT + 16}px` }}>
        <div class="tw-code-text tw-code-plain" style={{ minWidth: `${width + 4}ch` }}>
          {lines.slice(first, last).map((text, index) => (
            <Line
              key={first + index}
              text={text.replaceAll("\t", "    ")}
              language={lowered.kind}
              top={(first + index) * LINE_HEIGHT}
              band=""
              label=""
            />
          ))}
        </div>
      </div>
    </div>
  );
}
