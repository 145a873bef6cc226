"""Elements chosen by integers in memory: take, gather, scatter, updates of a cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...loop.nodes import IterKind, Let, Load, Stmt, Store
from ...symbolic import Expr, SymInt, as_expr, const_value, var
from ..nodes import Info, TensorInfo
from .broadcasting import broadcast
from .errors import OperandError
from .evaluation import Array, Evaluation
from .inference import MOST_ELEMENTS, CallFacts, shape_text
from .lowering import Lowering
from .operator import Operator, operator
from .signature import AttributeSpec, OperandSpec, Signature

_INDICES = OperandSpec("indices", dtypes="integer")
_AXIS = AttributeSpec("axis", "int", 0)
_WRAP = AttributeSpec("wrap", "bool", default=False)


def let_index(
    load: Load, size: Expr, body: Callable[[Expr], Stmt], *, wrap: bool = False, name: str = "at"
) -> Stmt:
    """Read an index in ``[0, size)`` and go on with it; ``wrap`` allows ``[-size, 0)`` too."""
    known = const_value(size)
    lower = -size if wrap else as_expr(0)
    least = None if known is None else -known
    bound = var(
        name, lower=least if wrap else 0, upper=None if known is None else max(known - 1, 0)
    )
    index = bound % size if wrap else bound
    return Let(bound, lower, size, load, "checked", body(index))


def checked_indices(indices: Array, size: int, op: str, *, wrap: bool = False) -> Array:
    """Check that all indices are in range, and give them from the front."""
    wrong = (indices < (-size if wrap else 0)) | (indices >= size)
    if np.any(wrong):
        first = int(indices[wrong].ravel()[0])
        least = -size if wrap else 0
        raise OperandError(f"index {first} is outside [{least}, {size})", where=f"operator {op}")
    return np.where(indices < 0, indices + size, indices)


def _kinds(dims: tuple[Expr, ...], kind: IterKind) -> list[tuple[SymInt, IterKind]]:
    return [(d, kind) for d in dims]


@operator
class Take(Operator):
    """Slices of ``x`` along ``axis`` at ``indices``; an embedding is take along axis 0.

    Indices out of range are an error when the program runs. ``wrap`` lets negative ones count
    from the end.
    """

    name = "take"
    signature = Signature((OperandSpec("x"), _INDICES), (_AXIS, _WRAP))

    def deduce(self, call: CallFacts) -> Info:
        """Put the shape of the indices in place of the axis."""
        x, indices = call.require_rank(0, 1), call.tensor(1)
        axis = call.attributes.axis("axis", x.rank)
        shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
        return TensorInfo(shape, x.dtype, elements=_taken(x.elements, indices.elements, x.rank))

    def evaluate(self, run: Evaluation) -> Array:
        """Index."""
        x = run.array(0)
        axis, wrap = run.attributes.axis("axis", x.ndim), run.attributes.flag("wrap")
        return np.take(x, checked_indices(run.array(1), x.shape[axis], "take", wrap=wrap), axis)

    def define(self, low: Lowering) -> None:
        """One block that reads the index, then the element."""
        x, indices = low.sources
        axis, wrap = low.attributes.axis("axis", x.rank), low.attributes.flag("wrap")
        end = axis + indices.rank

        def body(*iters: Expr) -> Stmt:
            def at(index: Expr) -> Stmt:
                return Store(low.out, iters, x(*iters[:axis], index, *iters[end:]))

            load = low.load(1, iters[axis:end])
            return let_index(load, x.shape[axis], at, wrap=wrap)

        low.builder.block(_kinds(low.out.shape, "spatial"), body, name="take")


def _taken(
    elements: tuple[Expr, ...] | None, indices: tuple[Expr, ...] | None, rank: int
) -> tuple[Expr, ...] | None:
    if elements is None or indices is None or rank != 1 or len(indices) > MOST_ELEMENTS:
        return None
    at = [const_value(i) for i in indices]
    inside = [k for k in at if k is not None and -len(elements) <= k < len(elements)]
    return tuple(elements[k] for k in inside) if len(inside) == len(at) else None


@operator
class GatherElements(Operator):
    """``out[i, j] = x[indices[i, j], j]`` for axis 0, and so on; ranks are equal."""

    name = "gather_elements"
    signature = Signature((OperandSpec("x"), _INDICES), (_AXIS, _WRAP))

    def deduce(self, call: CallFacts) -> Info:
        """Take the shape of the indices; other dimensions have to fit in ``x``."""
        x = call.require_rank(0, 1)
        indices = call.require_rank(1, x.rank, x.rank)
        axis = call.attributes.axis("axis", x.rank)
        for k in (k for k in range(x.rank) if k != axis):
            reason = f"indices {shape_text(indices.shape)} exceed {shape_text(x.shape)}"
            call.require(indices.shape[k] <= x.shape[k], f"{reason} in axis {k}")
        return TensorInfo(indices.shape, x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Index."""
        x, indices = run.arrays()
        axis, wrap = run.attributes.axis("axis", x.ndim), run.attributes.flag("wrap")
        front = checked_indices(indices, x.shape[axis], self.name, wrap=wrap)
        cut = tuple(slice(None) if k == axis else slice(0, n) for k, n in enumerate(indices.shape))
        return np.take_along_axis(x[cut], front, axis)

    def define(self, low: Lowering) -> None:
        """One block that reads the index, then the element."""
        x = low.sources[0]
        axis, wrap = low.attributes.axis("axis", x.rank), low.attributes.flag("wrap")

        def body(*iters: Expr) -> Stmt:
            def at(index: Expr) -> Stmt:
                return Store(low.out, iters, x(*iters[:axis], index, *iters[axis + 1 :]))

            return let_index(low.load(1, iters), x.shape[axis], at, wrap=wrap)

        low.builder.block(_kinds(low.out.shape, "spatial"), body, name=self.name)


