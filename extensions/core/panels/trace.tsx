import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { tokenize } from "../code/tokenize";
import { useWatch } from "../observable";
import type { Document, TraceLine } from "../protocol";
import type { Store } from "../store";
import { reveal } from "../ui/reveal";
import { Icon, type IconName } from "../ui/icons";

const MARKS: Readonly<Record<TraceLine["status"], readonly [IconName, string]>> = {
  done: ["check", "applied"],
  query: ["search", "query"],
  opaque: ["info", "opaque: unknown step"],
  pending: ["clock", "pending"],
};

/** The trace as Python text, with actions that copy, save and load it. */
export function TracePanel({ store }: { store: Store }): JSX.Element {
  const lines = useWatch(store.state, (state) => state.trace);
  const [message, setMessage] = useState("");
  const request = useDocument(store, setMessage);
  const file = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    reveal(list.current?.lastElementChild);
  }, [lines.length]);
  const load = (event: Event): void => {
    const input = event.currentTarget as HTMLInputElement;
    void input.files?.[0]?.text().then((text) => {
      input.value = ""; // otherwise choosing the same file again would not fire an event
      store.send({ type: "load", text });
    });
  };
  return (
    <div class="tw-panel">
      <div class="tw-panel-bar">
        <span class="tw-quiet" role="status">
          {message || `${String(lines.length)} ${lines.length === 1 ? "step" : "steps"}`}
        </span>
        <button type="button" class="tw-button" onClick={() => request("python", "copy")}>
          <Icon name="copy" size={14} /> Copy as Python
        </button>
        <button type="button" class="tw-button" onClick={() => request("json", "save")}>
          <Icon name="save" size={14} /> Save
        </button>
        <button type="button" class="tw-button" onClick={() => file.current?.click()}>
          <Icon name="load" size={14} /> Load
        </button>
        <input ref={file} type="file" accept=".json,.jsonl" hidden aria-label="Trace file" onChange={load} />
      </div>
      {lines.length === 0 ? (
        <p class="tw-quiet tw-pad">No steps yet. Applied steps are listed here as Python code.</p>
      ) : (
        <ol class="tw-trace" aria-label="Trace" ref={list}>
          {lines.map((line) => (
            <Step key={line.index} line={line} />
          ))}
        </ol>
      )}
    </div>
  );
}

function Step({ line }: { line: TraceLine }): JSX.Element {
  const [icon, meaning] = MARKS[line.status];
  return (
    <li class={`tw-trace-line is-${line.status}`}>
      <span class="tw-trace-number">{line.index}</span>
      <span class="tw-trace-mark" role="img" aria-label={meaning} title={meaning}>
        <Icon name={icon} size={13} />
      </span>
      <code title={line.text}>
        {tokenize(shortened(line.text)).map((token, index) => (
          <span key={index} class={`tw-tok-${token.kind}`}>
            {token.text}
          </span>
        ))}
        {line.decisions === "" ? null : <span class="tw-line-label">{line.decisions}</span>}
      </code>
      <span class="tw-trace-time">{line.milliseconds === null ? "" : `${line.milliseconds.toFixed(1)} ms`}</span>
    </li>
  );
}

const MAX_NAMES = 4;

/** Return a line with only the first names of a long list of results. */
export function shortened(text: string): string {
  const at = text.indexOf(" = sch.");
  const names = text.slice(0, Math.max(0, at)).split(", ");
  if (names.length <= MAX_NAMES + 1) return text;
  return `${names.slice(0, MAX_NAMES).join(", ")}, … ${String(names.length - MAX_NAMES)} more${text.slice(at)}`;
}

type Purpose = "copy" | "save";

function useDocument(store: Store, announce: (text: string) => void): (format: Document["format"], purpose: Purpose) => void {
  const document_ = useWatch(store.state, (state) => state.document);
  const purpose = useRef<Purpose | null>(null);
  useEffect(() => {
    if (document_ === null || purpose.current === null) return;
    const wanted = purpose.current;
    purpose.current = null;
    if (wanted === "save") {
      download(document_);
      announce(`Saved ${document_.name}`);
    } else {
      void copy(document_.text).then((done) => announce(done ? "Copied" : "The browser denied access to the clipboard"));
    }
  }, [document_, announce]);
  return (format, wanted) => {
    purpose.current = wanted;
    store.send({ type: "save", format });
  };
}

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

function download(file: Document): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([file.text], { type: "text/plain" }));
  link.download = file.name;
  link.click();
  URL.revokeObjectURL(link.href);
}
