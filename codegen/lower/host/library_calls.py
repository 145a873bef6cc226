"""Launches of library functions: operand descriptors, attributes, and the call."""

from __future__ import annotations

from ....ir.graph.libraries import LIBRARY_FUNCTIONS, RunTimeFunction
from ....ir.graph.nodes import Binding, LaunchLibrary, Operand
from ....ir.host import nodes as host
from ....ir.thread import runtime_table
from ...manifest import CheckSite, LaunchSpec
from ...rtlib import layout
from .context import CALL, INSTANCE, OWN, SINK, HostContext, dtype_code, integer
from .devices import refuse_library

DESCRIPTOR = 32
"""The size of the descriptor of an operand in bytes."""


def call_library(context: HostContext, binding: Binding, launch: LaunchLibrary) -> None:
    """Emit a library call with an array of descriptors; a nonzero code ends the call."""
    refuse_library(context, launch.symbol, binding)
    operands = (*launch.args, *launch.outputs)
    block = _descriptors(context, launch, operands)
    ordinal = integer(len(context.launches))
    context.launches.append(
        LaunchSpec(launch.symbol, binding.value.name, tuple(sorted(binding.origins)))
    )
    watched = host.Comparison("ne", SINK, host.NullPointer())
    clock = host.Read("ptr", OWN, integer(runtime_table.PROFILE))
    begin, end = (
        host.When(watched, (host.Invoke(clock, (CALL, ordinal, integer(phase))),))
        for phase in (0, 1)
    )
    code = context.local("code", "code")
    context.emit(begin, _call(context, launch.symbol, block, len(operands), code), end)
    fine = host.Comparison("eq", code, integer(0))
    context.guard(fine, CheckSite("library", launch.symbol, names=("code",)), code)


def _call(
    context: HostContext, symbol: str, block: host.Value, count: int, code: host.Local
) -> host.Invoke:
    """Return the call of a function of the run-time library, or through the runtime table."""
    function = LIBRARY_FUNCTIONS.get(symbol)
    address = None if function is None else function.addresses.get("cpu")
    if isinstance(address, RunTimeFunction):
        return host.Invoke(address.symbol, (host.NullPointer(), block, integer(count)), code)
    if symbol not in context.libraries:
        context.libraries.append(symbol)
    libraries = host.Read("ptr", INSTANCE, integer(layout.INSTANCE_LIBRARIES))
    found = host.Read("ptr", libraries, integer(8 * context.libraries.index(symbol)))
    entry = host.Read("ptr", OWN, integer(runtime_table.LIBRARY))
    return host.Invoke(entry, (CALL, found, block, integer(count)), code)


def _descriptors(
    context: HostContext, launch: LaunchLibrary, operands: tuple[Operand, ...]
) -> host.Value:
    """Emit the descriptors of the operands, and the words of the attributes after them."""
    ranks = [len(context.dims(o)) for o in operands]
    function = LIBRARY_FUNCTIONS.get(launch.symbol)
    words = () if function is None else function.encoded(dict(launch.attributes))
    head = DESCRIPTOR * (len(operands) + 1)
    block = context.local("operands", "ptr")
    context.emit(host.Reserve(block, head + 8 * (sum(ranks) + len(words))))
    at = head
    for k, operand in enumerate(operands):
        described: list[tuple[host.Width, host.Value]] = [
            ("ptr", context.pointer(operand)),
            ("i64", integer(ranks[k])),
            ("ptr", host.Moved(block, integer(at))),
            ("i64", integer(dtype_code(context.tensor(operand).dtype))),
        ]
        for j, (width, word) in enumerate(described):
            context.emit(host.Write(width, block, integer(DESCRIPTOR * k + 8 * j), word))
        for dim in context.dims(operand):
            number = context.ready(dim, f"call of {launch.symbol!r}")
            context.emit(host.Write("i64", block, integer(at), number))
            at += 8
    last = DESCRIPTOR * len(operands)
    context.emit(
        host.Write("ptr", block, integer(last), host.Moved(block, integer(at))),
        host.Write("i64", block, integer(last + 8), integer(len(words))),
        host.Write("i64", block, integer(last + 16), integer(len(launch.args))),
    )
    for k, word in enumerate(words):
        context.emit(host.Write("i64", block, integer(at + 8 * k), integer(word)))
    return block
