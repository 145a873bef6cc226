// Replaces the package d3-interpolate, which contains colors, in the built widget.

/** Return the function that interpolates between two numbers. */
export function interpolateNumber(from: number, to: number): (share: number) => number {
  return (share) => from * (1 - share) + to * share;
}

export { interpolateNumber as interpolate };

export function interpolateRound(from: number, to: number): (share: number) => number {
  const between = interpolateNumber(from, to);
  return (share) => Math.round(between(share));
}

export function interpolateZoom(): never {
  throw new Error("the graph is moved without animation");
}

export function piecewise(): never {
  throw new Error("scales have two ends");
}
