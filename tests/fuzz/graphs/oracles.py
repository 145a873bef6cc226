"""Results of a random graph program: by the interpreter, and by its executables."""

from __future__ import annotations

import contextlib
import importlib.util
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

from tilewright.codegen import compiler
from tilewright.codegen.compiler import BuildOptions, compile_artifact
from tilewright.codegen.export import export
from tilewright.codegen.llvm import compile_text
from tilewright.codegen.runtime.executable import Executable
from tilewright.ir.interpreter import compare, interpreted, run_graph

from tests.fuzz.graphs.inputs import arguments, guarded
from tests.fuzz.inputs import intact
from tests.fuzz.oracles import ROUNDING, WrongResultError, same

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilewright.codegen.build.worker_pool import CompileJob
    from tilewright.ir.interpreter import Exact
    from tilewright.ir.module import Module
    from tilewright.schedules import State
    from tilewright.target.target import Target

    from tests.fuzz.graphs.inputs import Sizes
    from tests.fuzz.graphs.program import GraphProgram


@dataclass
class Run:
    """The inputs and the results of the original program at some sizes."""

    inputs: list[np.ndarray]
    results: list[np.ndarray]
    wide: list[np.ndarray] | None = None
    exact: Exact | None = None


@dataclass
class GraphOriginal:
    """The original program with its results at some sizes, for several data."""

    program: GraphProgram
    runs: dict[tuple[Any, ...], Run] = field(default_factory=dict)

    @property
    def module(self) -> Module:
        """The module."""
        return self.program.module

    def run(self, found: Sizes, seed: int = 0) -> Run:
        """Return the results of the original program."""
        key = (*found.items(), seed)
        if key not in self.runs:
            self.runs[key] = self.after(arguments(self.program, found, seed))
        return self.runs[key]

    def after(self, inputs: list[np.ndarray]) -> Run:
        """Return the results for some inputs; written parameters follow the results."""
        given = [x.copy() for x in inputs]
        results = [np.asarray(r) for r in run_graph(self.module, given)]
        return Run(inputs, [*results, *self.program.written(given)])

    def wide(self, found: Sizes, seed: int = 0) -> list[np.ndarray]:
        """Return the results in float64."""
        run = self.run(found, seed)
        if run.wide is None:
            inputs = [x.copy() for x in run.inputs]
            results = [np.asarray(r) for r in run_graph(self.module, inputs, precise=True)]
            run.wide = [*results, *self.program.written(inputs)]
        return run.wide

    def bounds(self, run: Run) -> Exact:
        """Return the exact results with the allowed errors."""
        if run.exact is None:
            run.exact = interpreted(self.module, "main", run.inputs)
        return run.exact

    def check(self, got: Sequence[np.ndarray], run: Run, found: Sizes, title: str) -> None:
        """Compare results with those of the original program."""
        exact = self.program.exact
        if len(got) != len(run.results):
            message = f"{title} at {found}: {len(got)} results, expected {len(run.results)}"
            raise WrongResultError(message)
        for k, (a, b) in enumerate(zip(run.results, got, strict=True)):
            if a.shape != b.shape or a.dtype != b.dtype:
                wanted = f"expected {a.dtype}{a.shape}, got {b.dtype}{b.shape}"
                raise WrongResultError(f"{title} at {found}: result {k}: {wanted}")
            if exact[k] and not same(a, b):
                raise WrongResultError(
                    f"{title} at {found}: result {k}\nexpected\n{a}\nactual\n{b}"
                )
        if not all(exact):
            bounds = self.bounds(run)
            verdict = compare(got[: len(bounds.values)], bounds)
            if not verdict.agrees:
                raise WrongResultError(f"{title} at {found}: {verdict}")


def interpret(original: GraphOriginal, module: Module, found: Sizes) -> None:
    """Run a program in the interpreter and compare; in float64 if results depend on rounding."""
    program, run = original.program, original.run(found)
    inputs = [x.copy() for x in run.inputs]
    precise = not all(program.exact) and is_unrounded(original.module, module)
    results = [np.asarray(r) for r in run_graph(module, inputs, precise=precise)]
    got = [*results, *program.written(inputs)]
    unchanged(program, run.inputs, inputs, f"the interpreter at {found}")
    if not precise:
        original.check(got, run, found, "the interpreter")
        return
    for k, (a, b) in enumerate(zip(original.wide(found), got, strict=True)):
        agree = a.shape == b.shape and np.allclose(a, b, ROUNDING, ROUNDING, equal_nan=True)
        if not agree:
            raise WrongResultError(
                f"the interpreter at {found}: result {k}\nexpected\n{a}\nactual\n{b}"
            )


def is_unrounded(before: Module, after: Module) -> bool:
    """Return whether a program runs in float64: no planned memory, no constants it computed."""
    planned = any(f.stage == "memory" for f in after.graphs)
    return not planned and after.constants.keys() <= before.constants.keys()


class NoStore:
    """A cache that keeps nothing: random programs do not repeat."""

    key = staticmethod(compiler.DiskCache.key)

    def get(self, key: str) -> None:
        """Return None."""
        del key

    def put(self, key: str, data: bytes) -> None:
        """Keep nothing."""

    remove = get


@dataclass
class HerePool:
    """Compilation in this process, at one level of optimization."""

    opt: int

    def warm(self) -> None:
        """Do nothing."""

    def batch(self, **_: object) -> HereBatch:
        """Return a batch without jobs."""
        return HereBatch(self.opt)


