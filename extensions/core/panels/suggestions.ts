import type { Handle, StepData, StepInfo, Suggestion } from "../protocol";
import type { Values } from "./form";

/** The suggestions of one step, never empty. */
export type Suggestions = readonly [Suggestion, ...Suggestion[]];

/** Return the suggestions by step, in the order of the first ones. */
export function groups(suggestions: readonly Suggestion[]): Suggestions[] {
  const found = new Map<string, [Suggestion, ...Suggestion[]]>();
  for (const suggestion of suggestions) {
    const list = found.get(suggestion.step);
    if (list) list.push(suggestion);
    else found.set(suggestion.step, [suggestion]);
  }
  return [...found.values()];
}

/** Return whether a suggestion contains the text of a filter. */
export function matches(suggestion: Suggestion, query: string): boolean {
  const words = `${suggestion.step} ${suggestion.label} ${suggestion.summary} ${suggestion.family}`;
  return words.toLowerCase().includes(query.trim().toLowerCase());
}

/** Return the step of a suggestion with the entered values of its form. */
export function withValues({ data }: Suggestion, values: Values): StepData {
  return { ...data, values: { ...data.values, ...values } };
}

/**
 * Return the steps of the catalog that accept a selected part and are not suggested for it, as
 * suggestions whose other parameters are empty or have their defaults.
 */
export function otherSteps(catalog: readonly StepInfo[], selection: Handle, suggested: readonly Suggestion[]): Suggestion[] {
  const names = new Set(suggested.map((suggestion) => suggestion.step));
  return catalog.filter((info) => !names.has(info.step)).flatMap((info) => empty(info, selection) ?? []);
}

/** Return a step of the catalog for a selected part, null if no parameter accepts the part. */
function empty({ step, family, summary, composite, fields }: StepInfo, selection: Handle): Suggestion | null {
  const target = fields.find((field) => field.kinds.includes(selection.kind));
  const whole = selection.kind === "function" && fields.every((field) => field.kinds.length === 0);
  if (!target && !whole) return null;
  return {
    key: `all ${step}`,
    step,
    family,
    applicable: true,
    label: "",
    summary,
    data: { op: step, function: selection.function, handles: target ? { [target.name]: [selection] } : {}, values: {} },
    fields: fields.map((field) => (field === target ? { ...field, value: selection.name } : field)),
    problems: [],
    more_problems: 0,
    composite,
    steps: composite ? null : 1,
  };
}
