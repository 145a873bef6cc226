"""Compilation: equal programs have equal artifacts, also in other processes; invalid options."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.codegen.build.object_cache import DiskCache
from tilewright.codegen.build.worker_pool import CancelToken
from tilewright.codegen.compiler import (
    BuildOptions,
    CompileOptionError,
    build,
    compile_artifact,
    default_scheduled,
)
from tilewright.codegen.errors import CompileCanceledError, CompileTimeoutError
from tilewright.codegen.program import NotAProgramError
from tilewright.errors import TilewrightError
from tilewright.ir.dtype import f32
from tilewright.ir.kernel_errors import UnrolledCodeError
from tilewright.ir.loop.builder import Builder
from tilewright.ir.loop.nodes import Element, Unary
from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.ir.symbolic import Expr
from tilewright.ir.verify import IllFormedProgramError
from tilewright.schedules.rules import with_default_schedule
from tilewright.target.target import Target

from tests.codegen.kernels import LEVELS

PROGRAM = """
import hashlib, sys
from pathlib import Path

from tilewright.codegen.compiler import BuildOptions, build
from tilewright.codegen.build.object_cache import DiskCache
from tilewright.ir.script import parse, to_text
from tilewright.ir.symbolic import var
from tilewright.target.target import Target
from tilewright.schedules import Schedule, from_python
from tilewright.schedules.rules import with_default_schedule

