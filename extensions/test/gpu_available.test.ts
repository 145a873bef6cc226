import { expect, test } from "vitest";
import { browserOf, isInPage, missingFor, missingGpu } from "../core/gpu/available";

const CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36";
const FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:120.0) Gecko/20100101 Firefox/120.0";
const SAFARI = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15";

function reason(userAgent: string, isSecureContext = true, gpu?: unknown): string {
  const found = missingGpu({ isSecureContext, location: { origin: "http://hub:8888" }, navigator: { gpu, userAgent } });
  return found ? `${found.kind}: ${found.message}` : "";
}

test("names the reason why a page has no GPU", () => {
  expect(reason(CHROME, true, {})).toBe("");
  expect(reason(CHROME, false)).toMatch(/^insecure: pages of http:\/\/hub:8888 have no GPU/);
  expect(reason(CHROME)).toMatch(/^disabled: WebGPU is disabled in Chrome 130/);
  expect(reason(CHROME.replace("130", "100"))).toBe("old: Chrome 100 has no WebGPU; versions from 113 on have it");
  expect(reason(FIREFOX)).toBe("old: Firefox 120 has no WebGPU; versions from 141 on have it");
  expect(reason(SAFARI)).toMatch(/^old: Safari 17/);
  expect(reason("Something/1")).toMatch(/^disabled: WebGPU is disabled in this browser;/);
});

test("knows browsers by their user agent", () => {
  expect(browserOf(`${CHROME} Edg/130.0`)).toEqual({ name: "Edge", version: 130, first: 113 });
  expect(browserOf("")).toMatchObject({ name: "this browser", version: 0 });
});

test("only targets in browsers need the GPU of the page", () => {
  expect(isInPage("webgpu browser f16")).toBe(true);
  expect(isInPage("webgpu")).toBe(false);
  expect(missingFor({ key: "webgpu", missing: "no wgpu" })).toBe("no wgpu");
  expect(missingFor({ key: "webgpu browser", missing: "" })).not.toBe(""); // jsdom has no GPU
});
