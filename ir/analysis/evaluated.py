"""Conditions under which an operand of a value is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..loop.nodes import Condition, Element, Where
from ..loop.visit import operands, walk_element
from ..symbolic import TRUE, Bool, all_of, negate

Test: TypeAlias = Callable[[Element], bool]


def evaluated_where(values: Sequence[Element], test: Test) -> Bool | None:
    """Return the condition under which values evaluate an operand, if there is a symbolic one.

    Parameters
    ----------
    values : sequence of Element
        The values, all of which are evaluated.
    test : callable
        Returns whether an element is the operand.

    Returns
    -------
    Bool or None
        The operand is evaluated if it holds, and only then; true if the values always evaluate the
        operand. None if no such condition is known.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..loop.nodes import Number
    >>> from ..symbolic import var
    >>> x, one = Number(2.0, f32), Number(1.0, f32)
    >>> padded = Where(Condition(var("i") < 8), x, one)
    >>> [str(evaluated_where(v, lambda e: e == x)) for v in ([padded], [padded, x])]
    ['i < 8', 'True']
    """
    used = [v for v in values if any(test(e) for e in walk_element(v))]
    if any(_always(v, test) for v in used):
        return TRUE
    found = [_guarded(v, test) for v in used]
    known = {guard for guard in found if guard is not None}
    return known.pop() if len(known) == 1 and None not in found else None


def _always(element: Element, test: Test) -> bool:
    """Return whether the operand is evaluated whenever an element is."""
    if test(element):
        return True
    if isinstance(element, Where):
        sides = (element.then, element.otherwise)
        return _always(element.condition, test) or all(_always(s, test) for s in sides)
    return any(_always(e, test) for e in operands(element))


def _guarded(element: Element, test: Test) -> Bool | None:
    """Return the condition of the only side of selections in which the operand occurs."""
    guards: list[Bool] = []
    while not _always(element, test):
        inner = [e for e in operands(element) if any(test(x) for x in walk_element(e))]
        if len(inner) != 1:
            return None
        (side,) = inner
        if isinstance(element, Where):
            if not isinstance(element.condition, Condition):
                return None
            claim = element.condition.value
            guards.append(claim if side is element.then else negate(claim))
        element = side
    return all_of(*guards)
