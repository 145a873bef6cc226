"""Python loader of an exported model, which requires NumPy and the files of this directory only.

    python @NAME@.py            check the files and list the functions
    from @NAME@ import load     load() returns the model; model.main(x) calls a function

Copy the directory as a whole: the manifest contains the sha256 of every file.
"""

from __future__ import annotations

import ctypes
import difflib
import functools
import json
import operator
import os
import platform
import sys
import threading
from importlib import import_module
from pathlib import Path

import numpy as np

from .loader_calls import _memory, _Owned, _Python, _takes_arrays  # @CALLS@
from .loader_levels import _level, _variant  # @LEVELS@
from .loader_pool import _Pool  # @THREADS@
from .loader_signatures import _documentation, _results_type, _signature_of  # @SIGNATURES@
from .loader_weights import ModelError, _Weights, check_files  # @WEIGHTS@

NAME = "@NAME@"
SCHEMA = 1
ABI = 2
TRUST_WEIGHTS = 1
LARGEST_MANIFEST = 64 << 20
_DTYPES: dict = {}  # @DTYPES@
_ROWS = {stored: (name, code, bits) for name, (stored, code, bits) in _DTYPES.items()}
_NAMES = {(code, bits): name for name, code, bits in _ROWS.values()}
_BYTE = 8
_MESSAGES: dict = {}  # @MESSAGES@


def _text(name: str, **fields) -> str:
    return _MESSAGES[name][1].format(**fields)


def _error(name: str, where: str = "", **fields) -> ModelError:
    """Return the error of a message; ``where`` is its location."""
    message = _text(name, **fields)
    return ModelError(f"{where}: {message}" if where else message, _MESSAGES[name][0])


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Result(ctypes.Structure):
    pass


_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Result))
_Result._fields_ = [
    ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
    ("deleter", _DELETER), ("flags", ctypes.c_uint64), ("tensor", _Tensor),
]  # fmt: skip


class _Error(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_int32), ("parameter", ctypes.c_int32), ("message", ctypes.c_char * 504)
    ]  # fmt: skip


class _Runtime(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_int64), ("version", ctypes.c_int64), ("context", ctypes.c_void_p),
        ("alloc", ctypes.c_void_p), ("free", ctypes.c_void_p), ("parallel", ctypes.c_void_p),
        ("threads", ctypes.c_int64), ("flags", ctypes.c_uint64), ("arena_limit", ctypes.c_int64),
        ("expected_root", ctypes.c_void_p), ("level", ctypes.c_char_p),
    ]  # fmt: skip


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _thread_count(threads: int | None, manifest: dict) -> int:
    """Return the requested number of threads; by default one per core, up to the maximum."""
    maximum = manifest.get("threads", 1)
    if not isinstance(maximum, int) or maximum < 1:
        raise ModelError(f"'threads' of the manifest must be a positive integer, got {maximum!r}")
    if threads is None:
        return min(_cores(), maximum) if os.name == "posix" else 1
    if not isinstance(threads, int) or not 1 <= threads <= maximum:
        raise _error("threads", expected=maximum, actual=repr(threads))
    return threads


def read_manifest(folder: Path) -> dict:
    """Read and validate the manifest.

    Raises ModelError if it is missing, malformed, of another schema, or names files outside of the
    directory.
    """
    path = folder / f"{NAME}.json"
    try:
        if path.stat().st_size > LARGEST_MANIFEST:
            raise ModelError(
                f"{path}: the manifest has {path.stat().st_size} bytes; the maximum is "
                f"{LARGEST_MANIFEST} bytes"
            )
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: cannot read the manifest: {error}") from None
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if schema != SCHEMA:
        raise ModelError(f"{path}: expected a manifest of schema {SCHEMA}, got {schema!r}")
    shapes = {"files": dict, "functions": list, "library": str, "weights": str, "arch": str}
    for key, kind in shapes.items():
        if not isinstance(manifest.get(key), kind):
            actual = type(manifest.get(key)).__name__
            raise ModelError(f"{path}: expected {key!r} of type {kind.__name__}, got {actual}")
    for name in (*manifest["files"], manifest["library"], manifest["weights"]):
        if name in ("", ".", "..") or Path(name).name != name or "\\" in name:
            raise ModelError(f"{path}: {name!r} is not the name of a file in this directory")
    return manifest


