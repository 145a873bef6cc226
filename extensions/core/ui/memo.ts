import { Component, h, type ComponentChild, type ComponentClass, type FunctionComponent } from "preact";

/** Return a component that renders again only if one of its properties changes, or if `isOther` states so. */
export function memo<P extends object>(inner: FunctionComponent<P>, isOther: (before: Readonly<P>, now: Readonly<P>) => boolean = differs): ComponentClass<P> {
  return class Memo extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      return isOther(this.props, next);
    }

    override render(): ComponentChild {
      return h(inner, this.props);
    }
  };
}

/** Return whether one of the properties of a component changed, except for some. */
export function differs<P extends object>(before: Readonly<P>, now: Readonly<P>, except: ReadonlySet<unknown> = new Set()): boolean {
  const names = Object.keys(now) as (keyof P)[];
  return names.some((name) => !except.has(name) && !Object.is(now[name], before[name]));
}
