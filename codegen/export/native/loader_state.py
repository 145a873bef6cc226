"""States of an exported model: a part of the Python loader, whose names it uses.

An export contains the text after the marker; it replaces a line of ``loader.py``.
"""

from __future__ import annotations

import ctypes

import numpy as np

from .loader import (
    _BYTE,
    _DTYPES,
    _NAMES,
    NAME,
    Model,
    ModelError,
    _bound_arguments,
    _Error,
    _integer,
    _interface,
    _named,
    _packed,
    _raise,
    _takes_out,
    _Tensor,
    _typed,
    _unpacked,
    _without_states,
)


# @BEGIN@
class StatefulModel(Model):
    """An open model of which functions have state."""

    _default = None

    def new_state(self, **values) -> State:
        """Create a state: sizes of symbols, and initial arrays of state parameters, by name."""
        parts = ("create", "destroy", "reset", "tensor")
        native = {part: self._symbol(f"{NAME}_state_{part}") for part in parts}
        return State(native, (self._model, self._memory), self._states, values)

    @property
    def state(self) -> State:
        """The default state of calls; its shapes must not depend on symbols."""
        if self._default is None:
            self._default = self.new_state()
        return self._default

    def _bound(self, facts: dict):
        if not any(p["access"] == "state" for p in facts["params"]):
            return super()._bound(facts)
        native = self._native(facts)

        def call(*arguments, **named):
            state, out = named.pop("state", None), named.pop("out", None) if takes_out else None
            state = self.state if state is None else state
            if not isinstance(state, State):
                raise ModelError(f"expected a state of new_state(), got {type(state).__name__}")
            if named:
                arguments = _bound_arguments(inputs, arguments, named)
            with state.lock:
                return native(arguments, state, out)

        inputs = _without_states(facts)
        takes_out = _takes_out(inputs)
        return _named(call, facts, stateful=True)


class State:
    """The values of the state parameters between calls, by name.

    ``state["cache"]`` is the memory as an array, and ``state["cache"] = value`` copies into it.
    Elements of less than 8 bits are a :class:`Packed`. Calls with one state wait for each other.
    """

    def __init__(self, native: dict, handles: tuple, facts: dict, values: dict) -> None:
        from threading import Lock

        (model, memory), self.lock = handles, Lock()
        names = [p["name"] for p in facts["params"]]
        unknown = [n for n in values if n not in names and n not in facts["symbols"]]
        if unknown:
            known = ", ".join([*names, *facts["symbols"]])
            raise ModelError(f"no state parameter or symbol {unknown[0]!r}; names are {known}")
        sizes = _sizes(facts, values)
        words = [ctypes.c_int64(_integer(sizes[s], f"symbol {s!r}")) for s in facts["symbols"]]
        self._memory = _StateMemory(native, memory, [model, *words])
        self.address = self._memory.address
        self._reset = native["reset"]
        self._kinds = {p["name"]: p["dtype"] for p in facts["params"]}
        self._arrays = {n: self._memory.array(native["tensor"], n) for n in names}
        for name in names:
            if name in values:
                self[name] = values[name]

    def __getitem__(self, name: str):
        try:
            return self._arrays[name]
        except KeyError:
            known = ", ".join(self._arrays)
            raise ModelError(f"no state parameter {name!r}; names are {known}") from None

    def __setitem__(self, name: str, value) -> None:
        found, kind = self[name], self._kinds[name]
        packed = isinstance(found, Packed)
        target = found.unpack() if packed else found
        try:
            value = value.unpack() if isinstance(value, Packed) else value
            typed = hasattr(value, "dtype")
            if not typed and _DTYPES[kind][1] in _INTEGERS:
                value, typed = _integers(np.asarray(value), kind, target.dtype), True
            np.copyto(target, value, casting="equiv" if typed else "same_kind")
        except (TypeError, ValueError) as error:
            raise ModelError(f"state {name!r}: {error}") from None
        if packed:
            found.data[:] = _packed(target, found.bits)

    def __iter__(self):
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def keys(self):
        """Return the names of the state parameters."""
        return self._arrays.keys()

    def items(self):
        """Return the names and arrays of the state parameters."""
        return self._arrays.items()

    def reset(self) -> None:
        """Set the initial values of the model; arrays that new_state got are not kept."""
        error = _Error()
        with self.lock:
            _raise(self._reset(self.address, ctypes.byref(error)), error)


