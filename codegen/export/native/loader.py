"""Run an exported model from Python, without Tilewright: needs NumPy and this directory alone.

    python @NAME@.py            check the files, and list the functions
    from @NAME@ import load     load() gives the model; model.main(x) calls it

Copy the directory as a whole: every file is checked against the manifest's sha256.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import json
import operator
import os
import platform
import signal
import sys
import time
from pathlib import Path

import numpy as np

NAME = "@NAME@"
SCHEMA = 1
ABI = 1
TRUST_WEIGHTS = 1
LARGEST_MANIFEST = 64 << 20
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}


class ModelError(Exception):
    """The files are not those that were exported, or a call was refused; ``code`` says why."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


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


_ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class _Runtime(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int64), ("context", ctypes.c_void_p), ("alloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p), ("parallel", ctypes.c_void_p), ("threads", ctypes.c_int64),
        ("flags", ctypes.c_uint64),
    ]  # fmt: skip


# ---------------------------------------------------------------- threads

_POOL: dict[str, int] = {}  # @POOL@
_SYSTEM = {
    "CREATE": "pthread_create", "LOCK": "pthread_mutex_lock", "TRY_LOCK": "pthread_mutex_trylock",
    "UNLOCK": "pthread_mutex_unlock", "WAIT": "pthread_cond_wait", "SIGNAL": "pthread_cond_signal",
    "MASK": "pthread_sigmask", "TIME": "clock_gettime",
}  # fmt: skip
_LOCKS = {
    "pthread_mutex_init": ("SLEEP_MUTEX", "DONE_MUTEX"),
    "pthread_cond_init": ("SLEEP_CONDITION", "DONE_CONDITION"),
}
_FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT", "SIGSYS")
_LINGER = 2.0


class _Pool:
    """Threads that the library starts when a loop needs them, and that sleep else.

    The words are the library's to work on; here they get the system's functions, a new start in a
    forked child, which has none of its parent's threads, and an end before the process's.
    """

    def __init__(self, close, threads: int) -> None:
        self._memory = ctypes.create_string_buffer(_POOL["BYTES"] + 64)
        self.address = -(-ctypes.addressof(self._memory) // 64) * 64
        self._process = ctypes.CDLL(None)
        self._close = close
        for word, name in _SYSTEM.items():
            self._put(word, ctypes.cast(getattr(self._process, name), ctypes.c_void_p).value)
        here = getattr(self._process, "sched_getcpu", None)  # Linux alone has it
        self._put("HERE", ctypes.cast(here, ctypes.c_void_p).value if here else 0)
        self._put("BLOCK", int(signal.SIG_BLOCK))
        self._put("CLOCK", time.CLOCK_MONOTONIC)
        self._put("LIMIT", threads)
        kept = {getattr(signal, name) for name in _FAULTS if hasattr(signal, name)}
        for number in signal.valid_signals() - kept:
            place = self.address + _POOL["SIGNALS"] + (number - 1) // 8
            ctypes.c_uint8.from_address(place).value |= 1 << (number - 1) % 8
        self.renew()
        _pools.add(self)

    def _put(self, word: str, value: int) -> None:
        ctypes.c_int64.from_address(self.address + _POOL[word]).value = value

    def _get(self, word: str) -> int:
        return ctypes.c_int64.from_address(self.address + _POOL[word]).value

    def renew(self) -> None:
        for word in ("WORK", "BUSY", "SLEEPERS", "GONE", "SIZE"):
            self._put(word, 0)
        self._put("MOST", _POOL["WORKERS"])
        for name, places in _LOCKS.items():
            for place in places:
                where = self.address + _POOL[place]
                ctypes.memset(where, 0, 128)
                getattr(self._process, name)(ctypes.c_void_p(where), None)

    def close(self) -> None:
        if self._get("CLOSING"):
            return
        self._close(ctypes.c_void_p(self.address))
        end = time.monotonic() + _LINGER
        while self._get("GONE") < self._get("SIZE"):
            if time.monotonic() > end:
                return
            time.sleep(0.0005)
        for k in range(self._get("SIZE")):
            handle = ctypes.c_uint64.from_address(self.address + _POOL["HANDLES"] + 8 * k)
            self._process.pthread_join(handle, None)
        _pools.discard(self)


_pools: set[_Pool] = set()
"""Those whose memory threads may look at."""


def _close_pools() -> None:
    for pool in tuple(_pools):
        pool.close()


def _renew_pools() -> None:
    for pool in tuple(_pools):
        pool.renew()


atexit.register(_close_pools)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_pools)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _chosen(threads: int | None, manifest: dict) -> int:
    """How many threads: as asked, else one a core, as many as the library was made for."""
    most = manifest.get("threads", 1)
    if not isinstance(most, int) or most < 1:
        raise ModelError(f"'threads' of the manifest is {most!r}")
    if threads is None:
        return min(_cores(), most) if os.name == "posix" else 1
    if not isinstance(threads, int) or not 1 <= threads <= most:
        raise ModelError(f"{threads!r} threads: the library was made for 1 to {most}", 19)
    return threads


