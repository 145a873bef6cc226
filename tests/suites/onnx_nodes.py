"""The node cases of the ONNX package: import, compile, and compare with their results.

``python -m tests.suites.onnx_nodes`` runs every case of ``onnx.backend.test`` with one node, or the
cases whose names match ``--only``. A case passes if the compiled program returns results of the
dtype and shape of the case, equal for integers and within its tolerance for floats: relative 1e-3
(2^-6 for bf16), absolute 1e-7, as in the runner of the package. The table counts separately cases
with random results, of which dtype and shape are compared (``random``), and results that differ by
more, but by at most one unit in the last place of the largest number (``rounding``): the expected
results are themselves rounded.

Each case runs in a forked process with a limit of CPU time, so a crash or an endless loop ends only
that case. Results are written after each case; ``--resume`` continues a run that was stopped.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import platform
import select
import sys
import time
import warnings
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tests.fuzz.contained import Child, Parent, ended, is_over

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LIMIT: Final = 60.0
"""The CPU time of one case, in seconds."""
OUT: Final = Path("out/suites")
"""The folder of results, relative to the current folder."""
RESULTS: Final = Path(__file__).with_name("results") / "onnx_nodes.md"
"""The committed table."""
STATUSES: Final = ("pass", "random", "rounding", "unsupported", "wrong", "error", "crash")

RANDOM: Final = (
    "test_bernoulli*", "test_training_dropout", "test_training_dropout_mask",
    "test_training_dropout_default", "test_training_dropout_default_mask",
)  # fmt: skip
"""Cases whose results are the numbers of a certain generator."""
_SHOWN: Final = 200


@dataclass(frozen=True)
class NodeCase:
    """A model of one node, or of the functions that define it, with operands and results."""

    name: str
    model: bytes
    data_sets: tuple[tuple[tuple[Any, ...], tuple[Any, ...]], ...]
    rtol: float
    atol: float


@dataclass(frozen=True)
class Result:
    """The result of one case."""

    name: str
    status: str
    operators: tuple[str, ...] = ()
    reason: str = ""
    seconds: float = 0.0


def _is_list(x: Any) -> bool:
    return isinstance(x, list | tuple)


def array_of(x: Any) -> Any:
    """Return an operand or a result as an array, a list of arrays, or None."""
    from onnx import SequenceProto, TensorProto, numpy_helper

    if isinstance(x, TensorProto):
        return np.asarray(numpy_helper.to_array(x))
    if isinstance(x, SequenceProto):
        return [np.asarray(a) for a in numpy_helper.to_list(x)]
    if _is_list(x):
        return [array_of(item) for item in x]
    return None if x is None else np.asarray(x)


def generated_cases() -> list[NodeCase]:
    """Generate the cases of the installed package, which takes about ten seconds."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package overflows casts on purpose
        found: Any = load_model_tests(kind="node")
    return [
        NodeCase(
            case.name,
            case.model.SerializeToString(),
            tuple(
                (tuple(map(array_of, given)), tuple(map(array_of, expected)))
                for given, expected in case.data_sets
            ),
            case.rtol,
            case.atol,
        )
        for case in found
    ]


def difference(found: Any, expected: Any, rtol: float, atol: float) -> str:
    """Return how a result differs from the expected one; empty if it does not."""
    if _is_list(expected):
        if len(found) != len(expected):
            return f"{len(found)} tensors instead of {len(expected)}"
        parts = (difference(f, e, rtol, atol) for f, e in zip(found, expected, strict=True))
        return next((p for p in parts if p), "")
    found = np.asarray(found)
    if found.dtype != expected.dtype:
        return f"dtype {found.dtype} instead of {expected.dtype}"
    if found.shape != expected.shape:
        return f"shape {found.shape} instead of {expected.shape}"
    return _difference_of_elements(found, expected, rtol, atol)


def _difference_of_elements(found: Any, expected: Any, rtol: float, atol: float) -> str:
    if found.dtype == object or found.dtype.kind in "biuUS":
        same = found == expected
    elif found.dtype.kind == "c":
        same = np.isclose(found, expected, rtol, atol, equal_nan=True)
    else:
        if found.dtype.name == "bfloat16":  # as in the runner of the package
            rtol = max(rtol, 2**-6)
        first, second = (np.asarray(a, np.float64) for a in (found, expected))
        same = np.isclose(first, second, rtol, atol, equal_nan=True)
    count = int(np.size(same) - np.count_nonzero(same))
    if not count:
        return ""
    at = tuple(int(k) for k in np.argwhere(~np.atleast_1d(same))[0])
    shown = (np.atleast_1d(found)[at], np.atleast_1d(expected)[at])
    return f"{count} of {np.size(same)} elements; at {at}: {shown[0]} instead of {shown[1]}"