class Model:
    """An open model with a method per exported function. Threads may call it concurrently."""

    def __init__(
        self,
        folder: Path,
        manifest: dict,
        threads: int | None = None,
        arena_limit: int = 0,
        *,
        copy_weights: bool = False,
        weights: Path | None = None,
        expected_sha256: str | None = None,
        watch: bool = False,
        verify: str = "open",
        level: str | None = None,
    ) -> None:
        wanted = _level(level, manifest)
        self.threads = _thread_count(threads, manifest)
        self._pool = None
        machine = platform.machine()
        machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
        if manifest["arch"] != machine:
            raise ModelError(
                f"the library requires {manifest['arch']}, but this machine is {machine}"
            )
        self._path = str(folder / manifest["library"])
        self._library = ctypes.CDLL(self._path)
        replaceable, path = manifest.get("weights_replaceable"), folder / manifest["weights"]
        if not replaceable and (weights is not None or expected_sha256 is not None):
            raise ModelError("other weights require an export with weights='replaceable'")
        self._copies, self._earlier, self._updating = copy_weights, [], threading.Lock()
        self._verify = verify
        self._weights = _Weights(
            path if weights is None else weights,
            None if replaceable else manifest["files"][manifest["weights"]],
            copy=copy_weights, expected=expected_sha256, verify=verify,
        )  # fmt: skip
        if self.threads > 1:
            self._pool = _Pool(self._symbol(f"{NAME}_pool_close"), self.threads)
        self._memory = _memory(self._pool.address if self._pool else 0)
        self._runtime = _Runtime(ctypes.sizeof(_Runtime), ABI, ctypes.addressof(self._memory))
        self._runtime.flags = TRUST_WEIGHTS  # _Weights has verified them, or the caller
        self._runtime.threads, self._runtime.arena_limit = self.threads, arena_limit
        self._runtime.level = wanted
        self._symbol(f"{NAME}_python_runtime")(ctypes.byref(self._runtime))
        self._entries = []
        self._model = ctypes.c_void_p()
        self._close = self._symbol(f"{NAME}_close")
        self._close.restype = None
        self._close.argtypes = [ctypes.c_void_p]
        version = self._symbol(f"{NAME}_abi_version")()
        if version != ABI:
            raise _error("library_version", actual=version, expected=ABI)
        error = _Error()
        open_model = self._symbol(f"{NAME}_open")
        code = open_model(
            ctypes.byref(self._runtime), ctypes.c_void_p(self._weights.address),
            ctypes.c_int64(self._weights.array.size), ctypes.byref(self._model),
            ctypes.byref(error),
        )  # fmt: skip
        _raise(code, error)
        self.variant = _variant(self._symbol, self._model) if "levels" in manifest else None
        self._states = manifest.get("states")
        self.functions = {f["name"]: f for f in manifest["functions"]}
        for name, facts in self.functions.items():
            call = self._bound(facts)
            setattr(self, name, self._watched(call) if watch else call)

    def _watched(self, call):
        @functools.wraps(call)
        def checked(*arguments, **named):
            self._weights.check()
            return call(*arguments, **named)

        return checked

    def check_weights(self) -> bool:
        """Check that the mapped file of the weights was not written since it was mapped.

        Returns whether its path now names another file, which replaced it by rename; the model
        keeps the file that it has mapped. Raises ModelError if the file was written or truncated.
        """
        return self._weights.check()

    def _symbol(self, name: str):
        try:
            return getattr(self._library, name)
        except AttributeError:
            raise ModelError(f"the library does not define the symbol {name!r}") from None

    def _bound(self, facts: dict):
        native, fast = self._native(facts), self._fast(facts)

        def call(*arguments, **named):
            out = named.pop("out", None) if takes_out else None
            if named:
                arguments = _bound_arguments(facts, arguments, named)
            made = fast(arguments, out) if fast else NotImplemented
            return native(arguments, None, out) if made is NotImplemented else made

        takes_out = _takes_out(facts)
        return _named(call, facts)

    def _fast(self, facts: dict):
        """Return the function for calls with NumPy arrays alone, or None.

        It returns NotImplemented if an argument must be converted.
        """
        if not (_python.available and _takes_arrays(facts, _DTYPES)):
            return None
        native = ctypes.PyDLL(self._path)[f"{NAME}_python_call"]
        native.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
        native.restype = ctypes.py_object
        number = self._symbol(f"{NAME}_python_number")(facts["name"].encode())
        entry = (ctypes.c_void_p * 4)(_python.address, self._model, number, id(self._memory))
        self._entries.append(entry)
        address, asarray, results = ctypes.addressof(entry), np.asarray, facts["results"]
        news, make_results = sum(r["param"] < 0 for r in results), _results_type(facts)
        single = news == len(results) == 1

        def call(arguments, out):
            given = out
            if out is None:
                given = NotImplemented
            elif type(out) is not tuple:
                given = tuple(out) if isinstance(out, list) else (out,)
            made = native(address, arguments, given)
            if made is NotImplemented:
                return made
            if single:
                return asarray(_Owned(made)) if out is None else given[0]
            if out is None:
                made = made if type(made) is tuple else (made,)
                given = map(asarray, map(_Owned, made))
            return _all_results(results, iter(given), arguments, make_results)

        return call

    def _native(self, facts: dict):
        every, facts = facts["params"], _without_states(facts)
        native = self._symbol(facts["symbol"])
        new = [r for r in facts["results"] if r["param"] < 0]
        locations = [_location(facts["name"], p) for p in facts["params"]]
        make_results = _results_type(facts)

        def call(arguments, state, out):
            if len(arguments) != len(facts["params"]):
                counts = {"expected": len(facts["params"]), "actual": len(arguments)}
                raise _call_error("argument_count", facts, **counts)
            owners, words = [], [self._model]
            for argument, param, where in zip(arguments, facts["params"], locations, strict=True):
                words.append(_word(argument, param, where, owners))
            if state is not None:
                words.append(state.address)
            error, arrays = _Error(), None
            if out is None:
                blocks = [ctypes.POINTER(_Result)() for _ in new]
                code = native(*words, *(ctypes.byref(b) for b in blocks), ctypes.byref(error))
                _raise(code, error)
                owned = [np.asarray(_Owner(self, block)) for block in blocks]
                arrays = map(_typed, owned, [r["dtype"] for r in new])
            else:
                arrays = _outputs(facts, new, out)
                for array, result in zip(arrays, new, strict=True):
                    param = {**result, "form": "tensor", "access": "out"}
                    where = _result_location(facts["name"], result)
                    words.append(_word(array, param, where, owners))
                into = self._symbol(f"{facts['symbol']}_into")
                _raise(into(*words, None, ctypes.byref(error)), error)
            for owner in owners:
                if callable(owner):
                    owner()
            given = iter(arguments)
            written = [None if p["access"] == "state" else next(given) for p in every]
            return _all_results(facts["results"], iter(arrays), written, make_results)

        return call

    def close(self) -> None:
        """Free the model and stop its threads. No call may be running. Results remain valid."""
        model, self._model = self._model, ctypes.c_void_p()
        for entry in self._entries:
            entry[1] = None
        if model:
            self._close(model)
        if self._pool is not None:
            self._pool.close()

    def needs(self, function: str = "main", **shapes) -> dict:
        """Return the memory of a call, and the shapes of its results, for shapes by name."""
        return _needs((self._model, self._symbol, self._states), self.functions[function], shapes)

    def trim(self, keep: int = 0) -> None:
        """Free memory that is kept for later calls, until ``keep`` bytes of workspaces remain.

        Calls may be running.
        """
        native = self._symbol(f"{NAME}_trim")
        native.restype = None
        native(self._model, ctypes.c_int64(keep))

    def __del__(self) -> None:
        if getattr(self, "_model", None) or getattr(self, "_pool", None):
            self.close()


