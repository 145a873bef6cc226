import { render } from "preact";
import { expect, test } from "vitest";
import { Name } from "../core/ui/name";

function html(text: string): string {
  const element = document.createElement("div");
  render(<Name text={text} />, element);
  return element.innerHTML;
}

test("a name may be divided after underscores only", () => {
  expect(html("fused_matmul_add")).toBe("fused_<wbr>matmul_<wbr>add");
  expect(html("relu")).toBe("relu");
  expect(html("_a__b_")).toBe("_<wbr>a__<wbr>b_");
});
