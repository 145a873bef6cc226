"""Line-by-line comparison of a loop nest and an intrinsic."""

from __future__ import annotations

from collections.abc import Iterator

from ....ir.loop.nodes import Buffer, For
from ....ir.script import buffer_text, store_text
from ....ir.symbolic import Var, to_text
from ...apply import Primitive
from ...handles import BlockRef, LoopRef
from ...intrinsics.contract import Intrinsic
from ...intrinsics.difference import Difference, Kind
from ...intrinsics.match import Unified, pattern_of
from ...intrinsics.mismatch import Match, Mismatch, Row
from ...intrinsics.nest import ImperfectNest, Nest
from ...intrinsics.registry import get_intrinsic
from ...state import State
from ._site import TensorizeSite, site_of


def explain_match(
    state: State, where: LoopRef | BlockRef, intrinsic: str, *, fixes: bool = True
) -> Match:
    """Compare a loop or block with an intrinsic, line by line.

    Parameters
    ----------
    state : State
        The program.
    where : LoopRef or BlockRef
        The loop, or the block around loops, to tensorize.
    intrinsic : str
        The name of the intrinsic.
    fixes : bool
        Whether to search for steps that remove the differences.

    Raises
    ------
    UnknownIntrinsicError
        If there is no intrinsic of that name.
    """
    from .fixes import fixes_of  # avoids an import cycle: fixes include tensorize steps

    site = site_of(state, where, get_intrinsic(intrinsic))
    found = tuple(
        mismatch_of(site, d, fixes_of(site, d) if fixes else ()) for d in site.differences
    )
    rows = tuple(_rows(site))
    return Match(site.intrinsic.name, site.intrinsic.summary, rows, found)


def mismatch_of(
    site: TensorizeSite, difference: Difference, fixes: tuple[Primitive, ...] = ()
) -> Mismatch:
    """Return a difference with its handles and fixes."""
    return Mismatch(
        difference.kind,
        difference.program,
        difference.pattern,
        difference.message,
        site.refs(difference),
        {"program": difference.program, "pattern": difference.pattern},
        fixes,
    )


class _Marks:
    """Assignment of mismatches to rows: each is shown once."""

    def __init__(self, differences: tuple[Difference, ...]) -> None:
        self._differences = differences
        self._shown: set[int] = set()

    def take(
        self,
        *,
        subject: object = None,
        kinds: tuple[Kind, ...] = (),
        partner: int | None = None,
    ) -> tuple[int, ...]:
        """Return the positions of mismatches, not yet shown, of a subject or of some kinds."""
        found: list[int] = []
        for number, difference in enumerate(self._differences):
            if number in self._shown or (kinds and difference.kind not in kinds):
                continue
            about = subject is None or difference.subject is subject
            absent = difference.subject is None and difference.partner == partner
            if about if partner is None else about or absent:
                found.append(number)
        self._shown.update(found)
        return tuple(found)


def _rows(site: TensorizeSite) -> Iterator[Row]:
    marks = _Marks(site.differences)
    pattern = pattern_of(site.intrinsic)
    if isinstance(site.unified, ImperfectNest):
        yield Row(site.unified.reason, "")
        yield from (Row("", _loop_line(x)) for x in pattern.loops)
        yield Row("", _indent(len(pattern.loops)) + store_text(pattern.store))
        return
    yield from _loop_rows(site.unified, marks)
    yield from _body_rows(site.unified.program, pattern, marks)
    yield from _buffer_rows(site.unified, site.intrinsic, marks)
    needs = ", ".join(site.intrinsic.needs)
    target = site.state.target_of(site.where.function)
    yield Row(
        "any target" if target is None else str(target),
        f"needs {needs}" if needs else "",
        marks.take(kinds=("target",)),
    )
    rest = marks.take()
    if rest:
        yield Row("", f"executed by a {site.intrinsic.scope}", rest)


def _loop_line(loop: For) -> str:
    word = "range" if loop.kind == "serial" else loop.kind
    return f"for {loop.var.name} in {word}({to_text(loop.extent)}):"


def _indent(depth: int) -> str:
    return "    " * depth


def _loop_rows(unified: Unified, marks: _Marks) -> Iterator[Row]:
    partners = {x: k for k, x in enumerate(unified.loops)}
    wanted = unified.pattern.loops
    for depth, loop in enumerate(unified.program.loops):
        number = partners.get(loop)
        line = "" if number is None else _indent(number) + _loop_line(wanted[number])
        found = marks.take(subject=loop, kinds=("extent", "reduction", "access"))
        yield Row(_indent(depth) + _loop_line(loop), line, found)
    for number in range(len(unified.loops), len(wanted)):
        line = _indent(number) + _loop_line(wanted[number])
        yield Row("", line, marks.take(subject=wanted, kinds=("extent",), partner=number))


def _body_rows(program: Nest, pattern: Nest, marks: _Marks) -> Iterator[Row]:
    depth = _indent(len(program.loops))
    for guard in program.guards:
        yield Row(f"{depth}guard({to_text(guard)})", "", marks.take(subject=guard))
    for block in program.blocks:
        if block.init is not None:
            found = marks.take(subject=None, kinds=("reduction",))
            yield Row(f"{depth}with init(): ...", "", found)
    line = _indent(len(pattern.loops)) + store_text(pattern.store)
    found = marks.take(kinds=("access", "reduction"))
    yield Row(depth + store_text(program.store), line, found)


def _buffer_rows(unified: Unified, intrinsic: Intrinsic, marks: _Marks) -> Iterator[Row]:
    for number, wanted in enumerate(intrinsic.semantics.buffer_params):
        window = unified.windows[number]
        given = _buffer_for(unified, number, None if window is None else window.buffer)
        line = "" if given is None else buffer_text(given)
        kinds: tuple[Kind, ...] = ("dtype", "layout", "scope")
        found = () if given is None else marks.take(subject=given, kinds=kinds)
        yield Row(line, _pattern_buffer(wanted), found)


def _buffer_for(unified: Unified, number: int, known: Buffer | None) -> Buffer | None:
    if known is not None:
        return known
    return next(
        (
            d.subject
            for d in unified.differences
            if isinstance(d.subject, Buffer) and d.partner == number
        ),
        None,
    )


def _pattern_buffer(buffer: Buffer) -> str:
    """Return the text of a buffer of the semantics; an arbitrary stride is a question mark."""
    if buffer.strides is None:
        return buffer_text(buffer)
    shown = ", ".join("?" if isinstance(s, Var) else to_text(s) for s in buffer.strides)
    text = buffer_text(buffer).partition(", strides")[0]
    return f"{text}, strides ({shown})"
