"""Windows: regions of a program's buffers that match the buffers of an instruction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...ir.loop.nodes import Buffer, For, IndexMap, Load
from ...ir.script import element_text
from ...ir.symbolic import (
    Expr,
    Var,
    as_expr,
    const_value,
    eq,
    is_proved,
    linear_form,
    substitute,
    to_text,
)
from .difference import Difference, Kind
from .elements import Pairing
from .nest import Nest, compact_strides, flat_index, steps_of


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a buffer of the program that matches a buffer of the semantics.

    Parameters
    ----------
    buffer : Buffer
        The buffer of the program.
    start : tuple of Expr
        The indices at which all loop variables of the instruction are 0.
    offset : Expr
        The flat offset of ``start``, in elements.
    steps : tuple of Expr
        The stride of each dimension of the buffer of the semantics, in elements.
    """

    buffer: Buffer
    start: tuple[Expr, ...]
    offset: Expr
    steps: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class _Pair:
    """An access of the program and its counterpart in the semantics, of parameter ``number``."""

    access: Load
    asked: Load
    number: int

    def difference(self, kind: Kind, message: str) -> Difference:
        texts = element_text(self.access), element_text(self.asked)
        return Difference(kind, *texts, message, self.access.buffer, self.number)


class Windows:
    """A search for windows under an assignment of loops; it collects the differences."""

    def __init__(
        self,
        program: Nest,
        pattern: Nest,
        partner: Mapping[Var, Var],
        layouts: tuple[IndexMap | None, ...],
    ) -> None:
        """Store the nests, and the variable of the semantics for each one of the program."""
        self._program, self._pattern, self._partner = program, pattern, partner
        self._layouts = layouts
        self._strides: dict[Var, Expr] = {}
        self.differences: list[Difference] = []

    def window(self, number: int, wanted: Buffer, pairing: Pairing) -> Window | None:
        """Return the window of a buffer of the semantics, derived from all its accesses."""
        found = [
            _Pair(p, s, number) for p, s in dict.fromkeys(pairing.accesses) if s.buffer is wanted
        ]
        windows = [self._one(pair) for pair in found]
        first = windows[0] if windows else None
        for other, pair in zip(windows[1:], found[1:], strict=False):
            if first is not None and other is not None and not _same(first, other):
                message = (
                    f"{element_text(pair.access)} is outside the window of {first.buffer.name!r} "
                    f"that matches {wanted.name!r} of the instruction"
                )
                self.differences.append(pair.difference("access", message))
        return first

    def _one(self, pair: _Pair) -> Window | None:
        self._check_buffer(pair)
        zero = dict.fromkeys(self._program.variables, as_expr(0))
        start = tuple(substitute(i, zero) for i in pair.access.indices)
        offset = flat_index(Load(pair.access.buffer, start))
        if self._layouts and self._layouts[pair.number] is not None:
            self._fragment(pair)
            steps = compact_strides(pair.asked.buffer.shape)
            return Window(pair.access.buffer, start, offset, steps)
        moves = steps_of(flat_index(pair.access), self._program.variables)
        if moves is None:
            message = (
                f"the address of {element_text(pair.access)} is not linear in "
                f"{', '.join(v.name for v in self._partner)}"
            )
            self.differences.append(pair.difference("access", message))
            return None
        steps = self._steps(pair, moves)
        return None if steps is None else Window(pair.access.buffer, start, offset, steps)

    def _check_buffer(self, pair: _Pair) -> None:
        given, wanted = pair.access.buffer, pair.asked.buffer
        if given.dtype != wanted.dtype:
            message = (
                f"{given.name!r} has dtype {given.dtype}; the instruction requires {wanted.dtype} "
                f"for {wanted.name!r}"
            )
            self.differences.append(pair.difference("dtype", message))
        addressed = wanted.scope == "global" and given.scope != "fragment"
        if given.scope != wanted.scope and not addressed:
            required = "addressable memory" if wanted.scope == "global" else repr(wanted.scope)
            message = (
                f"{given.name!r} is in {given.scope!r}; the instruction requires {required} for "
                f"{wanted.name!r}"
            )
            self.differences.append(pair.difference("scope", message))

    def _steps(self, pair: _Pair, moves: Mapping[Var, Expr]) -> tuple[Expr, ...] | None:
        buffer = pair.asked.buffer
        strides = compact_strides(buffer.shape) if buffer.strides is None else buffer.strides
        steps = [as_expr(0) if isinstance(s, Var) else s for s in strides]
        wanted = self._moves_wanted(pair.asked)
        before = len(self.differences)
        for variable, step in moves.items():
            if variable not in self._partner:
                continue  # The loop has no counterpart, which is already reported.
            found = wanted.get(self._partner[variable])
            if found is None:
                self._invariant(pair, variable, step)
                continue
            dimension, scale = found
            stride = strides[dimension]
            if isinstance(stride, Var):
                steps[dimension] = step
                self._shared(pair, stride, step)
            else:
                self._fixed(pair, variable, step, stride * scale)
        return tuple(steps) if len(self.differences) == before else None

    def _moves_wanted(self, asked: Load) -> dict[Var, tuple[int, Expr]]:
        """Return for each loop of the semantics the dimension it indexes, and its coefficient."""
        found: dict[Var, tuple[int, Expr]] = {}
        for dimension, index in enumerate(asked.indices):
            for variable, step in (steps_of(index, self._pattern.variables) or {}).items():
                if step != 0:
                    found[variable] = (dimension, step)
        return found

    def _invariant(self, pair: _Pair, variable: Var, step: Expr) -> None:
        if step != 0:
            message = (
                f"{element_text(pair.access)} depends on loop {variable.name!r}, but "
                f"{element_text(pair.asked)} of the instruction does not"
            )
            self.differences.append(pair.difference("access", message))

    def _shared(self, pair: _Pair, stride: Var, step: Expr) -> None:
        known = self._strides.setdefault(stride, step)
        if not self._equal(known, step):
            message = (
                f"{pair.access.buffer.name!r} has stride {to_text(step)}; the instruction requires "
                f"the same stride as in its other accesses, {to_text(known)}"
            )
            self.differences.append(pair.difference("layout", message))

    def _fixed(self, pair: _Pair, variable: Var, step: Expr, need: Expr) -> None:
        if self._equal(step, need):
            return
        if step == 0:
            message = (
                f"{element_text(pair.access)} does not depend on loop {variable.name!r}, but "
                f"{element_text(pair.asked)} of the instruction does"
            )
            self.differences.append(pair.difference("access", message))
            return
        message = (
            f"stride {to_text(step)} of {pair.access.buffer.name!r} along loop {variable.name!r} "
            f"differs from stride {to_text(need)} of {pair.asked.buffer.name!r} of the instruction"
        )
        self.differences.append(pair.difference("layout", message))

    def _equal(self, one: Expr, other: Expr) -> bool:
        if one is other:
            return True
        if const_value(one) is not None and const_value(other) is not None:
            return False
        return is_proved(eq(one, other), self._program.facts)

    def _fragment(self, pair: _Pair) -> None:
        """Compare a fragment index by index, because fragments have no addresses."""
        access, asked = pair.access, pair.asked
        if len(access.indices) != len(asked.indices):
            message = (
                f"{access.buffer.name!r} has {len(access.indices)} dimensions, "
                f"{asked.buffer.name!r} of the instruction has {len(asked.indices)}"
            )
            self.differences.append(pair.difference("layout", message))
            return
        back: dict[Var, Expr] = {s: p for p, s in self._partner.items()}
        triples = zip(access.indices, asked.indices, asked.buffer.shape, strict=True)
        for index, want, size in triples:
            form = linear_form(index - substitute(want, back), self._program.variables)
            if form is None or form.coefficients or not self._equal(form.rest % size, as_expr(0)):
                message = (
                    f"index {to_text(index)} of {access.buffer.name!r} is not at offset "
                    f"{to_text(want)} of a tile of size {to_text(size)}"
                )
                self.differences.append(pair.difference("layout", message))
        self._same_layout(pair)

    def _same_layout(self, pair: _Pair) -> None:
        given, wanted = pair.access.buffer.layout, self._layouts[pair.number]
        if given is None or wanted is None:
            return
        renamed = dict(zip(given.inputs, wanted.inputs, strict=False))
        outputs = tuple(substitute(o, renamed) for o in given.outputs)
        if outputs != wanted.outputs:
            message = (
                f"{pair.access.buffer.name!r} has the fragment layout of another instruction: "
                f"({', '.join(map(to_text, given.outputs))})"
            )
            self.differences.append(pair.difference("layout", message))


def _same(one: Window, other: Window) -> bool:
    return one.buffer is other.buffer and one.offset is other.offset


def partners(given: tuple[For | None, ...], wanted: tuple[For, ...]) -> dict[Var, Var]:
    """Return the loop variable of the semantics for each assigned loop variable of the program."""
    pairs = zip(given, wanted, strict=True)
    return {p.var: s.var for p, s in pairs if p is not None}
