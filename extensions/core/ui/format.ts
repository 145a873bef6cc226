/** Format a time with three significant digits and a unit: `12.4 µs`, `1.35 ms`. */
export function duration(microseconds: number): string {
  if (microseconds < 0.9995) return `${(microseconds * 1000).toFixed(0)} ns`;
  if (microseconds < 999.5) return `${digits(microseconds)} µs`;
  if (microseconds < 999_500) return `${digits(microseconds / 1000)} ms`;
  return `${digits(microseconds / 1e6)} s`;
}

/** Format a number with three significant digits, without an exponent. */
export function digits(value: number): string {
  if (value >= 99.95) return value.toFixed(0);
  if (value >= 9.995) return value.toFixed(1);
  return value.toFixed(2);
}

/** Format a share as a percentage. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

/** Format a range; a missing limit is infinite. */
export function range(lower: number | null, upper: number | null): string {
  return `${lower === null ? "−∞" : String(lower)} … ${upper === null ? "∞" : String(upper)}`;
}

/** Format an elapsed time: `3.2 s`, or minutes and seconds from one minute on. */
export function seconds(value: number): string {
  if (value < 60) return `${value.toFixed(1)} s`;
  return `${String(Math.floor(value / 60))} min ${String(Math.floor(value % 60))} s`;
}
