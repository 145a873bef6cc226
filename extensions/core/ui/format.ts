/** A time in a unit that keeps it readable: `12.4 µs`, `1.35 ms`. */
export function duration(microseconds: number): string {
  if (microseconds < 0.9995) return `${(microseconds * 1000).toFixed(0)} ns`;
  if (microseconds < 999.5) return `${digits(microseconds)} µs`;
  if (microseconds < 999_500) return `${digits(microseconds / 1000)} ms`;
  return `${digits(microseconds / 1e6)} s`;
}

/** Three significant digits, without an exponent. */
export function digits(value: number): string {
  if (value >= 99.95) return value.toFixed(0);
  if (value >= 9.995) return value.toFixed(1);
  return value.toFixed(2);
}

/** A share as per cent. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

/** A range as mathematicians write it, open ends left open. */
export function range(lower: number | null, upper: number | null): string {
  return `${lower === null ? "−∞" : String(lower)} … ${upper === null ? "∞" : String(upper)}`;
}