@operator
class Index(Operator):
    """``x[i0, i1, ...]``: index tensors, broadcast together, choose along the first axes."""

    name = "index"
    signature = Signature(
        (OperandSpec("x"), OperandSpec("indices", dtypes="integer", variadic=True)), (_WRAP,)
    )

    def deduce(self, call: CallFacts) -> Info:
        """Put the broadcast shape in place of the first axes."""
        count = len(call.args) - 1
        x = call.require_rank(0, count)
        chosen = broadcast(call, [call.tensor(k + 1).shape for k in range(count)])
        return TensorInfo((*chosen, *x.shape[count:]), x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Index."""
        x, *indices = run.arrays()
        wrap = run.attributes.flag("wrap")
        front = [checked_indices(i, x.shape[k], "index", wrap=wrap) for k, i in enumerate(indices)]
        return x[tuple(front)].copy()

    def define(self, low: Lowering) -> None:
        """One block that reads one index after the other, then the element."""
        x, count = low.sources[0], len(low.sources) - 1
        lead = low.out.rank - (x.rank - count)
        wrap = low.attributes.flag("wrap")

        def chosen(iters: tuple[Expr, ...], found: tuple[Expr, ...]) -> Stmt:
            k = len(found)
            if k == count:
                return Store(low.out, iters, x(*found, *iters[lead:]))
            load = low.load_broadcast(k + 1, iters[:lead])
            rest: Callable[[Expr], Stmt] = lambda at: chosen(iters, (*found, at))  # noqa: E731
            return let_index(load, x.shape[k], rest, wrap=wrap, name=f"at{k}")

        low.builder.block(
            _kinds(low.out.shape, "spatial"), lambda *iters: chosen(iters, ()), name="index"
        )


@operator
class IndexCopy(Operator):
    """``x`` with the slices of ``updates`` written along ``axis`` at ``indices``, a vector.

    Of several updates to one place the last one stays. This is how a static key-value cache is
    written.
    """

    name = "index_copy"
    signature = Signature((OperandSpec("x"), _INDICES, OperandSpec("updates")), (_AXIS, _WRAP))

    def deduce(self, call: CallFacts) -> Info:
        """Keep the shape; updates have as many slices as there are indices."""
        x, indices = call.require_rank(0, 1), call.require_rank(1, 1, 1)
        updates = call.require_rank(2, x.rank, x.rank)
        call.require_same_dtype((0, 2))
        axis = call.attributes.axis("axis", x.rank)
        want = (*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :])
        for k in range(x.rank):
            reason = f"updates {shape_text(updates.shape)} do not fit {shape_text(want)}"
            call.require_equal(updates.shape[k], want[k], f"{reason}: axis {k} has")
        return TensorInfo(x.shape, x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Copy, then write."""
        x, indices, updates = run.arrays()
        axis, wrap = run.attributes.axis("axis", x.ndim), run.attributes.flag("wrap")
        out = x.copy()
        front = checked_indices(indices, x.shape[axis], self.name, wrap=wrap)
        place: tuple[Any, ...] = (*(slice(None),) * axis, front)
        out[place] = updates
        return out

    def define(self, low: Lowering) -> None:
        """One block that copies, one that writes the updates in order."""
        x, _, updates = low.sources
        axis, wrap = low.attributes.axis("axis", x.rank), low.attributes.flag("wrap")
        low.builder.compute(low.out, x, name="copy")

        def body(*iters: Expr) -> Stmt:
            def at(index: Expr) -> Stmt:
                place = (*iters[:axis], index, *iters[axis + 1 :])
                return Store(low.out, place, updates(*iters))

            return let_index(low.load(1, (iters[axis],)), x.shape[axis], at, wrap=wrap)

        kinds = _kinds(updates.shape, "spatial")
        kinds[axis] = (updates.shape[axis], "ordered")
        low.builder.block(kinds, body, name=self.name)


@operator
class ScatterElements(Operator):
    """``x`` with ``out[indices[i, j], j] = updates[i, j]`` for axis 0, and so on."""

    name = "scatter_elements"
    signature = Signature((OperandSpec("x"), _INDICES, OperandSpec("updates")), (_AXIS, _WRAP))

    def deduce(self, call: CallFacts) -> Info:
        """Keep the shape; updates have the shape of the indices."""
        x = call.require_rank(0, 1)
        indices, updates = (
            call.require_rank(1, x.rank, x.rank),
            call.require_rank(2, x.rank, x.rank),
        )
        call.require_same_dtype((0, 2))
        axis = call.attributes.axis("axis", x.rank)
        for k, (have, want) in enumerate(zip(updates.shape, indices.shape, strict=True)):
            call.require_equal(have, want, f"axis {k} of updates and indices")
            if k != axis:
                call.require(want <= x.shape[k], f"axis {k} of indices exceeds {x.shape[k]}")
        return TensorInfo(x.shape, x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Copy, then write."""
        x, indices, updates = run.arrays()
        axis, wrap = run.attributes.axis("axis", x.ndim), run.attributes.flag("wrap")
        out = x.copy()
        front = checked_indices(indices, x.shape[axis], self.name, wrap=wrap)
        places: list[Any] = list(np.indices(indices.shape))
        places[axis] = front
        out[tuple(places)] = updates
        return out

    def define(self, low: Lowering) -> None:
        """One block that copies, one that writes the updates in order."""
        x, indices, updates = low.sources
        axis, wrap = low.attributes.axis("axis", x.rank), low.attributes.flag("wrap")
        low.builder.compute(low.out, x, name="copy")

        def body(*iters: Expr) -> Stmt:
            def at(index: Expr) -> Stmt:
                place = (*iters[:axis], index, *iters[axis + 1 :])
                return Store(low.out, place, updates(*iters))

            return let_index(low.load(1, iters), x.shape[axis], at, wrap=wrap)

        kinds = _kinds(indices.shape, "spatial")
        kinds[axis] = (indices.shape[axis], "ordered")
        low.builder.block(kinds, body, name=self.name)
