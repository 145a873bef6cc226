"""Errors of failed calls, constructed from call records and the table of messages."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final, cast

from ...errors import Excerpt, Json, Mark, TilewrightError
from ...ir.dtype import dtype as dtype_named
from ...ir.symbolic import Expr, as_expr, evaluate, free_vars, parse_expr, var
from ...ir.thread import runtime_table
from ..entry_names import public_name
from ..errors import (
    AliasError,
    AlignmentError,
    ArgumentShapeError,
    ArgumentTypeError,
    CallError,
    CheckError,
    DeviceError,
    DTypeError,
    FactError,
    KernelError,
    LaunchError,
    LibraryError,
    OutOfMemoryError,
    RankError,
    ReadOnlyError,
    SizeError,
    StoppedError,
    StrideError,
)
from ..libraries import FAILED, raised_error
from ..lower.host.to_thread import CODE_CHECK
from ..manifest import CheckSite, FunctionSpec, ParamSpec
from ..messages import (
    IN_FUNCTION,
    IN_KERNEL,
    IN_PARAMETER,
    Message,
    dtype_text,
    shape_text,
    strides_text,
    term_text,
    values_text,
)
from ..rtlib import layout
from .sizes import bytes_text

DEVICE_ALIGNMENT = 16
"""The alignment in bytes of tensors on a device."""

NO_MEMORY: Final = "the tensor has elements but no memory; pass a tensor with values"
"""The hint for a tensor of a tracing tool, such as a ``FakeTensor`` of PyTorch."""

_RANGE_HINT: Final = "change the values of the argument, or read them with clamped(...)"
_KERNEL_HINTS: Final = {
    runtime_table.CODE_BOUNDS: "change the index or the loops around it, or guard the access: "
    "if i * i < n:",
    runtime_table.CODE_RANGE: _RANGE_HINT,
    runtime_table.CODE_RANGE_UNSIGNED: _RANGE_HINT,
}
"""The hints for errors that a kernel reports, by error code."""


def parameter_location(function: str, param: ParamSpec) -> str:
    """Return the location of an error about a parameter."""
    return IN_PARAMETER.format(
        function=public_name(function), parameter=param.name, annotation=param.annotation
    )


def signature_excerpt(spec: FunctionSpec, param: ParamSpec | None = None) -> tuple[Excerpt, ...]:
    """Return the signature of a function, with a parameter or else the name underlined."""
    text = f"{public_name(spec.name)}("
    start, end = 1, len(text)
    for k, other in enumerate(spec.params):
        text += ", " if k else ""
        if other is param:
            start, end = len(text) + 1, len(text) + 1 + len(other.name)
        text += f"{other.name}: {other.annotation}"
    return (Excerpt(public_name(spec.name), ((1, f"{text})"),), (Mark(1, start, end),)),)


def _in_function(spec: FunctionSpec) -> str:
    return IN_FUNCTION.format(function=public_name(spec.name))


def explain(
    spec: FunctionSpec, code: int, record: Sequence[int], arguments: Sequence[Any]
) -> TilewrightError:
    """Return the error of a call that returned ``code``."""
    numbers = tuple(record[(layout.CALL_NUMBERS // 8) :][:4])
    if code != CODE_CHECK:
        return _kernel(spec, code, record, numbers[3])
    site = spec.sites[record[layout.CALL_SITE // 8]]
    if site.kind == "argument":
        return _argument(spec, spec.params[site.param], numbers[0], arguments[site.param])
    if site.kind == "dimension":
        return _dimension(spec, site, numbers, arguments[site.param])
    if site.kind == "stride":
        return _stride(spec, site, numbers)
    if site.kind == "alias":
        return alias_error(spec, site)
    error = _program(spec, site, numbers)
    if site.kind == "memory" and not site.text:
        error.hint = f"{error.hint}{largest_parts(spec, arguments)}"
    return error


def largest_parts(spec: FunctionSpec, arguments: Sequence[Any], count: int = 4) -> str:
    """Return the largest storages of the arena as text, for the shapes of the arguments."""
    values: dict[str, int] = {}
    for param, argument in zip(spec.params, arguments, strict=False):
        if param.form == "integer":
            values[param.name] = int(argument)
        for dim, size in zip(param.shape, getattr(argument, "shape", ()), strict=False):
            values.setdefault(dim, int(size))
    symbols = {name: var(name) for name in spec.symbols}
    given = {symbol: values[name] for name, symbol in symbols.items() if name in values}
    sizes: dict[str, int] = {}
    for storage in spec.storages:
        term = as_expr(cast("Expr", parse_expr(storage.size, symbols)))
        if free_vars(term) <= given.keys():
            tensors = ", ".join(t.name for t in storage.tensors)
            sizes[tensors or storage.name] = int(evaluate(term, given))
    largest = sorted(sizes.items(), key=lambda part: -part[1])[:count]
    text = ", ".join(f"{name}: {bytes_text(size)}" for name, size in largest)
    return f"; the largest parts are {text}" if text else ""


def failed_launch(spec: FunctionSpec, code: int, record: Sequence[int]) -> tuple[str, int] | None:
    """Return the kernel and the device error code of a call that failed on a device, else None."""
    if code != CODE_CHECK:
        return None
    site = spec.sites[record[layout.CALL_SITE // 8]]
    if site.kind not in ("launch", "device"):
        return None
    return site.text, record[layout.CALL_NUMBERS // 8]


def _kernel(spec: FunctionSpec, code: int, record: Sequence[int], ordinal: int) -> TilewrightError:
    launch = spec.launches[ordinal] if 0 <= ordinal < len(spec.launches) else None
    address, a, b = (record[o // 8] for o in (layout.CALL_TEXT, layout.CALL_A, layout.CALL_B))
    text = ctypes.string_at(address).decode(errors="replace") if address else "no message"
    match code:
        case runtime_table.CODE_BOUNDS:
            message = Message.BOUNDS.format(text=text, actual=a, expected=b)
        case runtime_table.CODE_RANGE:
            limit = Message.RANGE_BELOW if a < b else Message.RANGE
            message = limit.format(text=text, actual=a, expected=b)
        case runtime_table.CODE_RANGE_UNSIGNED:
            a %= 1 << 64
            message = Message.RANGE_UNSIGNED.format(text=text, large=a, expected=b)
        case _:
            message = Message.KERNEL.format(code=code, text=text, first=a, second=b)
    where = _in_function(spec)
    if launch is not None:
        where = IN_KERNEL.format(
            function=public_name(spec.name), kernel=launch.kernel, binding=launch.binding
        )
    return KernelError(
        message,
        where=where,
        hint=_KERNEL_HINTS.get(code, ""),
        details={"code": code, "numbers": [a, b], "kernel": launch.kernel if launch else None},
    )


def _strides_text(argument: Any) -> str:
    """Return the strides of an argument in elements; NumPy states them in bytes."""
    if callable(getattr(argument, "stride", None)):
        return strides_text(argument.stride(), 1)
    strides: Sequence[int] | None = getattr(argument, "strides", None)
    return "None" if strides is None else strides_text(strides, max(argument.itemsize, 1))


def _argument(spec: FunctionSpec, param: ParamSpec, problem: int, argument: Any) -> TilewrightError:
    dims: Sequence[int] = tuple(getattr(argument, "shape", ()))
    actual_dtype = dtype_text(getattr(argument, "dtype", "?"))
    shape = shape_text(dims)
    where, excerpts = parameter_location(spec.name, param), signature_excerpt(spec, param)
    details: dict[str, Json] = {
        "function": spec.name, "parameter": param.name, "annotation": param.annotation,
        "dtype": str(getattr(argument, "dtype", "?")), "shape": shape,
    }  # fmt: skip
    match problem:
        case layout.PROBLEM_DTYPE:
            return DTypeError(
                Message.DTYPE.format(dtype=param.dtype, actual_dtype=actual_dtype),
                where=where, details=details, hint=f"convert the argument to {param.dtype}",
                excerpts=excerpts,
            )  # fmt: skip
        case layout.PROBLEM_RANK:
            return RankError(
                Message.RANK.format(expected=param.rank, actual=len(dims), shape=shape),
                where=where, details={**details, "expected": param.rank, "actual": len(dims)},
                hint=f"pass a tensor of rank {param.rank}; x.reshape(...) changes the rank",
                excerpts=excerpts,
            )  # fmt: skip
        case layout.PROBLEM_DEVICE:
            device = str(getattr(argument, "device", "another device"))
            return DeviceError(
                Message.DEVICE.format(device=spec.device, actual_device=device),
                where=where, details={**details, "expected": spec.device, "actual": device},
                hint="copy the argument to the host first", excerpts=excerpts,
            )  # fmt: skip
        case layout.PROBLEM_STRIDES:
            strides = _strides_text(argument)
            return StrideError(
                Message.STRIDES.format(shape=shape, strides=strides),
                where=where, details={**details, "strides": strides},
                hint="np.ascontiguousarray(x) or x.contiguous() returns a compact copy",
                excerpts=excerpts,
            )  # fmt: skip
        case layout.PROBLEM_ALIGNMENT:
            own = dtype_named(param.dtype).alignment
            multiple = own if spec.device == "cpu" else DEVICE_ALIGNMENT
            return AlignmentError(
                Message.ALIGNMENT.format(bytes=multiple),
                where=where, details=details, hint="pass a copy, which is aligned",
                excerpts=excerpts,
            )  # fmt: skip
        case layout.PROBLEM_READ_ONLY:
            return ReadOnlyError(
                Message.READ_ONLY.format(access=param.access),
                where=where, details=details, hint="pass a writable array", excerpts=excerpts,
            )  # fmt: skip
        case layout.PROBLEM_DATA:
            return ArgumentTypeError(
                Message.NULL_DATA.format(), where=where, details=details, excerpts=excerpts,
                hint=NO_MEMORY,
            )  # fmt: skip
        case _:
            return CallError(
                Message.UNSUPPORTED.format(), where=where, details=details,
                hint="pass a NumPy array or a DLPack tensor", excerpts=excerpts,
            )  # fmt: skip


def _dimension(
    spec: FunctionSpec, site: CheckSite, numbers: Sequence[int], argument: Any
) -> TilewrightError:
    param = spec.params[site.param]
    expected, actual = numbers[0], numbers[1]
    values = dict(zip(site.names, numbers[2:], strict=False))
    term = term_text(site.text, expected, values)
    shape = shape_text(tuple(getattr(argument, "shape", ())))
    if param.form == "integer":
        message = Message.INTEGER.format(term=term, actual=actual)
    elif site.dim < -1:
        message = Message.ELEMENT.format(index=-2 - site.dim, term=term, actual=actual)
    elif site.dim == -1:
        message = Message.UNKNOWN_RANK.format(expected=expected, actual=actual, shape=shape)
    else:
        message = Message.DIMENSION.format(dim=site.dim, shape=shape, term=term, actual=actual)
    return ArgumentShapeError(
        message,
        where=parameter_location(spec.name, param),
        details={
            "function": spec.name, "parameter": param.name, "annotation": param.annotation,
            "dimension": site.dim, "expected": expected, "actual": actual, "symbols": {**values},
        },
        hint="equal symbols are equal dimensions; pass arguments whose shapes agree",
        excerpts=signature_excerpt(spec, param),
    )  # fmt: skip


def _stride(spec: FunctionSpec, site: CheckSite, numbers: Sequence[int]) -> TilewrightError:
    param = spec.params[site.param]
    term = term_text(site.text, numbers[0], {})
    return StrideError(
        Message.STRIDE.format(dim=site.dim, term=term, actual=numbers[1]),
        where=parameter_location(spec.name, param),
        details={
            "function": spec.name, "parameter": param.name, "annotation": param.annotation,
            "dimension": site.dim, "expected": numbers[0], "actual": numbers[1],
        },
        hint="pass a tensor with the declared strides",
        excerpts=signature_excerpt(spec, param),
    )  # fmt: skip


def alias_error(spec: FunctionSpec, site: CheckSite) -> TilewrightError:
    """Return the error of a written argument that shares memory with another one."""
    written, other = spec.params[site.param], spec.params[site.other]
    return AliasError(
        Message.ALIAS.format(
            parameter=written.name, access=written.access,
            other=other.name, other_access=other.access,
        ),
        where=parameter_location(spec.name, written),
        details={"function": spec.name, "parameter": written.name, "other": other.name},
        hint="pass a copy of one of the two arguments",
        excerpts=signature_excerpt(spec, written),
    )  # fmt: skip


def _library(spec: FunctionSpec, site: CheckSite, code: int) -> TilewrightError:
    """Return the error of a library call, with the exception of a Python function as its cause."""
    message, raised = Message.LIBRARY.format(symbol=site.text, actual=code), None
    if code == FAILED:
        raised = raised_error(site.text)
    if raised is not None:
        reason = raised.message if isinstance(raised, TilewrightError) else str(raised)
        message = f"library function {site.text!r} raised {type(raised).__name__}: {reason}"
    details: dict[str, Json] = {"function": spec.name, "library": site.text, "code": code}
    error = LibraryError(message, where=_in_function(spec), details=details)
    error.__cause__ = raised
    return error


def range_error(spec: FunctionSpec, site: CheckSite, value: int) -> TilewrightError:
    """Return the error of a value of a symbol outside of its declared range."""
    return _program(spec, site, (value,))


def _program(spec: FunctionSpec, site: CheckSite, numbers: Sequence[int]) -> TilewrightError:
    symbols = dict(zip(site.names, numbers, strict=False))
    text, values, first = site.text, values_text(symbols), numbers[0]
    hint = ""
    match site.kind:
        case "bound":
            error, message = FactError, Message.BOUND.format(condition=text, values=values)
            hint = (
                "pass shapes within the declared range, or change the range: symbols(..., lower=0)"
            )
        case "fact":
            error, message = FactError, Message.FACT.format(condition=text, values=values)
            hint = f"origin of the assumption: {site.origin}"
        case "check":
            error, message = CheckError, Message.CHECK.format(condition=text, values=values)
            hint = "pass arguments whose shapes satisfy the condition"
        case "divisor":
            error, message = SizeError, Message.DIVISOR.format(divisor=text, values=values)
            hint = "pass shapes for which the divisor is not 0"
        case "negative":
            error, message = SizeError, Message.NEGATIVE_SIZE.format(size=text, actual=first)
            hint = "pass shapes for which the size is not negative"
        case "overflow":
            error, message = SizeError, Message.OVERFLOW.format(size=text)
            hint = "pass smaller shapes"
        case "memory":
            storage = text or "the arena"
            error, message = OutOfMemoryError, Message.MEMORY.format(bytes=first, storage=storage)
            hint = "pass smaller shapes; exe.memory(shapes) shows the required memory"
        case "device":
            failed = Message.DEVICE_OPERATION.format(operation=text, values=values)
            error, message = LaunchError, failed
        case "launch":
            error, message = LaunchError, Message.LAUNCH.format(kernel=text, actual=first)
        case "grid":
            counts = {"actual": first, "expected": numbers[1]}
            error, message = LaunchError, Message.GRID.format(axis=text, **counts)
            hint = "split the bound loop so that each thread block runs more of its iterations"
        case "stopped":
            error, message = StoppedError, Message.STOPPED.format(loop=text)
            hint = "call the function again; its states have no defined value"
        case "library":
            return _library(spec, site, first)
        case _:
            error, message = CallError, Message.UNKNOWN.format(condition=text, values=values)
    details: dict[str, Json] = {"function": spec.name, "check": text, "values": {**symbols}}
    return error(message, where=_in_function(spec), details=details, hint=hint)
