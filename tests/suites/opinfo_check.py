"""Import, compilation, and comparison of one operator of the OpInfo database with PyTorch."""

from __future__ import annotations

import logging
import time
import warnings
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import torch

import tilewright as tw
from tilewright.codegen.sandbox.shared_programs import require_shared
from tilewright.errors import TilewrightError, UnsupportedOperatorsError
from tilewright.ir.dtype import bf16
from tilewright.ir.graph.nodes import CallDPSLibrary
from tilewright.ir.graph.visit import all_bindings

from tests.suites import opinfo_database as database

Status = Literal["pass", "unsupported", "unreachable", "wrong", "error"]

RELATIVE = 1e-5
"""The bound of the difference from PyTorch, relative to the result and to 1.

A result beyond it is right if its distance from PyTorch's result in float64 is at most twice that
of PyTorch's result in float32, plus this bound.
"""


@dataclass
class Result:
    """The result of one operator.

    Parameters
    ----------
    status : str
        ``pass``: every sample equals PyTorch. ``unsupported``: an operator of the exported program
        has no importer. ``unreachable``: ``torch.export`` does not accept the program, or PyTorch
        does not run it. ``wrong``: another result. ``error``: any other end.
    reason : str
        The operators, the error, or the difference.
    samples : int
        The number of samples.
    seconds : float
        The time in seconds.
    """

    status: Status
    reason: str = ""
    samples: int = 0
    seconds: float = 0.0
    operators: list[str] = field(default_factory=list)


def check(name: str, most: int) -> dict[str, Any]:
    """Check samples of one operator together, in one program, and return the result as JSON."""
    start = time.perf_counter()
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = _checked(name, most)
    found.seconds = round(time.perf_counter() - start, 1)
    return asdict(found)


def _checked(name: str, most: int) -> Result:
    info = database.operators()[name]
    try:
        given = database.samples(info, most)
        calls = database.Calls(database.function_of(info), given)
        expected = calls.results()
    except Exception as error:  # noqa: BLE001 - PyTorch has no common class of errors
        return Result("unreachable", f"PyTorch: {_text(error)}")
    if any(x.layout != torch.strided for x in (*calls.inputs, *expected)):
        return Result("unreachable", "a tensor is sparse", len(given))
    if not expected:
        return Result("unreachable", "no tensor is a result", len(given))
    found = _compared(name, calls, expected)
    if found.status == "unreachable" and len(given) > 1:  # some sample stops the export of all
        return _alone(name, info, given, found)
    found.samples = len(given)
    return found


def _alone(name: str, info: Any, given: list[Any], together: Result) -> Result:
    """Check the samples one by one; those that cannot be exported do not count."""
    counted, first = 0, together
    for sample in given:
        calls = database.Calls(database.function_of(info), [sample])
        expected = calls.results()
        if not expected:
            continue
        found = _compared(name, calls, expected)
        if found.status == "unreachable":
            continue
        counted += 1
        if found.status != "pass":
            found.samples = counted
            return found
        first = found
    first.samples = counted
    return first


def _compared(name: str, calls: database.Calls, expected: list[torch.Tensor]) -> Result:
    """Export, import, compile, run, and compare one program."""
    tensors = tuple(x.clone() for x in calls.inputs)
    try:
        with torch.no_grad():
            program = torch.export.export(calls, tensors, strict=False)
    except Exception as error:  # noqa: BLE001 - PyTorch has no common class of errors
        return Result("unreachable", f"export: {_text(error)}")
    try:
        module = tw.from_exported_program(program)
        executable: Any = tw.compile(module, target="cpu")
        bindings = [b for graph in module.graphs for b in all_bindings(graph.bindings)]
        require_shared(
            (b.right.symbol for b in bindings if isinstance(b.right, CallDPSLibrary)), name
        )
        made = executable(*(_array(x) for x in tensors))
    except UnsupportedOperatorsError as error:
        uses: Any = error.details["operators"]
        operators = sorted({u["operator"].removeprefix("aten.") for u in uses})
        reason = "; ".join(sorted({f"{u['operator']} {u['reason']}".strip() for u in uses}))
        return Result("unsupported", reason[:400], operators=operators)
    except TilewrightError as error:
        return Result("error", _text(error))
    except Exception as error:  # noqa: BLE001 - an unnamed error is a result of this suite
        return Result("error", f"unnamed: {_text(error)}")
    arrays = list(made) if isinstance(made, tuple | list) else [made]
    return differences(name, calls, [np.asarray(a) for a in arrays], expected)


