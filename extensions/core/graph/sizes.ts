import { useLayoutEffect, useMemo, useState } from "preact/hooks";
import { textWidth } from "../ui/text_width";
import type { Card } from "./fold";
import type { Box } from "./layout";

const HEIGHT = 38;
const PARAM_HEIGHT = 24;

/** Return whether a card has one line of text: a parameter, a carried value, or a result. */
export function isSmall(card: Card): boolean {
  return card.kind === "param" || card.kind === "carried" || card.kind === "result";
}

/** The fonts of the texts of cards. */
export interface Fonts {
  readonly title: string;
  readonly detail: string;
}

/** Return the fonts of the cards, whose families depend on the notebook's theme. */
export function useFonts(box: { readonly current: HTMLElement | null }): Fonts {
  const [families, setFamilies] = useState<readonly [string, string]>(["sans-serif", "monospace"]);
  useLayoutEffect(() => {
    if (!box.current) return;
    const style = getComputedStyle(box.current);
    setFamilies([style.fontFamily || "sans-serif", style.getPropertyValue("--tw-mono") || "monospace"]);
  }, [box]);
  const [title, detail] = families;
  return useMemo(() => ({ title: `600 12px ${title}`, detail: `12px ${detail}` }), [title, detail]);
}

/** Return the size of a card with space for a figure. */
export function boxOf(card: Card, fonts: Fonts, figure: string): Box {
  const first = card.members[0];
  if (isSmall(card)) {
    const text = `${first?.name ?? ""}  ${card.detail}`;
    return { key: card.key, width: Math.max(56, textWidth(text, fonts.detail) + 24), height: PARAM_HEIGHT };
  }
  const title = textWidth(clipped(card.title, 24), fonts.title);
  const width = Math.max(title, textWidth(clipped(card.detail, 27), fonts.detail) + textWidth(figure, fonts.detail)) + 24;
  return { key: card.key, width: Math.max(84, width), height: HEIGHT };
}

/** Return a text of at most `limit` letters. */
export function clipped(text: string, limit: number): string {
  return text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
}

