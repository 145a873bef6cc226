"""Set scope: a temporary moves to another kind of memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.loop.visit import substitute_in
from ...common import known_scope_problems, temporary_problems, tensorized_buffer_problems
from ...edit import Edit
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import BufferRef, Ref
from ...state import State


@primitive(family="layout", returns=None)
@dataclass(frozen=True, slots=True)
class SetScope(Primitive):
    """Let a temporary live in another kind of memory.

    Before::

        T: f32[n] in global

    After (``scope="local"``)::

        T: f32[n] in local

    Parameters
    ----------
    buffer : BufferRef
        The temporary.
    scope : str
        ``"global"``, ``"local"``, ``"shared"`` or ``"fragment"``.

    Requires
    --------
    1. The buffer is a temporary: where a parameter lives is its caller's choice.
    2. The scope is one that the target has.
    3. No instruction works on the buffer: it was matched with the buffer where it is.

    Notes
    -----
    Cost: linear in the size of the function. Source: TensorIR §3.1.
    """

    buffer: BufferRef
    scope: str

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the buffer and the scope."""
        yield from temporary_problems(state, self.buffer, 1)
        yield from known_scope_problems(self.scope, 2)
        yield from tensorized_buffer_problems(state, self.buffer, 3)

    def rewrite(self, state: State) -> Rewrite:
        """Replace the buffer everywhere by one that differs in scope."""
        edit = Edit(state, self.buffer.function)
        old = state.buffer(self.buffer)
        new = replace(old, scope=self.scope)
        body = substitute_in(edit.tree.function.body, buffers={old: new})
        buffers = tuple(new if b is old else b for b in edit.tree.function.buffers)
        return edit.finish(body, buffers=buffers)

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """The other scopes of a selected temporary."""
        if isinstance(selection, BufferRef):
            current = state.buffer(selection).scope
            yield from (cls(selection, s) for s in ("global", "local") if s != current)
