"""Custom operators and library functions, which random programs call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import tilewright as tw
from tilewright.ir.dtype import f32
from tilewright.ir.graph.nodes import TensorInfo
from tilewright.ir.symbolic import product

from tests.fuzz.graphs.maker import largest, least
from tests.fuzz.graphs.operators import index_source, some

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.fuzz.graphs.maker import GraphMaker
    from tests.fuzz.graphs.operators import Draw

DTYPES = ("f32", "f16", "i32", "i8")
PROGRAMS = (
    ("walk_scaled", "", """
def walk_scaled(x: Buffer[(n, m), DTYPE], w: Buffer[(m,), DTYPE], y: Out[(n, m), DTYPE]):
    for i in range(n):
        for j in range(m):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * w[vj] + DTYPE(1)
"""),
    ("walk_totals", "", """
def walk_totals(x: Buffer[(n, m), DTYPE], y: Out[(n, m), DTYPE], s: Out[(n,), DTYPE]):
    for i in range(n):
        for j in range(m):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = max(x[vi, vj], DTYPE(0))
        for k in range(m):
            with block("s"):
                wi, wk = spatial(i), reduce(k)
                with init(): s[wi] = DTYPE(0)
                s[wi] += x[wi, wk]
"""),
    ("walk_running", "", """
def walk_running(x: Buffer[(n, m), DTYPE], y: Out[(n, m), DTYPE]):
    for i in range(n):
        for j in range(m):
            with block("y"):
                vi, vj = spatial(i), ordered(j)
                y[vi, vj] = scan(max, x[vi, vj])
"""),
    ("walk_repeated", "r", """
def walk_repeated(x: Buffer[(n,), DTYPE], y: Out[(r,), DTYPE]):
    for i in range(r):
        with block("y"):
            vi = spatial(i)
            y[vi] = where(condition(vi < n), x[min(vi, n - 1)], DTYPE(1))
"""),
    ("walk_picked", "", """
def walk_picked(x: Buffer[(n, m), DTYPE], at: Buffer[(k,), i64], y: Out[(k, m), DTYPE]):
    for i in range(k):
        for j in range(m):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                with checked(at[vi], 0, n) as row:
                    y[vi, vj] = x[row, vj]
"""),
)  # fmt: skip
"""Custom operators: the name, the symbol that a shape rule determines, and the program."""


def define() -> None:
    """Register the custom operators and library functions."""
    for name, extra, body in PROGRAMS:
        for dtype in DTYPES:
            low = 1 if name in ("walk_repeated", "walk_picked") else 0
            head = f'n = symbols("n", lower={low})\nm, k, r = symbols("m k r", lower=0)\n'
            own = body.replace("DTYPE", dtype).replace(f"def {name}", f"def {name}_{dtype}")
            rule = (lambda s: (s[0] + 3,)) if extra else None
            tw.custom_operator(f"{head}\n@prim_func{own}", shape=rule)
    tw.library_function(
        "walk.affine", lambda x, *, by, plus: x * np.float32(by) + np.float32(plus),
        operands=["x"], attributes={"by": 1.0, "plus": 0.0},
        implements=lambda call: ((call.args[0],), (("by", -1.0),)) if call.op == "negative"
        and _is_f32(call.args[0]) else None,
        outputs=lambda call: (TensorInfo(call.tensor(0).shape, f32),),
    )  # fmt: skip


def _is_f32(operand: object) -> bool:
    info = getattr(operand, "info", None)
    return isinstance(info, TensorInfo) and info.dtype == f32 and info.shape is not None


def custom(m: GraphMaker) -> object:
    """Add a call of a custom operator."""
    x = some(m, lambda t: t.rank in (1, 2) and t.dtype in DTYPES and t.bound <= 1000)
    if x is None:
        return None
    if x.rank == 1:
        return m.emit(f"walk_repeated_{x.dtype}", x, bound=max(x.bound, 1))
    name = m.rng.choice([name for name, extra, _ in PROGRAMS if not extra])
    op, total = f"{name}_{x.dtype}", x.bound * max(1, largest(x.shape[1]))
    match name:
        case "walk_scaled":
            shape = x.shape[1:]
            w = m.pick(lambda t: t.key == (shape, x.dtype)) or m.param(shape, x.dtype)
            return w and m.emit(op, x, w, bound=x.bound * w.bound + 1)
        case "walk_totals":
            return m.emit_tuple(op, x, bound=total)
        case "walk_picked":
            at = index_source(m, x.shape[0], m.shape(1)) if least(x.shape[0]) else None
            return m.emit(op, x, at, bound=x.bound) if at and at.dtype == "i64" else None
        case _:
            return m.emit(op, x, bound=x.bound)


def library(m: GraphMaker) -> object:
    """Add a call of a library function: one of the user, or a product of BLAS."""
    if m.chance(0.5):
        x = some(m, lambda t: t.dtype == "f32" and t.bound <= 1000)
        if x is None or (made := m.result(x.shape, "f32", 2 * x.bound + 1, (x,))) is None:
            return None
        factors = f"by={m.rng.choice([1.0, -1.0, 2.0])}, plus={m.rng.choice([0.0, 1.0])}"
        call = f'call_library("walk.affine", {x.text}, {factors})'
        m.bind(made, f"{made.text}: {made.info} = {call}")
        return made
    x = some(m, lambda t: t.rank == 2 and t.dtype in ("f32", "f64") and t.bound <= 100)
    if x is None:
        return None
    columns = m.dim()
    w = m.pick(lambda t: t.key == ((x.shape[1], columns), x.dtype)) or m.param(
        (x.shape[1], columns), x.dtype)  # fmt: skip
    shape = (x.shape[0], columns)
    if w is None or not m.scope.defines(shape):
        return None
    bound = 2 * max(1.0, x.bound * w.bound * largest(x.shape[1]))
    args, more = [x.text, w.text], f"alpha={m.rng.choice([1.0, 2.0, -1.0])}"
    c = m.pick(lambda t: t.key == (shape, x.dtype))
    if c is not None and m.chance(0.5):
        args, more, bound = [*args, c.text], f"{more}, beta=1.0", bound + c.bound
    made = m.result(shape, x.dtype, bound, (x, w) if len(args) == 2 else (x, w, c))  # type: ignore[arg-type]
    if made is None:
        return None
    m.work.append(product((*x.shape, columns)))
    name = "blas.sgemm" if x.dtype == "f32" else "blas.dgemm"
    m.bind(made, f'{made.text}: {made.info} = call_library("{name}", {", ".join(args)}, {more})')
    return made


define()
FOREIGN: Mapping[Draw, int] = {custom: 4, library: 2}
