"""Import handler of hashes of tensors in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..dtype import f64, i64
from .formulas import Formula, positions
from .shaping import axis_of
from .tensors import Imported
from .torch_context import TorchContext, aten
from .unsupported import UnsupportedFormError

_BITS: Final = 64


@aten("hash_tensor")
def hash_tensor(
    t: TorchContext, x: Imported, dims: Sequence[int] | int = (), *, keepdim: bool = False,
    mode: int = 0,
) -> Imported:  # fmt: skip
    """Import the exclusive disjunction of the bits of elements as f64, or of integers as i64.

    Each bit of the result is the parity of the number of elements that have it.
    """
    if mode or x.dtype.is_complex:
        raise UnsupportedFormError(f"hashes of mode {mode} of {x.dtype} are not supported")
    given = (dims,) if isinstance(dims, int) else tuple(dims)
    axes = tuple(axis_of(a, x.rank) for a in given) if x.rank else ()
    axes = axes or tuple(range(x.rank))
    words = Formula(t, x)
    words = words.to(f64).call("bitcast", dtype="i64") if x.dtype.is_float else words.to(i64)
    place = positions(t, _BITS)
    ones = words.unsqueeze(x.rank).apply("right_shift", place) % 2
    odd = (ones.sum(*axes, keepdims=keepdim) if axes else ones) % 2
    found = odd.apply("left_shift", place).sum(odd.rank - 1)
    return found.call("bitcast", dtype="u64").x
