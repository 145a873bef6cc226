"""Results of a random program: by the interpreter, as native code, and on the emulated GPU."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING
from unittest import mock

import numpy as np

from tilewright.codegen.llvm import emit_module, parallel
from tilewright.codegen.lower import lower_kernel
from tilewright.errors import TilewrightError
from tilewright.ir import kernel_errors as gpu
from tilewright.ir.dtype import from_numpy
from tilewright.ir.interpreter import (
    call_prim,
    compare,
    interpreted,
    loops,
    run_prim,
    translation,
)
from tilewright.ir.interpreter.translation import undefined
from tilewright.ir.loop.nodes import Block, BufferParam
from tilewright.ir.loop.visit import stores, walk
from tilewright.ir.symbolic import evaluate
from tilewright.schedules.launchable import LAUNCH_ERRORS, launch_errors
from tilewright.target.target import Target

from tests.codegen.gpu.running import launch
from tests.codegen.kernels import Kernel, Runtime, load
from tests.fuzz.inputs import arguments, intact, snapshot
from tests.strategies import scalars

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tilewright.codegen.lower import LoweredKernel
    from tilewright.codegen.runtime.executable import Executable
    from tilewright.ir.dtype import DType
    from tilewright.ir.interpreter import Exact
    from tilewright.ir.loop.nodes import PrimFunc
    from tilewright.ir.module import Module
    from tilewright.ir.symbolic import Var

    from tests.fuzz.program import Program

SIMT = Target("simt")

WEBGPU = "TILEWRIGHT_WALKS_WEBGPU"
"""The environment variable with which walks compare kernels on a WebGPU driver, too."""
REFUSALS = (
    gpu.UnboundKernelError, gpu.ThreadAxisError, gpu.LaunchLimitError, gpu.SharedMemoryError,
    gpu.MissingDTypeError, gpu.MemoryScopeError, gpu.DivergentBarrierError, gpu.WarpError,
    gpu.KernelStatementError, gpu.MissingInstructionError,
)  # fmt: skip
"""Errors that lowering may raise for a program whose schedule is incomplete or for another
machine."""

UNINITIALIZED = "uninitialized read"
"""A finding of the emulator that need not affect the results; they are compared first."""

NARROW = 32
"""The number of bits of floats below which sums of the data of random programs may round."""

ROUNDING = 1e-9
"""The largest relative difference in float64 that reordered arithmetic may cause."""


LONG = 150_000
"""The length of a module of LLVM text that takes minutes to optimize; it is only translated."""


LONG_SHADER = 16_000
"""The length of the shaders of a kernel that the driver takes minutes to compile."""


LONGEST = 1_000_000
"""The length of a module of LLVM text that is not compiled."""


class WrongResultError(AssertionError):
    """Results that differ from those of the original program."""


class LaunchableError(AssertionError):
    """A launch whose problems differ from the errors of lowering."""


class RefusedError(Exception):
    """A program that lowering may reject; the cause is the named error."""


class TooLongError(Exception):
    """A program whose code is too long to compile in a random walk."""


@dataclass
class Original:
    """The original program with its results at some sizes."""

    program: Program
    module: Module
    runs: dict[tuple[int, ...], tuple[list[np.ndarray], list[np.ndarray]]] = field(
        default_factory=dict
    )
    bounds: dict[tuple[int, ...], Exact] = field(default_factory=dict)
    wide: dict[tuple[int, ...], tuple[np.ndarray, ...]] = field(default_factory=dict)
    exact: dict[tuple[int, ...], bool] = field(default_factory=dict)

    @property
    def function(self) -> PrimFunc:
        """The function."""
        return self.module.prims[0]

    def inputs(self, env: Mapping[Var, int]) -> list[np.ndarray]:
        """Return fresh copies of the arrays of a run."""
        return snapshot(self._run(env)[0])

    def precise(self, function: PrimFunc, env: Mapping[Var, int]) -> tuple[np.ndarray, ...]:
        """Return the results of a function for the inputs of a run, in float64."""
        params = [p for p in function.params if isinstance(p, BufferParam)]
        given = [a for a, p in zip(self.inputs(env), params, strict=True) if p.access != "out"]
        wide = [widened(a) if a.dtype.kind not in "iub" else a for a in given]
        values = {v.name: x for v, x in env.items()}
        return tuple(call_prim(function, wide, values, precise=True))

    @cached_property
    def has_narrow_sums(self) -> bool:
        """Whether a reduction or a scan has results in floats of fewer than 32 bits."""
        blocks = [s for s in walk(self.function.body) if isinstance(s, Block)]
        combining = (b for b in blocks if any(v.kind != "spatial" for v in b.iters))
        dtypes = {store.buffer.dtype for b in combining for store in stores(b)}
        return any(t.is_float and t.bits < NARROW for t in dtypes)

    def is_exact(self, env: Mapping[Var, int]) -> bool:
        """Return whether a run does not round; sums of floats of 16 bits may become too large."""
        if not self.program.exact or not self.has_narrow_sums:
            return self.program.exact
        key = tuple(env.values())
        if key not in self.exact:
            params = [p for p in self.function.params if isinstance(p, BufferParam)]
            results = zip(self._run(env)[1], params, strict=True)
            written = [a for a, p in results if p.access != "in"]
            wide = self.precise(self.function, env)
            self.exact[key] = all(
                np.array_equal(widened(a), widened(b), equal_nan=True)
                for a, b in zip(written, wide, strict=True)
            )
        return self.exact[key]

    def undefined(self, envs: Sequence[Mapping[Var, int]]) -> bool:
        """Return whether a result of the original program is not a number."""
        found = [a for env in envs for a in self._run(env)[1] if a.dtype.kind not in "iub"]
        return any(bool(np.isnan(widened(a)).any()) for a in found)

    def is_defined(self, envs: Sequence[Mapping[Var, int]]) -> bool:
        """Return whether no result depends on an element that the program has not written.

        Temporaries and outputs start with zeros, then with ones. Outputs of exact programs may
        keep elements.
        """
        accesses = [p.access for p in self.function.params if isinstance(p, BufferParam)]
        for env in envs:
            zeros, ones = self._filled(env, 0), self._filled(env, 1)
            for a, b, access in zip(zeros, ones, accesses, strict=True):
                differs = (a != b) & ((a == a) | (b == b))  # noqa: PLR0124  # NaN equals NaN
                if self.program.exact and access == "out":
                    differs &= (a != 0) | (b != 1)
                if differs.any():
                    return False
        return True

    def _filled(self, env: Mapping[Var, int], value: int) -> list[np.ndarray]:
        """Return all arrays after a run that starts with a value in unwritten elements."""

        def fill(shape: tuple[int, ...], name: str, dtype: DType, *, precise: bool) -> np.ndarray:
            return np.full_like(undefined(shape, name, dtype, precise=precise), value)

        arrays = self.inputs(env)
        params = (p for p in self.function.params if isinstance(p, BufferParam))
        for array, param in zip(arrays, params, strict=True):
            if param.access == "out":
                array[...] = value
        patches = (mock.patch.object(m, "undefined", fill) for m in (loops, translation))
        with next(patches), next(patches):
            run_prim(self.function, arrays, scalars(self.function, env))
        return arrays

    def _run(self, env: Mapping[Var, int]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        key = tuple(env.values())
        if key not in self.runs:
            given = arguments(self.program, self.function, env)
            arrays = snapshot(given)
            run_prim(self.function, arrays, scalars(self.function, env))
            self.runs[key] = given, arrays
        return self.runs[key]

    def check(self, arrays: Sequence[np.ndarray], env: Mapping[Var, int], title: str) -> None:
        """Compare all arrays after a run with those after the original program."""
        wanted = self._run(env)[1]
        params = [p for p in self.function.params if isinstance(p, BufferParam)]
        shown = {v.name: x for v, x in env.items()}
        for a, b, param in zip(wanted, arrays, params, strict=True):
            name = param.buffer.name
            if not intact(b):
                raise WrongResultError(f"{title} at {shown}: wrote outside of buffer {name!r}")
            exact = param.access == "in" or self.is_exact(env) or a.dtype.kind in "iub"
            if exact and not same(a, b):
                raise WrongResultError(
                    f"{title} at {shown}: buffer {name!r}\nexpected\n{a}\nactual\n{b}"
                )
        if not self.is_exact(env):
            self._check_rounding(arrays, env, f"{title} at {shown}")

    def _check_rounding(self, arrays, env: Mapping[Var, int], title: str) -> None:
        key = tuple(env.values())
        params = [p for p in self.function.params if isinstance(p, BufferParam)]
        if key not in self.bounds:
            given = self._run(env)[0]
            inputs = [a for a, p in zip(given, params, strict=True) if p.access != "out"]
            integers = [env[v] for v in self.function.scalar_params]
            self.bounds[key] = interpreted(
                self.module,
                self.function.name,
                [*inputs, *integers],
                symbols={v.name: x for v, x in env.items()},
            )
        got = [a for a, p in zip(arrays, params, strict=True) if p.access != "in"]
        verdict = compare(got, self.bounds[key])
        if not verdict.agrees:
            raise WrongResultError(f"{title}: {verdict}")


def widened(array: np.ndarray) -> np.ndarray:
    """Return floats in double precision, and complex numbers with parts in double precision."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays are equal bit for bit, except for the sign of zeros."""
    if from_numpy(a.dtype).is_packed:
        return bool((a.astype(np.int8) == b.astype(np.int8)).all())
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind not in "iub"))


