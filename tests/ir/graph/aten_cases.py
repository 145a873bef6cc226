"""Calls of the operators that PyTorch programs need beyond core operators, for operator tests."""

from __future__ import annotations

from tilewright.ir.dtype import f16, f64, i32, i64

from tests.ir.graph.case_table import EMPTY, Case, T


def scatter_cases() -> list[Case]:
    """Return scatters with each reduction, with and without the elements of the operand."""
    x, at, updates = T(("n", "m")), T((4, "m"), i64, 0, "n"), T((4, "m"))
    whole, row = T(("n",), i64, -9, 9), T((5,), i32, -1, 1)
    reductions = ("sum", "mul", "mean", "max", "min")
    kept = (True, False)
    return [
        *(Case("scatter_reduce", (x, at, updates), {"reduction": r, "include_self": k},
               tolerance=1e-5) for r in reductions for k in kept),
        *(Case("scatter_reduce", (whole, row, T((5,), i64, -9, 9)),
               {"reduction": r, "include_self": k, "wrap": True})
          for r in reductions for k in kept),
        *(Case("scatter_reduce", (T((3, "n"), f16), T((3, 2), i64, 0, "n"), T((3, 2), f16)),
               {"axis": 1, "reduction": r, "include_self": k}, tolerance=4e-3)
          for r in reductions for k in kept),
        Case("scatter_reduce", (T((4, "n"), f64), T((2, "n"), i64, 0, 4), T((2, "n"), f64)),
             {"reduction": "mean"}, at=EMPTY),
    ]  # fmt: skip


ATEN_CASES = [*scatter_cases()]
