// What the tests use of node, and what their configuration hands them.
declare module "node:fs/promises" {
  export function readFile(path: string, encoding: "utf8"): Promise<string>;
  export function writeFile(path: string, text: string): Promise<void>;
}
