const KEY = "tilewright:client";

/**
 * Return the name of this page for sessions. A reloaded page keeps its name, and so its view; a
 * duplicated one has another name, because it has a view of its own.
 */
export function clientName(): string {
  try {
    const kept = sessionStorage.getItem(KEY);
    if (kept !== null && (named || isReloaded())) return kept;
    const name = randomName();
    sessionStorage.setItem(KEY, name);
    return name;
  } catch {
    return randomName(); // Storage is not allowed.
  } finally {
    named = true;
  }
}

/** Whether this page already chose its name. */
let named = false;

function isReloaded(): boolean {
  const [entry] = performance.getEntriesByType("navigation");
  return (entry as PerformanceNavigationTiming | undefined)?.type === "reload";
}

function randomName(): string {
  const values = crypto.getRandomValues(new Uint32Array(3));
  return [...values].map((value) => value.toString(36)).join("");
}
