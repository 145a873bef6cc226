"""The ``set_scope`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.loop.visit import substitute_in
from ...apply import Primitive, Rewrite
from ...checks import known_scope_problems, temporary_problems, tensorized_buffer_problems
from ...edit import Edit
from ...handles import BufferRef, Handle
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ...thread_checks import shared_scope_problems


@primitive(family="layout", returns=None, isolated=True)
@dataclass(frozen=True, slots=True)
class SetScope(Primitive):
    """Set the memory scope of a temporary.

    Before::

        T: f32[n] in global

    After (``scope="local"``)::

        T: f32[n] in local

    Parameters
    ----------
    buffer : BufferRef
        The temporary.
    scope : str
        The new memory scope: ``"global"``, ``"local"``, ``"shared"`` or ``"fragment"``.

    Notes
    -----
    Cost: linear in the size of the function.

    Names elsewhere: TVM ``set_scope``; Halide ``store_in``.

    References
    ----------
    TensorIR (ASPLOS '23), §3.1.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
    ...     t = alloc((32,), f32)
    ...     for i in range(32):
    ...         t[i] = x[i] * 2.0
    ...     for j in range(32):
    ...         y[j] = t[j] + 1.0
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.set_scope("t", "local")
    >>> sch.state.buffer(sch.get_buffer("t")).scope
    'local'
    """

    class Requires(Requirement):
        """The requirements of ``set_scope``."""

        TEMPORARY = "the buffer is a temporary: the caller chooses the memory of a parameter"
        SCOPE_EXISTS = "the memory scope exists"
        NOT_TENSORIZED = "no tensorized block accesses the buffer"
        INDEPENDENT_THREADS = (
            'if the memory scope is ``"shared"``, no two threads of a loop that is bound to '
            "threads write the same element of the buffer, and none reads an element that another "
            "one writes"
        )

    buffer: BufferRef
    scope: str

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the buffer and the memory scope."""
        yield from temporary_problems(state, self.buffer, self.Requires.TEMPORARY)
        yield from known_scope_problems(self.scope, (self.buffer,), self.Requires.SCOPE_EXISTS)
        yield from tensorized_buffer_problems(state, self.buffer, self.Requires.NOT_TENSORIZED)

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check the threads that share the buffer."""
        old = state.buffer(self.buffer).scope
        if self.scope != "shared" or old == "shared":
            return
        private = (replace(self, scope="local"),) if old != "local" else ()
        yield from shared_scope_problems(
            state, self, (self.buffer,), self.Requires.INDEPENDENT_THREADS, private
        )

    def rewrite(self, state: State) -> Rewrite:
        """Replace the buffer by one with the new memory scope."""
        edit = Edit(state, self.buffer.function)
        old = state.buffer(self.buffer)
        new = replace(old, scope=self.scope)
        body = substitute_in(edit.tree.function.body, buffers={old: new})
        buffers = tuple(new if b is old else b for b in edit.tree.function.buffers)
        return edit.finish(body, buffers=buffers)

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the other CPU memory scopes of a selected temporary."""
        if isinstance(selection, BufferRef):
            current = state.buffer(selection).scope
            yield from (cls(selection, s) for s in ("global", "local") if s != current)
