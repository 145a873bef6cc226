"""Native functions for devices with separate memory: copies of arguments and results.

Host arrays are copied to the device, and results are copied back. Tensors that are on the device
already are passed by DLPack without a copy; then the results stay on the device, too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...errors import TilewrightError
from ...ir.dtype import DType, dtype as dtype_named
from ...ir.sizes import storage_bytes
from ..errors import DeviceError
from ..manifest import CheckSite, ParamSpec, ResultSpec
from ..messages import Message
from ..rtlib import layout
from .device import RemoteDevice
from .device_tensor import DeviceTensor, DLTensor, compact_strides, element_type, from_managed
from .explain import alias_error, parameter_location
from .function import ArgumentWriter, NativeFunction
from .outputs import Outputs
from .state import ExecutableState
from .tensors import (
    READ_ONLY,
    Words,
    argument_type_error,
    check_bits,
    pass_integer,
    pass_tensor,
    plain_array,
)

Array = NDArray[Any]

_ON_CUDA = (2, 13)
"""DLPack device types of CUDA device memory and of CUDA managed memory."""


@dataclass(slots=True)
class _Argument:
    """An argument of a call.

    ``original`` is the caller's argument; ``array`` is its host array if it was copied to the
    device; ``passed`` is the argument of the native call; ``owner`` keeps memory alive.
    """

    original: Any
    array: Array | None = None
    passed: Any = None
    owner: object = None


class RemoteFunction(NativeFunction):
    """A function of an executable for a device with separate memory."""

    def argument_writer(self, param: ParamSpec) -> ArgumentWriter:
        """Return the function that writes the native description of an argument."""
        return pass_integer if param.form == "integer" else _pass_remote

    def result_converter(self, result: ResultSpec) -> Callable[[int], Any]:
        """Return the function that converts a managed tensor to a tensor on the device."""
        return partial(self._device_tensor, dtype_named(result.dtype))

    def _device_tensor(self, element: DType, managed: int) -> DeviceTensor:
        return from_managed(managed, self.remote, element)

    def in_place_result(self, argument: Any) -> Any:
        """Return an argument that was written in place, as it was passed."""
        return argument

    @property
    def remote(self) -> RemoteDevice:
        """The device."""
        if isinstance(self.device, RemoteDevice):
            return self.device
        raise DeviceError(
            f"function {self.spec.name!r} requires a device, but was loaded without one"
        )

    def invoke(
        self,
        arguments: Sequence[Any],
        sink: int = 0,
        state: ExecutableState | None = None,
        outputs: Outputs | None = None,
    ) -> Any:
        """Call; results are on the host or on the device as the arguments are."""
        if len(arguments) != len(self.spec.params):
            return super().invoke(arguments, sink, state, outputs)
        pairs = list(zip(self.spec.params, arguments, strict=True))
        ready = [self._passed(p, a) for p, a in pairs]
        self._check_aliases(ready)
        results = super().invoke([a.passed for a in ready], sink, state, outputs)
        for param, argument in zip(self.spec.params, ready, strict=True):
            if argument.array is not None and param.access != "in":
                np.copyto(argument.array, self.remote.download(argument.passed))
        inputs = [a for p, a in zip(self.spec.params, ready, strict=True) if p.access != "state"]
        return self._download_results(results, inputs)

    def resident(self) -> Any:
        """Call without arguments and return results on the device."""
        return super().invoke(())

    def _passed(self, param: ParamSpec, original: Any) -> _Argument:
        """Return an argument on the device; report one that cannot be read."""
        try:
            return self._argument(param, original)
        except (TypeError, ValueError, BufferError, RuntimeError) as error:
            if isinstance(error, TilewrightError):
                raise
            raise argument_type_error(self.spec, param, original, error) from error

    def _argument(self, param: ParamSpec, original: Any) -> _Argument:
        """Copy an array of the right dtype to the device; the entry point rejects all others."""
        if param.form == "integer" or isinstance(original, DeviceTensor):
            return _Argument(original, passed=original)
        device_of_tensor: Any = None
        if self.remote.kind == "cuda":
            device_of_tensor = getattr(original, "__dlpack_device__", None)
        if device_of_tensor is not None and not isinstance(original, np.ndarray | np.generic):
            kind, ordinal = device_of_tensor()
            if kind in _ON_CUDA:
                self._check_ordinal(param, ordinal)
                return _Argument(original, passed=original)
        array, owner = _host_array(original, bfloat=param.dtype == "bf16")
        if array is None or array.dtype != dtype_named(param.dtype).numpy:
            return _Argument(original, passed=original)
        passed = self.remote.upload(array)
        if not array.flags.writeable:
            passed = passed.as_read_only()
        return _Argument(original, array, passed, owner)

    def _check_ordinal(self, param: ParamSpec, ordinal: int) -> None:
        if ordinal != self.remote.ordinal:
            raise DeviceError(
                Message.DEVICE.format(
                    device=f"{self.remote.kind}:{self.remote.ordinal}",
                    actual_device=f"cuda:{ordinal}",
                ),
                where=parameter_location(self.spec.name, param),
            )

    def _check_aliases(self, ready: Sequence[_Argument]) -> None:
        """Check that written host arrays do not alias others; their device copies never do."""
        arrays = [(k, a.array) for k, a in enumerate(ready) if a.array is not None]
        for k, array in arrays:
            for j, other in arrays:
                written = self.spec.params[k].access != "in"
                if k != j and written and np.may_share_memory(array, other):
                    raise alias_error(self.spec, CheckSite("alias", param=k, other=j))

    def _download_results(self, results: Any, ready: Sequence[_Argument]) -> Any:
        """Copy results to the host unless an argument is on the device."""
        if results is None or any(a.array is None and _is_tensor(a.passed) for a in ready):
            return results
        arrays = {id(a.passed): a.array for a in ready if a.array is not None}
        if isinstance(results, tuple):
            several = cast("tuple[Any, ...]", results)
            return self.make_results(self._array_of(r, arrays) for r in several)
        return self._array_of(results, arrays)

    def _array_of(self, result: Any, arrays: dict[int, Array]) -> Array:
        own = arrays.get(id(result))
        return self.remote.download(result) if own is None else own


def _is_tensor(value: object) -> bool:
    return hasattr(value, "__dlpack_device__")


def _pass_remote(words: Words, at: int, argument: Any) -> object:
    """Write the native description of a tensor; keep the returned object alive during the call."""
    if isinstance(argument, DeviceTensor):
        words[at] = layout.FORM_DLPACK | (READ_ONLY if argument.read_only else 0)
        words[at + 1] = argument.description
        return argument
    return pass_tensor(words, at, argument)


def _host_array(argument: Any, *, bfloat: bool) -> tuple[Array | None, object]:
    """Return a host argument as an array, with its owner; None if it is not a tensor."""
    if isinstance(argument, np.ndarray | np.generic):
        return plain_array(argument), cast("object", argument)
    if not hasattr(argument, "__dlpack__"):
        return None, None
    check_bits(argument)
    if not bfloat:
        return np.from_dlpack(argument), argument
    words = (ctypes.c_int64 * 2)()
    owner = pass_tensor(words, 0, argument)
    shown = DLTensor.from_address(words[1])
    rank, element = shown.ndim, element_type(shown.code, shown.bits)
    shape = tuple((ctypes.c_int64 * rank).from_address(shown.shape)) if rank else ()
    strides = compact_strides(shape)
    if rank and shown.strides:
        strides = list((ctypes.c_int64 * rank).from_address(shown.strides))
    span = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if all(shape) else 0
    start = (shown.data or 0) + shown.byte_offset
    buffer = memoryview((ctypes.c_char * storage_bytes(span, element)).from_address(start))
    steps = [element.width * s for s in strides]
    return np.ndarray(shape, element.numpy, buffer, strides=steps), owner
