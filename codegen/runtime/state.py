"""States: the values of the state parameters of an executable between calls."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from ...display import Table
from ...errors import TilewrightError, UnpicklableError
from ...ir.dtype import DType, dtype as dtype_named
from ...ir.packing import PackedArray, pack
from ...ir.sizes import storage_bytes
from ...ir.symbolic import Expr, Var, as_expr, evaluate, free_vars, parse_expr, var
from ...locks import renew_in_children
from ...nearest import listed, missing_attribute
from ..entry_names import public_name
from ..errors import OutOfMemoryError, SizeError, StateError
from ..lower.host.sizes import LIMIT
from ..manifest import CheckSite, FunctionSpec, ParamSpec
from ..messages import Message
from ..rtlib import layout
from .device import RemoteDevice
from .device_tensor import DeviceTensor
from .explain import range_error
from .sizes import bytes_text, in_range, symbol_value

Array = NDArray[Any]
HostMemory: TypeAlias = "Array | PackedArray"
Memory: TypeAlias = "HostMemory | DeviceTensor"


@dataclass(frozen=True, slots=True)
class StateSource:
    """The parts of an executable that its states use.

    Parameters
    ----------
    owner : object
        The executable.
    specs : sequence of FunctionSpec
        Its functions.
    constant : callable
        A function that returns a constant by name.
    device : RemoteDevice or None
        The device with the memory of the states; None for host memory.
    """

    owner: object
    specs: Sequence[FunctionSpec]
    constant: Callable[[str], Array]
    device: RemoteDevice | None = None

    def params(self) -> dict[str, tuple[FunctionSpec, ParamSpec]]:
        """Return the state parameters of all functions by name.

        Raises
        ------
        StateError
            If parameters of different functions have one name, but another dtype or rank.
        """
        found: dict[str, tuple[FunctionSpec, ParamSpec]] = {}
        for spec in self.specs:
            for param in spec.states:
                other, known = found.setdefault(param.name, (spec, param))
                if (known.dtype, known.rank) != (param.dtype, param.rank):
                    names = f"{public_name(other.name)!r} and {public_name(spec.name)!r}"
                    raise StateError(
                        f"state {param.name!r} of functions {names} has annotations "
                        f"{known.annotation} and {param.annotation}",
                        hint="give different states different names",
                    )
        return found


class ExecutableState(Mapping[str, Any]):
    """The values of the state parameters of an executable, by name.

    ``exe.new_state()`` creates one, and ``exe(x, state=s)`` calls with it. ``s["cache"]`` is the
    memory itself as a NumPy array, which calls change; ``s["cache"] = value`` copies into it. The
    memory of a packed dtype is a :class:`~tilewright.ir.packing.PackedArray`. On a GPU it is a
    tensor on the device, and an assignment uploads a new one.

    A call has exclusive access to its state: calls with one state on several threads wait for each
    other. Reading an array while a call is running is not synchronized.

    Examples
    --------
    >>> import numpy as np
    >>> from tilewright.codegen import compile
    >>> from tilewright.ir.script import parse
    >>> exe = compile(
    ...     parse('''
    ... @prim_func
    ... def add(total: State[(2,), f32], x: Buffer[(2,), f32]):
    ...     for i in range(2):
    ...         total[i] = total[i] + x[i]
    ... ''')
    ... )
    >>> s = exe.new_state()
    >>> for _ in range(3):
    ...     exe(np.array([1, 2], np.float32), state=s)
    >>> s["total"]
    array([3., 6.], dtype=float32)
    >>> s
    <ExecutableState total: f32(2,)>
    """

    def __init__(self, source: StateSource, arrays: Mapping[str, Memory]) -> None:
        """Take the arrays."""
        self._source = source
        self._arrays = dict(arrays)
        self._types = {n: dtype_named(p.dtype) for n, (_, p) in source.params().items()}
        self._failure = ""
        self._lock: Any = threading.Lock()
        renew_in_children(self)

    def __eq__(self, other: object) -> bool:
        """Return whether this is the same state."""
        return self is other

    def __hash__(self) -> int:
        """Return the hash of the identity."""
        return id(self)

    def __getitem__(self, name: str) -> Any:
        """Return the memory of a state parameter."""
        self._check(name)
        return self._arrays[name]

    def __setitem__(self, name: str, value: Any) -> None:
        """Copy a value to the memory of a state parameter; it may be one number for all elements.

        Raises
        ------
        StateError
            If no parameter has this name, or its shape or dtype does not fit.
        """
        self._check(name)
        with self._lock:
            self._assign(name, value)

    def _assign(self, name: str, value: Any) -> None:
        found, device = self._arrays[name], self._source.device
        if device is None or not isinstance(found, DeviceTensor):
            _fill(cast("HostMemory", found), value, name, self._types[name])
            return
        target = device.download(found)
        _fill(target, value, name, self._types[name])
        self._arrays[name] = device.upload(target)

    def _check(self, name: object) -> None:
        if name not in self._arrays:
            raise StateError(
                f"no state parameter {name!r}; state parameters are "
                f"{listed(str(name), list(self._arrays))}",
                hint="pass a name of the list",
            )

    if not TYPE_CHECKING:  # a type checker reports unknown attributes itself

        def __getattr__(self, name: str) -> NoReturn:
            """Report an unknown attribute; parameters are items."""
            known = name in self.__dict__.get("_arrays", ())
            missing_attribute(self, name, hint=f"write state[{name!r}]" if known else "")

    def __reduce__(self) -> NoReturn:
        """Report that a state cannot be pickled, and the alternatives."""
        raise UnpicklableError(
            "an ExecutableState cannot be pickled: it belongs to an executable of this process",
            where="ExecutableState",
            hint="state.copy() copies it; to save it, save the arrays of dict(state) and pass them "
            "to new_state(**arrays)",
        )

    def __copy__(self) -> ExecutableState:
        """Return an independent state with the same values."""
        return self.copy()

    def __deepcopy__(self, memo: object) -> ExecutableState:
        """Return an independent state with the same values."""
        return self.copy()

    def __contains__(self, name: object) -> bool:
        """Return whether a state parameter has this name."""
        return name in self._arrays

    def get(self, name: str, default: Any = None) -> Any:
        """Return the memory of a state parameter, or a default if no parameter has this name."""
        return self._arrays.get(name, default)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the state parameters."""
        return iter(self._arrays)

    def __len__(self) -> int:
        """Return the number of state parameters."""
        return len(self._arrays)

    def __repr__(self) -> str:
        """Return the names, dtypes and shapes as one line."""
        parts = [f"{n}: {self._types[n]}{_shape(a)}" for n, a in self._arrays.items()]
        return f"<ExecutableState {', '.join(parts) or 'without parameters'}>"

    def table(self) -> Table:
        """Return the state parameters with their sizes as a table."""
        sizes = {
            n: storage_bytes(math.prod(a.shape), self._types[n]) for n, a in self._arrays.items()
        }
        rows = tuple(
            (n, str(self._types[n]), _shape(a), bytes_text(sizes[n]))
            for n, a in self._arrays.items()
        )
        title = f"state: {bytes_text(sum(sizes.values()))}"
        return Table(("parameter", "dtype", "shape", "size"), rows, title)

    def __str__(self) -> str:
        """Return the state parameters as a table."""
        return str(self.table())

    def _repr_html_(self) -> str:
        """Return the table as static HTML."""
        return self.table().to_html()

    def copy(self) -> ExecutableState:
        """Return an independent state with the same values."""
        with self._lock:
            made = {n: _copied(n, a, self._source.device) for n, a in self._arrays.items()}
            copied = ExecutableState(self._source, made)
            copied._failure = self._failure
            return copied

    def reset(self) -> None:
        """Set all values to the initial values of the program, which are zero by default."""
        params = self._source.params()
        with self._lock:
            for name in self._arrays:
                initial = params[name][1].initial
                self._assign(name, self._source.constant(initial) if initial else 0)
            self._failure = ""

    # ------------------------------------------------------------ calls

    @property
    def owner(self) -> object:
        """The executable that created the state."""
        return self._source.owner

    def run(
        self,
        order: Sequence[str],
        arguments: Sequence[Any],
        call: Callable[[Sequence[Any], ExecutableState], Any],
    ) -> Any:
        """Call a function with exclusive access to the state, after all running calls.

        ``order`` has the name of each state parameter and, for the parameters that ``arguments``
        are passed for, an empty string.

        Raises
        ------
        StateError
            If an earlier call failed after it began to write the state.
        """
        with self._lock:
            if self._failure:
                raise StateError(
                    f"an earlier call failed after it had begun to write the state: "
                    f"{self._failure}",
                    where="state",
                    hint="call state.reset(), or continue with a copy made before that call",
                )
            own, passed = self._arrays, iter(arguments)
            return call([own[name] if name else next(passed) for name in order], self)

    def fail(self, error: TilewrightError) -> None:
        """Refuse later calls, because a failed call may have written some values."""
        self._failure = error.message


