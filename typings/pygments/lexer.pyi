from collections.abc import Iterator

class Lexer:
    def get_tokens(self, text: str) -> Iterator[tuple[object, str]]: ...
