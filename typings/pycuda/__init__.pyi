VERSION: tuple[int, ...]
VERSION_TEXT: str
