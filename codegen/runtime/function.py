"""Native functions of an executable: argument passing, one native call, results."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from numpy import ndarray
from numpy.typing import NDArray

from ...errors import TilewrightError, UnpicklableError
from ...ir.dtype import dtype as dtype_named
from ...locks import renew_in_children, uninterrupted
from ..build.native_library import Library
from ..build.rtlib_object import rtlib_address
from ..entry_names import entry_symbol, public_name
from ..errors import DeviceError, StateError, StoppedError
from ..lower.host.to_thread import CODE_CHECK
from ..manifest import FunctionSpec, ParamSpec, ResultSpec
from ..rtlib import layout, workspaces
from .arguments import (
    bound_arguments,
    count_error,
    documentation,
    results_maker,
    signature_of,
)
from .device import Device, ReportingDevice, StoppingDevice, require_devices
from .direct import DirectCall, direct_call
from .explain import explain, failed_launch
from .interrupts import INTERRUPTS
from .outputs import Outputs
from .plan_query import CallPlan, query_instance
from .state import ExecutableState
from .table import RuntimeTable
from .tensors import (
    ArgumentWriter,
    PackedArgument,
    Words,
    argument_type_error,
    as_result,
    pass_extension,
    pass_integer,
    pass_packed,
    pass_tensor,
    result_converter,
)

Array = NDArray[Any]
Constants = Callable[[Sequence[str]], list[tuple[int, object]]]
"""A function from names of constants to the address and the owner of each."""

_FIRST = layout.CALL_OPERANDS // 8
_SINK = layout.CALL_SINK // 8
_STOP = layout.CALL_STOP // 8
_INTERRUPTED = 2
"""The request to stop by an interrupt; a request by :meth:`.NativeFunction.stop` is 1."""
_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
_OPEN = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_DROP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


@dataclass(frozen=True, slots=True)
class ExternalAddresses:
    """Addresses of library functions, and handles of kernels on a device.

    Both are in the order of the function's specification.
    """

    libraries: tuple[int, ...] = ()
    kernels: tuple[int, ...] = ()
    device: Device | None = None


class NativeFunction:
    """A loaded function, which is safe to call from several threads at once.

    Constants are loaded before the first call. The function keeps a bounded number of arenas,
    each with its cached memory plans.
    """

    def __init__(
        self,
        spec: FunctionSpec,
        library: Library,
        table: RuntimeTable,
        constants: Constants,
        external: ExternalAddresses,
    ) -> None:
        """Bind the entry point and allocate the instance, without constants and arenas."""
        self.spec = spec
        self.in_place: NativeFunction | None = None
        self.states = tuple(p.name for p in spec.states)
        self._inputs = len(spec.inputs)
        self.order = tuple(p.name if p.access == "state" else "" for p in spec.params)
        self._takes_out = all(p.name != "out" for p in spec.inputs)
        self._where = f"function {public_name(spec.name)!r}"
        self.provide_state: Callable[[], ExecutableState] | None = None
        self.owner: object = None
        self._library = library
        self._table = table
        self._fetch = constants
        require_devices(spec, table)
        entry = library.address(entry_symbol(spec.name))
        self._entry = _ENTRY(entry)
        self._writers = tuple(self.argument_writer(p) for p in spec.params)
        self._unpacks = any(
            p.access != "in" and p.form == "tensor" and dtype_named(p.dtype).is_packed
            for p in spec.params
        )
        self._converters = tuple(self.result_converter(r) for r in spec.results)
        self._result_params = tuple(r.param for r in spec.results)
        one_new = len(spec.results) == 1 and spec.results[0].param < 0
        self._convert_result = self._converters[0] if one_new else None
        self.make_results = results_maker(spec.results)
        self.__signature__ = signature_of(spec)  # for inspect.signature and completion
        self.__doc__ = documentation(spec)  # for help and `function?`
        stops = isinstance(external.device, StoppingDevice) and external.device.stops_calls
        self._stoppable = stops or any(site.kind == "stopped" for site in spec.sites)
        self._running: list[Words] = []
        self._results = _FIRST + 2 * len(spec.params)
        self._words = ctypes.c_int64 * (self._results + len(spec.results))
        size = layout.INSTANCE_SLOTS + layout.SLOT_COUNT * spec.slot
        self._instance = (ctypes.c_int64 * (size // 8))()
        self._owners: list[tuple[int, object]] = []
        self._ready = False
        self._lock = threading.Lock()
        renew_in_children(self)
        self._pointers = (ctypes.c_int64 * max(len(spec.constants), 1))()
        device = external.device
        self.device = device
        self._reporting = device if isinstance(device, ReportingDevice) else None
        self._libraries = (ctypes.c_int64 * max(len(external.libraries), 1))(*external.libraries)
        self._handles = (ctypes.c_int64 * max(len(external.kernels), 1))(*external.kernels)
        self._address = ctypes.addressof(self._instance)
        self._instance[layout.INSTANCE_CONSTANTS // 8] = ctypes.addressof(self._pointers)
        self._instance[layout.INSTANCE_LIBRARIES // 8] = ctypes.addressof(self._libraries)
        self._instance[layout.INSTANCE_KERNELS // 8] = ctypes.addressof(self._handles)
        self.direct: DirectCall | None = None
        """The direct call, once the constants are loaded; None if calls are made in Python."""
        self._later = None if device else direct_call(spec, entry, self._address, table)
        weakref.finalize(self, _free_arenas, self._instance, table, spec.slot).atexit = False

    def __repr__(self) -> str:
        """Return the signature as text."""
        return f"<NativeFunction {self.spec.signature(public_name(self.spec.name))}>"

    def __reduce__(self) -> NoReturn:
        """Report that a function cannot be pickled or copied, and the alternatives."""
        raise UnpicklableError(
            "a NativeFunction cannot be pickled or copied: its machine code belongs to this "
            "process",
            where=f"function {public_name(self.spec.name)!r}",
            hint="pickle the module and compile it again, which uses the cache, or use export",
        )

    def argument_writer(self, param: ParamSpec) -> ArgumentWriter:
        """Return the function that writes the native description of an argument."""
        return _argument_writer(param)

    def result_converter(self, result: ResultSpec) -> Callable[[int], Any]:
        """Return the function that converts a managed tensor to a result."""
        return result_converter(result)

    def in_place_result(self, argument: Any) -> Any:
        """Return an argument that was written in place as a result."""
        return as_result(argument)

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """Call with arrays and integers, by position or by the names of the parameters.

        State parameters are passed together: ``state=s`` passes a state of the executable, and the
        default is ``exe.state``. Calls with one state wait for each other.

        ``out=y`` writes the result to the NumPy array ``y`` and returns it. For several results
        that are not parameters written in place, ``out`` is a tuple of arrays.

        Returns
        -------
        object
            The result, or a tuple of several results; its fields have the names of the results if
            these are valid in Python.

        Raises
        ------
        CallError
            If an argument does not match its parameter; the subclass names the problem.
        """
        if named and named.get("out") is not None and self._takes_out:
            outputs = self._outputs(named.pop("out"))
            return self.with_state(
                arguments, named, lambda given, state: self.invoke(given, 0, state, outputs)
            )
        if self.states or (named and isinstance(named.get("state"), ExecutableState)):
            return self.with_state(arguments, named, self._invoke_with)
        if named:
            arguments = bound_arguments(self.spec, arguments, named)
        return self.run(arguments)

    def run(self, arguments: Sequence[Any]) -> Any:
        """Call a function without state parameters with all arguments in order."""
        direct = self.direct
        if direct is not None:
            found = direct(*arguments)
            if type(found) is ndarray:
                return found
            if found is not NotImplemented:
                return self.results_of(found)
        return self.invoke(arguments)

    def results_of(self, found: Any) -> Any:
        """Return the results of a direct call, with arrays for addresses of managed tensors."""
        if self._convert_result is not None:
            return self._convert_result(found) if type(found) is int else found
        items = zip(self._converters, found, strict=True)
        return self.make_results([f(x) if type(x) is int else x for f, x in items])

    def with_state(
        self,
        arguments: Sequence[Any],
        named: Mapping[str, Any],
        call: Callable[[Sequence[Any], ExecutableState | None], Any],
    ) -> Any:
        """Call a function with all arguments in order, including those of state parameters.

        Raises
        ------
        StateError
            If the state is not one of this executable, or the function has no state parameters.
        """
        given: object = None
        if named:
            named, given = self._split(named)
        if named or len(arguments) != self._inputs:
            arguments = bound_arguments(self.spec, arguments, named)
        state = self._chosen_state(given)
        return call(arguments, None) if state is None else state.run(self.order, arguments, call)

    def _split(self, named: Mapping[str, Any]) -> tuple[dict[str, Any], object]:
        """Return the named arguments without the state, and the state; it may be None."""
        rest, given = dict(named), named.get("state")
        taken = any(p.name == "state" for p in self.spec.inputs)
        if isinstance(given, ExecutableState) or (self.states and not taken):
            rest.pop("state", None)
            return rest, given
        return rest, None

    def _chosen_state(self, given: object) -> ExecutableState | None:
        """Return the state of a call: the given or the default one; None if it needs none."""
        if not self.states:
            if given is not None:
                raise StateError(
                    "the function has no state parameters",
                    where=self._where,
                    hint="call it without the argument 'state'",
                )
            return None
        if given is None and self.provide_state is not None:
            given = self.provide_state()
        if not isinstance(given, ExecutableState):
            raise StateError(
                f"expected an ExecutableState, got {type(given).__name__}",
                where=self._where,
                hint="pass state=exe.new_state(...)",
            )
        if given.owner is not self.owner:
            raise StateError(
                "the state belongs to another executable",
                where=self._where,
                hint="create the state with new_state() of the executable that is called; "
                "new_state(**other) copies the values of another state",
            )
        return given

    def resident(self) -> Any:
        """Call without arguments and return results in the memory that kernels read."""
        return self.invoke(())

    def _invoke_with(self, arguments: Sequence[Any], state: ExecutableState | None) -> Any:
        return self.invoke(arguments, 0, state)

    def invoke(
        self,
        arguments: Sequence[Any],
        sink: int = 0,
        state: ExecutableState | None = None,
        outputs: Outputs | None = None,
    ) -> Any:
        """Call with all arguments, including the arrays of a state.

        ``sink`` is the address that receives the times of launches, or 0.
        """
        if not self._ready:
            self._prepare()
        if len(arguments) != len(self._writers):
            raise count_error(self.spec, len(arguments))
        words = self._words()
        words[0] = self._table.address
        words[_SINK] = sink
        at, owners = _FIRST, list[object]()
        try:
            for write in self._writers:
                owners.append(write(words, at, arguments[len(owners)]))
                at += 2
        except TilewrightError:
            raise
        except Exception as error:
            param, argument = self.spec.params[len(owners)], arguments[len(owners)]
            raise argument_type_error(self.spec, param, argument, error) from error
        if outputs is not None:
            outputs.write(words, self._results)
        if self._reporting is not None:
            self._reporting.begin()
        code = self._looped(words, state) if self._stoppable else self._entry(self._address, words)
        if code:
            error = self._failure(code, list(words), arguments, outputs, state)
            if state is not None and self._may_have_written(code, words):
                state.fail(error)
            raise error
        if self._unpacks:
            for owner in owners:
                if isinstance(owner, PackedArgument):
                    owner.finish()
        if outputs is not None:
            return self._all_results(outputs.arrays, arguments)
        if self._convert_result is not None:
            return self._convert_result(words[self._results])
        return self._convert_results(words, arguments)

    def _looped(self, words: Words, state: ExecutableState | None) -> int:
        """Call a function that Ctrl+C and :meth:`stop` end, in a loop or before a launch."""

        def stop() -> None:
            words[_STOP] = _INTERRUPTED

        self._running.append(words)
        try:
            with INTERRUPTS.stopping(stop):
                return self._entry(self._address, words)
        except KeyboardInterrupt:
            self._interrupted(state)
            raise
        finally:
            self._running[:] = [w for w in self._running if w is not words]

    def stop(self) -> None:
        """Stop the calls that other threads are running, at the next iteration of a loop.

        On WebGPU they also stop before the next launch. These calls raise :class:`.StoppedError`.
        Other functions without loops are not stopped.
        """
        for words in tuple(self._running):
            words[_STOP] = 1

    def _may_have_written(self, code: int, words: Words) -> bool:
        """Return whether kernels may have run before a call failed."""
        first, last = self.spec.body
        return code != CODE_CHECK or first <= words[layout.CALL_SITE // 8] <= last

    def _convert_results(self, words: Words, arguments: Sequence[Any]) -> Any:
        new = {
            k: convert(words[self._results + k])
            for k, convert in enumerate(self._converters)
            if self._result_params[k] < 0
        }
        return self._all_results(new, arguments)

    def _all_results(self, new: Mapping[int, Any], arguments: Sequence[Any]) -> Any:
        """Return the results in order: new ones by position, and arguments written in place."""
        results = tuple(
            new[k] if param < 0 else self.in_place_result(arguments[param])
            for k, param in enumerate(self._result_params)
        )
        if len(results) == 1:
            return results[0]
        return self.make_results(results) if results else None

    def _outputs(self, out: Any) -> Outputs:
        """Return the outputs of the caller, after checks."""
        if self.device is not None:
            raise DeviceError(
                f"the results of this function are on device {self.spec.device}; 'out' requires "
                "results in host memory",
                where=self._where,
                hint="call the function without 'out'",
            )
        return Outputs(self.spec, out)

    def _failure(
        self,
        code: int,
        record: Sequence[int],
        arguments: Sequence[Any],
        outputs: Outputs | None,
        state: ExecutableState | None,
    ) -> TilewrightError:
        """Return the error of a failed call; an interrupt is raised."""
        try:
            error = self._error(code, record, arguments, outputs)
        except KeyboardInterrupt:
            self._interrupted(state)
            raise
        if record[_STOP] == _INTERRUPTED:
            self._interrupted(state)
            raise KeyboardInterrupt from error
        return error

    def _interrupted(self, state: ExecutableState | None) -> None:
        if state is not None:
            state.fail(StoppedError("the call was interrupted", where=self._where))

    def _error(
        self,
        code: int,
        record: Sequence[int],
        arguments: Sequence[Any],
        outputs: Outputs | None = None,
    ) -> TilewrightError:
        """Return the device's error of a failed launch, or else the error of the call record."""
        site = self.spec.sites[record[layout.CALL_SITE // 8]]
        if outputs is not None and code == CODE_CHECK and site.kind == "output":
            return outputs.error(site)
        failed = failed_launch(self.spec, code, record)
        if self.device is not None and failed is not None:
            return self.device.failure(*failed) or explain(self.spec, code, record, arguments)
        return explain(self.spec, code, record, arguments)

    def into(self, /, *arguments: Any, **named: Any) -> None:
        """Call with all buffers as arguments, including outputs (destination-passing style).

        A graph function has no separate form: it is called as usual.
        """
        (self.in_place or self)(*arguments, **named)

    def timed(self, arguments: Sequence[Any], state: ExecutableState | None = None) -> list[int]:
        """Call once and return the time of every launch, in nanoseconds."""
        sink = (ctypes.c_int64 * max(3 * len(self.spec.launches), 1))()
        self.invoke(arguments, ctypes.addressof(sink), state)
        return [sink[3 * k + 1] for k in range(len(self.spec.launches))]

    def query_plan(self, keys: Sequence[int], sizes: Sequence[int]) -> CallPlan:
        """Return the memory plan that the next call uses.

        Parameters
        ----------
        keys : sequence of int
            The values of the symbols.
        sizes : sequence of int
            The sizes of the storages in bytes, multiples of the alignment.
        """
        return query_instance(self.spec, self._instance, keys, sizes)

    def trim(self) -> None:
        """Free the arenas that no call is using."""
        _free_arenas(self._instance, self._table, self.spec.slot)

    def _prepare(self) -> None:
        with self._lock:
            if self._ready:
                return
            constants = self._fetch(self.spec.constants)
            for k, (address, _) in enumerate(constants):
                self._pointers[k] = address
            self._owners = constants
            self._ready = True
            self.direct = self._later


def _argument_writer(param: ParamSpec) -> ArgumentWriter:
    if param.form == "integer":
        return pass_integer
    row = dtype_named(param.dtype)
    if row.is_packed:
        return pass_packed(row, written=param.access != "in")
    return pass_extension(row) if row.is_extension else pass_tensor


def _free_arenas(instance: Any, table: RuntimeTable, slot: int) -> None:
    """Free the arenas of an instance, with a temporary call record."""
    from ..rtlib import calls

    words = (ctypes.c_int64 * _FIRST)()
    words[0] = table.address
    with uninterrupted():  # this is a finalizer, which an interrupt would end
        _OPEN(rtlib_address(calls.open_call))(words)
        _DROP(rtlib_address(workspaces.drop_workspaces))(words, instance, slot)
