"""Random walks: steps on a random program, each compared with every oracle.

A walk draws steps, legal or not. A rejected step has problems with named requirements, whose fixes
are legal and remove them. An accepted step results in a well-formed program with the same results,
whose text round-trips. At the end, native code for every feature set of the machine, the emulated
GPU and the default rules compute the same results.
"""

from __future__ import annotations

import os
import random
import re
import time
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import tilewright as tw
from tilewright.codegen.wgsl import UnsupportedShaderError
from tilewright.errors import TilewrightError
from tilewright.ir.kernel_errors import KernelProgramError
from tilewright.ir.module import Module
from tilewright.ir.script import parse, to_text
from tilewright.ir.verify import violations
from tilewright.schedules import (
    Schedule,
    State,
    from_json,
    from_python,
    replay,
    to_json,
    to_python,
)
from tilewright.schedules.apply import Composite, apply, check
from tilewright.schedules.forwarding import followed
from tilewright.schedules.registry import STEPS
from tilewright.schedules.requirement import Requirement
from tilewright.schedules.rules.default import DefaultRuleFailedWarning, schedule_kernel
from tilewright.target.target import Target

from tests.codegen.kernels import LEVELS
from tests.fuzz import directed, goals, oracles, plans
from tests.fuzz.inputs import NoSizesError, copies, iterations, legal, sizes
from tests.fuzz.mixing import RARE, SHARE, mixed
from tests.fuzz.oracles import SIMT, Original, RefusedError
from tests.fuzz.programs import FAMILIES
from tests.fuzz.steps import (
    FUNCTION,
    LIBRARY,
    RULES,
    SAMPLES,
    TILES,
    UNCOUNTED,
    VERBS,
    applied,
    draw,
    families_of,
    from_data,
    to_data,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tilewright.ir.loop.nodes import PrimFunc
    from tilewright.ir.symbolic import Var
    from tilewright.schedules.handles import Handle
    from tilewright.schedules.problem import Problem
    from tilewright.schedules.step import Step

    from tests.fuzz.program import Program

COUNTED = 8
"""The number of accepted steps of a complete walk."""

GROUPS = 3
"""The number of families that the steps of a complete walk belong to."""

ATTEMPTS = 400
"""The largest number of drawn steps of a walk."""

LARGEST = 9000
"""The largest program, in characters, that a step may result in."""

VERSIONS = 8
"""The number of bound versions of a program that are tried on the emulated GPU."""

TARGETS = (None, Target("cpu", features=("avx2",)), Target("cpu", features=("avx512",)), SIMT, SIMT)
AFFORDABLE = 20_000
"""The largest number of statements of one run in the interpreter or on the emulated GPU."""

EXPENSIVE = 20 * AFFORDABLE
"""The largest number of statements of a run at the cheapest sizes that a step may result in."""

UNROLLED = 32
"""The largest number of copies of a statement that unrolled loops may make."""

ROUND_TRIPS = 0.15
"""The share of accepted steps after which the text is parsed, as it is at the end."""

REPLAYED = 0.15
"""The share of walks whose steps are replayed; those with sampled values all are."""

SOUGHT = 0.5
"""The share of steps whose operands are chosen in search of a legal one."""

REDRAWN = 10
"""How often a program is drawn again that the rule that a walk aims at does not schedule."""

HOPELESS = 100
"""The number of rejections of the step that a walk aims at after which it draws any others."""

ROWWISE = 0.7
"""The share of products for instructions whose left operand and results are stored by rows."""

FRAMES = 3
"""The number of innermost frames of an exception that a failure shows."""


class DefectError(AssertionError):
    """A defect: the check that failed, and a description.

    Parameters
    ----------
    phase : str
        The check: ``draw``, ``check``, ``apply``, ``fix``, ``verify``, ``text``, ``interpreter``,
        ``native``, ``simt``, ``default`` or ``compile``.
    kind : str
        The name of the exception, or the kind of difference.
    message : str
        The description.
    """

    def __init__(self, phase: str, kind: str, message: str) -> None:
        self.phase, self.kind, self.message = phase, kind, message
        super().__init__(f"[{phase}] {kind}: {message}")


@dataclass
class Tally:
    """Counts of one walk."""

    accepted: Counter[str] = field(default_factory=Counter)
    inside: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    compiled: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    fixes: int = 0


@dataclass
class Walk:
    """A program with the steps applied so far."""

    rng: random.Random
    program: Program
    target: Target | None
    goal: str = "split"
    tally: Tally = field(default_factory=Tally)
    history: list[dict[str, object]] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)
    pending: dict[str, object] | None = None
    results: tuple[Handle, ...] = ()
    bound: list[State] = field(default_factory=list)
    watch: Callable[[Walk], None] = lambda _: None
    text: str = field(init=False)
    state: State = field(init=False)
    original: Original = field(init=False)
    envs: list[dict[Var, int]] = field(init=False)

    def __post_init__(self) -> None:
        with self.phase("parse"):
            module = self.program.module
            self.original = Original(self.program, module)
            self.state = State.start(module, self.target)
            self.text = to_text(module)
            found = violations(module)
            if found:
                raise DefectError("parse", "violations", "\n".join(map(str, found)))
            if not self.redraw(self.state):
                raise DefectError("parse", "sizes", "found no sizes")
            for env in self.envs:
                oracles.interpret(self.original, self.function, env)

    @property
    def function(self) -> PrimFunc:
        """The current function."""
        return self.state.module.prims[0]

    def redraw(self, state: State) -> bool:
        """Draw sizes that satisfy the facts of a function; return whether there are any."""
        kinds = ("small", "small", "prime", "large")
        function = state.module.prims[0]
        try:
            drawn = [sizes(self.rng, self.program, function, kind) for kind in kinds]
        except NoSizesError:
            return False
        self.envs = list({tuple(env.values()): env for env in drawn}.values())
        return True

    @contextmanager
    def phase(self, name: str, title: str = "") -> Iterator[None]:
        """Time a check; any exception in it is a defect."""
        started = time.perf_counter()
        try:
            yield
        except (DefectError, RefusedError):
            raise
        except (TilewrightError, AssertionError) as error:
            kind = type(error).__name__
            raise DefectError(name, kind, f"{title} {error}".strip()) from error
        except Exception as error:
            where = "".join(traceback.format_exception(error, limit=-FRAMES, chain=False))
            raise DefectError(name, f"raw {type(error).__name__}", f"{title}\n{where}") from error
        finally:
            self.tally.seconds[name] += time.perf_counter() - started

    def step(self, verb: str, *, fixes: bool = False) -> bool:
        """Draw a step and try it; return whether it was accepted."""
        with self.phase("draw", verb):
            step = draw(self.rng, self.state, verb)
        if step is None:
            self.tally.attempts += 1
            return False
        return self.attempt(step, fixes=fixes)

    def attempt(self, step: Step, *, fixes: bool = False) -> bool:
        """Check the contract of a step, and return whether it was accepted."""
        self.tally.attempts += 1
        before, verb = self.state, step.verb()
        self.pending = to_data(step)
        self.watch(self)
        with self.phase("check", step.title()):
            problems = check(before, step)
        if problems:
            self._rejected(step, problems, fixes=fixes)
            return False
        with self.phase("apply", step.title()):
            made = apply(before, step)
        after = made.state
        with self.phase("text", step.title()):
            text = to_text(after.module)
        if self.is_large(step, after, text):
            self.tally.rejected["(too large)"] += 1
            return False
        inner = applied(before, after)
        if any(op == "assume" for op in (verb, *inner)) and not self.redraw(after):
            self.tally.rejected["(no sizes)"] += 1
            return False
        changed = text != self.text
        if changed and verb not in UNCOUNTED:
            self.counted.append(verb)
        self.history.append(self.pending)
        self.state, self.text, self.pending, self.results = after, text, None, made.results
        if " thread(" in text:
            self.bound.append(after)
        counts = changed or verb in SAMPLES
        self.tally.accepted[verb if counts else f"{verb} (no change)"] += 1
        if isinstance(step, Composite):
            self.tally.inside.update(Counter(inner) - Counter([verb]))
        self.sound()
        return True

    def is_large(self, step: Step, after: State, text: str) -> bool:
        """Return whether the result of a step takes too long to check; rules may make it larger."""
        if step.verb() in RULES:
            return False
        body, old = after.module.prims[0].body, self.function.body
        if len(text) > max(LARGEST, 1.2 * len(self.text)):
            return True
        if copies(body) > max(UNROLLED, copies(old)):
            return True
        # An empty size is cheap, but a later step may exclude it.
        envs = [env for env in self.envs if all(env.values())] or self.envs
        least, before = (min(iterations(b, env) for env in envs) for b in (body, old))
        return least > max(EXPENSIVE, before)

    def _rejected(self, step: Step, problems: Sequence[Problem], *, fixes: bool) -> None:
        for problem in problems:
            if not isinstance(problem.requirement, Requirement) or not problem.message:
                raise DefectError("check", "unnamed requirement", step.title())
            self.tally.rejected[f"{step.verb()}.{problem.requirement.key}"] += 1
        if fixes:
            self._try_fixes(step, problems)

    def _try_fixes(self, step: Step, problems: Sequence[Problem]) -> None:
        """Apply every suggested fix, and check that it removes its problem."""
        for problem in problems:
            for fix in problem.fixes:
                title = f"{fix.title()} as fix of {step.title()}:"
                with self.phase("fix", title):
                    left = check(self.state, fix)
                    if left:
                        raise DefectError("fix", "illegal fix", f"{title} {left[0].message}")
                    after = apply(self.state, fix).state
                    self.tally.fixes += 1
                    if type(fix) is type(step):
                        continue
                    left = check(after, followed(step, after))
                    if times(problem, left) >= times(problem, problems):
                        raise DefectError("fix", "useless fix", f"{title} {problem.message}")

    def sound(self) -> None:
        """Check the well-formedness, the text and the results of the current program."""
        with self.phase("verify"):
            found = violations(self.state.module)
            if found:
                raise DefectError("verify", "violations", "\n".join(map(str, found)))
        if self.rng.random() < ROUND_TRIPS:
            self.round_trip()
        with self.phase("interpreter"):
            for env in self.affordable(len(self.history)):
                oracles.interpret(self.original, self.function, env)

    def affordable(self, turn: int) -> list[dict[Var, int]]:
        """Return some of the sizes at which a run of the current program takes little time."""
        body = self.function.body
        costs = [(iterations(body, env), k) for k, env in enumerate(self.envs)]
        cheap = [k for cost, k in costs if cost <= AFFORDABLE] or [min(costs)[1]]
        chosen = {*cheap[:2], cheap[turn % len(cheap)]}
        return [self.envs[k] for k in sorted(chosen)]

    def round_trip(self) -> None:
        """Parse the text of the current program, and compare its text."""
        with self.phase("text"):
            again = to_text(parse(self.text))
            if again != self.text:
                raise DefectError("text", "round trip", again)

    def finish(self) -> None:
        """Run the resulting program on every path of this machine, and by the default rules."""
        self.watch(self)
        self.round_trip()
        if self.rng.random() < REPLAYED or any(s["verb"] in SAMPLES for s in self.history):
            self.replayed()
        self.natively(self.function, "native")
        self.on_threads()
        self.by_rules()

    def replayed(self) -> None:
        """Replay the steps on the original program under another seed, through JSON and Python."""
        trace = self.state.trace
        for name, again in (
            ("JSON", from_json(to_json(trace))), ("Python", from_python(to_python(trace))),
        ):  # fmt: skip
            with self.phase("replay", f"the trace as {name}"):
                start = State.start(self.original.module, self.target, seed=1)
                found = replay(start, again)
                if not found.complete:
                    raise DefectError("replay", "incomplete", f"{name}: {found}")
                text = to_text(found.state.module)
                if text != self.text:
                    raise DefectError("replay", "another program", f"{name}: {text}")

    def on_threads(self) -> None:
        """Run the last bound version that lowering accepts on the emulated GPU."""
        for state in self.bound[-VERSIONS:][::-1]:
            if self.on_gpu(state.module.prims[0], "simt", required=False):
                return

    def natively(self, function: PrimFunc, phase: str, levels: Sequence[str] = ("", *LEVELS)):
        """Compare native code for some feature sets."""
        best = self.rng.choice(levels)
        for level in levels:
            title = f"native code for {level or 'the base level'}"
            with self.phase(phase, title):
                try:
                    kernel = oracles.native(function, level, opt=2 if level == best else 0)
                except RefusedError as error:
                    self.tally.refused[f"{phase} {type(error.__cause__).__name__}"] += 1
                    return
                self.tally.compiled[f"{phase} {level or 'base'}"] += 1
                for env in self.envs:
                    oracles.run_native(self.original, kernel, env, title)

    def on_gpu(self, function: PrimFunc, phase: str, *, required: bool) -> bool:
        """Compare the emulated kernel; return False if lowering rejects it."""
        with self.phase(phase):
            try:
                artifact = oracles.lowered(function, SIMT)
            except RefusedError as error:
                name = type(error.__cause__).__name__
                self.tally.refused[f"{phase} {name}"] += 1
                if required and name != "UnboundKernelError":
                    message = f"lowering rejects the result of a rule: {error}"
                    raise DefectError(phase, name, message) from error
                return False
            self.tally.compiled[f"{phase} simt"] += 1
            for env in self.affordable(2):
                oracles.run_simt(self.original, artifact, env, "the emulated GPU")
        if oracles.WEBGPU in os.environ:
            self.on_webgpu(function, phase)
        return True

    def on_webgpu(self, function: PrimFunc, phase: str) -> None:
        """Compare the kernel on the WebGPU driver of this machine, unless it is rejected.

        Arguments are compact on a device, so functions with strided parameters are not called.
        """
        if any(b.strides is not None for b in self.original.function.buffer_params):
            return
        with self.phase(phase, "the WebGPU driver"):
            try:
                executable = tw.compile(Module().with_functions(function), "webgpu")
            except (KernelProgramError, UnsupportedShaderError) as error:
                self.tally.refused[f"{phase} webgpu {type(error).__name__}"] += 1
                return
            shaders = (executable.llvm(name) for name in executable.artifact.images)
            if sum(map(len, shaders)) > oracles.LONG_SHADER:
                self.tally.refused[f"{phase} webgpu TooLongError"] += 1
                return
            self.tally.compiled[f"{phase} webgpu"] += 1
            for env in self.affordable(2):
                if legal(self.program, self.original.function, env):
                    oracles.run_on_webgpu(self.original, env, executable)

    def by_rules(self) -> None:
        """Compile the original program by the default rules alone."""
        for target in (Target("cpu", features=(self.rng.choice(LEVELS),)), SIMT):
            self.by_rule(target)
        if oracles.WEBGPU in os.environ:
            self.by_rule(Target("webgpu"))

    def compiled(self) -> None:
        """Compile the original program with ``tilewright.compile``, and call it."""
        with self.phase("compile"), warnings.catch_warnings():
            warnings.simplefilter("ignore", DefaultRuleFailedWarning)
            executable = tw.compile(self.original.module, "cpu")
            for env in self.envs:
                if legal(self.program, self.original.function, env):
                    oracles.run_compiled(self.original, env, executable)
        self.tally.compiled["compile"] += 1

    def by_rule(self, target: Target) -> None:
        """Compile the original program by the default rule of a target."""
        with self.phase("default", f"the rule for {target}"), warnings.catch_warnings():
            warnings.simplefilter("error", DefaultRuleFailedWarning)
            sch = Schedule(self.original.module, target)
            sch.schedule_kernel(FUNCTION)
            function = sch.module.prims[0]
            for env in self.envs[:2]:
                oracles.interpret(self.original, function, env)
        if target == SIMT:
            self.on_gpu(function, "default", required=True)
        elif target.is_gpu:
            self.on_webgpu(function, "default")
        else:
            self.natively(function, "default", target.features)


