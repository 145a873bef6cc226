"""Compilation of loop-level functions in this process, and calls on NumPy arrays."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from llvmlite import binding

from tilewright.codegen.llvm import compile_text, emit_module
from tilewright.codegen.llvm.compile import target_machine
from tilewright.codegen.llvm.processor import resolve
from tilewright.codegen.lower import LoweredKernel, lower_kernel
from tilewright.ir.dtype import from_numpy
from tilewright.ir.loop.nodes import PrimFunc
from tilewright.ir.packing import storage_of, unpack
from tilewright.ir.symbolic import Var, evaluate
from tilewright.ir.thread import runtime_table
from tilewright.target.host import levels_of_host
from tilewright.target.target import Target

LEVELS = levels_of_host()
"""The named feature sets whose code this machine can run."""

BEST = LEVELS[-1]
ALL_LEVELS = ("avx2", "avx512")
"""All named feature sets, for tests that only compile; they use the fixture ``every_level``."""
BODY = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
)
PARALLEL = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
)
ERROR = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64
)


@dataclass
class Runtime:
    """A runtime table whose ``parallel`` runs the workers one after the other, in reverse order."""

    threads: int = 1
    errors: list[tuple[int, str, int, int]] = field(default_factory=list)
    regions: int = 0

    def __post_init__(self) -> None:
        self._parallel = PARALLEL(self._run)
        self._error = ERROR(self._fail)
        self.table = (ctypes.c_int64 * 16)()
        self.table[runtime_table.VERSION // 8] = 1
        self.table[runtime_table.THREADS // 8] = self.threads
        for slot, function in (
            (runtime_table.PARALLEL, self._parallel),
            (runtime_table.ERROR, self._error),
        ):
            self.table[slot // 8] = ctypes.cast(function, ctypes.c_void_p).value or 0

    def _run(self, _context: int, body: int, stop: int, environment: int) -> int:
        self.regions += 1
        run = BODY(body)
        cuts = [stop * k // self.threads for k in range(self.threads + 1)]
        pieces = list(enumerate(itertools.pairwise(cuts)))
        codes = [run(environment, low, high, k) for k, (low, high) in reversed(pieces)]
        return next((c for c in codes if c), 0)

    def _fail(self, _context: int, code: int, text: bytes, a: int, b: int) -> None:
        self.errors.append((code, text.decode(), a, b))


@dataclass
class Kernel:
    """A compiled function."""

    source: PrimFunc
    artifact: LoweredKernel
    text: str
    target: Target
    engine: binding.ExecutionEngine
    address: int

    def symbols(self, arrays: Sequence[np.ndarray], scalars: dict[Var, int]) -> dict[Var, int]:
        found = dict(scalars)
        for buffer, array in zip(self.source.buffer_params, arrays, strict=True):
            dims = zip(buffer.shape, array.shape, strict=True)
            found.update({dim: size for dim, size in dims if isinstance(dim, Var)})
        return found

    def __call__(
        self,
        *arrays: np.ndarray,
        scalars: dict[Var, int] | None = None,
        runtime: Runtime | None = None,
    ) -> int:
        runtime = runtime or Runtime()
        call, _keep = self.prepare(arrays, scalars or {}, runtime)
        return call()

    @staticmethod
    def _memory(array: np.ndarray) -> np.ndarray:
        """Return an array as in memory, where packed elements share bytes."""
        dtype = from_numpy(array.dtype)
        return storage_of(array, dtype) if dtype.is_packed else array

    def prepare(self, arrays, scalars, runtime):
        """Bind the arguments; return the call and the objects that it keeps alive."""
        symbols = self.symbols(arrays, scalars)
        values = [symbols[v] for v in self.artifact.symbols]
        memory = [self._memory(a) for a in arrays]
        pointers = [a.ctypes.data for a in memory]
        kinds = [ctypes.c_void_p] * (1 + len(pointers)) + [ctypes.c_int64] * len(values)
        args: list[object] = [ctypes.addressof(runtime.table), *pointers, *values]
        scratch = None
        if self.artifact.scratch is not None:
            size = evaluate(
                self.artifact.scratch, {**symbols, self.artifact.threads: runtime.threads}
            )
            scratch = np.full(size + 64, 0x7F, np.uint8)
            args.append(scratch.ctypes.data + -scratch.ctypes.data % 64)
            kinds.append(ctypes.c_void_p)
        function = ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)(self.address)

        def call() -> int:
            code = function(*args)
            for array, data in zip(arrays, memory, strict=True):
                if data is not array:
                    array[...] = unpack(data, array.shape, from_numpy(array.dtype))
            return code

        return call, (scratch, runtime, memory)


def load(name: str, text: str, target: Target, *, opt: int = 2):
    """Compile text and load the object into this process."""
    machine = target_machine(resolve(target))
    module = binding.parse_assembly("")
    engine = binding.create_mcjit_compiler(module, machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(compile_text(text, target, opt=opt)))
    engine.finalize_object()
    return engine, engine.get_function_address(name)


def build(func: PrimFunc, level: str = BEST, *, debug: bool = False) -> Kernel:
    """Lower, compile and load a function."""
    target = Target("cpu", features=(level,) if level else ())
    artifact = lower_kernel(func, target, debug=debug)
    text = emit_module([artifact.function], target)
    engine, address = load(artifact.name, text, target)
    return Kernel(func, artifact, text, target, engine, address)
