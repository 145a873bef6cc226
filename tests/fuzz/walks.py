"""Random walks: legal steps of every primitive on random programs, compared with the oracle.

`Walk.step` draws a step, legal or not, and checks its contract. A rejected step has a `Problem`
whose fixes are legal and remove it. An accepted step results in a well-formed program with the same
results, whose text round-trips. ``python -m tests.fuzz.walks --seconds 60 --seed 1`` runs walks for
a given time and prints counts.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tilewright.codegen import errors as gpu
from tilewright.codegen.errors import MissingInstructionError
from tilewright.codegen.lower import lower_kernel
from tilewright.errors import TilewrightError
from tilewright.ir.interpreter import run_prim
from tilewright.ir.loop.nodes import BufferParam, PrimFunc
from tilewright.ir.script import parse, to_text
from tilewright.ir.symbolic import evaluate
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule, State
from tilewright.schedules.apply import apply, check
from tilewright.schedules.forwarding import followed
from tilewright.schedules.handles import FunctionRef
from tilewright.schedules.registry import primitives
from tilewright.target.target import Target

from tests.codegen.gpu.running import launch
from tests.codegen.kernels import LEVELS, Runtime, build
from tests.fuzz.programs import FAMILIES, Program, arguments, program, sizes
from tests.schedules.random_steps import name, random_step, selections
from tests.strategies import scalars, symbols_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tilewright.ir.symbolic import Var
    from tilewright.schedules.apply import Primitive
    from tilewright.schedules.problem import Problem

FAMILIES_OF_LOOPS = (
    "annotate", "caching", "layout", "loops", "placement", "reduction", "specialize", "tensorize",
)  # fmt: skip
ON_GRAPHS = ("clone_function", "specialize")
VERBS = tuple(
    c.verb() for c in primitives() if c.family in FAMILIES_OF_LOOPS and c.verb() not in ON_GRAPHS
)
"""Primitives that change a single loop-level function."""
REFUSALS = (
    gpu.UnboundKernelError, gpu.ThreadAxisError, gpu.LaunchLimitError, gpu.SharedMemoryError,
    gpu.MemoryScopeError, gpu.DivergentBarrierError, gpu.WarpError, gpu.KernelStatementError,
    MissingInstructionError,
)  # fmt: skip
"""Errors that lowering may raise for a program scheduled for another machine."""
SIMT = Target("simt")
TARGETS = (
    None,
    Target("cpu", features=("avx2",)),
    Target("cpu", features=("avx512",)),
    SIMT,
)


class DefectError(AssertionError):
    """A defect found by a walk, with everything needed to reproduce it."""


@dataclass
class Counts:
    """Counts of steps, fixes and programs over many walks."""

    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    fixes: Counter[str] = field(default_factory=Counter)
    programs: Counter[str] = field(default_factory=Counter)
    compiled: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)


@dataclass
class Walk:
    """A program with the steps applied so far."""

    rng: random.Random
    program: Program
    target: Target | None
    counts: Counts
    state: State = field(init=False)
    start: PrimFunc = field(init=False)
    history: list[str] = field(default_factory=list)
    assumed: dict[str, int] = field(default_factory=dict)
    ruled: bool = False

    def __post_init__(self) -> None:
        module = parse(self.program.text)
        self.start = module.prims[0]
        self.state = State.start(module, self.target)
        self.counts.programs[self.program.family] += 1

    @property
    def function(self) -> PrimFunc:
        """The current function."""
        return self.state.module.prims[0]

    def envs(self) -> list[dict[Var, int]]:
        """Draw two sets of sizes."""
        return [self.fitting(sizes(self.rng, self.start)) for _ in range(2)]

    def fitting(self, env: dict[Var, int]) -> dict[Var, int]:
        """Round sizes up to the multiples that applied steps assume."""
        by_name = {v.name: v for v in env}
        for label, factor in self.assumed.items():
            symbol = by_name[label]
            env[symbol] = max(1, -(-env[symbol] // factor)) * factor
        return env

    def bind_by_rule(self) -> None:
        """Apply the default rule of the target, so that later steps start with a bound kernel."""
        schedule = Schedule(self.state.module, self.target)
        self.guarded(lambda: schedule.schedule_kernel("random"), "the default rule")
        self.state = schedule.state
        self.history += [str(record) for record in schedule.trace.steps]

    def draw(self, verb: str) -> Primitive | None:
        """Draw a step of a primitive, suggested or with random parameters."""
        cls = next(c for c in primitives() if c.verb() == verb)
        handles = [*selections(self.state), FunctionRef(name(self.state))]
        if verb == "assume":
            return self._assume(cls)
        if self.rng.random() < 0.5:
            self.rng.shuffle(handles)
            for handle in handles[:6]:
                if found := list(cls.suggest(self.state, handle)):
                    return self.rng.choice(found)
        return random_step(self.rng, self.state, cls)

    def _assume(self, cls: type[Primitive]) -> Primitive | None:
        symbols = symbols_of(self.function)
        if not symbols or self.assumed:
            return None
        symbol, factor = self.rng.choice(symbols).name, self.rng.choice([2, 4])
        return cls(FunctionRef(name(self.state)), symbol, factor)  # type: ignore[call-arg]

    def step(self, verb: str, *, fixes: bool = True) -> bool:
        """Draw a step, check its contract, and return whether it was accepted."""
        step = self.guarded(lambda: self.draw(verb), f"drawing {verb}")
        if step is None:
            return False
        problems = self.guarded(lambda: check(self.state, step), step.title())
        if problems:
            self.counts.refused[verb] += 1
            if fixes:
                self.try_fixes(step, problems)
            return False
        before = self.state
        self.state = self.guarded(lambda: apply(before, step).state, step.title())
        self.history.append(step.title())
        self.counts.accepted[verb] += 1
        if verb == "assume":
            self.assumed[step.symbol] = step.multiple_of
        self.sound()
        return True

    def try_fixes(self, step: Primitive, problems) -> None:
        """Apply every suggested fix, and check that it removes its problem."""
        for problem in problems:
            for fix in problem.fixes:
                title = f"fix {fix.title()} of {step.title()}"
                found = self.guarded(lambda f=fix: check(self.state, f), title)
                if found:
                    self.fail(f"{title} is not legal: {[str(p) for p in found]}")
                after = self.guarded(lambda f=fix: apply(self.state, f).state, title)
                self.counts.fixes[step.verb()] += 1
                if type(fix) is type(step):
                    continue
                left = self.guarded(lambda s=after: check(s, followed(step, s)), title)
                if times(problem, left) >= times(problem, problems):
                    self.fail(f"{title} does not remove: {problem}")

    def guarded(self, action, title: str):
        """Run an action; any exception is a defect."""
        try:
            return action()
        except TilewrightError as error:
            self.fail(f"{title}: {type(error).__name__}: {error}")
        except Exception:  # noqa: BLE001 - any other exception is a defect too
            self.fail(f"{title}: {traceback.format_exc()}")

    def fail(self, message: str) -> None:
        """Raise a defect with the program and the steps."""
        steps = "\n".join(self.history)
        raise DefectError(
            f"{message}\n--- program ({self.program.family}, {self.target})\n{self.program.text}"
            f"\n--- steps\n{steps}\n--- now\n{to_text(self.state.module)}"
        )

    def run(self, level: str) -> None:
        """Run the resulting program: native code, and the emulated kernel for a GPU schedule."""
        if self.target == SIMT:
            self.on_gpu()
        self.on_processor(level)

    def on_processor(self, level: str) -> None:
        """Compare native code with the original program."""
        title = f"native code for {level or 'the base level'}"
        kernel = self.lowered(lambda: build(self.function, level), title)
        if kernel is None:
            return

        def run(function: PrimFunc, env: Mapping[Var, int]) -> list[np.ndarray]:
            arrays = arguments(function, env)
            symbols = {v: env[v] for v in kernel.artifact.symbols}
            code = kernel(*arrays, scalars=symbols, runtime=Runtime(threads=2))
            if code:
                self.fail(f"{title} returned {code}")
            return written(function, arrays)

        for env in self.envs():
            self.same(title, self.function, env, run)

    def on_gpu(self) -> None:
        """Compare the emulated kernel with the program, and check for false positives."""
        artifact = self.lowered(lambda: lower_kernel(self.function, SIMT), "the emulated GPU")
        if artifact is None:
            if self.ruled:
                self.fail("lowering rejects the result of a default rule")
            return

        def run(function: PrimFunc, env: Mapping[Var, int]) -> list[np.ndarray]:
            arrays = arguments(function, env)
            if all(evaluate(a.extent, env) > 0 for a in artifact.function.launch.axes):
                memory = [a if a.flags.c_contiguous else a.base for a in arrays]
                report = launch(artifact, memory, {v.name: x for v, x in env.items()})
                if any(f.severity == "error" for f in report.findings):
                    self.fail(f"findings at {env}: {report}")
            return written(function, arrays)

        for env in self.envs():
            self.same("the emulated GPU", self.function, env, run)

    def lowered(self, make, title: str):
        """Return the lowered kernel; None if lowering rejects it with an allowed error."""
        refused = object()

        def attempt():
            try:
                return make()
            except REFUSALS:
                return refused

        made = self.guarded(attempt, title)
        if made is refused:
            self.counts.refusals[title] += 1
            return None
        self.counts.compiled[title] += 1
        return made

    def sound(self) -> None:
        """Check the well-formedness, the text and the results of the current program."""
        found = violations(self.function)
        if found:
            self.fail(f"not well formed: {[str(v) for v in found]}")
        text = to_text(self.state.module)
        if self.guarded(lambda: to_text(parse(text)), "round trip") != text:
            self.fail("the text does not round trip")
        for env in self.envs()[:1]:
            self.same("the interpreter", self.function, env, self.interpret)

    def interpret(self, function: PrimFunc, env: Mapping[Var, int]) -> list[np.ndarray]:
        arrays = arguments(function, env)
        run_prim(function, arrays, scalars(function, env))
        return written(function, arrays)

    def same(self, title: str, function: PrimFunc, env: Mapping[Var, int], run) -> None:
        """Compare results with those of the original program."""
        wanted = self.interpret(self.start, env)
        found = self.guarded(lambda: run(function, env), f"{title} at {env}")
        for a, b in zip(wanted, found, strict=True):
            if not equal(a, b, exact=self.program.exact):
                self.fail(f"{title} at {env}:\nexpected\n{a}\nactual\n{b}")


def times(problem: Problem, among: Sequence[Problem]) -> int:
    """Return the number of occurrences of a problem."""
    return sum((p.requirement, p.message) == (problem.requirement, problem.message) for p in among)


def written(function: PrimFunc, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return the arrays that a function writes."""
    params = [p for p in function.params if isinstance(p, BufferParam)]
    return [a for a, p in zip(arrays, params, strict=True) if p.access != "in"]