def times(problem: Problem, among: Sequence[Problem]) -> int:
    """Return the number of occurrences of a problem."""
    return sum((p.requirement, p.message) == (problem.requirement, problem.message) for p in among)


def complete(walk: Walk, counted: int = COUNTED) -> bool:
    """Return whether a walk has enough accepted steps of enough families."""
    return len(walk.counted) >= counted and len(families_of(walk.counted)) >= GROUPS


def walked(seed: int, family: str = "", goal: str = "") -> Walk:
    """Return a walk of random steps on a random program; `DefectError` if a check fails."""
    walk = start(seed, family, goal)
    advance(walk)
    walk.finish()
    return walk


def start(seed: int, family: str = "", goal: str = "") -> Walk:
    """Return the first state of the walk of a seed."""
    rng = random.Random(seed)
    goal = goal or goals.goal_of(seed)
    target = rng.choice(TARGETS)
    if goal in goals.ON_CPU:
        target = rng.choice(TARGETS[:3])
    elif goal in goals.ON_GPU:
        target = SIMT
    if goal == "tensorize" and not family:
        return Walk(rng, tiled_program(rng), target, goal)
    make = FAMILIES[family or goals.family_of_goal(seed, goal)]
    share = SHARE if goal in VERBS else RARE
    walk = Walk(rng, mixed(rng, make(rng), share), target, goal)
    for _ in range(REDRAWN if goal in RULES else 0):
        if not check(walk.state, STEPS[goal](FUNCTION)):
            break
        walk = Walk(rng, mixed(rng, make(rng), share), target, goal)
    return walk


