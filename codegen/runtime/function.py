"""One native function of an executable, called from Python: one native call an invocation."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ...ir.errors import TilewrightError
from ...ir.host import layout
from ...ir.host.support import workspaces
from ..lower.flow.function import entry_symbol
from ..lower.wrap import public_name
from ..manifest import FunctionSpec, ParamSpec, ResultSpec
from .device import Device, WatchedDevice
from .errors import ArgumentCountError
from .explain import explain, failed_launch
from .loader import Library
from .support import support_address
from .table import RuntimeTable
from .tensors import Words, as_result, pass_bfloat, pass_integer, pass_tensor, refuse, taker

Array = NDArray[Any]
Constants = Callable[[Sequence[str]], list[tuple[int, object]]]
"""Gives, for the names of constants, the address of each and what holds it."""

Passer = Callable[[Any, int, Any], object]

_FIRST = layout.CALL_OPERANDS // 8
_SINK = layout.CALL_SINK // 8
_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
_OPEN = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_DROP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


@dataclass(frozen=True, slots=True)
class Outside:
    """What a function reaches by address: libraries, and kernels on a device by their handles.

    Both are in the order of the function's specification.
    """

    libraries: tuple[int, ...] = ()
    kernels: tuple[int, ...] = ()
    device: Device | None = None


class NativeFunction:
    """A function that is loaded; calls may come from many threads at once.

    Constants are fetched before the first call. The function keeps a bounded number of
    workspaces (arenas with the plans of the shapes they served).
    """

    def __init__(
        self,
        spec: FunctionSpec,
        library: Library,
        table: RuntimeTable,
        constants: Constants,
        outside: Outside,
    ) -> None:
        """Bind the entry; nothing is allocated yet but the instance."""
        self.spec = spec
        self.in_place: NativeFunction | None = None
        self._library = library
        self._table = table
        self._fetch = constants
        self._entry = _ENTRY(library.address(entry_symbol(spec.name)))
        self._passers = tuple(self.passer(p) for p in spec.params)
        self._takers = tuple(self.taker(r) for r in spec.results)
        self._returned = tuple(r.param for r in spec.results)
        self._results = _FIRST + 2 * len(spec.params)
        self._words = ctypes.c_int64 * (self._results + len(spec.results))
        size = layout.INSTANCE_SLOTS + layout.SLOT_COUNT * spec.slot
        self._instance = (ctypes.c_int64 * (size // 8))()
        self._kept: list[tuple[int, object]] = []
        self._ready = False
        self._lock = threading.Lock()
        self._pointers = (ctypes.c_int64 * max(len(spec.constants), 1))()
        self.device = outside.device
        self._watched = outside.device if isinstance(outside.device, WatchedDevice) else None
        self._libraries = (ctypes.c_int64 * max(len(outside.libraries), 1))(*outside.libraries)
        self._handles = (ctypes.c_int64 * max(len(outside.kernels), 1))(*outside.kernels)
        self._address = ctypes.addressof(self._instance)
        self._instance[layout.INSTANCE_CONSTANTS // 8] = ctypes.addressof(self._pointers)
        self._instance[layout.INSTANCE_LIBRARIES // 8] = ctypes.addressof(self._libraries)
        self._instance[layout.INSTANCE_KERNELS // 8] = ctypes.addressof(self._handles)
        weakref.finalize(self, _drop, self._instance, table, spec.slot).atexit = False

    def __repr__(self) -> str:
        """Print the signature."""
        return f"<NativeFunction {self.spec.signature(public_name(self.spec.name))}>"

    def passer(self, param: ParamSpec) -> Passer:
        """Choose how an argument is described to native code."""
        return _passer(param.form, param.dtype)

    def taker(self, result: ResultSpec) -> Callable[[int], Any]:
        """Choose how a result is taken over."""
        return taker(result)

    def returned(self, argument: Any) -> Any:
        """Give back an argument that was written in place."""
        return as_result(argument)

    def __call__(self, *arguments: Any) -> Any:
        """Call with arrays and integers; give the result, or a tuple where there are several.

        Raises
        ------
        CallError
            If an argument does not fit; the class says how.
        """
        return self.invoke(arguments, 0)

    def resident(self) -> Any:
        """Call without arguments; results stay where kernels read them."""
        return self.invoke(())

    def invoke(self, arguments: Sequence[Any], sink: int = 0) -> Any:
        """Call; ``sink`` is the address where the times of launches are collected, or 0."""
        if not self._ready:
            self._prepare()
        if len(arguments) != len(self._passers):
            raise self._wrong_count(arguments)
        words = self._words()
        words[0] = self._table.address
        words[_SINK] = sink
        at, held = _FIRST, list[object]()
        for passer, argument in zip(self._passers, arguments, strict=True):
            try:
                held.append(passer(words, at, argument))
            except TilewrightError:
                raise
            except Exception as error:
                param = self.spec.params[len(held)]
                raise refuse(self.spec, param, argument, error) from error
            at += 2
        if self._watched is not None:
            self._watched.begin()
        code = self._entry(self._address, words)
        if code:
            raise self._explained(code, list(words), arguments)
        return self._take(words, arguments)

    def _take(self, words: Words, arguments: Sequence[Any]) -> Any:
        taken = tuple(
            take(words[self._results + k])
            if self._returned[k] < 0
            else self.returned(arguments[self._returned[k]])
            for k, take in enumerate(self._takers)
        )
        if len(taken) == 1:
            return taken[0]
        return taken or None

    def _explained(
        self, code: int, record: Sequence[int], arguments: Sequence[Any]
    ) -> TilewrightError:
        """Let the device say why a launch failed, and the record of the call all else."""
        failed = failed_launch(self.spec, code, record)
        if self.device is not None and failed is not None:
            return self.device.failure(*failed) or explain(self.spec, code, record, arguments)
        return explain(self.spec, code, record, arguments)

    def into(self, *arguments: Any) -> None:
        """Call with every buffer passed, those written included (destination-passing style).

        A graph function has no such form: all it writes is a result, or a parameter already.
        """
        (self.in_place or self).invoke(arguments, 0)

    def timed(self, arguments: Sequence[Any]) -> list[int]:
        """Call once, and give the nanoseconds of every launch."""
        sink = (ctypes.c_int64 * max(3 * len(self.spec.launches), 1))()
        self.invoke(arguments, ctypes.addressof(sink))
        return [sink[3 * k + 1] for k in range(len(self.spec.launches))]

    def trim(self) -> None:
        """Free the arenas that no call is using."""
        _drop(self._instance, self._table, self.spec.slot)

    def _prepare(self) -> None:
        with self._lock:
            if self._ready:
                return
            fetched = self._fetch(self.spec.constants)
            for k, (address, _) in enumerate(fetched):
                self._pointers[k] = address
            self._kept = fetched
            self._ready = True

    def _wrong_count(self, arguments: Sequence[Any]) -> ArgumentCountError:
        params = self.spec.params
        signature = ", ".join(f"{p.name}: {p.annotation}" for p in params)
        return ArgumentCountError(
            f"expected {len(params)} arguments, got {len(arguments)}",
            where=f"function {public_name(self.spec.name)!r}",
            hint=f"{public_name(self.spec.name)}({signature})",
            details={"expected": len(params), "actual": len(arguments)},
        )


def _passer(form: str, dtype: str) -> Passer:
    if form == "integer":
        return pass_integer
    return pass_bfloat if dtype == "bf16" else pass_tensor


def _drop(instance: Any, table: RuntimeTable, slot: int) -> None:
    """Free the arenas of an instance through a record made for that."""
    from ...ir.host.support import calls

    words = (ctypes.c_int64 * _FIRST)()
    words[0] = table.address
    _OPEN(support_address(calls.open_call))(words)
    _DROP(support_address(workspaces.drop_workspaces))(words, instance, slot)
