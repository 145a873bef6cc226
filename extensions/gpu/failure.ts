// Errors of calls, by which the session finds the reason.
import type { GpuFailure } from "../core/protocol";

export class GpuError extends Error {
  override readonly name = "GpuError";
  readonly failure: GpuFailure;

  constructor(kind: GpuFailure["kind"], message: string, subject = "") {
    super(message);
    this.failure = { kind, message, subject };
  }
}

/** The loss of a device: promises that wait for it are rejected. */
export class Loss {
  private failure: GpuError | null = null;
  private readonly waiting = new Set<(error: GpuError) => void>();

  constructor(device: GPUDevice, report: (failure: GpuFailure) => void) {
    void device.lost.then(({ reason, message }) => {
      if (reason === "destroyed") this.lose(new GpuError("closed", "the GPU of the page is closed"));
      else {
        this.lose(new GpuError("lost", `the page lost its GPU${message ? `: ${message}` : ""}`));
        if (this.failure) report(this.failure.failure);
      }
    });
  }

  /** Return the value of a promise, or raise that the device was lost. */
  unless<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.failure) {
        reject(this.failure);
        return;
      }
      this.waiting.add(reject);
      promise
        .then(resolve, (error: unknown) => reject(this.failure ?? (error instanceof Error ? error : new Error(String(error)))))
        .finally(() => this.waiting.delete(reject));
    });
  }

  private lose(failure: GpuError): void {
    this.failure ??= failure;
    for (const reject of this.waiting) reject(this.failure);
  }
}
