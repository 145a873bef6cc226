const GUESS = 7.2;
const known = new Map<string, number>();
let context: CanvasRenderingContext2D | null | undefined;

/** Width of a text in a font, in pixels; a guess where nothing is drawn. */
export function textWidth(text: string, font: string): number {
  const key = `${font}\n${text}`;
  const found = known.get(key);
  if (found !== undefined) return found;
  context ??= drawing();
  if (!context) return text.length * GUESS;
  context.font = font;
  const width = context.measureText(text).width;
  known.set(key, width);
  return width;
}

function drawing(): CanvasRenderingContext2D | null {
  return navigator.userAgent.includes("jsdom") ? null : document.createElement("canvas").getContext("2d");
}