def equal(a: np.ndarray, b: np.ndarray, *, exact: bool) -> bool:
    """Return whether two results are equal, bit for bit (except for -0.0) or up to rounding."""
    if exact or (a.dtype.kind != "f" and a.dtype.itemsize != 2):
        return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
    tolerance = {2: 2e-2}.get(a.dtype.itemsize, 1e-5)
    x, y = a.astype(np.float64), b.astype(np.float64)
    return bool(np.allclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True))


def next_verb(rng: random.Random, counts: Counts) -> str:
    """Draw a primitive; those with few accepted steps are preferred."""
    weights = [1 / (3 + counts.accepted[v]) for v in VERBS]
    return rng.choices(VERBS, weights)[0] if rng.random() < 0.6 else rng.choice(VERBS)


def walked(seed: int, counts: Counts, family: str | None = None, *, steps: int = 10) -> Walk:
    """Apply some random steps to a random program."""
    rng = random.Random(seed)
    drawn = FAMILIES[family](rng) if family else program(rng)
    walk = Walk(rng, drawn, rng.choice(TARGETS), counts)
    if walk.target == SIMT and rng.random() < 0.8:
        walk.bind_by_rule()
    for _ in range(rng.randint(1, steps)):
        verb = next_verb(rng, counts)
        for _ in range(3):
            if walk.step(verb):
                break
    return walk


