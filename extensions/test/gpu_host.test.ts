import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { clientName } from "../core/client";
import { GpuHost, type Gpu, type GpuModule } from "../core/gpu/host";
import type { GpuAnswer, GpuFacts, GpuFailure, GpuWork } from "../core/protocol";

const FACTS: GpuFacts = { name: "GPU", software: false, features: [], language: [], limits: {}, step: 1, browser: "Chrome 130" };
const OPEN: GpuWork = { kind: "open", features: [], language: [] };

let answers: { answer: GpuAnswer; buffers: readonly ArrayBuffer[] }[];
let closed: number;
let report: (failure: GpuFailure) => void;
let waiting: (() => void)[];
let texts: string[];
let host: GpuHost;

const gpu: Gpu = {
  facts: FACTS,
  run: async (work) => {
    if (work.kind === "read") return { buffers: [new ArrayBuffer(work.bytes)] };
    if (work.kind === "run") await new Promise<void>((resolve) => waiting.push(resolve));
    if (work.kind === "find") throw Object.assign(new Error("hung"), { failure: { kind: "lost", message: "hung", subject: "" } });
    return {};
  },
  close: () => (closed += 1),
};

const module: GpuModule = {
  open: (_work, lost) => {
    report = lost;
    return Promise.resolve(gpu);
  },
};

function call(work: GpuWork, number = 1, client = clientName(), text = ""): void {
  host.handle({ type: "gpu", client, call: number, work }, [new DataView(new TextEncoder().encode(text).buffer)]);
}

async function last(count: number): Promise<GpuAnswer> {
  await vi.waitFor(() => expect(answers.length).toBe(count));
  const found = answers.at(-1)?.answer;
  if (!found) throw new Error("no answer");
  return found;
}

beforeEach(() => {
  [answers, closed, waiting, texts] = [[], 0, [], []];
  Object.defineProperty(navigator, "gpu", { value: {}, configurable: true });
  host = new GpuHost(
    (answer, buffers) => answers.push({ answer, buffers }),
    (text) => {
      texts.push(text);
      return Promise.resolve(module);
    },
  );
});

afterEach(() => {
  host.dispose();
  Reflect.deleteProperty(navigator, "gpu");
});

test("neither loads the module nor opens the GPU before the user asks for a run", async () => {
  call(OPEN);
  expect(await last(1)).toMatchObject({ call: 1, failure: { kind: "not_requested" } });
  expect(texts).toEqual([]);
  host.allow();
  call(OPEN, 2, clientName(), "export {}");
  expect(await last(2)).toMatchObject({ call: 2, facts: FACTS });
  expect(texts).toEqual(["export {}"]);
});

test("ignores the calls of another page", async () => {
  host.allow();
  call(OPEN, 1, "another");
  call({ kind: "ping" }, 2);
  expect(await last(1)).toMatchObject({ call: 2 });
  expect(texts).toEqual([]);
});

test("answers a ping while a call runs, and calls one after another", async () => {
  host.allow();
  call(OPEN, 1);
  await last(1);
  call({ kind: "run", commands: [] }, 2);
  call({ kind: "read", buffer: 1, offset: 0, bytes: 8 }, 3);
  call({ kind: "ping" }, 4);
  expect(await last(2)).toMatchObject({ call: 4 });
  await vi.waitFor(() => expect(waiting.length).toBe(1));
  waiting[0]?.();
  expect(await last(4)).toMatchObject({ call: 3 });
  expect(answers.at(-1)?.buffers[0]?.byteLength).toBe(8);
});

test("reports failures, a lost device, and a page that is left", async () => {
  host.allow();
  call({ kind: "find", hashes: [] }, 1);
  expect(await last(1)).toMatchObject({ failure: { kind: "closed" } });
  call(OPEN, 2);
  await last(2);
  call({ kind: "find", hashes: [] }, 3);
  expect(await last(3)).toMatchObject({ failure: { kind: "lost", message: "hung" } });
  report({ kind: "lost", message: "hung", subject: "" });
  expect(await last(4)).toMatchObject({ call: 0, failure: { kind: "lost" } });
  window.dispatchEvent(new Event("pagehide"));
  expect(await last(5)).toMatchObject({ call: 0, failure: { kind: "closed" } });
  expect(closed).toBe(1);
  window.dispatchEvent(new Event("pagehide"));
  expect(answers.length).toBe(5);
});

test("states why the page has no GPU, and whether it was hidden", async () => {
  Reflect.deleteProperty(navigator, "gpu");
  host.allow();
  call(OPEN);
  expect((await last(1)).failure?.kind).toMatch(/insecure|disabled|old/);
  expect(texts).toEqual([]);
  Object.defineProperty(document, "hidden", { value: true, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
  call({ kind: "ping" }, 2);
  expect((await last(2)).hidden).toBe(true);
  Reflect.deleteProperty(document, "hidden");
});
