"""A native function whose tensors lie on a device: what comes in and goes out is copied there.

Arrays of the host are copied to the device and back; tensors that lie on the device already, by
DLPack, are used where they are, and then the results stay on the device, too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...ir.dtype import DType, dtype as dtype_named
from ...ir.host import layout
from ..manifest import ParamSpec, ResultSpec, Site
from .device import RemoteDevice
from .device_tensor import DeviceTensor, DLTensor, adopt, compact_strides, element_type
from .errors import DeviceError
from .explain import aliased, place
from .function import NativeFunction, Passer
from .tensors import READ_ONLY, Words, pass_integer, pass_tensor

Array = NDArray[Any]

_ON_CUDA = (2, 13)
"""DLPack's numbers of a GPU's own memory, and of memory that CUDA manages."""


@dataclass(slots=True)
class _Argument:
    """An argument: what the caller gave, the host's array it is, what is passed, what holds it."""

    given: Any
    array: Array | None = None
    passed: Any = None
    held: object = None


class RemoteFunction(NativeFunction):
    """A function of an executable for a device with its own memory."""

    def passer(self, param: ParamSpec) -> Passer:
        """Choose how an argument is described to native code."""
        return pass_integer if param.form == "integer" else _pass_remote

    def taker(self, result: ResultSpec) -> Callable[[int], Any]:
        """Take a result over as a tensor on the device."""
        return partial(self._adopt, dtype_named(result.dtype))

    def _adopt(self, element: DType, managed: int) -> DeviceTensor:
        return adopt(managed, self.remote, element)

    def returned(self, argument: Any) -> Any:
        """Give back an argument that was written in place, as it was passed."""
        return argument

    @property
    def remote(self) -> RemoteDevice:
        """The device."""
        if isinstance(self.device, RemoteDevice):
            return self.device
        raise DeviceError(f"function {self.spec.name!r} is for a device, and has none")

    def invoke(self, arguments: Sequence[Any], sink: int = 0) -> Any:
        """Call; results lie where the arguments do."""
        if len(arguments) != len(self.spec.params):
            return super().invoke(arguments, sink)
        pairs = list(zip(self.spec.params, arguments, strict=True))
        ready = [self._argument(p, a) for p, a in pairs]
        self._check_apart(ready)
        results = super().invoke([a.passed for a in ready], sink)
        for param, argument in zip(self.spec.params, ready, strict=True):
            if argument.array is not None and param.access != "in":
                np.copyto(argument.array, self.remote.download(argument.passed))
        return self._brought(results, ready)

    def resident(self) -> Any:
        """Call without arguments; results stay on the device."""
        return super().invoke(())

    def _argument(self, param: ParamSpec, given: Any) -> _Argument:
        """Copy an array to the device where it is of the right kind; the entry refuses others."""
        if param.form == "integer" or isinstance(given, DeviceTensor):
            return _Argument(given, passed=given)
        where: Any = getattr(given, "__dlpack_device__", None)
        if where is not None and not isinstance(given, np.ndarray | np.generic):
            kind, ordinal = where()
            if kind in _ON_CUDA:
                self._check_ordinal(param, ordinal)
                return _Argument(given, passed=given)
        array, held = _host_array(given, bfloat=param.dtype == "bf16")
        if array is None or array.dtype != dtype_named(param.dtype).numpy:
            return _Argument(given, passed=given)
        passed = self.remote.upload(array)
        if not array.flags.writeable:
            passed = passed.frozen()
        return _Argument(given, array, passed, held)

    def _check_ordinal(self, param: ParamSpec, ordinal: int) -> None:
        if ordinal != self.remote.ordinal:
            raise DeviceError(
                f"expected a tensor on cuda:{self.remote.ordinal}, got one on cuda:{ordinal}",
                where=place(self.spec.name, param),
            )

    def _check_apart(self, ready: Sequence[_Argument]) -> None:
        """Hold arrays to what the entry cannot see on their copies: what is written is alone."""
        arrays = [(k, a.array) for k, a in enumerate(ready) if a.array is not None]
        for k, array in arrays:
            for j, other in arrays:
                written = self.spec.params[k].access != "in"
                if k != j and written and np.may_share_memory(array, other):
                    raise aliased(self.spec, Site("alias", param=k, other=j))

    def _brought(self, results: Any, ready: Sequence[_Argument]) -> Any:
        """Bring results to where the arguments are."""
        if results is None or any(a.array is None and _is_tensor(a.passed) for a in ready):
            return results
        arrays = {id(a.passed): a.array for a in ready if a.array is not None}
        if isinstance(results, tuple):
            several = cast("tuple[Any, ...]", results)
            return tuple(self._array_of(r, arrays) for r in several)
        return self._array_of(results, arrays)

    def _array_of(self, result: Any, arrays: dict[int, Array]) -> Array:
        own = arrays.get(id(result))
        return self.remote.download(result) if own is None else own


def _is_tensor(value: object) -> bool:
    return hasattr(value, "__dlpack_device__")


def _pass_remote(words: Words, at: int, argument: Any) -> object:
    """Describe a tensor to native code; what is returned has to live as long as the call."""
    if isinstance(argument, DeviceTensor):
        words[at] = layout.FORM_DLPACK | (READ_ONLY if argument.read_only else 0)
        words[at + 1] = argument.description
        return argument
    return pass_tensor(words, at, argument)


def _host_array(given: Any, *, bfloat: bool) -> tuple[Array | None, object]:
    """See an argument of the host as an array; None where it is no tensor."""
    if isinstance(given, np.ndarray | np.generic):
        return np.asarray(cast("Array", given)), cast("object", given)
    if not hasattr(given, "__dlpack__"):
        return None, None
    if not bfloat:
        return np.from_dlpack(given), given
    words = (ctypes.c_int64 * 2)()
    held = pass_tensor(words, 0, given)
    shown = DLTensor.from_address(words[1])
    rank, element = shown.ndim, element_type(shown.code, shown.bits)
    shape = tuple((ctypes.c_int64 * rank).from_address(shown.shape)) if rank else ()
    strides = compact_strides(shape)
    if rank and shown.strides:
        strides = list((ctypes.c_int64 * rank).from_address(shown.strides))
    span = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if all(shape) else 0
    start = (shown.data or 0) + shown.byte_offset
    buffer = memoryview((ctypes.c_char * (element.bytes * span)).from_address(start))
    steps = [element.bytes * s for s in strides]
    return np.ndarray(shape, element.numpy, buffer, strides=steps), held
