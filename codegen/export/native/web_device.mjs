// A part of the loader of models for WebGPU: errors, and the device of the page.

// @BEGIN@
/** WebGPU is not available. `reason` is "no-browser", "insecure-context", "no-webgpu", "disabled",
 * "no-adapter", "missing-feature", or "no-device". */
export class DeviceUnavailableError extends ModelError {
  constructor(reason, message) {
    super(message);
    this.name = "DeviceUnavailableError";
    this.reason = reason;
  }
}

/** The device was lost while a call used it, or the object belongs to a lost device. */
export class DeviceLostError extends ModelError {
  constructor(message) {
    super(message);
    this.name = "DeviceLostError";
  }
}

/** The browser rejects a shader. */
export class ShaderError extends ModelError {
  constructor(kernel, message) {
    super(`the browser rejects the shader of kernel '${kernel}': ${message}`);
    this.name = "ShaderError";
    this.kernel = kernel;
  }
}

/** Return the versions of browsers that enable WebGPU, and whether this browser is one of them. */
function knownBrowser(agent) {
  for (const [pattern, least] of [
    [/(?:Chrome|Edg)\/(\d+)/, 113], [/Firefox\/(\d+)/, 141], [/Version\/(\d+)[.\d]* .*Safari/, 26],
  ]) {
    const found = pattern.exec(agent);
    if (found !== null) return { text: found[0], recent: Number(found[1]) >= least };
  }
  return { text: agent, recent: false };
}

/** Return `navigator.gpu`, or raise the reason why there is none. */
function gpuOfPage() {
  const gpu = globalThis.navigator?.gpu;
  if (gpu) return gpu;
  if (globalThis.location === undefined) {
    throw new DeviceUnavailableError("no-browser", "WebGPU requires a page or a worker of a browser");
  }
  if (globalThis.isSecureContext === false) {
    throw new DeviceUnavailableError(
      "insecure-context",
      `WebGPU requires a secure context, and ${globalThis.location.origin} is not one: serve the ` +
        "page by https, or from localhost",
    );
  }
  const { text, recent } = knownBrowser(globalThis.navigator?.userAgent ?? "");
  if (recent) {
    throw new DeviceUnavailableError(
      "disabled",
      `WebGPU is disabled in this browser (${text}), by a setting, a policy, or on this system`,
    );
  }
  throw new DeviceUnavailableError(
    "no-webgpu",
    `this browser (${text}) has no WebGPU; Chrome and Edge 113, Firefox 141, and Safari 26 have it`,
  );
}

/** Return a new device with the limits of its adapter and the required features. */
async function openDevice() {
  const gpu = gpuOfPage();
  const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) {
    throw new DeviceUnavailableError(
      "no-adapter",
      "the browser has no adapter for WebGPU: its GPU is blocked, or has no driver",
    );
  }
  checkFeatures(adapter.features, gpu.wgslLanguageFeatures);
  const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
  const requiredLimits = { maxBufferSize, maxStorageBufferBindingSize };
  const requiredFeatures = FEATURES.adapter;
  return adapter.requestDevice({ requiredFeatures, requiredLimits }).catch((error) => {
    throw new DeviceUnavailableError("no-device", `the adapter has no device: ${error.message}`);
  });
}

function checkFeatures(features, language) {
  const missing = FEATURES.adapter.filter((name) => !features.has(name));
  missing.push(...FEATURES.language.filter((name) => !language?.has(name)));
  if (missing.length > 0) {
    throw new DeviceUnavailableError(
      "missing-feature",
      `the GPU or the browser lacks ${missing.join(", ")}, which the model requires`,
    );
  }
}

async function fetched(base, file, signal) {
  const url = new URL(file, base);
  const response = await fetch(url, { signal }).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new ModelError(`cannot fetch ${url}: ${error.message}`);
  });
  if (!response.ok) throw new ModelError(`cannot fetch ${url}: status ${response.status}`);
  return response;
}
