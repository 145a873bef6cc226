"""Mutation tests of the checker: mutants are detected by a finding or by a different result.

``python -m tests.codegen.simt.mutation [kernel ...]`` prints the evidence and the survivors.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np

from tilewright.codegen.simt.evaluate_terms import TermEvaluator
from tilewright.codegen.simt.kernel import compile_like
from tilewright.ir.symbolic import evaluate
from tilewright.schedules import Schedule

from tests.codegen.gpu import kernels
from tests.codegen.simt.launching import Launcher
from tests.codegen.simt.mutants import Mutant, with_wider_bounds, without, without_barriers

Sizes = Mapping[str, int]
LONGEST_LOOP = 16
"""An upper bound of the extents of all loops of the kernels at the tested sizes."""


@dataclass
class Case:
    """A kernel, the sizes at which its mutants are tested, and inputs for these sizes."""

    name: str
    schedule: Callable[[], Schedule]
    sizes: tuple[Sizes, ...]
    inputs: Callable[[np.random.Generator, Sizes], Sequence[np.ndarray]]
    equivalent: Mapping[str, str] = field(default_factory=dict)
    """Mutants that may survive: a part of the description, and why they are equivalent."""

    @cached_property
    def launcher(self) -> Launcher:
        return Launcher(kernels.function(self.schedule()))

    @cached_property
    def expected(self) -> list[tuple[Sequence[np.ndarray], list[np.ndarray], Sequence[int]]]:
        """Inputs and outputs of the original at all sizes, and counts of executed statements."""
        runs = []
        for sizes in self.sizes:
            inputs = self.inputs(np.random.default_rng(7), sizes)
            outputs, report = self.launcher.outputs(inputs, sizes)
            assert not report.findings, str(report)
            runs.append((inputs, outputs, report.executed))
        return runs

    def mutants(self) -> Iterator[Mutant]:
        function = self.launcher.function
        return chain(without_barriers(function), with_wider_bounds(function))

    def found_by(self, mutant: Mutant) -> str:
        """Return the evidence against a mutant: a kind of finding, "result", or "" if none."""
        kernel = compile_like(mutant.function, self.launcher.function)
        ordinal, _ = kernel.statements.statement(mutant.statement)
        for sizes, (inputs, outputs, ran) in zip(self.sizes, self.expected, strict=True):
            if not ran[ordinal] or not self._differs(mutant, sizes):
                continue  # the change does not affect this launch
            got, report = self.launcher.outputs(inputs, sizes, function=mutant.function)
            if report.findings:
                return report.findings[0].kind
            pairs = zip(got, outputs, strict=True)
            if not all(a.tobytes() == b.tobytes() for a, b in pairs):
                return "result"
        return ""

    def _differs(self, mutant: Mutant, sizes: Sizes) -> bool:
        """Return whether a changed condition can be true in a launch where the original is not."""
        if mutant.claims is None:
            return True
        terms = TermEvaluator()
        old, new = (terms.compile(claim) for claim in mutant.claims)
        free = {v for claim in mutant.claims for v in claim.free}
        values = {s: sizes[s.name] for s in self.launcher.lowered.symbols}
        axes = {a.var: int(evaluate(a.extent, values)) for a in mutant.function.launch.axes}
        environment = terms.environment()
        others = [v for v in free if v not in values]
        for k, variable in enumerate(others):
            count = axes.get(variable, LONGEST_LOOP)
            shape = [1] * len(others)
            shape[k] = count
            environment[terms.slot(variable)] = np.arange(count).reshape(shape)
        for variable in free & values.keys():
            environment[terms.slot(variable)] = values[variable]
        return bool(np.any(np.asarray(new(environment)) & ~np.asarray(old(environment))))

    def together(self, mutants: Iterable[Mutant]) -> str:
        """Return the evidence against the kernel without the statements of several mutants."""
        statements = [m.statement for m in mutants]
        function = without(self.launcher.function, statements)
        return self.found_by(Mutant("all of them", "", statements[0], function))

    def excuse(self, mutant: Mutant) -> str:
        """Return the reason why a mutant is equivalent; empty if it must be detected."""
        return next((why for text, why in self.equivalent.items() if text in str(mutant)), "")


def _normal(shape: tuple[int, ...]) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: rng.normal(size=shape).astype(np.float32)


def _whole(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return small nonzero integers, whose sums of products are exact in any order."""
    return rng.choice(np.array([-3, -2, -1, 1, 2, 3], np.float32), size=shape)


