import { Component, type ComponentChildren } from "preact";

interface Props {
  readonly name: string;
  readonly children: ComponentChildren;
}

interface State {
  readonly error: string | null;
}

/** An error boundary: an error in one pane does not affect the others, and can be retried. */
export class Boundary extends Component<Props, State> {
  override state: State = { error: null };

  override componentDidCatch(error: unknown): void {
    this.setState({ error: error instanceof Error ? error.message : String(error) });
  }

  override render(): ComponentChildren {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <div class="tw-empty" role="alert">
        <p>
          The {this.props.name} could not be rendered: {error}
        </p>
        <button type="button" class="tw-button" onClick={() => this.setState({ error: null })}>
          Try again
        </button>
      </div>
    );
  }
}
