// The times from requests to the paint of their answers, in the timeline of the browser.
import type { Update } from "./protocol";

/** Record that a request is sent. */
export function markRequest(id: number, type: string): void {
  performance.mark(`tw:send:${id}`, { detail: type });
}

/**
 * Record the time from a request until the paint that follows its answer, and the time from the
 * arrival of the steps of a selection, which may follow the answer, until their paint.
 */
export function measureUpdate({ reply, menu }: Update): void {
  if (reply === 0 && !menu) return;
  const arrived = performance.now();
  afterPaint(() => {
    const start = `tw:send:${reply}`;
    const [mark] = performance.getEntriesByName(start) as PerformanceMark[];
    if (mark) performance.measure("tw:round-trip", { start, detail: { id: reply, type: mark.detail as unknown } });
    if (menu) performance.measure("tw:round-trip", { start: arrived, detail: { id: reply, type: "menu" } });
    performance.clearMarks(start);
  });
}

/** Run an action after the next paint. */
function afterPaint(action: () => void): void {
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = (): void => {
      channel.port1.close();
      action();
    };
    channel.port2.postMessage(null);
  });
}
