import { SearchQuery, closeSearchPanel, findNext, findPrevious, getSearchQuery, setSearchQuery } from "@codemirror/search";
import { runScopeHandlers, type EditorView, type Panel, type ViewUpdate } from "@codemirror/view";

/** The largest number of matches that are counted. */
const MAX_MATCHES = 1000;
/** The number of characters in which matches are counted. */
const MAX_TEXT = 2_000_000;
/** The pause in milliseconds after which the matches are counted, so that typing is not delayed. */
const PAUSE = 120;

type Option = "caseSensitive" | "wholeWord" | "regexp";

const OPTIONS: readonly (readonly [Option, string, string])[] = [
  ["caseSensitive", "Aa", "Match case"],
  ["wholeWord", "ab", "Match entire words"],
  ["regexp", ".*", "Regular expression"],
];

/** The search above a text: the searched text, the number of matches, and the options. */
export function searchPanel(view: EditorView): Panel {
  const panel = new SearchPanel(view);
  return { dom: panel.dom, top: true, mount: () => panel.field.select(), update: (update) => panel.update(update) };
}

class SearchPanel {
  readonly dom = document.createElement("div");
  readonly field = document.createElement("input");
  private readonly count = document.createElement("span");
  private readonly options = new Map<Option, HTMLButtonElement>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly view: EditorView) {
    this.dom.className = "tw-find";
    this.dom.setAttribute("role", "search");
    this.field.className = "tw-input tw-mono";
    this.field.ariaLabel = "Find in the text";
    this.field.setAttribute("main-field", "true");
    this.field.addEventListener("input", () => this.commit());
    this.count.className = "tw-quiet";
    this.count.setAttribute("role", "status");
    for (const [option, text, label] of OPTIONS) this.options.set(option, button(text, label, () => this.toggle(option)));
    this.dom.append(
      this.field,
      this.count,
      ...this.options.values(),
      button("↑", "Previous match (Shift+Enter)", () => findPrevious(view)),
      button("↓", "Next match (Enter)", () => findNext(view)),
      button("×", "Close the search (Escape)", () => closeSearchPanel(view)),
    );
    this.dom.addEventListener("keydown", (event) => this.press(event));
    this.show(getSearchQuery(view.state));
  }

  update(update: ViewUpdate): void {
    const query = getSearchQuery(update.state);
    const changed = update.transactions.some((transaction) => transaction.effects.some((effect) => effect.is(setSearchQuery)));
    if (changed) this.show(query);
    else if (update.docChanged || update.selectionSet) this.recount();
  }

  private show(query: SearchQuery): void {
    if (this.field.value !== query.search) this.field.value = query.search;
    for (const [option, toggle] of this.options) toggle.ariaPressed = String(query[option]);
    this.recount();
  }

  private toggle(option: Option): void {
    const toggle = this.options.get(option);
    if (!toggle) return;
    toggle.ariaPressed = String(toggle.ariaPressed !== "true");
    this.commit();
  }

  private commit(): void {
    const options = Object.fromEntries([...this.options].map(([option, toggle]) => [option, toggle.ariaPressed === "true"]));
    this.view.dispatch({ effects: setSearchQuery.of(new SearchQuery({ search: this.field.value, literal: true, ...options })) });
  }

  private press(event: KeyboardEvent): void {
    if (runScopeHandlers(this.view, event, "search-panel")) event.preventDefault();
    else if (event.key === "Enter" && event.target === this.field) {
      event.preventDefault();
      (event.shiftKey ? findPrevious : findNext)(this.view);
    }
  }

  private recount(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.count.textContent = countText(this.view);
    }, PAUSE);
  }
}

function button(text: string, label: string, action: () => void): HTMLButtonElement {
  const element = document.createElement("button");
  element.type = "button";
  element.className = "tw-tool";
  element.textContent = text;
  element.title = label;
  element.ariaLabel = label;
  element.addEventListener("click", action);
  return element;
}

/** Return the number of matches and which one is selected, such as `2 of 12`. */
function countText(view: EditorView): string {
  const query = getSearchQuery(view.state);
  if (query.search === "") return "";
  if (!query.valid) return "Invalid expression";
  const { from, to } = view.state.selection.main;
  const length = view.state.doc.length;
  const cursor = query.getCursor(view.state, 0, Math.min(length, MAX_TEXT));
  let count = 0;
  let current = 0;
  for (let found = cursor.next(); !found.done && count < MAX_MATCHES; found = cursor.next()) {
    count++;
    if (found.value.from === from && found.value.to === to) current = count;
  }
  const isPartial = count === MAX_MATCHES || length > MAX_TEXT;
  if (count === 0) return isPartial ? "" : "None";
  return `${current > 0 ? `${String(current)} of ` : ""}${String(count)}${isPartial ? " or more" : ""}`;
}
