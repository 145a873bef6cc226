"""The thread axes of a kernel whose thread-bound loops are outermost."""

from __future__ import annotations

from ...ir.loop.nodes import For, PrimFunc, Stmt
from ...ir.thread.function import ThreadAxis


def launch_axes(func: PrimFunc) -> tuple[tuple[ThreadAxis, ...], Stmt]:
    """Return the axes of the outermost thread-bound loops, and the statement inside them."""
    found: list[ThreadAxis] = []
    body = func.body
    while isinstance(body, For) and body.kind == "thread":
        found.append(ThreadAxis(body.thread, body.var, body.extent))
        body = body.body
    return tuple(found), body