def _all_results(results: list, new, arguments, make_results):
    """Return the results of a call: new ones, and arguments that it has written in place."""
    made = [next(new) if r["param"] < 0 else arguments[r["param"]] for r in results]
    return made[0] if len(made) == 1 else make_results(made)


def _takes_out(facts: dict) -> bool:
    """Return whether ``out`` is the keyword for outputs, and not the name of a parameter."""
    return all(p["name"] != "out" for p in facts["params"])


def _outputs(facts: dict, new: list, out) -> tuple:
    """Return the arrays that receive the results which are new tensors."""
    arrays = tuple(out) if isinstance(out, tuple | list) else (out,)
    if len(arrays) != len(new):
        raise _call_error("output_count", facts, expected=len(new), actual=len(arrays))
    return arrays


def _result_location(function: str, result: dict) -> str:
    name, annotation = result["name"], result["annotation"]
    return _text("in_result", function=function, result=name, annotation=annotation)


def _fail(code: int, message: str) -> None:
    raise ModelError(message or f"error {code}", code)


_python = _Python(_fail)


def _named(call, facts: dict, *, stateful: bool = False):
    call.__name__ = call.__qualname__ = facts["name"]
    call.__doc__ = _documentation(facts)
    call.__signature__ = _signature_of(facts, stateful=stateful)
    return call


_needs = None  # @NEEDS@
StatefulModel = Model  # @STATES@
OpenModel = StatefulModel  # @UPDATES@


