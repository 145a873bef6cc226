"""Calls of the operators that PyTorch programs need beyond core operators, for operator tests."""

from __future__ import annotations

from tilewright.ir.dtype import c64, c128, f16, f64, i32, i64

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


def transform_cases() -> list[Case]:
    """Return transforms of real and complex signals in each form."""
    real, complex_ = T(("n", "m")), T(("n", "m"), c64)
    return [
        *(Case("dft", (complex_,), {"axis": a, "inverse": i}, tolerance=2e-5)
          for a in (0, 1) for i in (False, True)),
        *(Case("dft", (real,), {"form": f, "inverse": i}, tolerance=2e-5)
          for f in ("full", "half") for i in (False, True)),
        Case("dft", (T((6, "n"), f64),), {"axis": 0, "form": "half"}, at=EMPTY),
        Case("dft", (T(("n",), c128),), at=EMPTY),
        *(Case("dft", (T(("n", k // 2 + 1), c64), (k,)), {"form": "real"}, tolerance=2e-5)
          for k in (1, 2, 7, 8)),
        Case("dft", (T(("n", 2), c64), ("2*n-1",)), {"axis": 0, "form": "real"}, tolerance=2e-5),
    ]  # fmt: skip


ATEN_CASES = [*scatter_cases(), *transform_cases()]