def _array(x: torch.Tensor) -> Any:
    plain = x.resolve_conj().resolve_neg().contiguous()
    if plain.dtype == torch.bfloat16:
        return plain.view(torch.int16).numpy().view(bf16.numpy)
    return plain.numpy()


def differences(
    name: str, calls: database.Calls, found: list[Any], expected: list[torch.Tensor]
) -> Result:
    """Compare results with those of PyTorch."""
    if len(found) != len(expected):
        return Result("wrong", f"{len(found)} results instead of {len(expected)}")
    exact: list[torch.Tensor] | None = None
    for k, (have, want) in enumerate(zip(found, expected, strict=True)):
        shape, kind = tuple(want.shape), str(want.dtype).removeprefix("torch.")
        if tuple(have.shape) != shape or str(have.dtype) != kind:
            return Result("wrong", f"result {k}: {have.dtype}{have.shape}, not {kind}{shape}")
        if _base(name) in database.UNINITIALIZED or _base(name) in database.RANDOM:
            continue
        if _close(have, _values(want), 0):
            continue
        exact = _in_float64(calls) if exact is None else exact
        wide = _values(exact[k]) if k < len(exact) else None
        if wide is None or wide.shape != have.shape or not _near(have, _values(want), wide):
            return Result("wrong", f"result {k}: {_worst(have, _values(want))}")
    return Result("pass")


def _base(name: str) -> str:
    known = database.operators()[name]
    return str(known.name)


def _values(x: torch.Tensor) -> Any:
    """Return the elements as an array; those of narrow floats as float32."""
    return (x.float() if x.dtype in {torch.bfloat16, torch.float16} else x).numpy()


def _limit(x: Any, factor: float = 1.0) -> Any:
    return factor * RELATIVE * (1 + np.abs(x))


def _close(have: Any, want: Any, extra: Any) -> bool:
    """Return whether numbers agree within the bound; other elements are equal."""
    if want.dtype.kind not in "fc":
        return bool(np.array_equal(have, want))
    narrow = 1000.0 if have.dtype.itemsize == 2 else 1.0
    wide = "complex128" if want.dtype.kind == "c" else "float64"
    have, want = have.astype(wide), want.astype(wide)
    with np.errstate(all="ignore"):
        near = np.abs(have - want) <= _limit(want, narrow) + extra
        return bool(np.all(near | (have == want) | (np.isnan(have) & np.isnan(want))))


def _near(have: Any, want: Any, exact: Any) -> bool:
    """Return whether a result is about as near to the exact one as that of PyTorch."""
    if want.dtype.kind not in "fc":
        return False
    with np.errstate(all="ignore"):
        return _close(have, exact, 2 * np.nan_to_num(np.abs(want - exact)))


def _in_float64(calls: database.Calls) -> list[torch.Tensor]:
    try:
        return calls.results(torch.float64)
    except Exception:  # noqa: BLE001 - PyTorch has no common class of errors
        return []


def _worst(have: Any, want: Any) -> str:
    """Return the position and the values of the largest difference."""
    if not have.size:
        return "empty"
    with np.errstate(all="ignore"):
        gap = np.abs(have.astype("complex128") - want.astype("complex128"))
    equal = (have == want) | (np.isnan(have.astype("c16")) & np.isnan(want.astype("c16")))
    gap = np.where(equal, 0, np.where(np.isnan(gap), np.inf, gap))
    at = np.unravel_index(int(np.argmax(gap)), gap.shape)
    where = tuple(int(i) for i in at)
    return f"{have[at]} instead of {want[at]} at {where}, {int((gap > 0).sum())} of {gap.size}"


def _text(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]