def _without_states(facts: dict) -> dict:
    return {**facts, "params": [p for p in facts["params"] if p["access"] != "state"]}


def _signature(facts: dict) -> str:
    params = ", ".join(
        f"{p['name']}: {p['annotation']}" for p in facts["params"] if p["access"] != "state"
    )
    return f"{facts['name']}({params})"


def _call_error(name: str, facts: dict, **fields) -> ModelError:
    where = _text("in_function", function=facts["name"])
    return _error(name, where, **fields, signature=_signature(facts))


def _bound_arguments(facts: dict, arguments: tuple, named: dict) -> tuple:
    """Return the arguments by position, after binding keyword arguments by name."""
    names = [p["name"] for p in facts["params"]]
    if len(arguments) > len(names):
        counts = {"expected": len(names), "actual": len(arguments) + len(named)}
        raise _call_error("argument_count", facts, **counts)
    given = dict(zip(names, arguments, strict=False))
    for name in named:
        if name not in names:
            near = _nearest(name, names)
            similar = f" (did you mean '{near}'?)" if near else ""
            raise _call_error("unknown_argument", facts, parameter=name, similar=similar)
        if name in given:
            position = names.index(name) + 1
            raise _call_error("duplicate_argument", facts, parameter=name, position=position)
    given.update(named)
    absent = ", ".join(f"'{name}'" for name in names if name not in given)
    if absent:
        raise _call_error("missing_argument", facts, names=absent)
    return tuple(given[name] for name in names)


def _nearest(name: str, names: list[str]) -> str:
    """Return the most similar name, without regard to case and underscores, or an empty text."""
    plain: dict[str, str] = {}
    for other in names:
        plain.setdefault(other.lower().replace("_", ""), other)
    close = difflib.get_close_matches(name.lower().replace("_", ""), plain, n=1)
    return plain[close[0]] if close else ""


def _location(function: str, param: dict) -> str:
    name, annotation = param["name"], param["annotation"]
    return _text("in_parameter", function=function, parameter=name, annotation=annotation)


def _type_error(kind: str, argument, where: str, reason: str = "") -> ModelError:
    actual = type(argument).__name__
    return _error("argument_type", where, kind=kind, actual_type=actual, reason=reason)


def _integer(argument, where: str) -> int:
    try:
        value = operator.index(argument)
    except TypeError:
        raise _type_error("an integer", argument, where) from None
    if not -(2**63) <= value < 2**63:
        raise _error("integer_range", where, actual=value)
    return value


def _array_of(argument, param: dict, where: str):
    if param["access"] != "in" and not isinstance(argument, np.ndarray):
        raise _type_error("a NumPy array, because it is written", argument, where)
    try:
        return np.asarray(argument)
    except (TypeError, ValueError) as error:
        raise _type_error("an array", argument, where, f" ({error})") from None


