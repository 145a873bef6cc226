// Why a page has no `navigator.gpu`. Looking for it does not open a GPU.
import type { GpuFailure, TargetOption } from "../protocol";

/** The part of a window that decides whether it has a GPU. */
export interface Surroundings {
  readonly isSecureContext: boolean;
  readonly location: { readonly origin: string };
  readonly navigator: { readonly gpu?: unknown; readonly userAgent: string };
}

/** Browsers by the name in their user agent, and the first version with WebGPU on some systems. */
const FIRST: readonly (readonly [pattern: RegExp, name: string, version: number])[] = [
  [/Edg\/(\d+)/, "Edge", 113],
  [/Firefox\/(\d+)/, "Firefox", 141],
  [/Chrom(?:e|ium)\/(\d+)/, "Chrome", 113],
  [/Version\/(\d+).* Safari\//, "Safari", 26],
];

/** Return the name and version of a browser, and the first version with WebGPU. */
export function browserOf(agent: string): { readonly name: string; readonly version: number; readonly first: number } {
  for (const [pattern, name, first] of FIRST) {
    const found = pattern.exec(agent);
    if (found) return { name, version: Number(found[1]), first };
  }
  return { name: "this browser", version: 0, first: 0 };
}

/** Return why a page has no GPU; null if it may have one. */
export function missingGpu({ isSecureContext, location, navigator }: Surroundings): GpuFailure | null {
  if (navigator.gpu !== undefined) return null;
  if (!isSecureContext) {
    const message = `pages of ${location.origin} have no GPU, because the address is neither HTTPS nor localhost; use HTTPS or an SSH tunnel to http://localhost`;
    return { kind: "insecure", message, subject: location.origin };
  }
  const { name, version, first } = browserOf(navigator.userAgent);
  if (version < first) {
    return { kind: "old", message: `${name} ${version} has no WebGPU; versions from ${first} on have it`, subject: name };
  }
  const message = `WebGPU is disabled in ${name}${version ? ` ${version}` : ""}; enable it in its settings or flags (chrome://flags/#enable-unsafe-webgpu, about:config dom.webgpu.enabled)`;
  return { kind: "disabled", message, subject: name };
}

/** Whether a target runs kernels in this page, by its key. */
export function isInPage(key: string): boolean {
  return key.split(" ")[1] === "browser";
}

/** Return why code for a target cannot run, on the machine of the kernel or in this page; empty if it can. */
export function missingFor({ key, missing }: Pick<TargetOption, "key" | "missing">): string {
  return isInPage(key) ? (missingGpu(window)?.message ?? missing) : missing;
}
