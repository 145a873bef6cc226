import { useEffect } from "preact/hooks";

interface Ref {
  readonly current: HTMLElement | null;
}

/**
 * Keep the keyboard focus in an element: if a control with the focus is removed, as by an applied
 * step, focus the control that takes its role. A role is the attribute `data-focus`, such as
 * `apply:split`; `field:split:factors` and `apply:split` fall back to `step:split`.
 */
export function useKeptFocus(root: Ref): void {
  useEffect(() => {
    const box = root.current;
    if (!box) return undefined;
    let last: HTMLElement | SVGElement | null = null;
    const remember = (event: FocusEvent): void => {
      if (event.target instanceof HTMLElement || event.target instanceof SVGElement) last = event.target;
    };
    const leave = (event: FocusEvent): void => {
      // The browser sends this event as well when it removes the element, which is then connected no more.
      if (event.target instanceof Element && event.target.isConnected) queueMicrotask(() => forget(event.target as Element));
    };
    const forget = (left: Element): void => {
      if (left.isConnected && !box.contains(document.activeElement)) last = null;
    };
    const restore = (): void => {
      if (last === null || last.isConnected || box.contains(document.activeElement)) return;
      const role = last.dataset.focus ?? "";
      last = null;
      successor(box, role).focus({ preventScroll: true });
    };
    const observer = new MutationObserver(restore);
    observer.observe(box, { childList: true, subtree: true });
    box.addEventListener("focusin", remember);
    box.addEventListener("focusout", leave);
    return () => {
      observer.disconnect();
      box.removeEventListener("focusin", remember);
      box.removeEventListener("focusout", leave);
    };
  }, [root]);
}

/** Return the control that takes the role of a removed one, else the selection, else the text. */
function successor(box: HTMLElement, role: string): HTMLElement {
  const [kind = "", name = ""] = role.split(":");
  const roles = [role, ...(name === "" ? [] : [`step:${name}`])];
  // A control in a folded part cannot have the focus.
  const controls = [...box.querySelectorAll<HTMLElement>("[data-focus]")].filter((control) => !control.closest("details:not([open]) > :not(summary)"));
  const same = roles.map((wanted) => controls.find((control) => control.dataset.focus === wanted));
  const alike = controls.find((control) => kind === "rule" && control.dataset.focus?.startsWith("rule:"));
  const markers = [".tw-marker.is-selected", ".tw-marker[tabindex='0']", ".tw-code-text"].map((selector) => box.querySelector<HTMLElement>(selector));
  return [...same, alike, ...markers].find((element) => element instanceof HTMLElement) ?? box;
}
