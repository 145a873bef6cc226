import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { ProgramText, type Display, type Handlers, type Kept, type Positions } from "./program";
import type { TextTools } from "./tools";

interface CodeProps extends Display, Handlers {
  readonly positions: Positions;
  readonly tools: TextTools;
  readonly kept: Kept;
}

/** The text of a function with its loop tree in the gutter. */
export function CodeView(props: CodeProps): JSX.Element {
  return <FunctionText key={props.pane.name} {...props} />;
}

function FunctionText({ positions, tools, kept, onSelect, onHover, ...display }: CodeProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const text = useRef<ProgramText | null>(null);
  const { name } = display.pane;
  useLayoutEffect(() => {
    if (!host.current) return undefined;
    const created = new ProgramText(host.current, name, positions, tools, kept);
    text.current = created;
    return () => created.destroy();
  }, []);
  useLayoutEffect(() => {
    if (!text.current) return;
    text.current.actions = { onSelect, onHover };
    text.current.update(display);
  });
  return <div class="tw-code" ref={host} />;
}
