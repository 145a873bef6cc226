// Contents by hash, such as weights: they are sent once, and remain after the device is lost.
import { GpuError } from "./failure";

/** The bytes that are kept; the contents that were unused for longest are removed. */
const MOST = 1 << 30;

export class Kept {
  private readonly parts = new Map<string, { readonly content: Uint8Array<ArrayBuffer>; missing: number }>();

  missing(hashes: readonly string[]): string[] {
    return hashes.filter((hash) => this.parts.get(hash)?.missing !== 0);
  }

  add(hash: string, bytes: number, offset: number, part: Uint8Array): void {
    const found = this.parts.get(hash);
    const entry = offset === 0 || !found ? { content: new Uint8Array(bytes), missing: bytes } : found;
    entry.content.set(part, offset);
    entry.missing -= part.byteLength;
    this.use(hash, entry);
  }

  get(hash: string): Uint8Array<ArrayBuffer> {
    const entry = this.parts.get(hash);
    if (entry?.missing !== 0) throw new GpuError("invalid", `content ${hash} was not sent`, hash);
    this.use(hash, entry);
    return entry.content;
  }

  private use(hash: string, entry: { readonly content: Uint8Array<ArrayBuffer>; missing: number }): void {
    this.parts.delete(hash);
    this.parts.set(hash, entry);
    let total = 0;
    for (const { content } of this.parts.values()) total += content.byteLength;
    for (const [oldest, { content }] of this.parts) {
      if (total <= MOST || oldest === hash) return;
      this.parts.delete(oldest);
      total -= content.byteLength;
    }
  }
}

/** The contents that this page keeps. */
export const KEPT = new Kept();
