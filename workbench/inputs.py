"""Random arguments at the sample sizes, shared by compiled program and interpreter."""

from __future__ import annotations

import math
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
from .render import Samples, at_samples

INTEGER_LIMIT = 2
"""The exclusive upper bound of random integers, which may be indices into any table or a mask."""


class NoSampleError(TilewrightError):
    """A parameter whose sample value cannot be derived."""

    title = "Missing sample"


def sample_inputs(function: Function, samples: Samples, seed: int = 0) -> tuple[Array | int, ...]:
    """Return random positional arguments of a call."""
    draw = np.random.default_rng(seed)
    if isinstance(function, GraphFunc):
        infos = ((p.value.name, p.value.info) for p in function.params if p.access != "out")
        return tuple(_of_info(name, info, samples, draw) for name, info in infos)
    return tuple(_of_prim(function, samples, draw))


def _of_prim(
    function: PrimFunc, samples: Samples, draw: np.random.Generator
) -> Iterator[Array | int]:
    for param in function.params:
        if not isinstance(param, BufferParam):
            yield samples[param.var.name]
        elif param.access != "out":
            buffer = param.buffer
            shape = _sizes(buffer.name, buffer.shape, samples)
            yield _array(buffer.name, shape, buffer.dtype, draw)


def _of_info(name: str, info: Info, samples: Samples, draw: np.random.Generator) -> Array | int:
    match info:
        case TensorInfo() if info.shape is not None and info.elements is not None:
            values = np.array(_sizes(name, info.elements, samples), info.dtype.numpy)
            return values.reshape(_sizes(name, info.shape, samples))
        case TensorInfo() if info.shape is not None:
            return _array(name, _sizes(name, info.shape, samples), info.dtype, draw)
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


def _array(name: str, shape: tuple[int, ...], dtype: DType, draw: np.random.Generator) -> Array:
    if any(size < 0 for size in shape):
        raise SizeError(
            f"the shape is {shape}, but sizes are at least 0",
            where=f"parameter {name!r}",
            hint="choose larger values of the symbols",
        )
    try:
        return _random(shape, dtype, draw)
    except (MemoryError, ValueError) as error:  # ValueError: larger than the address space
        needed = storage_bytes(math.prod(shape), dtype)
        raise OutOfMemoryError(
            f"cannot allocate the {needed:,} bytes of shape {shape} and dtype {dtype}",
            where=f"parameter {name!r}",
            hint="choose smaller values of the symbols",
        ) from error


def _random(shape: tuple[int, ...], dtype: DType, draw: np.random.Generator) -> Array:
    if dtype.is_float:
        return (draw.standard_normal(shape) * 0.5).astype(dtype.numpy)
    if dtype.is_complex:
        return (draw.standard_normal((*shape, 2)) @ np.array([0.5, 0.5j])).astype(dtype.numpy)
    if dtype.kind == "bool":
        return draw.integers(0, 2, shape).astype(np.bool_)
    return draw.integers(0, INTEGER_LIMIT, shape).astype(dtype.numpy)


def shapes_text(samples: Samples) -> str:
    """Return the samples as text: ``b = 1, s = 128``."""
    return ", ".join(f"{name} = {value}" for name, value in samples.items()) or "constant sizes"
