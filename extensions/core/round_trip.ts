// The times from requests to the paint of their answers, in the timeline of the browser.

/** Record that a request is sent. */
export function markRequest(id: number, type: string): void {
  performance.mark(`tw:send:${id}`, { detail: type });
}

/** Record the time from a request until the paint that follows its answer. */
export function measureReply(id: number): void {
  afterPaint(() => {
    const start = `tw:send:${id}`;
    const [mark] = performance.getEntriesByName(start) as PerformanceMark[];
    if (!mark) return;
    performance.measure("tw:round-trip", { start, detail: { id, type: mark.detail as unknown } });
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
