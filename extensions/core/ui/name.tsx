import { Fragment, type JSX } from "preact";

/** A name that may be divided after each underscore, and within a word only if a word is wider than its line. */
export function Name({ text }: { readonly text: string }): JSX.Element {
  const words = text.split(/(?<=_)(?=[^_])/u);
  return (
    <>
      {words.map((word, index) => (
        <Fragment key={index}>
          {index > 0 ? <wbr /> : null}
          {word}
        </Fragment>
      ))}
    </>
  );
}
