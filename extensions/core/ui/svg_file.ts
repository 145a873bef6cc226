/** The properties of drawn elements that a style sheet sets, which a file must contain itself. */
const PROPERTIES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-weight", "opacity"];

/** Return a drawing as the text of a file, with the colors that it is displayed with. */
export function svgText(drawing: SVGSVGElement): string {
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const shown = [drawing, ...drawing.querySelectorAll("*")];
  const copies = [copy, ...copy.querySelectorAll("*")];
  shown.forEach((element, index) => {
    const style = getComputedStyle(element);
    for (const name of PROPERTIES) {
      const value = style.getPropertyValue(name);
      if (value) (copies[index] as SVGElement).style.setProperty(name, value);
    }
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const [, , width, height] = (drawing.getAttribute("viewBox") ?? "").split(" ");
  if (width && height) {
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
  }
  return new XMLSerializer().serializeToString(copy);
}

/** Save a drawing as a file of the browser. */
export function saveSvg(drawing: SVGSVGElement, name: string): void {
  const url = URL.createObjectURL(new Blob([svgText(drawing)], { type: "image/svg+xml" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