def is_random(name: str) -> bool:
    """Return whether the results of a case depend on the generator of random numbers."""
    return any(fnmatch.fnmatch(name, p) for p in RANDOM)


def run_case(case: NodeCase) -> Result:
    """Import, compile, call, and compare one case in this process."""
    import onnx

    import tilewright as tw
    from tilewright.errors import UnsupportedOperatorsError
    from tilewright.ir.importers.onnx_file import (
        UnknownOpsetWarning,
        UnsupportedOpsetError,
        UnsupportedTypeError,
    )
    from tilewright.ir.importers.unsupported import UnsupportedFormError

    model = onnx.ModelProto.FromString(case.model)
    operators = tuple(sorted({n.op_type for n in model.graph.node}))
    start = time.perf_counter()

    def result(status: str, reason: str = "") -> Result:
        seconds = round(time.perf_counter() - start, 3)
        return Result(case.name, status, operators, " ".join(reason.split())[:_SHOWN], seconds)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnknownOpsetWarning)
            module = tw.from_onnx(model)
    except UnsupportedOperatorsError as error:
        uses = error.details["operators"]
        reasons = dict.fromkeys(f"{u['operator']}: {u['reason'] or 'no handler'}" for u in uses)
        return result("unsupported", "; ".join(reasons))
    except (UnsupportedTypeError, UnsupportedOpsetError, UnsupportedFormError) as error:
        return result("unsupported", f"{operators[0]}: {error.message}")
    except Exception as error:  # noqa: BLE001  # every error of the import is a result
        return result("error", f"import: {type(error).__name__}: {error}")
    try:
        executable = tw.compile(module)
        for given, expected in case.data_sets:
            status, reason = _called(executable, given, expected, case)
            if status != "pass":
                return result(status, reason)
    except Exception as error:  # noqa: BLE001  # every error of a case is a result
        return result("error", f"{type(error).__name__}: {error}")
    return result("random" if is_random(case.name) else "pass")


def _called(
    executable: Any, given: Sequence[Any], expected: Sequence[Any], case: NodeCase
) -> tuple[str, str]:
    """Return the status of a call, and how its results differ from the expected ones."""
    found = executable(*given)
    results = found if isinstance(found, tuple) else (found,)
    if len(results) != len(expected):
        return "wrong", f"{len(results)} results instead of {len(expected)}"
    pairs = list(zip(results, expected, strict=True))
    if is_random(case.name):
        parts = [_difference_of_kind(np.asarray(f), e) for f, e in pairs]
    else:
        parts = [difference(f, e, case.rtol, case.atol) for f, e in pairs]
    reason = next((f"result {k}: {p}" for k, p in enumerate(parts) if p), "")
    if not reason:
        return "pass", ""
    small = not is_random(case.name) and all(is_rounding(f, e) for f, e in pairs)
    return ("rounding" if small else "wrong"), reason


def _difference_of_kind(found: Any, expected: Any) -> str:
    """Return how dtype, shape, or the numbers of a random result differ."""
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return f"{found.dtype}{found.shape} instead of {expected.dtype}{expected.shape}"
    return "" if np.isfinite(np.asarray(found, np.float64)).all() else "numbers that are not finite"


def is_rounding(found: Any, expected: Any) -> bool:
    """Return whether floats differ by at most one unit of the largest expected number."""
    found = np.asarray(found)
    if (found.dtype, found.shape) != (expected.dtype, expected.shape) or not found.size:
        return False
    if found.dtype.kind != "f" and found.dtype.name != "bfloat16":
        return found.dtype == expected.dtype and np.array_equal(found, expected)
    import ml_dtypes

    first, second = (np.asarray(a, np.float64) for a in (found, expected))
    finite = np.isfinite(second)
    unit = float(ml_dtypes.finfo(found.dtype).eps) * np.abs(second[finite]).max(initial=0.0)
    return bool(np.isclose(first, second, rtol=0, atol=unit, equal_nan=True).all())


def run_cases(cases: Iterable[NodeCase], deadline: float) -> Iterable[Result]:
    """Run cases in forked processes; one process runs cases until one of them ends it."""
    waiting = list(cases)
    while waiting and time.monotonic() < deadline:
        done = 0
        for found in _run_until_end(waiting, deadline):
            yield found
            done += 1
        waiting = waiting[done:]


