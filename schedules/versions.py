"""The versions of a schedule as a sequence that prints as a tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, overload

from ..display import code_html
from .history import Node
from .python_text import call_text, step_lines
from .trace import Group

PREFIX: Final = 8
"""The number of hexadecimal digits of an id that the tree shows; ``goto`` accepts a prefix."""


class Versions(Sequence[Node]):
    """The versions of a schedule, oldest first.

    ``print`` shows them as a tree: the id that :meth:`~.schedule.Schedule.goto` accepts, and the
    step that produced the version. ``>`` marks the head. Branches are indented.

    Examples
    --------
    >>> from ..ir.script import parse
    >>> from .schedule import Schedule
    >>> sch = Schedule(
    ...     parse('''
    ... @prim_func
    ... def zero(y: Out[(8,), f32]):
    ...     for i in range(8):
    ...         with block("y"):
    ...             vi = spatial(i)
    ...             y[vi] = 0.0
    ... ''')
    ... )
    >>> (i,) = sch.get_loops(sch.get_block("y"))
    >>> for line in str(sch.history).splitlines():
    ...     print(line[:2] + line[12:])
      start
      y = sch.get_block(name='y')
    > i, = sch.get_loops(block=y)
    """

    def __init__(self, nodes: Sequence[Node], head: Node) -> None:
        """Store the versions, oldest first, and the current one."""
        self._nodes = tuple(nodes)
        self._head = head

    @overload
    def __getitem__(self, index: int) -> Node: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Node, ...]: ...
    def __getitem__(self, index: int | slice) -> Node | tuple[Node, ...]:
        """Return a version, or a tuple of versions."""
        return self._nodes[index]

    def __len__(self) -> int:
        """Return the number of versions."""
        return len(self._nodes)

    def __eq__(self, other: object) -> bool:
        """Return whether the other sequence has the same versions in the same order."""
        if isinstance(other, Versions):
            return self._nodes == other._nodes
        return self._nodes == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._nodes)

    def __str__(self) -> str:
        """Return the tree, one version per line."""
        steps = self._steps()
        return "\n".join(
            f"{'>' if node is self._head else ' '} {node.id[:PREFIX]}  {lines}{steps[node.id]}"
            for node, lines in self._ordered()
        )

    def __repr__(self) -> str:
        """Return the number of versions and the head."""
        count = len(self)
        return f"<History: {count} version{'' if count == 1 else 's'}, head {self._head!r}>"

    def _repr_html_(self) -> str:
        """Return static HTML."""
        return code_html(str(self), language="text", title=repr(self)[1:-1])

    def _ordered(self) -> Iterator[tuple[Node, str]]:
        """Yield every version with the lines of the tree before its text.

        The branch of the head, or else the oldest one, continues below its parent. The other
        branches are indented above it; each starts with ``|-``.
        """
        children: dict[str | None, list[Node]] = {}
        for node in self._nodes:
            children.setdefault(node.parent, []).append(node)
        path = self._path()
        stack = [(node, "", "") for node in children.get(None, [])]
        while stack:
            node, first, rest = stack.pop()
            yield node, first
            below = children.get(node.id, [])
            main = next((n for n in below if n.id in path), below[0] if below else None)
            if main is not None:
                stack.append((main, rest, rest))
                others = [n for n in reversed(below) if n is not main]
                stack += [(n, f"{rest}|- ", f"{rest}|  ") for n in others]

    def _path(self) -> set[str]:
        by_id = {node.id: node for node in self._nodes}
        path: set[str] = set()
        node: Node | None = self._head
        while node is not None:
            path.add(node.id)
            node = None if node.parent is None else by_id.get(node.parent)
        return path

    def _steps(self) -> dict[str, str]:
        """Return the text of the last step of each version."""
        found: dict[str, str] = {}
        by_id = {node.id: node for node in self._nodes}
        for leaf in reversed(self._nodes):
            lines: tuple[str, ...] | None = None
            node: Node | None = leaf
            while node is not None and node.id not in found:
                lines = step_lines(leaf.state.trace) if lines is None else lines
                found[node.id] = _step(node, lines)
                node = None if node.parent is None else by_id.get(node.parent)
        return found


def _step(node: Node, lines: Sequence[str]) -> str:
    """Return the last step of a version, given the lines of all steps; a composite as one call."""
    trace = node.state.trace
    if not len(trace):
        return "start"
    step = node.step
    if isinstance(step, Group):
        return f"sch.{call_text(trace, step)}  ({len(step)} steps)"
    return lines[len(trace) - 1]
