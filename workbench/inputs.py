"""Random arguments at the sample sizes, the same ones for compiled program and interpreter."""

from __future__ import annotations

from collections.abc import Iterator

from ..codegen.errors import SizeError
from ..codegen.sandbox.memory_limit import usable_memory
from ..codegen.sandbox.random_inputs import Argument, ArrayRecipe, RandomInputs
from ..errors import TilewrightError
from ..ir.dtype import DType
from ..ir.graph.nodes import GraphFunc, Info, PrimInfo, TensorInfo
from ..ir.loop.nodes import BufferParam, PrimFunc
from ..ir.module import Array, Function
from ..ir.symbolic import Expr
from .integer_ranges import Ranges
from .render import Samples, at_samples

DEFAULT_RANGE = (0, 2)
"""The range of random integers without a known range: a mask, or indices into any table."""


MEMORY_FRACTION = 0.5
"""The fraction of usable memory that arguments may use that this process draws."""


class NoSampleError(TilewrightError):
    """A parameter whose sample value cannot be derived."""

    title = "Missing sample"


def random_inputs(
    function: Function, samples: Samples, seed: int = 0, ranges: Ranges | None = None
) -> RandomInputs:
    """Return the recipe of random positional arguments; nothing is drawn.

    Parameters
    ----------
    function : Function
        The function that takes the arguments.
    samples : Samples
        The sample values of its symbols.
    seed : int
        The seed of the random elements.
    ranges : Ranges, optional
        The ranges of integers; others are 0 or 1.

    Raises
    ------
    NoSampleError
        If the sample values do not determine a parameter.
    SizeError
        If a size is negative.
    """
    known = ranges or {}
    if isinstance(function, GraphFunc):
        infos = ((p.value.name, p.value.info) for p in function.params if p.access != "out")
        return RandomInputs(tuple(_of_info(n, info, samples, known) for n, info in infos), seed)
    return RandomInputs(tuple(_of_prim(function, samples, known)), seed)


def sample_inputs(
    function: Function, samples: Samples, seed: int = 0, ranges: Ranges | None = None
) -> tuple[Array | int, ...]:
    """Return random positional arguments, drawn in this process.

    Parameters and errors are those of :func:`random_inputs`.

    Raises
    ------
    OutOfMemoryError
        If they use more than a fraction of the usable memory; nothing is allocated.
    """
    limit = int(usable_memory() * MEMORY_FRACTION)
    return tuple(random_inputs(function, samples, seed, ranges).drawn(limit))


def _of_prim(function: PrimFunc, samples: Samples, ranges: Ranges) -> Iterator[Argument]:
    for param in function.params:
        if not isinstance(param, BufferParam):
            yield samples[param.var.name]
        elif param.access != "out":
            buffer = param.buffer
            yield _array(buffer.name, buffer.shape, buffer.dtype, samples, ranges)


def _of_info(name: str, info: Info, samples: Samples, ranges: Ranges) -> Argument:
    match info:
        case TensorInfo() if info.shape is not None and info.elements is not None:
            values = _sizes(name, info.elements, samples)
            return ArrayRecipe(name, _sizes(name, info.shape, samples), info.dtype, values=values)
        case TensorInfo() if info.shape is not None:
            return _array(name, info.shape, info.dtype, samples, ranges)
        case PrimInfo() if info.value is not None:
            return _sizes(name, (info.value,), samples)[0]
        case _:
            raise NoSampleError(f"parameter {name!r} is not a tensor of known shape", where=name)


def _array(
    name: str, shape: tuple[Expr, ...], dtype: DType, samples: Samples, ranges: Ranges
) -> ArrayRecipe:
    sizes = _sizes(name, shape, samples)
    if any(size < 0 for size in sizes):
        raise SizeError(
            f"the shape is {sizes}, but sizes are at least 0",
            where=f"parameter {name!r}",
            hint="choose larger values of the symbols",
        )
    return ArrayRecipe(name, sizes, dtype, *_limits(dtype, *ranges.get(name, DEFAULT_RANGE)))


def _limits(dtype: DType, low: int, high: int) -> tuple[int, int]:
    """Return the part of a range that an integer dtype contains."""
    if not dtype.is_integer:
        return DEFAULT_RANGE
    low, high = max(low, dtype.lowest), min(high, dtype.highest + 1)
    return (low, high) if low < high else DEFAULT_RANGE


def _sizes(name: str, shape: tuple[Expr, ...], samples: Samples) -> tuple[int, ...]:
    sizes = [at_samples(dim, samples) for dim in shape]
    defined = tuple(size for size in sizes if size is not None)
    if len(defined) < len(sizes):
        raise NoSampleError(
            f"the shape of {name!r} contains a symbol without a sample value", where=name
        )
    return defined


def shapes_text(samples: Samples) -> str:
    """Return the samples as text: ``b = 1, s = 128``."""
    return ", ".join(f"{name} = {value}" for name, value in samples.items()) or "constant sizes"
