"""Arrays of the caller that receive the results of a call."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from ...ir.dtype import dtype as dtype_named
from ..build.rtlib_object import rtlib_address
from ..entry_names import public_name
from ..errors import (
    AliasError,
    ArgumentCountError,
    ArgumentShapeError,
    ArgumentTypeError,
    CallError,
    DTypeError,
    RankError,
    ReadOnlyError,
    StrideError,
)
from ..lower.host.context import dtype_code
from ..manifest import CheckSite, FunctionSpec, ResultSpec
from ..messages import IN_FUNCTION, IN_RESULT, Message, shape_text
from ..rtlib import layout, views
from ..rtlib.results import HEADER
from .device_tensor import DLTensor
from .tensors import Words

_POINTER = ctypes.c_void_p
_VIEW = ctypes.CFUNCTYPE(None, _POINTER, ctypes.c_int64, _POINTER)
_LENGTH = ctypes.CFUNCTYPE(ctypes.c_int64, _POINTER)
_STRIDE = ctypes.CFUNCTYPE(ctypes.c_int64, _POINTER, ctypes.c_int64)
_CONTEXT: Final = 1
_DATA: Final = 4
_RANK: Final = 6
"""The positions of words in the block of a result."""


class Outputs:
    """The arrays that receive the results of one call which are new tensors, in order.

    Parameters
    ----------
    spec : FunctionSpec
        The function.
    out : array or sequence of arrays
        A NumPy array per result that is not a parameter written in place.

    Raises
    ------
    CallError
        If an output does not fit; the subclass names the problem.
    """

    def __init__(self, spec: FunctionSpec, out: Any) -> None:
        """Check the arrays, and describe them for the call."""
        self.spec = spec
        self.positions = tuple(k for k, r in enumerate(spec.results) if r.param < 0)
        several = isinstance(out, tuple | list)
        given = tuple(cast("Sequence[Any]", out)) if several else (out,)
        if len(given) != len(self.positions):
            self._refuse_count(len(given))
        self.arrays = dict(
            zip(self.positions, map(self._checked, self.positions, given), strict=True)
        )
        self._blocks = {k: self._block(k, array) for k, array in self.arrays.items()}

    def write(self, words: Words, first: int) -> None:
        """Write the addresses of the blocks to a call record; word ``first`` is the first result.

        The record contains the arguments.

        Raises
        ------
        AliasError
            If an output shares memory with an argument.
        """
        self._refuse_shared(words)
        words[layout.CALL_MODE // 8] = layout.GIVEN
        for position, (block, *_) in self._blocks.items():
            words[first + position] = ctypes.addressof(block)

    def error(self, site: CheckSite) -> CallError:
        """Return the error of an output that does not have the shape of its result."""
        block, tensor, *_ = self._blocks[site.other]
        wanted = list(block)[HEADER // 8 :][: tensor.ndim]
        fields = {
            "result_shape": shape_text(wanted),
            "shape": shape_text(self.arrays[site.other].shape),
        }
        return ArgumentShapeError(
            Message.OUTPUT_SHAPE.format(**fields),
            where=self._where(site.other),
            hint="pass an array of the shape of the result",
        )

    def _where(self, position: int) -> str:
        result = self.spec.results[position]
        function = public_name(self.spec.name)
        return IN_RESULT.format(function=function, result=result.name, annotation=result.annotation)

    def _refuse_count(self, actual: int) -> NoReturn:
        names = ", ".join(self.spec.results[k].name for k in self.positions)
        fields = {"expected": len(self.positions), "actual": actual}
        signature = self.spec.signature(public_name(self.spec.name))
        raise ArgumentCountError(
            Message.OUTPUT_COUNT.format(**fields, signature=signature),
            where=IN_FUNCTION.format(function=public_name(self.spec.name)),
            hint=f"pass one array per new result: {names or 'none'}",
        )

    def _checked(self, position: int, array: Any) -> NDArray[Any]:
        """Return an output after checks that do not depend on the values of symbols."""
        result, where = self.spec.results[position], self._where(position)
        dtype = dtype_named(result.dtype)
        given: object = array
        if not isinstance(given, np.ndarray) or dtype.is_packed:
            array_type = type(array).__name__
            kind = "a NumPy array, because it is written"
            text = Message.ARGUMENT_TYPE.format(
                kind=kind, actual_type=array_type, reason=_packed(result)
            )
            raise ArgumentTypeError(text, where=where, hint="use np.empty(shape, dtype)")
        found = cast("NDArray[Any]", array)
        if found.dtype != dtype.numpy:
            text = Message.DTYPE.format(dtype=dtype, actual_dtype=found.dtype)
            raise DTypeError(text, where=where, hint="convert the result after the call")
        if found.ndim != result.rank:
            fields = {"expected": result.rank, "actual": found.ndim}
            text = Message.RANK.format(**fields, shape=shape_text(found.shape))
            raise RankError(text, where=where, hint="pass an array of the shape of the result")
        if not found.flags.writeable:
            text = Message.READ_ONLY.format(access="out")
            raise ReadOnlyError(text, where=where, hint="pass an array that may be written")
        if not found.flags.c_contiguous:
            steps = tuple(s // found.itemsize for s in found.strides)
            text = Message.STRIDES.format(strides=shape_text(steps), shape=shape_text(found.shape))
            raise StrideError(text, where=where, hint="pass np.empty(shape, dtype)")
        return found

    def _refuse_shared(self, words: Words) -> None:
        """Raise an error if an output shares memory with an argument or another output."""
        others = [
            ("parameter", param.name, _argument_extent(words, k))
            for k, param in enumerate(self.spec.params)
            if param.form == "tensor"
        ]
        for position, array in self.arrays.items():
            own = array.ctypes.data, array.ctypes.data + array.nbytes
            for role, name, (begin, end) in others:
                if max(own[0], begin) < min(own[1], end):
                    raise AliasError(
                        Message.OUTPUT_ALIAS.format(role=role, other=name),
                        where=self._where(position),
                        hint="pass an array with memory of its own",
                    )
            others.append(("result", self.spec.results[position].name, own))

    def _block(self, position: int, array: NDArray[Any]) -> tuple[Any, DLTensor, object]:
        """Return the block of a result without a deleter, and the objects that it refers to."""
        rank = array.ndim
        shape = (ctypes.c_int64 * max(rank, 1))(*array.shape)
        code, bits = divmod(dtype_code(dtype_named(self.spec.results[position].dtype)), 256)
        address = array.ctypes.data
        start = ctypes.addressof(shape)
        tensor = DLTensor(address, layout.HOST, 0, rank, code, bits, 1, start, None, 0)
        block = (ctypes.c_int64 * (HEADER // 8 + 2 * rank))()
        block[_CONTEXT], block[_DATA], block[_RANK] = ctypes.addressof(tensor), address, rank
        return block, tensor, shape


def _packed(result: ResultSpec) -> str:
    packed = dtype_named(result.dtype).is_packed
    return f" (results of dtype {result.dtype} cannot be outputs)" if packed else ""


def _argument_extent(words: Words, position: int) -> tuple[int, int]:
    """Return the addresses of the first byte and of the end of an argument in a call record."""
    view = (ctypes.c_int64 * (layout.VIEW_BYTES // 8))()
    _VIEW(rtlib_address(views.view_argument))(words, position, view)
    size = (view[layout.VIEW_DTYPE // 8] & 255) // 8
    low, high = 0, _LENGTH(rtlib_address(views.view_bytes))(view)
    for axis in range(view[layout.VIEW_RANK // 8]):
        step = _STRIDE(rtlib_address(views.stride_bytes))(view, axis) if size else 0
        if step < 0:  # the address is that of the last element along this axis
            shape = ctypes.c_int64.from_address(view[layout.VIEW_SHAPE // 8] + 8 * axis).value
            low, high = low + (shape - 1) * step, high - (shape - 1) * step
    data = view[layout.VIEW_DATA // 8]
    return data + low, data + high
