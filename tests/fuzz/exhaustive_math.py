"""Exhaustive test of element functions in single precision: ``make math``.

Functions of one float are compared with float64 references for all 2**32 bit patterns (finite,
infinite, NaN), functions of two or three floats for all pairs of 4,096 structured numbers and
random pairs. Every level of this machine is tested. The references have errors of at most a few
ulp of float64, which is less than ``1e-8`` ulp in single precision; beside roots of lgamma and
digamma, they are computed with 160 bits.

``exhaustive_math.json`` records the largest error and its operands, with a digest of the
instructions of the function. The digest excludes loops, addresses, and masks around the function,
so it changes only if the computation does. A function whose instructions are recorded is not
tested again, so that a run can be resumed. The exit status is 1 if an error exceeds the bound of a
function.

Examples
--------
``python -m tests.fuzz.exhaustive_math --functions exp log --processes 2``
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.codegen.llvm import emit_module
from tilewright.codegen.lower import lower_kernel
from tilewright.ir.dtype import f32
from tilewright.ir.loop.element_functions import FUNCTIONS
from tilewright.target.target import Target

from tests.codegen.functions import elementwise, one_vector
from tests.codegen.kernels import LEVELS, Runtime
from tests.fuzz.math_operands import (
    CHUNK,
    EITHER_ZERO,
    EVERY,
    PAIRS,
    POSITIVE,
    SWEPT,
    Operands,
    arity_of,
    exact_pairs,
    exact_unary,
    of_negative,
    of_result,
    pairs,
    patterns,
)

RECORD = Path(__file__).with_suffix(".json")
PARTS = 16
"""The number of tasks per function."""

COUNT_OF_PAIRS = 1 << 28
_KEPT: list[object] = []

Worst = dict[str, tuple[float, list[str]]]
"""The largest error per level, and the operands as hexadecimal floats."""


def code_of(op: str) -> dict[str, str]:
    """Return a digest of the instructions of a function per level."""
    texts = {level: "\n".join(instructions(op, level)) for level in LEVELS}
    return {level: hashlib.sha256(t.encode()).hexdigest()[:16] for level, t in texts.items()}


def instructions(op: str, level: str) -> list[str]:
    """Return the LLVM instructions that compute one vector of a function."""
    target = Target("cpu", features=(level,))
    kernel = lower_kernel(one_vector(op, f32, arity_of(op)), target)
    return between_accesses(emit_module([kernel.function], target))


def between_accesses(text: str) -> list[str]:
    """Return the instructions between the loads of operands and the first store of a result.

    Names of values are replaced by numbers in the order of first use, without declarations of
    local variables and without metadata.
    """
    lines = [_LABEL.sub(r"%\1:", line.strip().split(", !")[0]) for line in text.splitlines()]
    lines = [line for line in lines if " = alloca " not in line]
    addresses = {"%p1", "%p2", "%p3", "%p4"}
    addresses |= {m[1] for line in lines if (m := _ADDRESS.match(line))}
    accesses = {k for k, t in enumerate(lines) if (m := _ACCESS.search(t)) and m[1] in addresses}
    stored = next(k for k in sorted(accesses) if lines[k].startswith("store "))
    loads = [k for k in sorted(accesses) if k < stored]
    names = {lines[k].split(" = ")[0]: f"%operand{n}" for n, k in enumerate(loads)}
    inside = [lines[k] for k in range(loads[0], stored) if k not in accesses]
    inside = [line for line in inside if not _ADDRESS.match(line)]
    inside.append(lines[stored].split(", ptr ")[0])
    return [_NAME.sub(lambda m: names.setdefault(m[0], f"%{len(names)}"), t) for t in inside]


_ADDRESS = re.compile(r"(%\w+) = getelementptr i8, ptr %p\d")
_ACCESS = re.compile(r"(?:= load|^store) .*ptr (%\w+)")
_LABEL = re.compile(r"^(\w+):$")
_NAME = re.compile(r"%\w+")


def worst_of_part(op: str, part: int, levels: tuple[str, ...], step: int) -> tuple[Worst, float]:
    """Return the largest errors of one part of the operands, and the processor seconds.

    Results of a level that are those of the level before, bit for bit, are compared once.
    """
    began = time.process_time()
    worst: Worst = {level: (0.0, []) for level in levels}
    given = tuple(x.copy() for x in next(_operands(op, part, step))[0])
    results = {level: np.empty(CHUNK, np.float32) for level in levels}
    calls = {level: _call(op, level, (*given, results[level])) for level in levels}
    for operands, exact in _operands(op, part, step):
        for buffer, values in zip(given, operands, strict=True):
            buffer[...] = values
        error, at, before = 0.0, 0, None
        for level, found in results.items():
            assert calls[level]() == 0
            if before is None or not np.array_equal(found.view(np.uint32), before):
                error, at = of_result(found, exact, either_zero=op in EITHER_ZERO)
            before = found.view(np.uint32)
            if error > worst[level][0]:
                worst[level] = error, [float(x[at]).hex() for x in operands]
    return worst, time.process_time() - began


def _call(op: str, level: str, arrays: Operands) -> Callable[[], int]:
    """Return the call of a function with arrays that it reads and writes again and again."""
    kernel = elementwise(op, f32, level, arity=len(arrays) - 1)
    call, keep = kernel.prepare(arrays, {}, Runtime())
    _KEPT.append(keep)
    return call


def _operands(op: str, part: int, step: int) -> Iterator[tuple[Operands, np.ndarray]]:
    """Yield the operands of one part of a test, with the exact results."""
    if op in PAIRS:
        chunks = COUNT_OF_PAIRS // CHUNK // PARTS
        for given in pairs(op, part * chunks, (part + 1) * chunks, step):
            yield given, exact_pairs(op, given)
        return
    size = POSITIVE // PARTS
    for x in patterns(part * size, (part + 1) * size, step):
        exact = exact_unary(op, x)
        yield (x,), exact
        yield (-x,), of_negative(op, x, exact)


class Records:
    """The file of results."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, Any] = {}
        self.read()

    def read(self) -> None:
        """Read the file, which another run may have changed."""
        if self.path.exists():
            self.rows = json.loads(self.path.read_text())

    def has(self, op: str, code: dict[str, str]) -> bool:
        """Return whether the code of a function on all levels was tested."""
        levels = self.rows.get(op, {}).get("levels", {})
        return all(levels.get(level, {}).get("code") == code[level] for level in code)

    def add(self, op: str, worst: Worst, code: dict[str, str], seconds: float) -> None:
        """Write the result of a function."""
        self.read()
        levels = {
            level: {"worst_ulp": round(error, 5), "at": at, "code": code[level]}
            for level, (error, at) in worst.items()
        }
        old = self.rows.get(op, {}).get("levels", {})
        self.rows[op] = {
            "bound_ulp": FUNCTIONS[op].ulps(f32),
            "operands": COUNT_OF_PAIRS if op in PAIRS else EVERY,
            "seconds": round(seconds, 1),
            "levels": {**old, **levels},
        }
        rows = {name: self.rows[name] for name in FUNCTIONS if name in self.rows}
        self.path.write_text(json.dumps(rows, indent=1) + "\n")