def new_state(source: StateSource, values: Mapping[str, Any]) -> ExecutableState:
    """Create a state of an executable.

    Parameters
    ----------
    source : StateSource
        The executable.
    values : Mapping
        Values of symbols by name, and initial arrays of state parameters by name, which are copied.

    Raises
    ------
    StateError
        If a name is unknown, a size is missing, or an array does not fit.
    FactError
        If the size of a symbol is outside of its declared range.
    SizeError, OutOfMemoryError
        If the memory of a state parameter overflows, or is not available.
    """
    params = source.params()
    if not params:
        raise StateError(
            "no function has state parameters",
            hint="declare a parameter as State[Tensor[...]] and return its last value: "
            "return y, updates(cache=c2)",
        )
    symbols = {n for spec, _ in params.values() for n in spec.symbols}
    unknown = [n for n in values if n not in params and n not in symbols]
    if unknown:
        known = [*params, *sorted(symbols)]
        raise StateError(
            f"no state parameter or symbol {unknown[0]!r}; names are {listed(unknown[0], known)}",
            where="new_state",
            hint="pass values of symbols and initial arrays of state parameters by name",
        )
    given = {n: v for n, v in values.items() if n in params}
    sizes = {n: symbol_value(n, v, "new_state") for n, v in values.items() if n not in params}
    for name, value in given.items():
        _bind(params[name], value, sizes)
    _check_ranges(source.specs, sizes, given)
    arrays: dict[str, Memory] = {}
    on_host = source.device is None
    for name, (spec, param) in params.items():
        if len(param.shape) == param.rank:
            shape = _declared(spec, param, sizes, given.get(name))
        else:
            shape = _given(name, param, given.get(name))
        array = _zeros(name, shape, dtype_named(param.dtype), packed=on_host)
        if name in given or param.initial:
            value = given[name] if name in given else source.constant(param.initial)
            _fill(array, value, name, dtype_named(param.dtype))
        arrays[name] = _uploaded(array, source.device)
    return ExecutableState(source, arrays)


