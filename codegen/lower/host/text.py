"""Text of lowered graph functions, with the names of run-time records and of checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....ir.host.nodes import HostFunc
from ....ir.host.text import WORDS, Field, Layout, Notes, to_text
from ....ir.thread import runtime_table
from ...manifest import CheckSite, FunctionSpec
from ...rtlib import layout
from ...rtlib.results import HEADER
from .function import FlowFunctions


def _named(**offsets: int) -> dict[int, Field]:
    return {offset: Field(name) for name, offset in offsets.items()}


LAYOUTS: Final[Mapping[str, Layout]] = {
    "call": Layout(
        _named(
            table=layout.CALL_TABLE,
            site=layout.CALL_SITE,
            code=layout.CALL_CODE,
            text=layout.CALL_TEXT,
            sink=layout.CALL_SINK,
            mode=layout.CALL_MODE,
        )
        | {
            layout.CALL_NUMBERS: Field("numbers", 8),
            layout.CALL_OPERANDS: Field("operands", 8),
        }
    ),
    "own": Layout(
        _named(
            parallel=runtime_table.PARALLEL,
            library=runtime_table.LIBRARY,
            launch=runtime_table.LAUNCH,
            profile=runtime_table.PROFILE,
        )
    ),
    "instance": Layout(
        _named(
            constants=layout.INSTANCE_CONSTANTS,
            libraries=layout.INSTANCE_LIBRARIES,
            kernels=layout.INSTANCE_KERNELS,
            slots=layout.INSTANCE_SLOTS,
        )
    ),
    "instance.constants": WORDS,
    "instance.libraries": WORDS,
    "instance.kernels": WORDS,
    "views": Layout(
        _named(
            data=layout.VIEW_DATA,
            rank=layout.VIEW_RANK,
            shape=layout.VIEW_SHAPE,
            strides=layout.VIEW_STRIDES,
        ),
        layout.VIEW_BYTES,
    ),
    "views[].shape": WORDS,
    "shape": WORDS,
    "sizes": WORDS,
    "keys": WORDS,
    "late": WORDS,
    "slot": Layout(_named(needed=layout.SLOT_NEEDED)),
    "plan": Layout(
        _named(total=layout.PLAN_TOTAL) | {layout.PLAN_OFFSETS: Field("offsets", 8)},
    ),
    "make_result": Layout({HEADER: Field("shape", 8)}),
    "record": Layout(
        _named(
            handle=layout.RECORD_HANDLE,
            shared=layout.RECORD_SHARED,
            stream=layout.RECORD_STREAM,
            attributes=layout.RECORD_ATTRIBUTES,
        )
        | {
            layout.RECORD_GRID: Field("grid", 8),
            layout.RECORD_BLOCK: Field("block", 8),
            layout.RECORD_CLUSTER: Field("cluster", 8),
        }
    ),
}
"""The layouts of the records that host code accesses."""


def host_text(flow: FlowFunctions) -> str:
    """Return the host functions of a graph function as text: the entry, then its body.

    Comments state the meaning of each check, and the sizes and live ranges of the storages.
    """
    return "\n\n".join(_function_text(f, flow.spec) for f in reversed(flow.functions))


def _function_text(function: HostFunc, spec: FunctionSpec) -> str:
    header = [spec.signature(spec.name)] if function.exported else list(_storages(spec))
    notes = Notes(
        LAYOUTS,
        {k: describe_site(site, spec) for k, site in enumerate(spec.sites)},
        {k: f"binding {launch.binding}" for k, launch in enumerate(spec.launches)},
        _names(spec),
        header,
    )
    return to_text(function, notes)


def _names(spec: FunctionSpec) -> dict[str, str]:
    """Return the names of constants, device kernels and library functions."""
    named = (
        ("constants", "constant", spec.constants),
        ("kernels", "kernel", spec.kernels),
        ("libraries", "library", spec.libraries),
    )
    return {
        f"instance.{table}[{k}]": f"{word}({name!r})"
        for table, word, names in named
        for k, name in enumerate(names)
    }


def _storages(spec: FunctionSpec) -> Iterator[str]:
    for storage in spec.storages:
        yield (
            f"arena: {storage.name} has {storage.size} bytes, live in bindings {storage.first} to "
            f"{storage.last}"
        )


def describe_site(site: CheckSite, spec: FunctionSpec) -> str:
    """Return the meaning of a check.

    Examples
    --------
    >>> spec = FunctionSpec("f", (), (), (), (), (), (), (), (), 0, 0)
    >>> describe_site(CheckSite("fact", "n <= 512"), spec)
    'fact n <= 512'
    """
    match site.kind:
        case "argument":
            return f"argument {_param(site.param, spec)}: dtype, rank, alignment and device"
        case "dimension" if site.dim >= 0:
            return f"dimension {site.dim} of {_param(site.param, spec)} is {site.text}"
        case "dimension" if site.dim < -1:
            return f"element {-2 - site.dim} of {_param(site.param, spec)} is {site.text}"
        case "dimension":
            return f"{_param(site.param, spec)} is {site.text}"
        case "stride":
            return f"stride {site.dim} of {_param(site.param, spec)} is {site.text}"
        case "alias":
            return f"{_param(site.param, spec)} and {_param(site.other, spec)} do not overlap"
        case "divisor":
            return f"divisor {site.text} is not 0"
        case "negative":
            return f"size {site.text} is not negative"
        case "overflow":
            return f"size {site.text} does not overflow"
        case "memory":
            return f"memory for {site.text or 'the workspace'} is available"
        case "output":
            return f"the output has the shape of result {site.text}"
        case "stopped":
            return f"no request to stop in loop {site.text}"
        case "grid":
            return f"the grid of {site.text} is within the limit"
        case "launch" | "library" | "device":
            return f"{site.kind} of {site.text} succeeded"
        case "bound" | "fact" | "check":
            return f"{site.kind} {site.text}"


def _param(position: int, spec: FunctionSpec) -> str:
    return repr(spec.params[position].name) if position >= 0 else "an argument"
