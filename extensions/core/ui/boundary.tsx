import { Component, type ComponentChildren } from "preact";

interface Props {
  readonly name: string;
  readonly children: ComponentChildren;
}

interface State {
  readonly fault: string | null;
}

/** Keeps a fault in one pane from taking the others away; tells it, and offers to try again. */
export class Boundary extends Component<Props, State> {
  override state: State = { fault: null };

  override componentDidCatch(error: unknown): void {
    this.setState({ fault: error instanceof Error ? error.message : String(error) });
  }

  override render(): ComponentChildren {
    const { fault } = this.state;
    if (fault === null) return this.props.children;
    return (
      <div class="tw-empty" role="alert">
        <p>
          The {this.props.name} could not be drawn: {fault}
        </p>
        <button type="button" class="tw-button" onClick={() => this.setState({ fault: null })}>
          Try again
        </button>
      </div>
    );
  }
}
