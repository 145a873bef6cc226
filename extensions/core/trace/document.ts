// The trace as a file: copied, saved, and loaded.
import type { Document, Update } from "../protocol";
import type { Store } from "../store";
import { bytes } from "../ui/format";

type Format = Document["format"];

const NAMES: Readonly<Record<Format, string>> = { json: "JSON", python: "Python" };
/** The largest file that is loaded, in bytes. */
const MAX_FILE = 16 * 1024 * 1024;

/** Copy the trace to the clipboard. */
export function copyTrace(store: Store, format: Format): void {
  withDocument(store, format, ({ text }) => {
    void copy(text).then((done) => store.announce(done ? `Copied the trace as ${NAMES[format]}` : "The browser denied access to the clipboard"));
  });
}

/** Save the trace in the downloads of the browser. */
export function saveTrace(store: Store, format: Format): void {
  withDocument(store, format, (file) => {
    download(file);
    store.announce(`Saved ${file.name}`);
  });
}

/** Use the trace as a document; without the Jupyter kernel, that is the browser's copy. */
function withDocument(store: Store, format: Format, use: (file: Document) => void): void {
  const { saved } = store;
  const answered = (update: Update | null): void => {
    if (update?.document) use(update.document);
  };
  if (store.state.value.alive) store.send({ type: "save", format }, answered);
  else if (saved && format === "json") use({ name: saved.name, format, text: saved.text });
}

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

/** Copy a text on a page without the clipboard of `navigator`, which needs HTTPS. */
function copyBySelection(text: string): boolean {
  const field = document.createElement("textarea");
  const focused = document.activeElement;
  field.value = text;
  field.style.position = "fixed";
  field.style.opacity = "0";
  document.body.append(field);
  field.focus();
  field.select();
  try {
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    field.remove();
    if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  }
}

/** Save a file in the downloads of the browser. */
export function download(file: Document): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([file.text], { type: "text/plain" }));
  link.download = file.name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** The dialog that was opened last; without a reference the browser may drop it. */
let chooser: HTMLInputElement | null = null;

/** Let the user choose a file, and replay its steps. */
export function loadTrace(store: Store): void {
  const input = document.createElement("input");
  chooser = input;
  input.type = "file";
  input.accept = ".json,.jsonl,.py";
  input.addEventListener("change", () => {
    if (chooser === input) chooser = null;
    const file = input.files?.[0];
    if (file) void readTrace(store, file);
  });
  input.click();
}

/** Replay the steps of a file; one that cannot be a trace is not sent. */
export async function readTrace(store: Store, file: File): Promise<void> {
  if (file.size > MAX_FILE) {
    store.announce(`${file.name} has ${bytes(file.size)}; the file of a trace has at most ${bytes(MAX_FILE)}`);
    return;
  }
  try {
    store.send({ type: "load", text: await file.text(), notes: {}, name: file.name });
  } catch (error) {
    store.announce(`${file.name} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}
