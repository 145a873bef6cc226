import { Component, h, type ComponentChild, type ComponentClass, type FunctionComponent } from "preact";

/** Return a component that renders again only if one of its properties changes. */
export function memo<P extends object>(inner: FunctionComponent<P>): ComponentClass<P> {
  return class Memo extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      const names = Object.keys(next) as (keyof P)[];
      return names.some((name) => !Object.is(next[name], this.props[name]));
    }

    override render(): ComponentChild {
      return h(inner, this.props);
    }
  };
}
