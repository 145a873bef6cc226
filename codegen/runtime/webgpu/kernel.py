"""Kernels on a WebGPU device: pipelines, bind groups, and the numbers of a launch."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ....errors import TilewrightError
from ....ir.symbolic import Expr, Var, evaluate, var
from ....ir.symbolic.parse import parse_expr
from ....target.webgpu import DISPATCH
from ...errors import KernelError, LaunchError
from ...messages import Message
from ...wgsl import Shader
from .memory import Block

MOST_GROUPS: Final = 256
"""The number of bind groups that a kernel remembers."""

MOST_SIZES: Final = 256
"""The number of values of the integer parameters whose binding sizes a kernel remembers."""

ERROR_BYTES: Final = 20
"""The size of the record of a failed check."""


class RejectedShaderError(TilewrightError):
    """A shader that the WebGPU driver rejects."""

    title = "Rejected shader"


@dataclass(frozen=True, slots=True)
class Bound:
    """A binding: a buffer, the start and the bytes, and the index of the first word."""

    block: Block
    start: int
    size: int
    word: int


class Recorder(Protocol):
    """The device that records the launches of a kernel."""

    errors: tuple[type[Exception], ...]

    def bind(self, kernel: str, address: int, size: int) -> Bound:
        """Return the binding of a buffer argument."""
        ...

    def pipeline(self, name: str, text: str, bindings: int) -> tuple[Any, Any]:
        """Return the pipeline of a shader and the layout of its bind group."""
        ...

    def bind_group(self, layout_: Any, bound: list[Bound], *, checked: bool) -> Any:
        """Return a bind group of buffers."""
        ...

    def record(
        self,
        pipeline: Any,
        group: Any,
        numbers: bytes,
        dispatch: tuple[int, int, int],
        *,
        checked: bool,
        work: int = 0,
    ) -> None:
        """Record a launch with its estimated number of instructions."""
        ...


class WebGpuKernel:
    """One version of a kernel; its pipeline is created for the first launch."""

    def __init__(self, device: Recorder, shader: Shader) -> None:
        """Parse the sizes of the bindings."""
        self.device = device
        self.shader = shader
        self._symbols = tuple(var(f"s{k}") for k in range(shader.symbols))
        names: dict[str, Var] = {s.name: s for s in self._symbols}
        self._terms = tuple(parse_expr(text, names) for text in shader.sizes)
        self._work = parse_expr(shader.work, names)
        self._sizes: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._groups: dict[tuple[tuple[int, int, int], ...], Any] = {}
        self._made: tuple[Any, Any] | None = None

    @property
    def name(self) -> str:
        """The name of the kernel without the width of its indices."""
        return self.shader.name.partition("$")[0]

    def sizes(self, symbols: tuple[int, ...]) -> tuple[int, ...]:
        """Return the bytes of the buffer of each binding, then the work of a launch."""
        found = self._sizes.get(symbols)
        if found is None:
            values = dict(zip(self._symbols, symbols, strict=True))
            terms = (*self._terms, self._work)
            found = tuple(evaluate(t, values) if isinstance(t, Expr) else 0 for t in terms)
            if len(self._sizes) >= MOST_SIZES:
                self._sizes.clear()
            self._sizes[symbols] = found
        return found

    def launch(self, grid: Sequence[int], words: Sequence[int]) -> None:
        """Record a launch with the words of the arguments: pointers, integers, then scratch."""
        shader, device = self.shader, self.device
        if not all(grid):
            return
        split = self._split(words)
        symbols = tuple(words[split : split + shader.symbols])
        pointers = (*words[:split], *words[split + shader.symbols :])
        *sizes, work = self.sizes(symbols)
        bound = [
            device.bind(self.name, pointers[k], size)
            for k, size in zip(shader.bindings, sizes, strict=True)
        ]
        dispatch = self._dispatch(grid)
        numbers = struct.pack(
            f"<{len(symbols)}q{len(bound)}i3i", *symbols, *(b.word for b in bound), *grid
        )
        pipeline, layout = self.pipeline()
        group = self._group(layout, bound)
        checked = bool(shader.messages)
        device.record(pipeline, group, numbers, dispatch, checked=checked, work=work)

    def _split(self, words: Sequence[int]) -> int:
        """Return the number of buffer arguments before the integers."""
        extra = len(words) - self.shader.symbols - self.shader.pointers
        if extra:
            raise LaunchError(
                f"expected {self.shader.symbols + self.shader.pointers} arguments, got "
                f"{len(words)}",
                where=f"kernel {self.name!r}",
            )
        return self.shader.buffers

    def _dispatch(self, grid: Sequence[int]) -> tuple[int, int, int]:
        x, y, z = grid
        folds = -(-x // DISPATCH) if self.shader.folded else 1
        found = min(x, DISPATCH), y, z * folds
        if x > DISPATCH * folds or max(found) > DISPATCH:
            raise LaunchError(
                f"the grid of {x} x {y} x {z} workgroups exceeds the limit of {DISPATCH} per "
                "dimension",
                where=f"kernel {self.name!r}",
                hint="bind fewer loops to blockIdx axes, or split the work into several calls",
                details={"grid": [x, y, z], "limit": DISPATCH},
            )
        return found

    def _group(self, layout: Any, bound: list[Bound]) -> Any:
        key = tuple((b.block.address, b.start, b.size) for b in bound)
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= MOST_GROUPS:
                self._groups.clear()
            group = self._groups[key] = self.device.bind_group(
                layout, bound, checked=bool(self.shader.messages)
            )
        return group

    def forget(self, address: int) -> None:
        """Remove the bind groups of a buffer that is destroyed."""
        self._groups = {
            key: group
            for key, group in self._groups.items()
            if all(start != address for start, _, _ in key)
        }

    def failed_check(self, record: bytes) -> KernelError | None:
        """Return the error of the first failed check of a launch; None if there is none."""
        check, value, bound = struct.unpack("<Iqq", record[:ERROR_BYTES])
        if not check:
            return None
        text = self.shader.messages[check - 1]
        below = Message.RANGE_BELOW if value < bound else Message.RANGE
        message = Message.BOUNDS if "is out of bounds" in text else below
        return KernelError(
            message.format(text=text, actual=value, expected=bound),
            where=f"kernel {self.name!r}",
            details={"kernel": self.name, "actual": value, "expected": bound},
        )

    def pipeline(self) -> tuple[Any, Any]:
        """Return the pipeline and the layout of its bind group, created for the first launch.

        Raises
        ------
        RejectedShaderError
            If the driver rejects the shader.
        """
        if self._made is None:
            count = len(self.shader.bindings) + bool(self.shader.messages)
            try:
                self._made = self.device.pipeline(self.shader.name, self.shader.text, count)
            except self.device.errors as error:
                raise RejectedShaderError(
                    f"the driver rejects the shader of kernel {self.name!r}: {error}",
                    where=f"kernel {self.name!r}",
                    hint="this is a bug in the code generator; report it with the program",
                ) from error
        return self._made
