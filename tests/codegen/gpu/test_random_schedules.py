"""Random GPU schedules: legal steps yield kernels that equal the interpreter."""

from __future__ import annotations

import random

import pytest

from tilewright.codegen.lower import lower_kernel
from tilewright.ir.kernel_errors import DivergentBarrierError, MemoryScopeError, UnboundKernelError
from tilewright.ir.script import parse
from tilewright.schedules import Schedule, StepError

from tests.amounts import amount
from tests.codegen.gpu.kernels import SOFTMAX
from tests.codegen.gpu.running import SIMT, agrees
from tests.schedules.helpers import CHAIN, MATMUL
from tests.schedules.rules.test_gpu import COLUMNS, NORM

PROGRAMS = (MATMUL, CHAIN, COLUMNS, NORM, SOFTMAX)
SIZES = {"M": 19, "n": 37, "m": 6, "rows": 3, "columns": 37}
REFUSALS = (MemoryScopeError, DivergentBarrierError, UnboundKernelError)
ROUNDS = 48


class Walk:
    """Draws steps one after the other; those that do not apply are left out."""

    def __init__(self, text: str, rng: random.Random) -> None:
        self.schedule = Schedule(parse(text), SIMT)
        self.rng = rng
        self.applied = 0
        self.bound = 0

    def attempt(self, verb: str, *args, **kwargs):
        """Apply a step if it applies."""
        try:
            made = getattr(self.schedule, verb)(*args, **kwargs)
        except StepError:
            return None
        self.applied += 1
        self.bound += verb == "bind"
        return made

    @property
    def loops(self):
        """The serial loops of all blocks."""
        sch = self.schedule
        found = [x for b in self.blocks for x in sch.get_loops(b)]
        return [x for x in dict.fromkeys(found) if sch.state.loop(x).kind == "serial"]

    @property
    def blocks(self):
        """All blocks."""
        name = self.schedule.module.prims[0].name
        return list(self.schedule.get_blocks(name))

    def step(self) -> None:
        """Draw one step."""
        rng, sch = self.rng, self.schedule
        kind = rng.choice(
            ["split", "split", "bind", "bind", "bind", "cache", "at", "back", "order"]
        )
        block = rng.choice(self.blocks)
        if not self.loops:
            return
        loop = rng.choice(self.loops)
        if kind == "split":
            self.attempt("split", loop, factors=(None, rng.choice([2, 3, 4, 8, 32])))
        elif kind == "bind":
            axis = rng.choice(["blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.x",
                               "threadIdx.y", "vthread"])  # fmt: skip
            self.attempt("bind", loop, axis)
        elif kind == "cache":
            node = sch.state.block(block)
            name = rng.choice([r.buffer.name for r in (*node.reads, *node.writes)])
            verb = rng.choice(["cache_read", "cache_write"])
            scope = rng.choice(["local", "shared"])
            self.attempt(verb, block, sch.get_buffer(name), scope)
        elif kind == "at":
            self.attempt("compute_at", block, loop)
        elif kind == "back":
            self.attempt("reverse_compute_at", block, loop)
        else:
            nest = list(sch.get_loops(block))
            self.attempt("reorder", tuple(rng.sample(nest, len(nest))))

    def finish(self) -> None:
        """Bind a loop if none is bound yet."""
        for loop in self.loops:
            if not self.bound:
                self.attempt("split", loop, factors=(None, 16))
                for inner in self.loops:
                    self.attempt("bind", inner, "threadIdx.x")


def _is_refused(scheduled) -> bool:
    """Return whether lowering rejects a function with a named error and a hint."""
    try:
        lower_kernel(scheduled, SIMT)
    except REFUSALS as error:
        return bool(error.hint)
    return False


@pytest.mark.parametrize("seed", range(amount(3, 6)))
def test_random_schedules(seed, fuzz_factor):
    """Random steps yield correct kernels or named errors, mostly kernels."""
    rng = random.Random(seed)
    ran = refused = 0
    for _ in range(ROUNDS * fuzz_factor // 6):
        text = rng.choice(PROGRAMS)
        walk = Walk(text, rng)
        for _ in range(rng.randrange(4, 16)):
            walk.step()
        walk.finish()
        (scheduled,) = walk.schedule.module.prims
        if not walk.bound:
            continue
        if _is_refused(scheduled):
            refused += 1
            continue
        ran += 1
        try:
            agrees(scheduled, parse(text).prims[0], SIZES, tolerance=1e-5)
        except AssertionError as error:
            raise AssertionError(str(walk.schedule)) from error
    assert ran >= 2
    assert ran + refused >= ROUNDS // 12
