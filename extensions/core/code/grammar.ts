import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { Tag } from "@lezer/highlight";
import { tokenAt, type Language, type TokenKind } from "./tokenize";

type Style = TokenKind | "indent";

const STYLES: readonly Style[] = ["keyword", "loop", "name", "type", "call", "number", "string", "comment", "decorator", "operator", "indent"];
/** Tags by the name of a token; some names without the prefix have a meaning in all grammars. */
const TAGS = new Map(STYLES.map((style) => [nameOf(style), { style, tag: Tag.define(style) }]));

const colors = HighlightStyle.define(
  [...TAGS.values()].map(({ style, tag }) => ({ tag, class: style === "indent" ? "tw-indent" : `tw-tok-${style}` })),
);

function nameOf(style: Style): string {
  return `token_${style}`;
}

/** The tokens of a language as a grammar of CodeMirror, which also colors removed lines of a comparison. */
export function grammar(language: Language): Extension {
  return [GRAMMARS[language], syntaxHighlighting(colors)];
}

function define(language: Language): StreamLanguage<unknown> {
  return StreamLanguage.define({
    name: language,
    tokenTable: Object.fromEntries([...TAGS].map(([name, { tag }]) => [name, tag])),
    token: (stream) => {
      if (language === "script" && stream.sol() && stream.eatSpace()) return nameOf("indent");
      const token = tokenAt(stream.string, stream.pos, language);
      stream.pos += token?.text.length ?? 1;
      return token ? nameOf(token.kind) : null;
    },
  });
}

const GRAMMARS: Readonly<Record<Language, Extension>> = {
  script: define("script"),
  llvm: define("llvm"),
  assembly: define("assembly"),
  plain: define("plain"),
};
