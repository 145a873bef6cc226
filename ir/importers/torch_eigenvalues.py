"""Import handlers of the eigenvalues of square matrices in PyTorch, in any order, in f64."""

from __future__ import annotations

from ..dtype import f64
from .elementwise import convert
from .formulas import Formula
from .schur import Pair, eigen
from .shaping import reshape
from .tensors import Imported
from .torch_context import TorchContext, aten
from .torch_linalg import batch_of


@aten("linalg_eig")
def eig(t: TorchContext, a: Imported) -> list[Imported]:
    """Import the eigenvalues and the eigenvectors, whose largest elements are real."""
    matrix = Formula(t, convert(t, batch_of(t, a), f64))
    values, vectors = eigen(t, matrix, vectors=True)
    return [
        _joined(t, values, a, rank=a.rank - 1),
        *([] if vectors is None else [_joined(t, vectors, a, rank=a.rank)]),
    ]


@aten("linalg_eigvals", "_linalg_eigvals")
def eigvals(t: TorchContext, a: Imported) -> Imported:
    """Import the eigenvalues."""
    matrix = Formula(t, convert(t, batch_of(t, a), f64))
    values, _ = eigen(t, matrix, vectors=False)
    return _joined(t, values, a, rank=a.rank - 1)


def _joined(t: TorchContext, x: Pair, a: Imported, *, rank: int) -> Imported:
    """Return complex numbers of the precision of an operand, with its first dimensions."""
    parts = [convert(t, reshape(t, p.x, a.shape[:rank]), a.dtype) for p in (x.re, x.im)]
    return t.apply("complex", *(t.plain(p) for p in parts))
