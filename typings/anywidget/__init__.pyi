"""What Tilewright calls of anywidget: the widget base class and what it inherits."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

__version__: str

class AnyWidget:
    _esm: str | Path
    _css: str | Path
    comm: Any
    layout: Any
    def __init__(self, **kwargs: object) -> None: ...
    @property
    def model_id(self) -> str: ...
    def add_traits(self, **traits: object) -> None: ...
    def close(self) -> None: ...
    def on_msg(
        self,
        callback: Callable[[Any, dict[str, Any], list[memoryview]], None],
        remove: bool = False,
    ) -> None: ...
    def send(
        self,
        content: dict[str, Any],
        buffers: Sequence[bytes | bytearray | memoryview] | None = None,
    ) -> None: ...
    def observe(
        self, handler: Callable[[Any], None], names: str | Sequence[str] = ..., type: str = ...
    ) -> None: ...
    def unobserve(
        self, handler: Callable[[Any], None], names: str | Sequence[str] = ..., type: str = ...
    ) -> None: ...
    def _repr_mimebundle_(
        self, **kwargs: object
    ) -> tuple[dict[str, Any], dict[str, Any]] | None: ...
