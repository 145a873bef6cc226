import { useEffect, useRef, useState } from "preact/hooks";

/** A value that notifies its listeners when it is replaced. */
export class Observable<T> {
  private readonly listeners = new Set<() => void>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(next: T): void {
    if (Object.is(next, this.current)) return;
    this.current = next;
    for (const listener of [...this.listeners]) listener();
  }

  update(change: (value: T) => T): void {
    this.set(change(this.current));
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** Return a part of an observable; the component renders again only if that part changes. */
export function useWatch<T, P>(source: Observable<T>, select: (value: T) => P): P {
  const [, render] = useState(0);
  const latest = useRef({ select, part: select(source.value) });
  latest.current = { select, part: select(source.value) };
  useEffect(() => {
    const check = (): void => {
      const { select: pick, part } = latest.current;
      if (!Object.is(pick(source.value), part)) render((count) => count + 1);
    };
    check();
    return source.subscribe(check);
  }, [source]);
  return latest.current.part;
}