def by_rules(seed: int, counts: Counts, family: str | None = None) -> Walk:
    """Schedule a random program by the default rules of a target."""
    rng = random.Random(seed)
    drawn = FAMILIES[family](rng) if family else program(rng)
    walk = Walk(rng, drawn, rng.choice(TARGETS[1:]), counts)
    walk.bind_by_rule()
    walk.ruled = True
    walk.sound()
    return walk


def toward(verb: str, seed: int, counts: Counts, tries: int = 8) -> Walk:
    """Apply a few random steps to a random program, then try one primitive."""
    rng = random.Random(seed)
    walk = Walk(rng, program(rng), rng.choice(TARGETS), counts)
    for _ in range(rng.randint(0, 3)):
        walk.step(next_verb(rng, counts), fixes=False)
    if any(walk.step(verb, fixes=k == 0) for k in range(tries)):
        walk.run(rng.choice(["", *LEVELS]))
    return walk


def main() -> int:
    """Run walks for a given time, print counts, and return the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", choices=list(FAMILIES))
    parser.add_argument("--verb", choices=VERBS, help="try this primitive in each walk")
    parser.add_argument("--rules", action="store_true", help="default rules in place of steps")
    options = parser.parse_args()
    counts, defects, end = Counts(), 0, time.monotonic() + options.seconds
    seed = options.seed
    while time.monotonic() < end and defects < 12:
        try:
            if options.verb:
                toward(options.verb, seed, counts)
                seed += 1
                continue
            walk = (by_rules if options.rules else walked)(seed, counts, options.family)
            walk.run(walk.rng.choice(["", *LEVELS]))
        except DefectError as defect:
            defects += 1
            print(f"=== seed {seed}\n{defect}\n", flush=True)
        seed += 1
    for title, counter in vars(counts).items():
        print(title, dict(sorted(counter.items())), sum(counter.values()))
    print("seeds", options.seed, "to", seed, "defects", defects)
    return int(defects > 0)


if __name__ == "__main__":
    sys.exit(main())
