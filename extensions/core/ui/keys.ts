import { useEffect } from "preact/hooks";

const EDITING = new Set(["a", "c", "v", "x", "z", "y"]);
/** The keys that a text uses with Ctrl or Alt: copy, movements of the cursor, and completion. */
const READING = new Set(["a", "c", " ", "home", "end", "arrowleft", "arrowright", "arrowup", "arrowdown"]);

/** Return whether an element is a text field or a list, which use letter keys themselves. */
export function isTyping(target: EventTarget | null): boolean {
  const box = target instanceof HTMLInputElement && ["checkbox", "radio"].includes(target.type);
  return (target instanceof HTMLInputElement && !box) || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement;
}

function isReading(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest(".cm-editor") !== null;
}

/**
 * Return whether a key belongs to the workbench; `isBound` states whether a command has it. JupyterLab
 * gets all other combinations with Ctrl, Meta, or Alt, and function keys. Keys without a modifier would
 * trigger shortcuts of the notebook, such as deleting a cell; Enter with a modifier would run the cell.
 */
export function belongsHere(event: KeyboardEvent, isBound: boolean): boolean {
  if (isBound) return true;
  if (/^F\d+$/.test(event.key)) return false;
  if (!(event.ctrlKey || event.metaKey || event.altKey) || event.key === "Enter") return true;
  const key = event.key.toLowerCase();
  if (isReading(event.target) && READING.has(key)) return true;
  return isTyping(event.target) && EDITING.has(key) && !event.shiftKey;
}

/**
 * Mark the keys of the workbench before JupyterLab handles them. JupyterLab ignores keys in elements
 * with this attribute, and listens at the document in the capture phase, after the window.
 */
export function useOwnKeys(root: { readonly current: HTMLElement | null }, isBound: (event: KeyboardEvent) => boolean): void {
  useEffect(() => {
    const mark = (event: KeyboardEvent): void => {
      const box = root.current;
      if (box && event.target instanceof Node && box.contains(event.target))
        box.toggleAttribute("data-lm-suppress-shortcuts", belongsHere(event, isBound(event)));
    };
    window.addEventListener("keydown", mark, true);
    return () => window.removeEventListener("keydown", mark, true);
  }, [root, isBound]);
}