def _run_until_end(cases: Sequence[NodeCase], deadline: float) -> Iterable[Result]:
    def work(parent: Parent) -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # warnings of the package and of NumPy
        for case in cases:
            parent.limit(LIMIT)
            parent.note(case.name)
            parent.send(json.dumps(asdict(run_case(case))))

    child = Child.start(work)
    count, last = 0, time.monotonic()
    while count < len(cases):
        ready = select.select([child.pipe], [], [], 1.0)[0]
        more = child.read() if ready else True
        for line in child.lines:
            yield Result(**{**json.loads(line), "operators": tuple(json.loads(line)["operators"])})
            count, last = count + 1, time.monotonic()
        child.lines.clear()
        stalled = time.monotonic() - last > 10 * LIMIT
        if not more or stalled or time.monotonic() > deadline:
            break
    over = time.monotonic() > deadline
    status = child.end(kill=over or count < len(cases))
    if count < len(cases) and not over:
        how = f"no result after {LIMIT:g} s of CPU time" if is_over(status) else ended(status)
        yield Result(cases[count].name, "crash", (), how)


def read_results(file: Path) -> dict[str, Result]:
    """Read the results of a run that was stopped."""
    if not file.exists():
        return {}
    rows = [json.loads(line) for line in file.read_text().splitlines() if line]
    return {r["name"]: Result(**{**r, "operators": tuple(r["operators"])}) for r in rows}


def table(results: Sequence[Result]) -> str:
    """Return the committed page: counts, and every case that does not pass, by reason."""
    import onnx

    counts = Counter(r.status for r in results)
    lines = [
        "# ONNX node cases",
        "",
        "Written by `python -m tests.suites.onnx_nodes --record`: every node case of the package,",
        "imported, compiled, and compared.",
        "",
        f"`onnx` {onnx.__version__}, {platform.machine()}, {len(results)} cases:",
        "",
        "| status | cases |",
        "|---|---|",
        *(f"| {s} | {counts[s]} |" for s in STATUSES),
        "",
        "`random`: dtype and shape are compared, because the numbers depend on the generator.",
        "`rounding`: the difference exceeds the tolerance of the package, but not one unit in the",
        "last place of the largest number.",
        "",
        "## Cases that do not pass",
        "",
        "| status | reason | cases |",
        "|---|---|---|",
    ]
    groups: dict[tuple[str, str], list[str]] = {}
    for r in results:
        if r.status not in ("pass", "random"):
            groups.setdefault((r.status, r.reason), []).append(r.name.removeprefix("test_"))
    for (status, reason), names in sorted(groups.items()):
        text = reason.replace("|", "\\|")
        lines.append(f"| {status} | {text} | {len(names)}: {', '.join(sorted(names))} |")
    return "\n".join([*lines, ""])


def _chosen(cases: Sequence[NodeCase], patterns: Sequence[str]) -> list[NodeCase]:
    if not patterns:
        return list(cases)
    return [c for c in cases if any(fnmatch.fnmatch(c.name, f"*{p}*") for p in patterns)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite; return 1 if a case is wrong, fails, or crashes."""
    parser = argparse.ArgumentParser(prog="python -m tests.suites.onnx_nodes", description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="run cases with this in names")
    parser.add_argument("--resume", action="store_true", help="skip the cases with a result")
    parser.add_argument("--json", type=Path, default=OUT / "onnx_nodes.jsonl", help="results")
    parser.add_argument("--minutes", type=float, default=30.0, help="longest time (default 30)")
    parser.add_argument("--again", action="store_true", help="with --resume, run failures again")
    parser.add_argument("--record", action="store_true", help="write the committed table")
    options = parser.parse_args(arguments)
    if options.record and options.only:
        parser.error("--record needs the results of all cases, not of --only")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    done = read_results(options.json) if options.resume else {}
    if options.again:
        done = {n: r for n, r in done.items() if r.status in ("pass", "random")}
    chosen = _chosen(generated_cases(), options.only)
    left = [c for c in chosen if c.name not in done]
    deadline = time.monotonic() + 60 * options.minutes
    with options.json.open("a" if options.resume else "w") as file:
        for result in run_cases(left, deadline):
            done[result.name] = result
            file.write(json.dumps(asdict(result)) + "\n")
            file.flush()
            if result.status != "pass":
                print(f"{result.status:12} {result.name}: {result.reason}", flush=True)
    results = [done[c.name] for c in chosen if c.name in done]
    counts = Counter(r.status for r in results)
    print(f"{len(results)} of {len(chosen)} cases:", *(f"{counts[s]} {s}" for s in STATUSES))
    if options.record:
        RESULTS.write_text(table(results))
    return int(any(counts[s] for s in ("wrong", "error", "crash")))


if __name__ == "__main__":
    sys.exit(main())