def tiled_program(rng: random.Random) -> Program:
    """Draw a product that an instruction may compute, mostly of operands stored by rows."""
    by_rows = rng.random() < ROWWISE
    while True:
        found = FAMILIES["contraction"](rng)
        if by_rows and not re.search(r"C\[vi, vj\] \+= .*A\[vi, vk\]", found.text):
            continue
        if re.search(r"A: Buffer[\[(]+\w+, \w+\), (f32|u8)", found.text):
            return found


def toward(walk: Walk, verb: str, tries: int = 12) -> bool:
    """Apply a few random steps, then try one step; return whether it was accepted."""
    if verb == "tensorize" and plans.tensorize(walk):
        return True
    if verb == "unannotate":
        walk.step("annotate")
    if verb not in RULES:
        for _ in range(walk.rng.randint(0, 3)):
            take(walk)
    return directed.seek(walk, verb, tries)


def take(walk: Walk) -> None:
    """Draw a step and try it; or search for a legal one."""
    rng = walk.rng
    goal = rng.choice(VERBS) if _is_hopeless(walk) else walk.goal
    verb = goals.next_verb(rng, goal, walk.counted, on_gpu=walk.target == SIMT)
    if rng.random() < SOUGHT and verb != "tensorize":
        accepted = directed.seek(walk, verb)
    else:
        accepted = walk.step(verb, fixes=rng.random() < 0.15)
    if accepted and verb in TILES:
        sampled = walk.history[-1]
        data = {"verb": "split", "loop": sampled["loop"], "factors": list(walk.results)}
        walk.attempt(from_data(walk.state, data))


