import { goToNextChunk, goToPreviousChunk } from "@codemirror/merge";
import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Icon } from "../ui/icons";
import { isTyping } from "../ui/keys";
import { ComparedText } from "./compared_text";
import { TextTools } from "./tools";
import type { Language } from "./tokenize";

interface ComparisonProps {
  readonly label: string;
  /** The text to compare with; null to display only the text. */
  readonly before: string | null;
  readonly after: string;
  readonly language: Language;
  /** The actions on the text, if buttons elsewhere use them. */
  readonly tools?: TextTools;
  /** A small view with few unchanged lines, as high as its text, for a part of a panel. */
  readonly inline?: boolean;
  readonly onKeyDown?: (event: KeyboardEvent) => void;
}

/** The width in pixels from which both texts are shown beside each other. */
const BESIDE = 900;

/**
 * The changes from one text to another: removed above added lines, or both texts beside each other
 * where they fit. Keys: `n` and `p` move to the next and the previous change, `e` shows all lines.
 */
export function Comparison({ label, before, after, language, tools: given, inline = false, onKeyDown }: ComparisonProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const text = useRef<ComparedText | null>(null);
  const own = useMemo(() => {
    const created = new TextTools();
    created.wrap.set(inline); // a small view has no room to scroll sideways
    return created;
  }, [inline]);
  const [entire, setEntire] = useState(false);
  const tools = given ?? own;
  const beside = useWide(host) && !inline;
  useLayoutEffect(() => {
    if (!host.current) return undefined;
    const created = new ComparedText(host.current, tools);
    text.current = created;
    return () => created.destroy();
  }, [tools]);
  useLayoutEffect(() => text.current?.show({ label, before, after, language, beside, entire, inline }), [tools, label, before, after, language, beside, entire, inline]);
  const press = (event: KeyboardEvent): void => {
    if (event.defaultPrevented || isTyping(event.target)) return; // the search field is inside as well
    const plain = !(event.ctrlKey || event.metaKey || event.altKey);
    if (plain && event.key === "e" && before !== null) {
      event.preventDefault();
      setEntire(!entire);
    } else onKeyDown?.(event);
  };
  return <div class={`tw-code${before === null ? "" : " tw-comparison"}${inline ? " is-inline" : ""}`} ref={host} onKeyDown={press} />;
}

/** The buttons that move between the changes of a comparison. */
export function ChangeButtons({ tools }: { tools: TextTools }): JSX.Element {
  const move = (command: typeof goToNextChunk): void => {
    if (tools.view.value) command(tools.view.value);
  };
  return (
    <>
      <button type="button" class="tw-tool tw-previous-change" aria-label="Previous change" aria-keyshortcuts="p" title="Previous change (p)" onClick={() => move(goToPreviousChunk)}>
        <Icon name="chevron" size={14} />
      </button>
      <button type="button" class="tw-tool tw-next-change" aria-label="Next change" aria-keyshortcuts="n" title="Next change (n)" onClick={() => move(goToNextChunk)}>
        <Icon name="chevron" size={14} />
      </button>
    </>
  );
}

function useWide(host: { readonly current: HTMLElement | null }): boolean {
  const [wide, setWide] = useState(false);
  useLayoutEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const look = (): void => setWide(element.clientWidth >= BESIDE);
    look();
    if (typeof ResizeObserver === "undefined") return undefined;
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, [host]);
  return wide;
}
