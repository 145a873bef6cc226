"""The ``unannotate`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...apply import Primitive, Rewrite
from ...checks import node_at
from ...edit import Edit
from ...handles import BlockRef, Handle, LoopRef, label
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ...suggest_names import unknown


@primitive(family="annotate", returns=None)
@dataclass(frozen=True, slots=True)
class Unannotate(Primitive):
    """Remove an annotation from a loop or a block.

    Before::

        for i in range(n, prefetch=4):
            body(i)

    After (``key="prefetch"``)::

        for i in range(n):
            body(i)

    Parameters
    ----------
    target : LoopRef or BlockRef
        The annotated loop or block.
    key : str
        The name of the annotation.

    Notes
    -----
    Cost: linear in the depth of the target.

    Names elsewhere: TVM ``unannotate``; Halide: none.

    References
    ----------
    TensorIR (ASPLOS '23), §3.1.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
    ...     for i in range(32, prefetch=4):
    ...         y[i] = x[i]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.unannotate("i", "prefetch")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        for i in range(32):
            with block("y"):
                vi = spatial(i)
                y[vi] = x[vi]
    """

    class Requires(Requirement):
        """The requirements of ``unannotate``."""

        KEY_EXISTS = "the target has an annotation with that key"

    target: LoopRef | BlockRef
    key: str

    def structural(self, state: State) -> Iterator[Problem]:
        """Check that the annotation exists."""
        keys = [key for key, _ in node_at(state, self.target).annotations]
        if self.key not in keys:
            owner = f"{label(self.target)!r}"
            yield Problem(
                self.Requires.KEY_EXISTS,
                unknown("annotation", self.key, keys, owner),
                (self.target,),
            )

    def rewrite(self, state: State) -> Rewrite:
        """Remove the annotation."""
        edit = Edit(state, self.target.function)
        node = node_at(state, self.target)
        kept = tuple(pair for pair in node.annotations if pair[0] != self.key)
        return edit.finish(edit.replaced(node, replace(node, annotations=kept)))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the removal of every annotation of the selected loop or block."""
        if isinstance(selection, LoopRef | BlockRef):
            for key, _ in node_at(state, selection).annotations:
                yield cls(selection, key)
