"""The ``annotate`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.loop.nodes import INTRINSIC
from ...apply import Primitive, Rewrite
from ...checks import node_at
from ...edit import Edit, with_attribute
from ...handles import BlockRef, LoopRef, label
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from .unannotate import Unannotate


@primitive(family="annotate", returns=None)
@dataclass(frozen=True, slots=True)
class Annotate(Primitive):
    """Add an annotation to a loop or a block.

    Before::

        for i in range(n):
            body(i)

    After (``key="prefetch", value=4``)::

        for i in range(n, prefetch=4):
            body(i)

    Parameters
    ----------
    target : LoopRef or BlockRef
        The loop or block to annotate.
    key : str
        The name of the annotation.
    value : bool, int, float or str
        The value of the annotation.

    Notes
    -----
    Annotations are inputs of later steps and of lowering; unknown keys have no effect. Cost: linear
    in the depth of the target.

    Names elsewhere: TVM ``annotate``; Halide: none.

    References
    ----------
    TensorIR (ASPLOS '23), §3.1.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
    ...     for i in range(32):
    ...         y[i] = x[i]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.annotate("i", "prefetch", 4)
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        for i in range(32, prefetch=4):
            with block("y"):
                vi = spatial(i)
                y[vi] = x[vi]
    """

    class Requires(Requirement):
        """The requirements of ``annotate``."""

        IDENTIFIER_KEY = "the key is a Python identifier"
        NEW_KEY = "the target has no annotation with that key"
        UNRESERVED_KEY = "the key is not ``intrinsic``, which only ``tensorize`` sets"

    target: LoopRef | BlockRef
    key: str
    value: bool | int | float | str

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the key."""
        if not self.key.isidentifier():
            yield Problem(
                self.Requires.IDENTIFIER_KEY,
                f"key {self.key!r} is not a Python identifier",
                (self.target,),
                {"key": self.key},
            )
            return
        if self.key == INTRINSIC:
            yield Problem(
                self.Requires.UNRESERVED_KEY,
                f"annotation {INTRINSIC!r} is reserved for the tensorize step",
                (self.target,),
                {"key": self.key},
            )
            return
        present = dict(node_at(state, self.target).annotations)
        if self.key in present:
            yield Problem(
                self.Requires.NEW_KEY,
                f"{label(self.target)} already has the annotation {self.key}={present[self.key]!r}",
                (self.target,),
                {"key": self.key},
                fixes=(Unannotate(self.target, self.key),),
            )

    def rewrite(self, state: State) -> Rewrite:
        """Add the annotation."""
        edit = Edit(state, self.target.function)
        node = node_at(state, self.target)
        annotations = with_attribute(node.annotations, self.key, value=self.value)
        return edit.finish(edit.replaced(node, replace(node, annotations=annotations)))
