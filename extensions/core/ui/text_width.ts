const FALLBACK_WIDTH = 7.2;
const cache = new Map<string, number>();
let context: CanvasRenderingContext2D | null | undefined;

/** Return the width of a text in pixels, estimated where no canvas is available. */
export function textWidth(text: string, font: string): number {
  const key = `${font}\n${text}`;
  const cached = cache.get(key);
  if (cached !== undefined) return cached;
  context ??= canvasContext();
  if (!context) return text.length * FALLBACK_WIDTH;
  context.font = font;
  const width = context.measureText(text).width;
  cache.set(key, width);
  return width;
}

function canvasContext(): CanvasRenderingContext2D | null {
  return navigator.userAgent.includes("jsdom") ? null : document.createElement("canvas").getContext("2d");
}
