// Calls of a session that use the GPU of this page. The module that runs them is loaded on the first
// call, and only after an action of the user in this page: a saved notebook never opens the GPU.
import { clientName } from "../client";
import type { GpuAnswer, GpuCall, GpuFacts, GpuFailure, GpuOpen, GpuSamples, GpuWork } from "../protocol";
import { missingGpu } from "./available";

/** The parts of an answer that depend on the call. */
export interface Result {
  readonly facts?: GpuFacts;
  readonly missing?: readonly string[];
  readonly samples?: GpuSamples;
  readonly buffers?: readonly ArrayBuffer[];
}

/** An open GPU; a call that fails raises an error with `failure`. */
export interface Gpu {
  readonly facts: GpuFacts;
  run(work: GpuWork, buffers: readonly DataView[]): Promise<Result>;
  close(): void;
}

/** The module that is loaded on the first call. */
export interface GpuModule {
  open(work: GpuOpen, lost: (failure: GpuFailure) => void): Promise<Gpu>;
}

type Send = (answer: GpuAnswer, buffers: readonly ArrayBuffer[]) => void;

/** Return the module with a text. */
async function imported(text: string): Promise<GpuModule> {
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  try {
    return (await import(/* @vite-ignore */ url)) as GpuModule;
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** Answers the calls for the client of this page, one after another. */
export class GpuHost {
  private readonly client = clientName();
  private readonly page = crypto.getRandomValues(new Uint32Array(2)).join("-");
  private allowed = false;
  private hidden = false;
  private gpu: Gpu | null = null;
  private last: Promise<void> = Promise.resolve();

  constructor(
    private readonly send: Send,
    private readonly load: (text: string) => Promise<GpuModule> = imported,
  ) {
    document.addEventListener("visibilitychange", this.look);
    window.addEventListener("pagehide", this.leave);
  }

  /** Close the GPU of a workbench that is removed, for example because its cell runs again. */
  dispose(): void {
    document.removeEventListener("visibilitychange", this.look);
    window.removeEventListener("pagehide", this.leave);
    this.close();
  }

  /** Let the session use the GPU: the user has asked for a run in this page. */
  allow(): void {
    this.allowed = true;
  }

  handle({ client, call, work }: GpuCall, buffers: readonly DataView[]): void {
    if (client !== this.client) return;
    if (work.kind === "ping") {
      this.answer(call, {});
      return;
    }
    this.last = this.last.then(() => this.run(call, work, buffers));
  }

  private async run(call: number, work: GpuWork, buffers: readonly DataView[]): Promise<void> {
    this.hidden = document.hidden;
    try {
      const { buffers: sent = [], ...result } = await this.result(work, buffers);
      this.answer(call, result, sent);
    } catch (error) {
      this.answer(call, { failure: failureOf(error) });
    }
  }

  private async result(work: GpuWork, buffers: readonly DataView[]): Promise<Result> {
    if (!this.allowed) throw refusal("not_requested", "this page was not asked to run kernels: choose Compile or Measure in it");
    if (work.kind === "open") return this.open(work, buffers);
    if (work.kind === "close") {
      this.close();
      return {};
    }
    if (!this.gpu) throw refusal("closed", "the GPU of the page is closed");
    return this.gpu.run(work, buffers);
  }

  private async open(work: GpuOpen, buffers: readonly DataView[]): Promise<Result> {
    const missing = missingGpu(window);
    if (missing) throw new GpuRefusal(missing);
    this.close();
    let module: GpuModule;
    try {
      module = await this.load(new TextDecoder().decode(buffers[0]));
    } catch (error) {
      throw refusal("module", `the page cannot load the module for its GPU: ${String(error)}`);
    }
    this.gpu = await module.open(work, (failure) => this.answer(0, { failure }));
    return { facts: this.gpu.facts };
  }

  private close(): void {
    this.gpu?.close();
    this.gpu = null;
  }

  /** Report that the page is closed, so that a run does not wait for it. */
  private readonly leave = (): void => {
    if (!this.gpu) return;
    this.close();
    this.answer(0, { failure: { kind: "closed", message: "the page was closed or left", subject: "" } });
  };

  private readonly look = (): void => {
    this.hidden ||= document.hidden;
  };

  private answer(call: number, result: Partial<GpuAnswer>, buffers: readonly ArrayBuffer[] = []): void {
    const { client, page, hidden } = this;
    this.send({ type: "gpu_answer", client, call, page, hidden, ...result }, buffers);
  }
}

/** An error that names why a call failed. */
export class GpuRefusal extends Error {
  override readonly name = "GpuRefusal";

  constructor(readonly failure: GpuFailure) {
    super(failure.message);
  }
}

function refusal(kind: GpuFailure["kind"], message: string): GpuRefusal {
  return new GpuRefusal({ kind, message, subject: "" });
}

/** Return the failure of an error; those of the module have their own class. */
function failureOf(error: unknown): GpuFailure {
  if (error instanceof Error && "failure" in error) return error.failure as GpuFailure;
  return { kind: "invalid", message: String(error), subject: "" };
}
