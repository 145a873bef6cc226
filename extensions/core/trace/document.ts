import { useEffect, useRef } from "preact/hooks";
import { useWatch } from "../observable";
import type { Document } from "../protocol";
import type { Store } from "../store";

type Purpose = "copy" | "save";

/** Return a function that requests the trace as a document, and copies or saves it when received. */
export function useDocument(store: Store, announce: (text: string) => void): (format: Document["format"], purpose: Purpose) => void {
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

/** Save a file in the downloads of the browser. */
export function download(file: Document): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([file.text], { type: "text/plain" }));
  link.download = file.name;
  link.click();
  URL.revokeObjectURL(link.href);
}
