// The module that a page loads to run kernels on its GPU.
import { browserOf } from "../core/gpu/available";
import type { Gpu, Result } from "../core/gpu/host";
import type { GpuFacts, GpuFailure, GpuOpen, GpuWork } from "../core/protocol";
import { Commands } from "./commands";
import { GpuError, Loss } from "./failure";
import { KEPT } from "./kept";
import { FINE, Stamps, timed } from "./timing";

/** Features that are used if the adapter has them. */
const OPTIONAL: readonly GPUFeatureName[] = ["shader-f16", "subgroups", "timestamp-query"];

/** The limits of the adapter that replace the portable ones. */
const RAISED = ["maxBufferSize", "maxStorageBufferBindingSize"] as const;

export async function open(work: GpuOpen, lost: (failure: GpuFailure) => void): Promise<Gpu> {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) {
    throw new GpuError("no_adapter", "the browser has WebGPU, but no GPU that it can use: its driver is missing or blocked (see chrome://gpu)");
  }
  const missing = work.features.filter((name) => !adapter.features.has(name));
  missing.push(...work.language.filter((name) => !navigator.gpu.wgslLanguageFeatures.has(name)));
  if (missing.length > 0) throw new GpuError("no_feature", `the GPU of the page has no ${missing.join(", ")}`, missing.join(", "));
  const requiredFeatures = OPTIONAL.filter((name) => adapter.features.has(name));
  const requiredLimits = Object.fromEntries(RAISED.map((name) => [name, adapter.limits[name]]));
  const device = await adapter.requestDevice({ requiredFeatures, requiredLimits });
  const loss = new Loss(device, lost);
  const queue = { device, loss };
  const stamps = device.features.has("timestamp-query") ? new Stamps(queue) : null;
  const step = stamps ? await stamps.step() : 0;
  return new PageGpu(queue, stamps, factsOf(adapter, device, step));
}

function factsOf({ info, limits: most }: GPUAdapter, device: GPUDevice, step: number): GpuFacts {
  const { name, version } = browserOf(navigator.userAgent);
  const described = [info.vendor, info.architecture, info.device, info.description].filter((word) => word !== "");
  const { limits } = device;
  return {
    name: [...new Set(described)].join(" ") || "unnamed GPU",
    software: info.isFallbackAdapter || described.some((word) => /swiftshader|llvmpipe|software/i.test(word)),
    features: [...device.features],
    language: [...navigator.gpu.wgslLanguageFeatures],
    limits: {
      "max-buffer-size": most.maxBufferSize,
      "max-storage-buffer-binding-size": limits.maxStorageBufferBindingSize,
      "min-storage-buffer-offset-alignment": limits.minStorageBufferOffsetAlignment,
      "min-uniform-buffer-offset-alignment": limits.minUniformBufferOffsetAlignment,
    },
    step,
    browser: version ? `${name} ${version}` : navigator.userAgent,
  };
}

class PageGpu implements Gpu {
  private readonly commands: Commands;

  constructor(
    private readonly queue: { readonly device: GPUDevice; readonly loss: Loss },
    private readonly stamps: Stamps | null,
    readonly facts: GpuFacts,
  ) {
    this.commands = new Commands(queue.device, queue.loss);
  }

  async run(work: GpuWork, buffers: readonly DataView[]): Promise<Result> {
    switch (work.kind) {
      case "run":
        await this.commands.run(work.commands, bytesOf(buffers[0]));
        return {};
      case "read":
        return { buffers: [await this.commands.read(work.buffer, work.offset, work.bytes)] };
      case "find":
        return { missing: KEPT.missing(work.hashes) };
      case "keep":
        KEPT.add(work.hash, work.bytes, work.offset, bytesOf(buffers[0]));
        return {};
      case "time":
        return { samples: await this.time(work) };
      default:
        throw new GpuError("invalid", `unknown call ${work.kind}`);
    }
  }

  private time(work: Extract<GpuWork, { kind: "time" }>): ReturnType<typeof timed> {
    const { recording } = this.commands;
    if (!recording) throw new GpuError("invalid", "nothing was recorded");
    const { step } = this.facts;
    return timed(this.queue, recording, step > 0 && step < FINE ? this.stamps : null, work);
  }

  close(): void {
    this.commands.destroy();
    this.stamps?.destroy();
    this.queue.device.destroy();
  }
}

/** Return the bytes of a buffer of a message, whose memory is not shared. */
function bytesOf(view: DataView | undefined): Uint8Array<ArrayBuffer> {
  if (!view) return new Uint8Array();
  return new Uint8Array(view.buffer as ArrayBuffer, view.byteOffset, view.byteLength);
}