def _is_hopeless(walk: Walk) -> bool:
    """Return whether the step that a walk aims at is not legal in its program."""
    tally, goal = walk.tally, walk.goal
    rejected = sum(n for key, n in tally.rejected.items() if key.partition(".")[0] == goal)
    return not tally.accepted[goal] and rejected > HOPELESS


def advance(walk: Walk, counted: int = COUNTED) -> None:
    """Try steps until the walk is complete, or the number of attempts is exhausted."""
    rng, goal = walk.rng, walk.goal
    if goal == "tensorize":
        plans.tensorize(walk)
    elif goal in LIBRARY:
        directed.seek(walk, goal)
    elif goal == "blockize":
        plans.blockize(walk)
    elif walk.target == SIMT:
        plan = rng.choice([_by_rule, _by_rule, plans.bind, plans.bind, plans.bind, _leave])
        plan(walk)
    length = rng.choice([counted, counted, counted + 2, counted + 6])
    while not complete(walk, counted) or len(walk.counted) < length:
        if walk.tally.attempts >= ATTEMPTS:
            break
        take(walk)
    if walk.target == SIMT and " thread(" not in walk.text:
        plans.bind(walk)


def _by_rule(walk: Walk) -> None:
    walk.attempt(schedule_kernel(FUNCTION))


def _leave(walk: Walk) -> None:
    """Leave the loops unbound until the end of the walk."""
    del walk