def _check_rank(name: str, param: ParamSpec, value: Any) -> None:
    """Check that an initial array has the rank of its state parameter; a number is one element."""
    shape = _shape_of(value)
    if shape and len(shape) != param.rank:
        raise StateError(
            f"expected rank {param.rank}, got rank {len(shape)} (shape {shape})",
            where=f"state {name!r} of type {param.annotation}",
            hint="pass an array of this rank, or one number",
        )


def _shape_of(value: Any) -> tuple[int, ...]:
    return tuple(value.shape) if hasattr(value, "shape") else np.shape(value)


def _check_ranges(
    specs: Sequence[FunctionSpec], given: Mapping[str, int], arrays: Mapping[str, Any]
) -> None:
    """Check the declared ranges of the symbols in the shapes of states.

    Functions may have different ranges for a state that they share. A size is legal if a function
    with the state accepts it.
    """
    problems: dict[str, list[TilewrightError | None]] = {}
    for spec in specs:
        sizes = dict(given)
        for param in spec.states:
            if param.name in arrays:
                _bind((spec, param), arrays[param.name], sizes)
        failed = {s.names[0]: s for s in spec.sites if s.kind == "bound" and not _holds(s, sizes)}
        for param in spec.states:
            symbols: dict[str, Var] = {s: var(s) for s in spec.symbols}
            dims = (parse_expr(text, symbols) for text in param.shape)
            used = {v.name for dim in dims for v in free_vars(dim)}
            site = next((failed[name] for name in failed if name in used), None)
            problem = None if site is None else range_error(spec, site, sizes[site.names[0]])
            problems.setdefault(param.name, []).append(problem)
    for found in problems.values():
        if found[0] is not None and None not in found:
            found[0].where = f"new_state, {found[0].where}"
            raise found[0]