def tested(
    op: str, levels: tuple[str, ...], step: int, pool: ProcessPoolExecutor
) -> tuple[Worst, float]:
    """Return the largest errors of a function, and the processor seconds."""
    futures = [pool.submit(worst_of_part, op, part, levels, step) for part in range(PARTS)]
    worst: Worst = {level: (0.0, []) for level in levels}
    total = 0.0
    for done, future in enumerate(futures):
        found, seconds = future.result()
        total += seconds
        for level in levels:
            worst[level] = max(worst[level], found[level])
        text = ", ".join(f"{level} {error:.4f}" for level, (error, _) in worst.items())
        print(f"\r{op:10s} {done + 1}/{PARTS} {total:6.1f} s  {text}", end="", flush=True)
    return worst, total


def main(given: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Test element functions with all operands.")
    parser.add_argument("--functions", nargs="*", default=[*SWEPT, *PAIRS])
    parser.add_argument("--levels", nargs="*", default=list(LEVELS))
    parser.add_argument(
        "--step",
        type=int,
        default=1,
        help="test every STEP-th operand, a power of two; not recorded",
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--again", action="store_true", help="test recorded functions too")
    options = parser.parse_args(given)
    records, failures = Records(options.record), 0
    with ProcessPoolExecutor(options.processes) as pool:
        for op in options.functions:
            code = {level: text for level, text in code_of(op).items() if level in options.levels}
            if records.has(op, code) and not options.again:
                continue
            worst, seconds = tested(op, tuple(code), options.step, pool)
            late = {lv: w for lv, w in worst.items() if w[0] > FUNCTIONS[op].ulps(f32)}
            failures += bool(late)
            print(f"\n{op:10s} {seconds:6.1f} s  {'BEYOND ITS BOUND' if late else 'ok'} {worst}")
            if options.step == 1:
                records.add(op, worst, code, seconds)
    return int(failures > 0)


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main(sys.argv[1:]))
