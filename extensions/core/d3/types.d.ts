// The parts of D3 that are used, whose packages have no types.

declare module "d3-selection" {
  export interface Selection<E extends Element> {
    call<A extends unknown[]>(action: (selection: Selection<E>, ...values: A) => void, ...values: A): this;
    on(types: string, listener: null): this;
  }
  export function select<E extends Element>(element: E): Selection<E>;
  export const selection: { readonly prototype: { interrupt: () => unknown } };
}

declare module "d3-zoom" {
  import type { Selection } from "d3-selection";

  export interface ZoomTransform {
    readonly k: number;
    readonly x: number;
    readonly y: number;
    scale(factor: number): ZoomTransform;
    translate(x: number, y: number): ZoomTransform;
    toString(): string;
  }

  export interface ZoomEvent {
    readonly transform: ZoomTransform;
    /** The event of the user; none for a call of the program. */
    readonly sourceEvent: Event | null | undefined;
  }

  type Point = readonly [number, number];

  export interface Zoom<E extends Element> {
    (selection: Selection<E>): void;
    extent(extent: () => readonly [Point, Point]): this;
    scaleExtent(extent: Point): this;
    translateExtent(extent: readonly [Point, Point]): this;
    filter(filter: (event: MouseEvent) => boolean): this;
    wheelDelta(delta: (event: WheelEvent) => number): this;
    clickDistance(distance: number): this;
    on(types: string, listener: (event: ZoomEvent) => void): this;
    readonly transform: (selection: Selection<E>, transform: ZoomTransform) => void;
    readonly scaleBy: (selection: Selection<E>, factor: number) => void;
    readonly translateBy: (selection: Selection<E>, x: number, y: number) => void;
    readonly translateTo: (selection: Selection<E>, x: number, y: number) => void;
  }

  export function zoom<E extends Element>(): Zoom<E>;
  export function zoomTransform(element: Element): ZoomTransform;
  export const zoomIdentity: ZoomTransform;
}

declare module "d3-scale" {
  export interface Scale {
    (value: number): number;
    domain(): [number, number];
    domain(domain: readonly [number, number]): this;
    range(range: readonly [number, number]): this;
    clamp(clamp: boolean): this;
    nice(): this;
    ticks(count?: number): number[];
    tickFormat(count: number, format: (value: number) => string): (value: number) => string;
  }
  export function scaleLinear(): Scale;
  export function scaleLog(): Scale;
}

declare module "d3-array" {
  export function extent(values: Iterable<number>): [number, number] | [undefined, undefined];
  export function quantile(values: Iterable<number>, share: number): number | undefined;
}