def interpret(original: Original, function: PrimFunc, env: Mapping[Var, int]) -> None:
    """Run a function in the interpreter and compare; with float64 if the program rounds."""
    if original.is_exact(env):
        arrays = original.inputs(env)
        run_prim(function, arrays, scalars(function, env))
        original.check(arrays, env, "the interpreter")
        return
    key = tuple(env.values())
    if key not in original.wide:
        original.wide[key] = original.precise(original.function, env)
    old, new = original.wide[key], original.precise(function, env)
    for a, b in zip(old, new, strict=True):
        if not np.allclose(a, b, rtol=ROUNDING, atol=ROUNDING, equal_nan=True):
            shown = {v.name: x for v, x in env.items()}
            raise WrongResultError(f"the interpreter at {shown}\nexpected\n{a}\nactual\n{b}")


def lowered(function: PrimFunc, target: Target) -> LoweredKernel:
    """Lower a function; `RefusedError` if lowering may reject it.

    The launch has a problem if and only if lowering rejects it for a requirement of launches.
    """
    problems = {type(error) for error in launch_errors(function, target)}
    try:
        kernel = lower_kernel(function, target)
    except REFUSALS as error:
        if type(error) in LAUNCH_ERRORS and type(error) not in problems:
            raise LaunchableError(f"launchable, but lowering raises {error}") from error
        raise RefusedError(str(error)) from error
    if problems:
        raise LaunchableError(f"not launchable, but lowered: {problems}")
    return kernel


