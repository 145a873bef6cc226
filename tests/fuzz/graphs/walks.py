"""Random walks on graph programs: steps of both levels, each compared with every oracle."""

from __future__ import annotations

import random
import re
import time
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilewright.codegen.errors import CompileError
from tilewright.ir.script import parse, to_text
from tilewright.ir.structural_hash import structural_hash
from tilewright.ir.symbolic import var
from tilewright.ir.verify import violations
from tilewright.schedules import State, from_json, from_python, replay, to_json, to_python
from tilewright.schedules.rules.default import DefaultRuleFailedWarning
from tilewright.target.target import Target

from tests.codegen.kernels import LEVELS
from tests.fuzz import directed, plans as loop_plans, steps as loop_level
from tests.fuzz.graphs import oracles, plans
from tests.fuzz.graphs.families import FAMILIES
from tests.fuzz.graphs.inputs import NoSizesError, sizes
from tests.fuzz.graphs.oracles import GraphOriginal
from tests.fuzz.graphs.steps import (
    FINAL,
    LOOPS,
    PATH,
    WEIGHTS,
    caches,
    draw,
    focused,
    kernels,
)
from tests.fuzz.inputs import copies, iterations
from tests.fuzz.oracles import REFUSALS, SIMT
from tests.fuzz.steps import LIBRARY, ON_GRAPHS
from tests.fuzz.walks import (
    ROUND_TRIPS,
    UNROLLED,
    DefectError,
    Walk,
    complete,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilewright.ir.module import Module
    from tilewright.schedules.handles import Handle
    from tilewright.schedules.step import Step

    from tests.fuzz.graphs.inputs import Sizes
    from tests.fuzz.graphs.program import GraphProgram

TARGETS = (None, Target("cpu", features=("avx2",)), Target("cpu", features=("avx512",)), SIMT)
ATTEMPTS = 160
"""The largest number of drawn steps of a walk."""

COUNTED = 8
LARGEST = 40_000
"""The largest program, in characters, that a step may result in."""

EXPENSIVE = 40_000
"""The largest number of statements of a kernel, at small sizes, that a step may result in.

Tiles of thread blocks have a fixed size, so the steps of `ON_GPU` may exceed it.
"""

SLOW = 0.7
"""The duration of a run of the interpreter, in seconds, after which only one is made per step."""

EMULATED = 400
"""The largest number of elements of a program that runs on the emulated GPU."""

REFUSED = (*REFUSALS, CompileError)
ON_CPU = ("scan_blocks", "schedule_scans", "tensorize")
ON_GPU = ("schedule_gpu_matmul", "schedule_gpu_scan_runs")
"""Steps on one kernel that few programs permit, by the target that walks toward them have."""

GOALS = (*(v for v in ON_GRAPHS if v not in FINAL), *ON_CPU, *ON_GPU, *FINAL)
"""The steps that walks aim at, in turn."""

EARLY = (
    "common_subexpressions", "decompose", "dispatch_to_library", "fuse_attention", "gradient",
    "offload",
)  # fmt: skip
"""Steps on calls of operators, which are legal before these are lowered."""

FITTING = {
    "decompose": "rounded", "dispatch_to_library": "dense", "tensorize": "products",
    "schedule_gpu_matmul": "products", "fuse_attention": "attending",
    **dict.fromkeys(("scan_blocks", "schedule_scans", "schedule_gpu_scan_runs"), "scanned"),
}  # fmt: skip
"""The family of programs that permits a step, for steps that few families permit."""


@dataclass(slots=True)
class Focus:
    """A walk whose first function is a kernel, for steps that are drawn for that one."""

    walk: GraphWalk
    kernel: str

    @property
    def rng(self) -> random.Random:
        """The source of random choices."""
        return self.walk.rng

    @property
    def results(self) -> tuple[Handle, ...]:
        """The results of the last step."""
        return self.walk.results

    @property
    def state(self) -> State:
        """The state with the kernel as the first function."""
        return focused(self.walk.state, self.kernel)

    def phase(self, name: str, title: str = ""):
        """Time a check of the walk."""
        return self.walk.phase(name, title)

    def attempt(self, step: Step) -> bool:
        """Try a step on the walk."""
        return self.walk.attempt(step)


@dataclass
class GraphWalk(Walk):
    """A graph program with the steps applied so far."""

    program: GraphProgram  # type: ignore[assignment]
    slow: bool = False
    past: list[tuple[State, str, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        with self.phase("parse"):
            module = self.program.module
            self.original = GraphOriginal(self.program)  # type: ignore[assignment]
            self.state = State.start(module, self.target)
            self.text = to_text(module)
            found = violations(module)
            if found:
                raise DefectError("parse", "violations", "\n".join(map(str, found)))
            if not self.redraw(self.state):
                raise DefectError("parse", "sizes", "found no sizes")
        with self.phase("interpreter"):
            for env in self.envs:
                oracles.interpret(self.original, module, env)  # type: ignore[arg-type]

    def redraw(self, state: State) -> bool:
        """Draw sizes that satisfy the facts of ``main``; return whether there are any."""
        kinds = ("small", "prime", "small", "large")
        function = state.module.graph()
        try:
            drawn = [sizes(self.rng, self.program, function, kind) for kind in kinds]
        except NoSizesError:
            return False
        self.envs = list({tuple(env.values()): env for env in drawn}.values())  # type: ignore[assignment]
        return True

    @property
    def small(self) -> list[Sizes]:
        """The sizes at which the interpreter takes little time."""
        return self.envs[: max(1, len(self.envs) - 1)]  # type: ignore[return-value]

    def step(self, verb: str, *, fixes: bool = False) -> bool:
        """Draw a graph-level step and try it; return whether it was accepted."""
        with self.phase("draw", verb):
            step = draw(self.rng, self.state, verb)
        if step is None:
            self.tally.attempts += 1
            return False
        return self.attempt(step, fixes=fixes)

    def attempt(self, step: Step, *, fixes: bool = False) -> bool:
        """Check the contract of a step, and return whether it was accepted."""
        before = self.state, self.text, len(self.history), len(self.counted)
        accepted = super().attempt(step, fixes=fixes)
        if accepted:
            self.past.append(before)
        return accepted

    def on_kernel(self) -> None:
        """Try a loop-level step on a random kernel."""
        found = kernels(self.state)
        if not found:
            self.tally.attempts += 1
            return
        focus = Focus(self, self.rng.choice(found))
        verb = self.rng.choice(LOOPS if self.rng.random() < 0.8 else LIBRARY)
        if verb == "bind" and self.target != SIMT:
            return
        if self.rng.random() < 0.5 and verb != "tensorize":
            directed.seek(focus, verb, 6)  # type: ignore[arg-type]
            return
        with self.phase("draw", verb):
            step = loop_level.draw(self.rng, focus.state, verb)
        if step is not None:
            self.attempt(step, fixes=self.rng.random() < 0.15)

    def undo(self) -> None:
        """Return to the state before some of the last steps."""
        for _ in range(self.rng.randint(1, 3)):
            if self.past:
                self.state, self.text, steps, counted = self.past.pop()
                del self.history[steps:], self.counted[counted:]
        self.tally.accepted["(undo)"] += 1
        with self.phase("parse"):
            self.redraw(self.state)

    def is_large(self, step: Step, after: State, text: str) -> bool:
        """Return whether the result of a step takes too long to check."""
        if len(text) > max(LARGEST, 1.2 * len(self.text)):
            return True
        if step.verb() in ON_GPU:
            return False
        size = {var("size"): 3}
        before, bodies = ([f.body for f in m.prims] for m in (self.state.module, after.module))
        unrolled = max([UNROLLED, *map(copies, before)])
        work = max([EXPENSIVE, *(iterations(b, size) for b in before)])
        return any(copies(b) > unrolled or iterations(b, size) > work for b in bodies)

    def sound(self) -> None:
        """Check the well-formedness, the text and the results of the current program."""
        module = self.state.module
        with self.phase("verify"):
            found = violations(module)
            if found:
                raise DefectError("verify", "violations", "\n".join(map(str, found)))
            problems = plans.problems(module)
            if problems:
                raise DefectError("plan", "memory plan", "\n".join(problems))
        if self.rng.random() < ROUND_TRIPS:
            self.round_trip()
        with self.phase("interpreter"):
            turn = len(self.history)
            small = self.small
            chosen = small[turn % len(small) :][:1] if self.slow else small[:2]
            for env in chosen:
                started = time.process_time()
                oracles.interpret(self.original, module, env)  # type: ignore[arg-type]
                self.slow = self.slow or time.process_time() - started > SLOW

    def round_trip(self) -> None:
        """Parse the text of the current program, and compare its text."""
        with self.phase("text"):
            again = to_text(parse(self.text, constants=self.state.module.constants))
            if again != self.text:
                raise DefectError("text", "round trip", again)

    def finish(self) -> None:
        """Compile the resulting program and the original one, and call both repeatedly."""
        self.watch(self)
        self.round_trip()
        self.replayed()
        with self.phase("interpreter"):
            for env in self.small:
                oracles.interpret(self.original, self.state.module, env)  # type: ignore[arg-type]
        if self.target == SIMT:
            self.executed(self.state, SIMT, "simt")
            self.executed(self.original.module, SIMT, "default")
            return
        levels = ["", *LEVELS]
        self.rng.shuffle(levels)
        self.executed(self.state, _cpu(levels[0]), "native")
        self.executed(self.original.module, _cpu(levels[1]), "default")

    def replayed(self) -> None:
        """Replay the recorded steps on the original program, through JSON and as Python."""
        wanted = structural_hash(self.state.module)
        for name, trace in (
            ("JSON", from_json(to_json(self.state.trace))),
            ("Python", from_python(to_python(self.state.trace))),
        ):
            with self.phase("replay", f"the trace as {name}"):
                found = replay(State.start(self.program.module, self.target), trace)
                if not found.complete:
                    raise DefectError("replay", "incomplete", f"{name}: {found}")
                if structural_hash(found.state.module) != wanted:
                    message = f"{name}: {to_text(found.state.module)}"
                    raise DefectError("replay", "another program", message)

    def executed(self, program: State | Module, target: Target, phase: str) -> None:
        """Compile a program, and compare the results of several calls at different sizes."""
        level = target.kind if target.is_gpu else target.features[0] if target.features else "base"
        title = f"the program compiled for {level}"
        opt = 2 if self.rng.random() < 0.3 else 0
        with self.phase(phase, title), warnings.catch_warnings():
            warnings.simplefilter("ignore" if phase != "default" else "error",
                                  DefaultRuleFailedWarning)  # fmt: skip
            try:
                exe = oracles.executable(program, target, opt=opt)
            except REFUSED as error:
                self.tally.refused[f"{phase} {type(error).__name__}"] += 1
                if phase == "default":
                    raise
                return
            self.tally.compiled[f"{phase} {level}"] += 1
            oracles.run_calls(self.original, exe, self._calls(target), title)  # type: ignore[arg-type]

    def compiled(self) -> None:
        """Export the resulting program as a shared library, and call it.

        A library that is not the run-time library cannot be exported, and neither can a program
        with tensors on a named device.
        """
        if self.target != SIMT and not re.search(r'"(walk|blas)\.|device="', self.text):
            with self.phase("export"):
                oracles.run_exported(self.original, self.state.module, self._calls(_cpu("")))  # type: ignore[arg-type]
            self.tally.compiled["export"] += 1

    def _calls(self, target: Target) -> list[tuple[Sizes, int]]:
        """Return the sizes and the data of repeated calls of one executable."""
        envs: Sequence[Any] = self.small if target.is_gpu else self.envs
        first, last = envs[0], envs[-1]
        calls = [(env, k) for k, env in enumerate((last, *envs, first, last, envs[len(envs) // 2]))]
        return calls[1:5] if target.is_gpu else calls


def _cpu(level: str) -> Target:
    return Target("cpu", features=(level,) if level else ())


def start(seed: int, family: str = "", goal: str = "") -> GraphWalk:
    """Return the first state of the walk of a seed."""
    rng = random.Random(seed)
    goal = goal or GOALS[seed % len(GOALS)]
    names = list(FAMILIES)
    family = family or FITTING.get(goal) or names[(seed + seed // len(names)) % len(names)]
    program = FAMILIES[family](rng)
    on_gpu = 3 if "state" in program.access else 1
    target = rng.choices(TARGETS, (3, 3, 3, on_gpu))[0]
    if goal in ON_CPU:
        target = rng.choice(TARGETS[:3])
    elif goal in ON_GPU:
        target = SIMT
    return GraphWalk(rng, program, target, goal)


def toward(walk: GraphWalk, verb: str, tries: int = 12) -> bool:
    """Apply the steps that a step requires, then try it; return whether it was accepted."""
    if verb in (*ON_CPU, *ON_GPU):
        return toward_kernel(walk, verb)
    before = PATH[: PATH.index(verb)] if verb in PATH else PATH
    if verb == "lift_transforms":  # constants of small programs are folded, and nothing is left
        before = [step for step in before if step != "fold_constants"]
    if verb in EARLY or verb == "default_schedule":
        before = ()
    for step in before:
        if step == "legalize" or walk.rng.random() < 0.5:
            walk.step(step)
    if verb == "hoist_block":
        for step in caches(walk.rng, walk.state):
            walk.attempt(step)
            break
    return any(walk.step(verb) for _ in range(tries))


def toward_kernel(walk: GraphWalk, verb: str) -> bool:
    """Lower the operators, then try a step on each kernel; return whether it was accepted."""
    walk.step("legalize")
    found = kernels(walk.state)
    walk.rng.shuffle(found)
    for kernel in found:
        focus: Any = Focus(walk, kernel)
        before = walk.tally.accepted[verb]
        if verb == "tensorize":
            loop_plans.tensorize(focus)
        else:
            directed.seek(focus, verb)
        if walk.tally.accepted[verb] > before and walk.rng.random() < 0.5:
            return True
    return bool(walk.tally.accepted[verb])


def early(walk: GraphWalk) -> None:
    """Try some of the steps on calls of operators, in random order."""
    for verb in walk.rng.sample(EARLY, len(EARLY)):
        if walk.rng.random() < 0.5:
            any(walk.step(verb) for _ in range(3))


def take(walk: GraphWalk) -> None:
    """Draw a step and try it, or undo some."""
    rng, share = walk.rng, walk.rng.random()
    if share < 0.03 and walk.past:
        walk.undo()
    elif share < 0.35 and kernels(walk.state):
        walk.on_kernel()
    else:
        late = len(walk.counted) >= COUNTED - 2
        weights = [w * (late or v not in FINAL) for v, w in WEIGHTS.items()]
        verb = rng.choices(list(WEIGHTS), weights)[0]
        if verb == "hoist_block" and rng.random() < 0.5:
            for step in caches(rng, walk.state):
                walk.attempt(step)
                break
        walk.step(verb, fixes=rng.random() < 0.15)


def advance(walk: GraphWalk, counted: int = COUNTED) -> None:
    """Try steps until the walk is complete, or the number of attempts is exhausted."""
    rng = walk.rng
    if rng.random() < 0.6:
        early(walk)
    if walk.goal not in FINAL and rng.random() < 0.7:
        toward(walk, walk.goal)
    length = rng.choice([counted, counted, counted + 2, counted + 6])
    while not complete(walk, counted) or len(walk.counted) < length:
        if walk.tally.attempts >= ATTEMPTS:
            break
        take(walk)
    if walk.goal in FINAL:
        walk.step(walk.goal)


def warm(walk: GraphWalk) -> None:
    """Compile the parts that all executables of this process contain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DefaultRuleFailedWarning)
        oracles.executable(walk.original.module, _cpu(""), opt=0)