def _holds(site: CheckSite, sizes: Mapping[str, int]) -> bool:
    """Return whether the check of a range holds, or the size is not known."""
    name = site.names[0]
    return name not in sizes or in_range(site, sizes[name])


def _uploaded(array: HostMemory, device: RemoteDevice | None) -> Memory:
    """Return the memory of a state parameter on a device, if there is one."""
    return array if device is None or isinstance(array, PackedArray) else device.upload(array)


def _fill(target: HostMemory, value: Any, name: str, element: DType) -> None:
    """Copy a value to the memory of a state parameter."""
    packed = isinstance(target, PackedArray)
    elements = np.zeros(target.shape, element.numpy) if packed else target
    try:
        array = _host_array(value)
        typed = hasattr(value, "dtype")  # numbers and lists have no dtype
        if not (element.is_inexact or typed):
            array, typed = _as_integers(array, element), True
        np.copyto(elements, array, casting="equiv" if typed else "same_kind")
    except (TypeError, ValueError) as error:
        raise StateError(
            f"expected values for {element}{_shape(target)}, got {_described(value)}",
            where=f"state {name!r}",
            hint=f"pass an array of this shape and dtype, or {_numbers(element)}",
        ) from error
    if packed:
        target.data[:] = pack(elements, element)


def _as_integers(array: Array, element: DType) -> Array:
    """Return numbers without a dtype, such as a list, as elements of an integer dtype or bool.

    Raises
    ------
    ValueError
        If they are not integers of the dtype.
    """
    low, high = _limits(element)
    whole = array.dtype.kind in "iub"
    if array.size and not (whole and low <= int(array.min()) and int(array.max()) <= high):
        raise ValueError(f"expected {_numbers(element)}")
    return array.astype(element.numpy)


def _numbers(element: DType) -> str:
    """Return the numbers without a dtype that are elements of a dtype."""
    if element.is_inexact:
        return "one number"
    low, high = _limits(element)
    return f"integers in {low} to {high}"


def _limits(element: DType) -> tuple[int, int]:
    """Return the least and the largest integer of a dtype."""
    return element.lowest, 1 if element.kind == "bool" else element.highest


def sizes_of(spec: FunctionSpec, arguments: Sequence[Any]) -> dict[str, int]:
    """Return the values of symbols that are dimensions of the arguments other than states."""
    sizes: dict[str, int] = {}
    for param, argument in zip(spec.inputs, arguments, strict=True):
        if param.form == "tensor":
            _bind((spec, param), argument, sizes)
    return sizes


def _bind(owned: tuple[FunctionSpec, ParamSpec], value: Any, sizes: dict[str, int]) -> None:
    """Bind the symbols that are dimensions of a given array."""
    spec, param = owned
    shape = _shape_of(value)
    if len(shape) == len(param.shape) == param.rank:
        for dim, size in zip(param.shape, shape, strict=True):
            if dim in spec.symbols:
                sizes.setdefault(dim, int(size))