noise, level, folder = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
kept = [(var("M") + k) // 3 * var("i0") for k in range(noise)]
kernel = parse('''
M = symbols("M", lower=1)

@prim_func
def matmul(A: Buffer[(M, 64), f32], B: Buffer[(64, 96), f32], C: Out[(M, 96), f32]):
    for i in range(M):
        for j in range(96):
            for k in range(64):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]

b, s = symbols("b s", lower=1)

@graph_func
def main(x: Tensor[(b, s, 64), f32], w: Tensor[(64, 64), f32]):
    y = matmul(x, w)
    z = gelu(y)
    t = add(z, x)
    u = softmax(t, axis=-1)
    return u
''')
steps = '''
mm = sch.get_block("mm", function="matmul")
i, j, k = sch.get_loops(mm)
i0, i1 = sch.split(i, (None, 4))
j0, j1 = sch.split(j, (None, 16))
sch.reorder((i0, j0, k, i1, j1))
init = sch.decompose_reduction(mm, k)
sch.vectorize(j1)
sch.parallel(i0)
'''
target = Target("cpu", features=(level,), threads=2)
sch = Schedule(kernel, target)
sch.replay(from_python(steps)).completed()
module = with_default_schedule(sch.state, target)
artifact, _ = build(module, target, BuildOptions(store=DiskCache(folder)))
print(hashlib.sha256(to_text(module).encode()).hexdigest())
print(hashlib.sha256(artifact.to_bytes()).hexdigest())
for name, code in sorted(artifact.objects.items()):
    print(name, hashlib.sha256(code).hexdigest())
"""


def built(folder: Path, seed: str, noise: int, level: str) -> list[str]:
    """Return the digests of an artifact compiled in a separate process with an empty cache."""
    command = [sys.executable, "-c", PROGRAM, str(noise), level, str(folder)]
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("level", LEVELS)
def test_other_processes_produce_the_same_bytes(tmp_path: Path, level: str) -> None:
    first = built(tmp_path / "a", "1", 0, level)
    assert len(first) > 4
    assert built(tmp_path / "b", "2", 57, level) == first


OPTIONS = [
    ("workers", -1, "a number of processes, got -1"),
    ("workers", 0.5, "a number of processes, got 0.5"),
    ("timeout", 0, "a positive number of seconds, got 0"),
    ("timeout", float("nan"), "a positive number of seconds, got nan"),
    ("timeout", "a", "a positive number of seconds, got 'a'"),
    ("cancel", 5, "a CancelToken, got 5"),
]


@pytest.mark.parametrize(("name", "value", "message"), OPTIONS)
def test_an_invalid_option_is_rejected(name: str, value: object, message: str) -> None:
    with pytest.raises(CompileOptionError, match=message) as caught:
        BuildOptions(**{name: value})
    assert caught.value.where == f"option {name!r} of compile"
    assert caught.value.hint


def test_an_ill_formed_program_is_not_compiled() -> None:
    text = "@prim_func\ndef f(x: Buffer[(8,), f32]):\n    for i in range(8): x[i] = 0.0"
    module = parse(text, check=False)
    with pytest.raises(IllFormedProgramError, match=r"access mode|outside of blocks"):
        compile(module, "cpu")


def test_other_objects_are_not_programs() -> None:
    module = parse("@prim_func\ndef f(x: Out[(8,), f32]):\n    for i in range(8): x[i] = 0.0")
    for program, hint in ((module.prim("f"), "script.module(function)"), ("f.onnx", "from_onnx")):
        with pytest.raises(NotAProgramError) as caught:
            compile(program)
        assert hint in caught.value.hint


def test_an_exported_program_must_be_imported() -> None:
    class ExportedProgram:
        pass

    with pytest.raises(NotAProgramError) as caught:
        compile(ExportedProgram())  # type: ignore[arg-type]
    assert caught.value.hint == "import it first: from_exported_program(program)"


def test_the_progress_ends_at_1_also_if_all_objects_are_in_the_cache(tmp_path: Path) -> None:
    text = """
@graph_func
def main(x: Tensor[(64,), f32]):
    y = relu(x)
    return y
"""
    module, target = with_default_schedule(parse(text), Target("cpu")), Target("cpu")
    counts = list[int]()
    for _ in range(2):
        reported = list[float]()
        options = BuildOptions(
            store=DiskCache(tmp_path), progress=lambda share, _, to=reported: to.append(share)
        )
        counts.append(build(module, target, options)[1])
        assert reported == sorted(reported)
        assert reported[-1] == 1.0
    assert counts[0] > 0
    assert counts[1] == 0


def test_names_with_surrogates_are_reported():
    b = Builder("copy")
    x, y = b.param("x\ud800", (8,), f32), b.param("y", (8,), f32, "out")
    b.compute(y, lambda i: b.load(x, i))
    with pytest.raises(IllFormedProgramError, match="is not a valid identifier of the text format"):
        compile(Module().with_functions(b.finish()))


DOUBLE = """
n = symbols("n", lower=0)

@prim_func
def double(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i] * 2.0
"""
WRONG = {
    "nothing": lambda _: b"",
    "null": lambda _: b"null",
    "empty list": lambda _: b"[]",
    "names of no constants": lambda _: b'["x", 1]',
    "deep": lambda _: b"[" * 100_000,
    "no text": lambda _: b"\xff" * 100,
    "half": lambda data: data[: len(data) // 2],
    "header of another program": lambda _: (2).to_bytes(8, "little") + b"{}",
}


@pytest.mark.parametrize("name", WRONG)
def test_cache_entries_with_wrong_content_are_replaced(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The checksums of the entries are right, as if a defect had written them."""
    compile(parse(DOUBLE))(np.ones(3, np.float32))  # the run-time library is compiled once
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    cache, expected = DiskCache(tmp_path), compile(parse(DOUBLE))(np.ones(3, np.float32))
    stored = {path.name: cache.get(path.name) for path in sorted(tmp_path.glob("??/*"))}
    assert len(stored) >= 3
    for key, data in stored.items():
        cache.put(key, WRONG[name](data))
        exe = compile(parse(DOUBLE))
        np.testing.assert_array_equal(exe(np.ones(3, np.float32)), expected)
        assert cache.get(key) in (data, WRONG[name](data))
    for key, data in stored.items():
        cache.put(key, WRONG[name](data))
    np.testing.assert_array_equal(compile(parse(DOUBLE))(np.ones(3, np.float32)), expected)
    assert compile(parse(DOUBLE)).cached
    assert {key: cache.get(key) for key in stored} == stored


def unrolled(extents: list[int]) -> Module:
    """Return a function of nested unrolled loops."""
    lines = [f"{'    ' * (k + 1)}for i{k} in unrolled({n}):" for k, n in enumerate(extents)]
    body = "    " * (len(extents) + 1) + "y[0] = y[0] + x[0]"
    head = "@prim_func\ndef f(x: Buffer[(8,), f32], y: InOut[(8,), f32]):"
    return parse("\n".join([head, *lines, body]) + "\n")


@pytest.mark.parametrize("extents", [[10] * 8, [10] * 5, [200, 200]])
def test_nested_unrolled_loops_with_too_many_copies_are_reported(extents: list[int]) -> None:
    product = " \\* ".join(map(str, extents))
    with pytest.raises(UnrolledCodeError, match=rf"{product} = .* copies .* at most 32,768"):
        compile(unrolled(extents), "cpu")


def test_unrolled_loops_with_few_copies_compile():
    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    compile(unrolled([4, 4, 4]), "cpu")(x, y)
    assert y[0] == 64


def test_lowering_stops_when_the_compilation_is_canceled(tmp_path: Path) -> None:
    cancel = CancelToken()

    def progress(fraction: float, message: str) -> None:
        if message.startswith("lowering"):
            cancel.cancel()

    options = BuildOptions(store=DiskCache(tmp_path), cancel=cancel, progress=progress)
    with pytest.raises(CompileCanceledError, match="canceled"):
        compile_artifact(unrolled([8, 8]), Target("cpu"), options)


def test_lowering_and_scheduling_have_a_time_limit(tmp_path: Path) -> None:
    options = BuildOptions(store=DiskCache(tmp_path), timeout=1e-9)
    module = unrolled([8, 8])
    with pytest.raises(CompileTimeoutError, match=r"lowering of kernel 'f' exceeded .* 1e-09 s"):
        build(default_scheduled(module, Target("cpu"))[0], Target("cpu"), options)
    with pytest.raises(CompileTimeoutError, match="scheduling exceeded"):
        compile_artifact(module, Target("cpu"), options)


def test_a_program_that_is_nested_too_deeply_is_reported():
    b = Builder("deep")
    x, y = b.param("x", (8,), f32), b.param("y", (8,), f32, "out")

    def value(i: Expr) -> Element:
        found: Element = b.load(x, i)
        for _ in range(5000):
            found = Unary("neg", found)
        return found

    b.compute(y, value)
    with pytest.raises(TilewrightError, match="nested"):
        compile(Module().with_functions(b.finish()), "cpu")


def test_a_kernel_whose_output_size_no_input_defines_beside_another_kernel() -> None:
    module = parse("""
n = symbols("n", lower=0)
o = symbols("o", lower=1)

@prim_func
def repeat(x: Buffer[(n + 1,), f32], y: Out[(n, o), f32]):
    for i in range(n):
        for j in range(o):
            with block("repeat"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi]

@prim_func
def copy(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("copy"):
            vi = spatial(i)
            y[vi] = x[vi]
""")
    exe = compile(module)
    x, y = np.arange(4, dtype=np.float32), np.zeros((3, 2), np.float32)
    exe["repeat"](x, y)
    assert y.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert exe["copy"](x).tolist() == x.tolist()