def native(function: PrimFunc, level: str, *, opt: int, longest: int = LONGEST) -> Kernel:
    """Compile a function for one feature set of this machine.

    Parallel regions are shared by workers even if they are too small to be worth it. A module of
    more than ``longest`` characters is refused.
    """
    target = Target("cpu", features=(level,) if level else ())
    artifact = lowered(function, target)
    with mock.patch.object(parallel, "WORTHWHILE", 0):
        text = emit_module([artifact.function], target)
    if len(text) > longest:
        raise RefusedError(str(len(text))) from TooLongError()
    if len(text) > LONG:
        opt = 0
    engine, address = load(artifact.name, text, target, opt=opt)
    return Kernel(function, artifact, text, target, engine, address)


def run_native(original: Original, kernel: Kernel, env: Mapping[Var, int], title: str) -> None:
    """Run native code with its parallel regions backwards, and compare."""
    arrays = original.inputs(env)
    by_name = {v.name: x for v, x in env.items()}
    symbols = {v: by_name[v.name] for v in kernel.artifact.symbols}
    runtime = Runtime(threads=3)
    code = kernel(*arrays, scalars=symbols, runtime=runtime)
    if code:
        raise WrongResultError(f"{title} at {by_name} returned {code}: {runtime.errors}")
    original.check(arrays, env, title)


def run_compiled(original: Original, env: Mapping[Var, int], executable: Executable) -> None:
    """Call an executable with the outputs of the caller, and compare."""
    arrays = original.inputs(env)
    left = iter(arrays)
    by_name = {v.name: x for v, x in env.items()}
    arguments = [
        next(left) if isinstance(p, BufferParam) else by_name[p.var.name]
        for p in original.function.params
    ]
    executable[original.function.name].into(*arguments)
    original.check(arrays, env, "the executable")


def run_on_webgpu(original: Original, env: Mapping[Var, int], executable: Executable) -> None:
    """Call an executable on the WebGPU driver, and compare; guard words around tensors too."""
    from tests.codegen.wgsl.guarded import guarded_device

    with guarded_device() as device:
        run_compiled(original, env, executable)
        damage = device.damage()
    if damage:
        shown = {v.name: x for v, x in env.items()}
        raise WrongResultError(f"the WebGPU driver at {shown}: {'; '.join(damage)}")


def run_simt(
    original: Original, artifact: LoweredKernel, env: Mapping[Var, int], title: str
) -> None:
    """Run a kernel on the emulated GPU, and compare; findings of the emulator are defects."""
    by_name = {v.name: x for v, x in env.items()}
    known = {v: by_name[v.name] for v in artifact.symbols}
    arrays = original.inputs(env)
    if all(evaluate(a.extent, known) > 0 for a in artifact.function.launch.axes):
        memory = [a if a.flags.c_contiguous else _whole(a) for a in arrays]
        try:
            report = launch(artifact, memory, by_name)
        except TilewrightError as error:
            raise WrongResultError(f"{title} at {by_name}: {error}") from error
        if any(f.kind != UNINITIALIZED for f in report.errors):
            raise WrongResultError(f"{title} at {by_name}: {report}")
        original.check(arrays, env, title)
        if report.errors:
            raise WrongResultError(f"{title} at {by_name}: {report}")
        return
    original.check(arrays, env, title)


def _whole(array: np.ndarray) -> np.ndarray:
    """Return the memory of a strided array as a flat array."""
    reach = sum((d - 1) * s for d, s in zip(array.shape, array.strides, strict=True))
    count = reach // array.itemsize + 1 if array.size else 0
    start = array.ctypes.data - np.frombuffer(array.base, np.uint8).ctypes.data
    return np.ndarray((count,), array.dtype, array.base, start)
