"""Index arithmetic of reshapes."""

from __future__ import annotations

from collections.abc import Sequence

from ...symbolic import Expr, as_expr, const_value, product

_ZERO = as_expr(0)


def grouped(
    target: Sequence[Expr], source: Sequence[Expr]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Match groups of adjacent target dimensions with groups of source dimensions.

    The products of two matching groups are equal. Groups are as short as symbolic equality of
    products allows. Dimensions of 1 are in no group.

    Examples
    --------
    >>> d = [as_expr(k) for k in (2, 3, 4, 12)]
    >>> grouped((d[0], d[1], d[2]), (d[0], d[3]))
    [((0,), (0,)), ((1, 2), (1,))]
    """
    left = [k for k, d in enumerate(target) if const_value(d) != 1]
    right = [k for k, d in enumerate(source) if const_value(d) != 1]
    runs: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    while left and right:
        taken = _shortest(target, source, left, right)
        runs.append((tuple(left[: taken[0]]), tuple(right[: taken[1]])))
        left, right = left[taken[0] :], right[taken[1] :]
    return runs


def _shortest(
    target: Sequence[Expr], source: Sequence[Expr], left: list[int], right: list[int]
) -> tuple[int, int]:
    for total in range(2, len(left) + len(right) + 1):
        for i in range(max(1, total - len(right)), min(len(left), total - 1) + 1):
            j = total - i
            if product(target[k] for k in left[:i]) == product(source[k] for k in right[:j]):
                return i, j
    return len(left), len(right)


def _flat(indices: Sequence[Expr], dims: Sequence[Expr]) -> Expr:
    flat = _ZERO
    for index, dim in zip(indices, dims, strict=True):
        flat = flat * dim + index
    return flat


def _unflat(flat: Expr, dims: Sequence[Expr]) -> list[Expr]:
    indices: list[Expr] = []
    for k, dim in enumerate(dims):
        rest = product(dims[k + 1 :])
        indices.append((flat // rest) % dim if k else flat // rest)
    return indices


def reshaped_index(
    indices: Sequence[Expr], target: Sequence[Expr], source: Sequence[Expr]
) -> tuple[Expr, ...]:
    """Return the index in ``source`` of the element at ``indices`` of its reshape to ``target``.

    Both shapes have the same number of elements, in row-major order.

    Examples
    --------
    >>> i, j = as_expr(1), as_expr(2)
    >>> reshaped_index((i, j), (as_expr(3), as_expr(4)), (as_expr(12),))
    (6,)
    """
    result = [_ZERO] * len(source)
    for left, right in grouped(target, source):
        flat = _flat([indices[k] for k in left], [target[k] for k in left])
        for k, index in zip(right, _unflat(flat, [source[k] for k in right]), strict=True):
            result[k] = index
    return tuple(result)
