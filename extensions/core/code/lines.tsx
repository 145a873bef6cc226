import type { JSX } from "preact";
import { memo } from "../ui/memo";
import { tokenize, type Language } from "./tokenize";

interface LineProps {
  readonly text: string;
  readonly language: Language;
  readonly top: number;
  readonly band: string;
  readonly note: string;
}

/** One line of code, coloured; `note` is told at its end. */
export const Line = memo(function Line(props: LineProps): JSX.Element {
  return (
    <div class={`tw-line ${props.band}`} style={{ transform: `translateY(${props.top}px)` }}>
      {tokenize(props.text, props.language).map((token, index) =>
        token.kind === "text" ? (
          token.text
        ) : (
          <span key={index} class={`tw-tok-${token.kind}`}>
            {token.text}
          </span>
        ),
      )}
      {props.note === "" ? null : <span class="tw-line-note">{props.note}</span>}
      {"\n"}
    </div>
  );
});