def _declared(
    spec: FunctionSpec, param: ParamSpec, sizes: Mapping[str, int], value: Any
) -> tuple[int, ...]:
    """Return the shape of a state parameter; ``value`` is its initial array, or None."""
    name = param.name
    symbols: dict[str, Var] = {s: var(s) for s in spec.symbols}
    dims = [as_expr(cast("Expr", parse_expr(text, symbols))) for text in param.shape]
    missing = sorted({v.name for d in dims for v in free_vars(d)} - sizes.keys())
    if missing:
        _check_rank(name, param, value)
        example = ", ".join(f"{symbol}=4" for symbol in missing)
        raise StateError(
            f"the shape of state {name!r}, {param.annotation}, depends on {', '.join(missing)}",
            where=f"function {public_name(spec.name)!r}",
            hint=f"create a state with sizes: s = exe.new_state({example}), and call "
            "exe(x, state=s)",
        )
    values = {symbols[s]: size for s, size in sizes.items() if s in symbols}
    return tuple(_size(d, values, name) for d in dims)


def _given(name: str, param: ParamSpec, value: Any) -> tuple[int, ...]:
    """Return the shape of a given array, for a parameter of unknown shape."""
    if value is None:
        raise StateError(
            f"the shape of state {name!r}, {param.annotation}, is not declared",
            hint=f"pass an initial array: exe.new_state({name}=array)",
        )
    return _shape_of(value)


def _zeros(name: str, shape: tuple[int, ...], element: DType, *, packed: bool) -> HostMemory:
    """Return zeros for a state parameter, ``packed`` if its dtype is."""
    if not packed or not element.is_packed:
        return aligned_zeros(name, shape, element.numpy)
    size = storage_bytes(math.prod(shape), element)
    return PackedArray(aligned_zeros(name, (size,), np.dtype(np.uint8)), shape, element)


def _size(dim: Expr, values: Mapping[Var, int], name: str) -> int:
    size = int(evaluate(dim, values))
    if size < 0:
        raise StateError(f"dimension {dim} of state {name!r} is {size}", hint="pass larger sizes")
    return size


def aligned_zeros(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return zeros for a state parameter, whose memory is aligned for vector instructions."""
    size = math.prod(shape) * dtype.itemsize
    where, hint = f"state {name!r}", "pass smaller sizes"
    if size >= LIMIT:
        raise SizeError(Message.OVERFLOW.format(size=size), where=where, hint=hint)
    try:
        memory = np.zeros(size + layout.ALIGNMENT, np.uint8)
    except MemoryError:
        text = Message.MEMORY.format(bytes=size, storage=where)
        raise OutOfMemoryError(text, where=where, hint=hint) from None
    start = -memory.ctypes.data % layout.ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def _host_array(value: Any) -> Array:
    """Return a value as an array; tensors of other libraries are read by DLPack."""
    if isinstance(value, DeviceTensor):
        return value.numpy()
    if isinstance(value, PackedArray):
        return value.unpack()
    if isinstance(value, np.ndarray):
        return cast("Array", value)
    if not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    return np.from_dlpack(value)


def _copied(name: str, array: Memory, device: RemoteDevice | None) -> Memory:
    if device is not None and isinstance(array, DeviceTensor):
        return device.upload(device.download(array))
    if isinstance(array, PackedArray):
        made = cast("PackedArray", _zeros(name, array.shape, array.dtype, packed=True))
        made.data[:] = array.data
        return made
    made = aligned_zeros(name, tuple(array.shape), cast("Array", array).dtype)
    made[...] = cast("Array", array)
    return made


def _shape(array: Memory) -> str:
    return str(tuple(array.shape))


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        return f"{array.dtype}{array.shape}"
    return f"{type(value).__name__}"
