import type { JSX } from "preact";
import { memo } from "../ui/memo";
import { tokenize, type Language } from "./tokenize";

interface LineProps {
  readonly text: string;
  readonly language: Language;
  readonly top: number;
  readonly band: string;
  readonly label: string;
}

/** A line of highlighted code, followed by an optional label. */
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
      {props.label === "" ? null : <span class="tw-line-label">{props.label}</span>}
      {"\n"}
    </div>
  );
});