class HereBatch(contextlib.AbstractContextManager["HereBatch", None]):
    """Jobs that run in this process as they are added."""

    def __init__(self, opt: int) -> None:
        """Create a batch without jobs."""
        self._opt = opt
        self._outputs: list[bytes] = []

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def add(self, job: CompileJob) -> None:
        """Compile in this process."""
        self._outputs.append(compile_text(job.text, job.target, opt=self._opt))

    def finish(self, _: object) -> list[bytes]:
        """Return the outputs."""
        return self._outputs


def executable(program: Module | State, target: Target, *, opt: int) -> Executable:
    """Compile a program in this process, without a cache."""
    module = compiler.module_of(program)
    options = BuildOptions(store=NoStore(), steps=compiler._own_steps(program))  # type: ignore[arg-type]
    with mock.patch.object(compiler, "default_pool", return_value=HerePool(opt)):
        artifact, _ = compile_artifact(module, target, options)
    return Executable(artifact, module.constants)


def run_calls(
    original: GraphOriginal, exe: Executable, calls: Sequence[tuple[Sizes, int]], title: str
) -> None:
    """Call an executable repeatedly; states persist, and earlier results keep their values.

    The calls at each choice of sizes have a state of their own.
    """
    program = original.program
    states: dict[tuple[Any, ...], Any] = {}
    before: dict[tuple[Any, ...], list[np.ndarray]] = {}
    kept = []
    for found, seed in calls:
        where, key = f"{title} at {found}", tuple(found.items())
        drawn = original.run(found, seed).inputs
        if "state" in program.access and key not in states:
            values = dict(program.named(drawn, "state"))
            own = program.symbols_of_states & found.keys()
            states[key] = exe.new_state(**values, **{k: v for k, v in found.items() if k in own})
            before[key] = list(values.values())
        run = original.after(program.with_states(drawn, before[key])) if key in states else (
            original.run(found, seed))  # fmt: skip
        inputs = [guarded(x) for x in run.inputs]
        given = [x for x, mode in zip(inputs, program.access, strict=True) if mode != "state"]
        got = exe(*given, state=states[key]) if key in states else exe(*given)
        results = list(got) if isinstance(got, tuple) else [] if got is None else [got]
        written = [
            states[key][name] if mode == "state" else x
            for name, mode, x in zip(program.names, program.access, inputs, strict=True)
            if mode != "in"
        ]
        copies = [np.array(w) for w in written]
        original.check([*results, *copies], run, found, title)
        unchanged(program, run.inputs, inputs, where)
        own = [x for mode, x in zip(program.access, inputs, strict=True) if mode == "inout"]
        _disjoint(results, [x for x in inputs if not any(x is o for o in own)], own, where)
        if key in states:
            modes = [m for m in program.access if m != "in"]
            pairs = zip(modes, copies, strict=True)
            before[key] = [x for mode, x in pairs if mode == "state"]
        kept.append((results, copies, run, found))
    for results, copies, run, found in kept:
        original.check([*results, *copies], run, found, f"{title}, after later calls,")


def run_exported(
    original: GraphOriginal, module: Module, calls: Sequence[tuple[Sizes, int]]
) -> None:
    """Export a program as a shared library, and call it by its Python loader."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"kind": "shared", "name": "exported"}
        with mock.patch.object(compiler, "default_pool", return_value=HerePool(0)):
            made = export(module, Path(folder) / "made", **options)  # type: ignore[arg-type]
        spec = importlib.util.spec_from_file_location("exported", made.directory / "exported.py")
        assert spec is not None
        assert spec.loader is not None
        loader = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loader)
        run_calls(original, Exported(loader.load()), calls, "the exported library")  # type: ignore[arg-type]


@dataclass
class Exported:
    """An exported model that is called as an executable."""

    model: Any

    def __call__(self, *inputs: np.ndarray, **state: Any) -> Any:
        """Call the function ``main``."""
        return self.model.main(*inputs, **state)

    def new_state(self, **values: Any) -> Any:
        """Create a state from initial arrays and sizes."""
        return self.model.new_state(**values)


def unchanged(
    program: GraphProgram, before: Sequence[np.ndarray], after: Sequence[np.ndarray], title: str
) -> None:
    """Check that inputs which are not written have their values, and all their guards."""
    for k, (a, b) in enumerate(zip(before, after, strict=True)):
        if program.access[k] == "in" and not same(a, b):
            raise WrongResultError(f"{title}: input {k} changed")
        if b.base is not None and not intact(b):
            raise WrongResultError(f"{title}: wrote outside of input {k}")


def _disjoint(
    results: Sequence[np.ndarray], inputs: Sequence[np.ndarray], own: Sequence[np.ndarray],
    title: str,
) -> None:  # fmt: skip
    """Check that no result shares memory with an input, or with another result.

    Results that are the last value of an argument of the caller, in ``own``, may be this argument.
    """
    made = [r for r in results if not _overlaps(r, own)]
    for k, a in enumerate(made):
        if _overlaps(a, [*inputs, *made[:k]]):
            raise WrongResultError(f"{title}: result {k} shares memory")


def _overlaps(a: np.ndarray, others: Sequence[np.ndarray]) -> bool:
    return any(a.nbytes and b.nbytes and np.may_share_memory(a, b) for b in others)