def _word(argument, param: dict, where: str, owners: list):
    """Return an argument as the library expects it; ``owners`` keep its memory alive."""
    if param["form"] == "integer":
        return ctypes.c_int64(_integer(argument, where))
    array = _array_of(argument, param, where)
    name, code, bits = _ROWS.get(array.dtype.name, ("", None, 0))
    if code is None or array.dtype.byteorder == ">":
        raise _error("dtype", where, dtype=param["dtype"], actual_dtype=array.dtype)
    if param["access"] != "in" and not array.flags.writeable:
        raise _error("read_only", where, access=param["access"])
    words, size = ctypes.c_int64 * max(array.ndim, 1), max(array.itemsize, 1)
    shape, strides = words(*array.shape), words(*(s // size for s in array.strides))
    memory = array
    if bits < _BYTE:
        memory, strides = _packed(array, bits), None
        if param["access"] != "in":
            owners.append(lambda: np.copyto(array, _unpacked(memory, array.shape, name)))
    tensor = _Tensor(memory.ctypes.data, 1, 0, array.ndim, code, bits, 1, shape, strides, 0)
    owners += [memory, shape, strides, tensor]
    return ctypes.byref(tensor)


def _packed(array, bits: int):
    """Return elements of less than 8 bits as bytes, element 0 in the low bits."""
    fields = array.reshape(-1).astype(np.int8).view(np.uint8) & (2**bits - 1)
    size = -(-fields.size * bits // _BYTE)
    columns = np.resize(np.append(fields, np.zeros(_BYTE, np.uint8)), (size, _BYTE // bits))
    return (columns << np.arange(0, _BYTE, bits, dtype=np.uint8)).sum(1, np.uint8)


def _unpacked(memory, shape: tuple, name: str):
    """Return bytes as an array with one element per item."""
    bits, count = _DTYPES[name][2], int(np.prod(shape, dtype=np.int64))
    shifts = np.arange(0, _BYTE, bits, dtype=np.uint8)
    fields = (memory.reshape(-1, 1) >> shifts & (2**bits - 1)).reshape(-1)[:count]
    if _DTYPES[name][1] == 0:  # signed
        fields = (fields ^ 2 ** (bits - 1)) - 2 ** (bits - 1)
    return fields.astype(np.uint8).view(np.int8).astype(_numpy_dtype(name)).reshape(shape)


def _numpy_dtype(name: str):
    """Return the dtype of NumPy or ``ml_dtypes``; without this package, an integer of the bits."""
    stored, code, bits = _DTYPES[name]
    try:
        own = stored in np.sctypeDict
        return np.dtype(stored if own else getattr(import_module("ml_dtypes"), stored))
    except ImportError:
        return np.dtype(f"{'int' if code == 0 else 'uint'}{max(bits, _BYTE)}")


class _Owner:
    """The owner of a result: it frees the memory after the last array that uses it."""

    def __init__(self, model: Model, block) -> None:
        self._model, self._block = model, block
        self.__array_interface__ = _interface(block.contents.tensor)

    def __del__(self) -> None:
        self._block.contents.deleter(self._block)


def _typed(array, name: str):
    """Return an array of a dtype; the bits of dtypes that NumPy lacks are reinterpreted."""
    bits = _DTYPES[name][2]
    if bits < _BYTE:
        # The array has one byte per element, the memory only those of the packed elements.
        size = -(-array.size * bits // _BYTE)
        return _unpacked(np.lib.stride_tricks.as_strided(array, (size,), (1,)), array.shape, name)
    return array.view(_numpy_dtype(name))


def _interface(t: _Tensor) -> dict:
    shape = tuple(t.shape[k] for k in range(t.ndim))
    kind = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}.get(t.code, "V")
    kind = kind if t.bits >= _BYTE else "u"
    return {
        "version": 3, "shape": shape, "typestr": f"<{kind}{max(t.bits // _BYTE, 1)}",
        "data": (t.data, False), "strides": None,
    }  # fmt: skip


def _raise(code: int, error: _Error) -> None:
    if code:
        raise ModelError(error.message.decode(errors="replace") or f"error {code}", code)


def load(
    folder: str | Path | None = None,
    *,
    threads: int | None = None,
    arena_limit: int = 0,
    copy_weights: bool = False,
    weights: str | Path | None = None,
    expected_sha256: str | None = None,
    watch: bool = False,
    verify: str = "open",
    level: str | None = None,
) -> Model:
    """Check the files of a directory (by default that of this file), and open the model.

    ``threads`` is the number of threads of parallel loops, by default the number of cores. It is at
    most the number that the library was exported for. Calls release the GIL. ``arena_limit`` is the
    number of bytes that the workspaces of all calls may use together; 0 means no limit. A call that
    would exceed it raises ModelError at once. ``copy_weights`` copies the weights into memory of
    this process; otherwise the file is mapped, and must not be changed in place. ``watch`` checks
    at each call that it was not, see ``check_weights``. If the export has replaceable weights,
    ``weights`` is another file of them, and ``expected_sha256`` the sha256 of its tensors.
    ``verify="trusted"`` compares only sizes and headers, because the caller has verified the files;
    by default every file is compared with its sha256, and an error names the damaged tensors.
    ``level`` is one of the levels of the library, such as ``"x86-64-v3"``; by default it is the
    environment variable TILEWRIGHT_LEVEL, or the last level that the processor can execute.
    ``model.variant`` is the level that the model runs.

    Raises ModelError if a file differs from the exported one, or the machine cannot run the model.
    """
    path = Path(__file__).parent if folder is None else Path(folder)
    manifest = read_manifest(path)
    if verify not in ("open", "trusted"):
        raise ModelError(f"verify: expected 'open' or 'trusted', got {verify!r}")
    check_files(path, manifest, verify)
    return OpenModel(
        path, manifest, threads, arena_limit, copy_weights=copy_weights, watch=watch, verify=verify,
        weights=None if weights is None else Path(weights), expected_sha256=expected_sha256,
        level=level,
    )  # fmt: skip


if __name__ == "__main__":
    try:
        model = load()
    except ModelError as problem:
        sys.exit(f"{NAME}: {problem}")
    for function in model.functions.values():
        print(_signature(function))
