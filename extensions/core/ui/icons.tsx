import type { JSX } from "preact";

const PATHS = {
  undo: "M6 4 2.5 7.5 6 11 M3 7.5h6.5a4 4 0 0 1 0 8H7",
  redo: "M10 4l3.5 3.5L10 11 M13 7.5H6.5a4 4 0 0 0 0 8H9",
  play: "M5 3.2v9.6l8-4.8z",
  hammer: "M9.5 3.5 12.5 6.5 M8 5l3 3-6.2 6.2a1.4 1.4 0 0 1-2-2z M7 3.5c2-1.6 4.5-1.5 6 0l1 1-3 3",
  check: "M3 8.5 6.5 12 13 4.5",
  cross: "M4 4l8 8 M12 4l-8 8",
  lock: "M4 7.5h8v6H4z M5.5 7.5V5.5a2.5 2.5 0 0 1 5 0v2",
  wrench: "M13.5 4.5a3.5 3.5 0 0 1-4.8 4.300L4.5 13a1.6 1.6 0 0 1-2.3-2.300l4.2-4.200A3.5 3.5 0 0 1 10.7 1.700L8.8 3.600l.5 2.6 2.6.5z",
  copy: "M6 5.5h7.5V14H6z M3 10.5V2.5h7.5",
  save: "M8 2.5v8 M4.5 7.5 8 11l3.5-3.5 M3 13.5h10",
  load: "M8 11V3 M4.5 6.5 8 3l3.5 3.5 M3 13.5h10",
  chevron: "M6 4l4 4-4 4",
  plus: "M8 3v10 M3 8h10",
  minus: "M3 8h10",
  fit: "M2.5 6V2.5H6 M10 2.5h3.5V6 M13.5 10v3.5H10 M6 13.5H2.5V10",
  warn: "M8 2.5 14.5 13.5h-13z M8 6.5v3.5 M8 11.800v.2",
  info: "M8 7.200v4 M8 4.800v.2 M8 1.800a6.2 6.2 0 1 1 0 12.400A6.2 6.2 0 0 1 8 1.800z",
  loop: "M3 8a5 5 0 0 1 8.7-3.400L13 6 M13 2.800V6H9.8 M13 8a5 5 0 0 1-8.7 3.400L3 10 M3 13.200V10h3.2",
  block: "M3 3h10v10H3z M3 6.5h10",
  buffer: "M3 4.5h10v7H3z M6.3 4.5v7 M9.7 4.5v7",
  graph: "M8 2.5v3 M8 5.5 4.5 9 M8 5.5 11.5 9 M3 9h3v3H3z M10 9h3v3h-3z M6.5 1h3v3h-3z",
  clock: "M8 4.5V8l2.5 1.8 M8 1.800a6.2 6.2 0 1 1 0 12.400A6.2 6.2 0 0 1 8 1.800z",
  sliders: "M2 4.5h6 M12 4.5h2 M2 11.500h2 M8 11.500h6 M10 2.500v4 M6 9.500v4",
  folded: "M3 3h10 M3 13h10 M5.5 5.500 8 7.500l2.500-2 M5.500 10.500 8 8.500l2.500 2",
  unfolded: "M3 2.500h10 M3 13.500h10 M5.500 7 8 5l2.500 2 M5.500 9 8 11l2.500-2",
  wrap: "M2.500 3.500h11 M2.500 8h8.700a2.300 2.300 0 0 1 0 4.600H8 M9.800 10.800 8 12.600l1.800 1.800 M2.500 12.600h2.500",
  command: "M3 4.500 6.500 8 3 11.500 M8 12h5.500",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9z M10.5 10.5 14 14",
} as const;

export type IconName = keyof typeof PATHS;

/** An icon, hidden from assistive technology because its button or label has a name. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }): JSX.Element {
  return (
    <svg class="tw-icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The logo: tiles of a loop nest. */
export function Mark(): JSX.Element {
  return (
    <svg class="tw-mark" width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
      <rect x="1.5" y="1.5" width="7.5" height="7.5" rx="2" />
      <rect x="11" y="1.5" width="7.5" height="7.5" rx="2" class="tw-mark-fill" />
      <rect x="1.5" y="11" width="17" height="7.5" rx="2" class="tw-mark-soft" />
    </svg>
  );
}
