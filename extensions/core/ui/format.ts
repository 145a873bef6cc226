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

const PREFIXES = ["", "k", "M", "G", "T", "P"];
const BYTES = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Format a count with three significant digits and a prefix: `1.57 M`, with a unit `1.57 MFLOP`. */
export function count(value: number, unit = ""): string {
  return scaled(value, 1000, PREFIXES.map((prefix) => prefix + unit));
}

/** Format a number of bytes with three significant digits and a unit: `768 KiB`. */
export function bytes(value: number): string {
  return scaled(value, 1024, BYTES);
}

function scaled(value: number, base: number, units: readonly string[]): string {
  let at = 0;
  let left = value;
  while (left >= base - 0.5 && at < units.length - 1) {
    left /= base;
    at += 1;
  }
  return `${at === 0 ? String(Math.round(left)) : digits(left)} ${units[at] ?? ""}`.trim();
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