class Packed:
    """Elements of less than 8 bits: the bytes are ``data``, element 0 in the low bits.

    It is an argument of functions and of NumPy functions, which get a copy of the elements.
    """

    def __init__(self, data, shape: tuple, dtype: str) -> None:
        self.data, self.shape, self.dtype = data, shape, dtype
        self.bits = _DTYPES[dtype][2]

    def unpack(self):
        """Return the elements as an array with one byte per element."""
        return _unpacked(self.data, self.shape, self.dtype)

    def __array__(self, dtype=None, copy=None):
        """Return a copy with one element per item, for NumPy functions."""
        if copy is False:
            raise ValueError("the elements of a Packed share bytes; an array is a copy")
        found = self.unpack()
        return found if dtype is None else found.astype(dtype)

    def __repr__(self) -> str:
        """Return shape and dtype as text."""
        return f"Packed({self.shape}, {self.dtype})"


_SIGNED, _BOOL = 0, 6
_INTEGERS = (_SIGNED, 1, _BOOL)
"""The DLPack codes of dtypes whose elements are integers."""


def _integers(numbers, name: str, dtype):
    """Return numbers without a dtype, such as a list, as elements of an integer dtype or bool."""
    _, code, bits = _DTYPES[name]
    bits = 1 if code == _BOOL else bits
    low = -(1 << bits - 1) if code == _SIGNED else 0
    high = low + (1 << bits) - 1
    whole = numbers.dtype.kind in "iub"
    if numbers.size and not (whole and low <= int(numbers.min()) and int(numbers.max()) <= high):
        raise ValueError(f"not integers in {low} to {high}")
    return numbers.astype(dtype)


class _StateMemory:
    """The memory of a state, freed after the last array that uses it."""

    def __init__(self, native: dict, memory: object, words: list) -> None:
        self.address, error = ctypes.c_void_p(), _Error()
        self._runtime, self._destroy = memory, native["destroy"]
        self._destroy.restype = None
        code = native["create"](*words, ctypes.byref(self.address), ctypes.byref(error))
        _raise(code, error)

    def array(self, find, name: str):
        """Return the elements of a parameter."""
        find.restype = ctypes.POINTER(_Tensor)
        tensor = find(self.address, name.encode()).contents
        dtype = _NAMES[tensor.code, tensor.bits]
        held = _Held(self, tensor)
        if tensor.bits >= _BYTE:
            return _typed(np.asarray(held), dtype)
        shape = held.__array_interface__["shape"]
        size = -(-int(np.prod(shape, dtype=np.int64)) * tensor.bits // _BYTE)
        held.__array_interface__ |= {"shape": (size,), "typestr": "|u1"}
        return Packed(np.asarray(held), shape, dtype)

    def __del__(self) -> None:
        if getattr(self, "address", None):
            self._destroy(self.address)


def _sizes(facts: dict, values: dict) -> dict:
    """Return the sizes of the symbols: given ones, and dimensions of given arrays."""
    sizes = {s: values[s] for s in facts["symbols"] if s in values}
    for param in facts["params"]:
        shape = np.shape(values[param["name"]]) if param["name"] in values else ()
        for dim, size in zip(param["shape"], shape, strict=False):
            if dim in facts["symbols"]:
                sizes.setdefault(dim, size)
    absent = [s for s in facts["symbols"] if s not in sizes]
    if absent:
        names = ", ".join(f"{s}=4" for s in absent)
        raise ModelError(f"the shapes of the state depend on sizes: pass new_state({names})")
    return sizes


class _Held:
    """The elements of a parameter of a state."""

    def __init__(self, memory: _StateMemory, tensor: _Tensor) -> None:
        self._memory = memory
        self.__array_interface__ = _interface(tensor)
