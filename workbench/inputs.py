"""Random arguments at the sample sizes, shared by compiled program and interpreter."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

import numpy as np

from ..codegen.errors import OutOfMemoryError, SizeError
from ..errors import TilewrightError
from ..ir.dtype import DType
from ..ir.graph.nodes import GraphFunc, Info, PrimInfo, TensorInfo
from ..ir.loop.nodes import BufferParam, PrimFunc
from ..ir.module import Array, Function
from ..ir.sizes import storage_bytes
from ..ir.symbolic import Expr
from .integer_ranges import Ranges
from .render import Samples, at_samples

DEFAULT_RANGE = (0, 2)
"""The range of random integers without a known range: a mask, or indices into any table."""


MEMORY_FRACTION = 0.5
"""The fraction of physical memory that arguments may use; more could end the Jupyter kernel."""

TEMPORARY_BYTES = {"float": 16, "complex": 64}
"""The size of the temporary arrays per element that is drawn; 8 for other dtypes."""


class NoSampleError(TilewrightError):
    """A parameter whose sample value cannot be derived."""

    title = "Missing sample"


class _Draw:
    """Random arrays that together use at most a part of the memory."""

    def __init__(self, seed: int, ranges: Ranges) -> None:
        self._ranges = ranges
        self._random = np.random.default_rng(seed)
        self._left = self._limit = int(_physical_memory() * MEMORY_FRACTION)

    def array(self, name: str, shape: tuple[int, ...], dtype: DType) -> Array:
        """Return a random array for the parameter with this name."""
        if any(size < 0 for size in shape):
            raise SizeError(
                f"the shape is {shape}, but sizes are at least 0",
                where=f"parameter {name!r}",
                hint="choose larger values of the symbols",
            )
        count = math.prod(shape)
        needed = storage_bytes(count, dtype)
        kind = "float" if dtype.is_float else "complex" if dtype.is_complex else ""
        error = OutOfMemoryError(
            f"cannot allocate the {needed:,} bytes of shape {shape} and dtype {dtype}: random "
            f"arguments and their computation use at most {self._limit:,} bytes",
            where=f"parameter {name!r}",
            hint="choose smaller values of the symbols",
        )
        if needed + count * TEMPORARY_BYTES.get(kind, 8) > self._left:
            raise error
        self._left -= needed
        try:
            return _random(shape, dtype, self._random, self._ranges.get(name, DEFAULT_RANGE))
        except MemoryError:
            raise error from None


def _physical_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def sample_inputs(
    function: Function, samples: Samples, seed: int = 0, ranges: Ranges | None = None
) -> tuple[Array | int, ...]:
    """Return random positional arguments of a call; integers are drawn from ``ranges``.

    Raises
    ------
    OutOfMemoryError
        If they use more than a fraction of the physical memory; nothing is allocated for the
        parameter that exceeds it.
    """
    draw = _Draw(seed, ranges or {})
    if isinstance(function, GraphFunc):
        infos = ((p.value.name, p.value.info) for p in function.params if p.access != "out")
        return tuple(_of_info(name, info, samples, draw) for name, info in infos)
    return tuple(_of_prim(function, samples, draw))


def _of_prim(function: PrimFunc, samples: Samples, draw: _Draw) -> Iterator[Array | int]:
    for param in function.params:
        if not isinstance(param, BufferParam):
            yield samples[param.var.name]
        elif param.access != "out":
            buffer = param.buffer
            shape = _sizes(buffer.name, buffer.shape, samples)
            yield draw.array(buffer.name, shape, buffer.dtype)


def _of_info(name: str, info: Info, samples: Samples, draw: _Draw) -> Array | int:
    match info:
        case TensorInfo() if info.shape is not None and info.elements is not None:
            values = np.array(_sizes(name, info.elements, samples), info.dtype.numpy)
            return values.reshape(_sizes(name, info.shape, samples))
        case TensorInfo() if info.shape is not None:
            return draw.array(name, _sizes(name, info.shape, samples), info.dtype)
        case PrimInfo() if info.value is not None:
            return _sizes(name, (info.value,), samples)[0]
        case _:
            raise NoSampleError(f"parameter {name!r} is not a tensor of known shape", where=name)


def _sizes(name: str, shape: tuple[Expr, ...], samples: Samples) -> tuple[int, ...]:
    sizes = [at_samples(dim, samples) for dim in shape]
    defined = tuple(size for size in sizes if size is not None)
    if len(defined) < len(sizes):
        raise NoSampleError(
            f"the shape of {name!r} contains a symbol without a sample value", where=name
        )
    return defined


def _random(
    shape: tuple[int, ...], dtype: DType, draw: np.random.Generator, limits: tuple[int, int]
) -> Array:
    if dtype.is_float:
        return (draw.standard_normal(shape) * 0.5).astype(dtype.numpy)
    if dtype.is_complex:
        return (draw.standard_normal((*shape, 2)) @ np.array([0.5, 0.5j])).astype(dtype.numpy)
    if dtype.kind == "bool":
        return draw.integers(0, 2, shape).astype(np.bool_)
    return draw.integers(*limits, shape).astype(dtype.numpy)


def shapes_text(samples: Samples) -> str:
    """Return the samples as text: ``b = 1, s = 128``."""
    return ", ".join(f"{name} = {value}" for name, value in samples.items()) or "constant sizes"
