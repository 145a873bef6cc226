"""Matrix products of BLAS, from the library of NumPy or of the system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dtype import DType, f32, f64
from ...loop.nodes import Attributes
from ..nodes import Call, Operand, TensorInfo, operand_info
from ..operators.shape_inference import CallFacts
from ..operators.signature import AttributeSpec, OperandSpec, Signature
from .function import LibraryFunction, SharedSymbol, register_library_function

_SYSTEM = ("libopenblas.so.0", "libblas.so.3")
_SIGNATURE = Signature(
    (
        OperandSpec("a", dtypes="float"),
        OperandSpec("b", dtypes="float"),
        OperandSpec("c", dtypes="float", optional=True),
    ),
    (AttributeSpec("alpha", "float", 1.0), AttributeSpec("beta", "float", 0.0)),
)


def libraries() -> tuple[str, ...]:
    """Return libraries that may contain BLAS, NumPy's first, because it is loaded already."""
    bundled = Path(np.__file__).parent.parent / "numpy.libs"
    return (*(str(path) for path in sorted(bundled.glob("*openblas*"))), *_SYSTEM)


def _gemm(
    a: NDArray[Any], b: NDArray[Any], c: NDArray[Any] | None = None, *, alpha: float, beta: float
) -> NDArray[Any]:
    """Compute ``alpha * a @ b + beta * c``; an operand with factor 0 is not read."""
    scale = a.dtype.type
    found = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    if alpha:
        found = scale(alpha) * np.matmul(a, b)
    return found if c is None or not beta else found + scale(beta) * c


def _outputs(call: CallFacts, dtype: DType) -> tuple[TensorInfo, ...]:
    a, b = call.require_rank(0, 2, 2), call.require_rank(1, 2, 2)
    for position in range(len(call.args)):
        if call.tensor(position).dtype != dtype:
            found = call.tensor(position).dtype
            raise call.error(position, f"expected dtype {dtype}, got {found}")
    call.require_equal(a.shape[1], b.shape[0], "inner dimensions differ")
    shape = (a.shape[0], b.shape[1])
    if call.has(2):
        c = call.require_rank(2, 2, 2)
        for have, want in zip(c.shape, shape, strict=True):
            call.require_equal(have, want, "the shape of 'c' differs from that of the product")
    elif call.attributes.number("beta"):
        raise call.error(1, "beta is not 0, but operand 'c' is missing", hint="pass c, or beta=0")
    return (TensorInfo(shape, dtype),)


def _implements(call: Call, dtype: DType) -> tuple[tuple[Operand, ...], Attributes] | None:
    """Return the operands of a matrix product of two matrices of a dtype."""
    infos = [operand_info(a) for a in call.args]
    fits = all(isinstance(i, TensorInfo) and i.rank == 2 and i.dtype == dtype for i in infos)
    return (call.args, ()) if call.op == "matmul" and fits else None


def _register(name: str, dtype: DType) -> None:
    symbols = tuple(p.format(name) for p in ("scipy_{}_64_", "scipy_{}_", "{}_64_", "{}_"))
    register_library_function(
        LibraryFunction(
            f"blas.{name}",
            _gemm,
            _SIGNATURE,
            {"cpu": SharedSymbol(libraries, symbols, adapter=f"tw_{name}")},
            lambda call: _outputs(call, dtype),
            implements=lambda call: _implements(call, dtype),
        )
    )


_register("sgemm", f32)
_register("dgemm", f64)