def _runtime() -> tuple[_Runtime, list[object]]:
    """Memory of the C library; everything runs on the caller's thread."""
    process = ctypes.CDLL(None)
    process.aligned_alloc.restype = ctypes.c_void_p
    process.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    process.free.argtypes = [ctypes.c_void_p]

    def give(_context: int, size: int, alignment: int) -> int | None:
        return process.aligned_alloc(alignment, (size + alignment - 1) // alignment * alignment)

    def take(_context: int, memory: int) -> None:
        process.free(memory)

    held: list[object] = [_ALLOC(give), _FREE(take)]
    alloc, free = (ctypes.cast(f, ctypes.c_void_p).value for f in held)
    return _Runtime(ABI, None, alloc, free, None, 1), held


# ---------------------------------------------------------------- checking files


def read_manifest(folder: Path) -> dict:
    """Read the manifest, and check that it is one of this loader's kind.

    Raises ModelError if it is missing, malformed, of another schema, or names other places.
    """
    path = folder / f"{NAME}.json"
    try:
        if path.stat().st_size > LARGEST_MANIFEST:
            raise ModelError(f"{path}: the manifest has {path.stat().st_size} bytes")
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: no readable manifest: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise ModelError(f"{path}: the manifest is not of schema {SCHEMA}")
    shapes = {"files": dict, "functions": list, "library": str, "weights": str, "arch": str}
    for key, kind in shapes.items():
        if not isinstance(manifest.get(key), kind):
            raise ModelError(f"{path}: {key!r} of the manifest is no {kind.__name__}")
    for name in (*manifest["files"], manifest["library"], manifest["weights"]):
        if name in ("", ".", "..") or Path(name).name != name or "\\" in name:
            raise ModelError(f"{path}: {name!r} is no file of this directory")
    return manifest


def check_files(folder: Path, manifest: dict) -> None:
    """Compare every file with the size and the sha256 that the manifest states.

    Raises ModelError at the first that is missing, a link, or differs.
    """
    for name in (manifest["library"], manifest["weights"]):
        if name not in manifest["files"]:
            raise ModelError(f"{name}: the manifest states no sha256")
    for name, facts in manifest["files"].items():
        path = folder / name
        if path.is_symlink() or not path.is_file():
            raise ModelError(f"{path}: missing, or no plain file")
        if not isinstance(facts, dict) or path.stat().st_size != facts.get("bytes"):
            raise ModelError(f"{path}: {path.stat().st_size} bytes, the manifest says otherwise")
        if name != manifest["weights"]:  # those are checked in the memory that they are used in
            with path.open("rb") as file:
                _check_digest(path, hashlib.file_digest(file, "sha256"), facts)


def read_weights(folder: Path, manifest: dict) -> np.ndarray:
    """Read the weights to a multiple of 64 bytes, and compare their sha256 with the manifest's.

    Raises ModelError if it differs.
    """
    path, facts = folder / manifest["weights"], manifest["files"][manifest["weights"]]
    raw = np.empty(facts["bytes"] + 64, np.uint8)
    start = -raw.ctypes.data % 64
    weights = raw[start : start + facts["bytes"]]
    with path.open("rb") as file:
        file.readinto(weights)
    _check_digest(path, hashlib.sha256(weights), facts)
    return weights


def _check_digest(path: Path, digest, facts: dict) -> None:
    if digest.hexdigest() != facts.get("sha256"):
        raise ModelError(f"{path}: its sha256 is not the manifest's")


# ---------------------------------------------------------------- the model


class Model:
    """An open model; every exported function is a method. Several threads may call at once."""

    def __init__(self, folder: Path, manifest: dict, threads: int | None = None) -> None:
        self.threads = _chosen(threads, manifest)
        self._pool = None
        machine = platform.machine()
        machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
        if manifest["arch"] != machine:
            raise ModelError(f"the library is for {manifest['arch']}, this machine is {machine}")
        self._library = ctypes.CDLL(str(folder / manifest["library"]))
        self._weights = read_weights(folder, manifest)
        self._runtime, self._held = _runtime()
        self._runtime.flags = TRUST_WEIGHTS  # read_weights has compared them
        if self.threads > 1:
            self._pool = _Pool(self._symbol(f"{NAME}_pool_close"), self.threads)
            parallel = ctypes.cast(self._symbol(f"{NAME}_pool_parallel"), ctypes.c_void_p)
            self._runtime.context = self._pool.address
            self._runtime.parallel = parallel.value
            self._runtime.threads = self.threads
        self._model = ctypes.c_void_p()
        self._close = self._symbol(f"{NAME}_close")
        self._close.restype = None
        self._close.argtypes = [ctypes.c_void_p]
        version = self._symbol(f"{NAME}_abi_version")()
        if version != ABI:
            raise ModelError(f"the library is of version {version}, this loader of {ABI}")
        error = _Error()
        open_model = self._symbol(f"{NAME}_open")
        code = open_model(
            ctypes.byref(self._runtime), ctypes.c_void_p(self._weights.ctypes.data),
            ctypes.c_int64(self._weights.size), ctypes.byref(self._model), ctypes.byref(error),
        )  # fmt: skip
        _raise(code, error)
        self.functions = {f["name"]: f for f in manifest["functions"]}
        for name, facts in self.functions.items():
            setattr(self, name, self._bound(facts))

    def _symbol(self, name: str):
        try:
            return getattr(self._library, name)
        except AttributeError:
            raise ModelError(f"the library has no function {name}") from None

    def _bound(self, facts: dict):
        native = self._symbol(facts["symbol"])
        made = [k for k, r in enumerate(facts["results"]) if r["param"] < 0]

        def call(*arguments):
            if len(arguments) != len(facts["params"]):
                names = ", ".join(f"{p['name']}: {p['annotation']}" for p in facts["params"])
                raise ModelError(f"{facts['name']}({names}): got {len(arguments)} arguments")
            held, words = [], [self._model]
            for argument, param in zip(arguments, facts["params"], strict=True):
                words.append(_word(argument, param, held))
            places = [ctypes.POINTER(_Result)() for _ in made]
            error = _Error()
            code = native(*words, *(ctypes.byref(p) for p in places), ctypes.byref(error))
            _raise(code, error)
            fresh = iter([_array(self, p) for p in places])
            results = tuple(
                next(fresh) if r["param"] < 0 else arguments[r["param"]] for r in facts["results"]
            )
            return results[0] if len(results) == 1 else results

        return call

    def close(self) -> None:
        """Free the model and end its threads; results live on. No call may be running."""
        model, self._model = self._model, ctypes.c_void_p()
        if model:
            self._close(model)
        if self._pool is not None:
            self._pool.close()

    def __del__(self) -> None:
        if getattr(self, "_model", None) or getattr(self, "_pool", None):
            self.close()


def _integer(argument, param: dict) -> int:
    try:
        value = operator.index(argument)
    except TypeError:
        given = type(argument).__name__
        raise ModelError(f"parameter {param['name']!r}: expected an int, got {given}", 1) from None
    if not -(2**63) <= value < 2**63:
        raise ModelError(f"parameter {param['name']!r}: {value} does not fit 64 bits", 11)
    return value


def _array_of(argument, param: dict):
    if param["access"] != "in" and not isinstance(argument, np.ndarray):
        given = type(argument).__name__
        raise ModelError(f"parameter {param['name']!r} is written: an array, not {given}", 1)
    try:
        return np.asarray(argument)
    except (TypeError, ValueError) as error:
        raise ModelError(f"parameter {param['name']!r} is no array: {error}", 1) from None


def _word(argument, param: dict, held: list):
    if param["form"] == "integer":
        return ctypes.c_int64(_integer(argument, param))
    array = _array_of(argument, param)
    bfloat = array.dtype.name == "bfloat16"
    if param["access"] != "in" and not array.flags.writeable:
        raise ModelError(f"parameter {param['name']!r} is written, the array is read-only", 6)
    shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    size = max(array.itemsize, 1)
    strides = (ctypes.c_int64 * max(array.ndim, 1))(*(s // size for s in array.strides))
    code = 4 if bfloat else _CODES.get(array.dtype.kind, 255)
    if array.dtype.byteorder == ">":
        code = 255
    tensor = _Tensor(
        array.ctypes.data, 1, 0, array.ndim, code, array.itemsize * 8 % 256, 1, shape, strides, 0
    )
    held += [array, shape, strides, tensor]
    return ctypes.byref(tensor)


class _Owner:
    """Keeps a result's memory, and what made it, as long as an array looks at it."""

    def __init__(self, model: Model, place) -> None:
        self._model, self._place = model, place
        t = place.contents.tensor
        shape = tuple(t.shape[k] for k in range(t.ndim))
        kind = {0: "i", 1: "u", 2: "f", 4: "V", 6: "b"}[t.code]
        self.__array_interface__ = {
            "version": 3, "shape": shape, "typestr": f"<{kind}{t.bits // 8}",
            "data": (t.data, False), "strides": None,
        }  # fmt: skip

    def __del__(self) -> None:
        self._place.contents.deleter(self._place)


def _array(model: Model, place):
    if place.contents.tensor.code == 4:
        import ml_dtypes

        return np.asarray(_Owner(model, place)).view(ml_dtypes.bfloat16)
    return np.asarray(_Owner(model, place))


def _raise(code: int, error: _Error) -> None:
    if code:
        raise ModelError(error.message.decode(errors="replace") or f"error {code}", code)


def load(folder: str | Path | None = None, *, threads: int | None = None) -> Model:
    """Check the files of a directory (this one's if not given), and open the model.

    A parallel loop runs on as many threads as there are cores, or as ``threads`` says: at most as
    many as the library was made for. The interpreter's lock is free while a model runs.

    Raises ModelError if a file is not what was exported, or the machine cannot run it.
    """
    place = Path(__file__).parent if folder is None else Path(folder)
    manifest = read_manifest(place)
    check_files(place, manifest)
    return Model(place, manifest, threads)


if __name__ == "__main__":
    try:
        model = load()
    except ModelError as problem:
        sys.exit(f"{NAME}: {problem}")
    for function in model.functions.values():
        params = ", ".join(f"{p['name']}: {p['annotation']}" for p in function["params"])
        print(f"{function['name']}({params})")