def _half(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return _whole(rng, shape).astype(np.float16)


def _products(*sizes: tuple[int, int, int]) -> tuple[Sizes, ...]:
    return tuple({"M": m, "N": n, "K": k} for m, n, k in sizes)


_MATMUL_SIZES = _products(
    # K and N with every remainder modulo 4, below and above a tile of 16; M and N in every part of
    # a block's tile of 64, with full tiles next to partial ones.
    (10, 63, 5), (63, 60, 5), (25, 10, 18), (41, 25, 19), (57, 38, 4), (66, 65, 16), (64, 64, 33),
    (64, 63, 7), (64, 38, 17), (64, 25, 17), (64, 10, 17), (63, 64, 6), (41, 64, 3), (25, 64, 18),
    (10, 64, 17), *((m, n, 3) for m in (10, 25, 41, 57) for n in (10, 25, 38, 57)),
)  # fmt: skip

_TENSOR_SIZES = _products(
    # K and N with every remainder modulo 8, the last row of A and of B at every alignment.
    (9, 57, 9), (9, 58, 1), (10, 59, 2), (11, 60, 3), (12, 61, 4), (13, 62, 5), (14, 63, 9),
    (9, 56, 7), (9, 63, 1), (65, 66, 6), (64, 64, 65), (16, 64, 8), (57, 40, 8),
)  # fmt: skip

_PADDING = "the additional tile is beyond K: it is all padding, so its products are 0"
_EMPTY = "the additional iterations are empty: an inner guard excludes all of their threads"
_EMPTY_BLOCK = "the additional block has no terms, so its sum is 0"
_EMPTY_BRANCH = "the branch skips loops over blocks of terms; without another term, they are empty"

CASES = (
    Case(
        "elementwise",
        kernels.elementwise,
        ({"m": 1, "n": 5}, {"m": 2, "n": 3}, {"m": 1, "n": 7}, {"m": 2, "n": 2},
         {"m": 33, "n": 31}, {"m": 11, "n": 97}),
        lambda rng, s: (_normal((s["m"], s["n"]))(rng), _normal((s["n"],))(rng)),
    ),
    Case(
        "softmax",
        kernels.softmax,
        ({"rows": 2, "columns": 5}, {"rows": 3, "columns": 300}, {"rows": 2, "columns": 256},
         {"rows": 2, "columns": 511}, {"rows": 1, "columns": 8200}, {"rows": 1, "columns": 16650}),
        lambda rng, s: (_normal((s["rows"], s["columns"]))(rng),),
        {"loop k_1_0 < ceildiv": _EMPTY, "loop wk_1_0 < ceildiv": _EMPTY,
         "loop j_0 < ceildiv": _EMPTY, "loop wk_1_0_block": _EMPTY_BLOCK,
         "ceildiv(columns, 256)) > 32 of the kernel": _EMPTY_BRANCH},
    ),
    Case(
        "matmul",
        kernels.matmul,
        _MATMUL_SIZES,
        lambda rng, s: (_whole(rng, (s["M"], s["K"])), _whole(rng, (s["K"], s["N"]))),
        {"loop k_0 <": _PADDING},
    ),
    Case(
        "tensor_matmul",
        kernels.tensor_matmul,
        _TENSOR_SIZES,
        lambda rng, s: (_half(rng, (s["M"], s["K"])), _half(rng, (s["K"], s["N"]))),
        {"loop k_0 <": _PADDING},
    ),
)  # fmt: skip


def survivors(case: Case, mutants: Iterable[Mutant]) -> tuple[list[Mutant], dict[str, int]]:
    """Test mutants; return the survivors, and the number of mutants for each kind of evidence."""
    surviving: list[Mutant] = []
    counts: dict[str, int] = {}
    for mutant in mutants:
        evidence = case.found_by(mutant)
        counts[evidence or "survived"] = counts.get(evidence or "survived", 0) + 1
        if not evidence:
            surviving.append(mutant)
    return surviving, counts


def main(names: Sequence[str]) -> None:
    """Test every mutant of the named kernels, or of all kernels."""
    for case in CASES:
        if names and case.name not in names:
            continue
        began = time.perf_counter()
        surviving, counts = survivors(case, case.mutants())
        seconds = time.perf_counter() - began
        sys.stdout.write(
            f"{case.name}: {sum(counts.values())} mutants, {seconds:.0f} s, {counts}\n"
        )
        for mutant in surviving:
            reason = case.excuse(mutant) or "NOT EXPLAINED"
            sys.stdout.write(f"  {mutant}: {reason}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
