// Keys in the notation of Lumino: modifiers and a key, separated by spaces, such as `Accel Shift Z`.
// `Accel` is Ctrl, or Cmd on a Mac.

const NAMES: Readonly<Record<string, string>> = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", "-": "−" };
const MAC_SIGNS: Readonly<Record<string, string>> = { Accel: "⌘", Alt: "⌥", Shift: "⇧" };
const MODIFIERS = new Set(["Accel", "Alt", "Shift"]);

function isMac(): boolean {
  return /Mac|iPhone|iPad/.test(navigator.userAgent);
}

/** Return whether an event is the press of keys. */
export function isPress(keys: string, event: KeyboardEvent): boolean {
  const parts = keys.split(" ");
  const key = parts.at(-1) ?? "";
  const wanted = new Set(parts.filter((part) => MODIFIERS.has(part)));
  if ((event.ctrlKey || event.metaKey) !== wanted.has("Accel") || event.altKey !== wanted.has("Alt")) return false;
  // A sign may need Shift, depending on the layout of the keyboard.
  const isSign = key.length === 1 && key.toLowerCase() === key.toUpperCase();
  return (isSign || event.shiftKey === wanted.has("Shift")) && keyOf(event) === key;
}

/** Return the key of an event; a letter is that of the keyboard if the layout or Alt types another sign. */
function keyOf({ key, code }: KeyboardEvent): string {
  if (/^[a-z]$/i.test(key)) return key.toUpperCase();
  if (/^Key[A-Z]$/.test(code)) return code.slice(3);
  return key === " " ? "Space" : key;
}

/** Return keys as text: `Ctrl+Shift+Z`, or `⌘⇧Z` on a Mac. */
export function keyText(keys: string): string {
  const parts = keys.split(" ");
  const key = parts.at(-1) ?? "";
  const shown = NAMES[key] ?? (parts.length === 1 && key.length === 1 ? key.toLowerCase() : key);
  const modifiers = parts.slice(0, -1);
  if (isMac()) return modifiers.map((part) => MAC_SIGNS[part] ?? part).join("") + shown;
  return [...modifiers.map((part) => (part === "Accel" ? "Ctrl" : part)), shown].join("+");
}

/** Return keys as the value of `aria-keyshortcuts`. */
export function ariaKeys(keys: string): string {
  const accel = isMac() ? "Meta" : "Control";
  return keys.split(" ").map((part) => (part === "Accel" ? accel : part.length === 1 ? part.toLowerCase() : part)).join("+");
}

/** Return keys in the notation of CodeMirror: `Mod-Shift-z`. */
export function editorKeys(keys: string): string {
  return keys.split(" ").map((part) => (part === "Accel" ? "Mod" : part.length === 1 ? part.toLowerCase() : part)).join("-");
}
