"""From the record of a failed call to the named error that explains it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from ...ir.errors import Json, TilewrightError
from ...ir.host import layout
from ...ir.thread import table
from ..lower.host import CODE_CHECK
from ..lower.wrap import public_name
from ..manifest import FunctionSpec, ParamSpec, Site
from .errors import (
    AliasError,
    AlignmentError,
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
    ShapeMismatchError,
    SizeError,
    StrideError,
)


def place(function: str, param: ParamSpec) -> str:
    """Name a parameter the way errors do."""
    return f"function {public_name(function)!r}, parameter {param.name!r}: {param.annotation}"


def explain(
    spec: FunctionSpec, code: int, record: Sequence[int], arguments: Sequence[Any]
) -> TilewrightError:
    """Make the error of a call that returned ``code``."""
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
        return aliased(spec, site)
    return _program(spec, site, numbers)


def failed_launch(spec: FunctionSpec, code: int, record: Sequence[int]) -> tuple[str, int] | None:
    """Give the kernel and the device's code of a call that failed on a device, else None."""
    if code != CODE_CHECK:
        return None
    site = spec.sites[record[layout.CALL_SITE // 8]]
    if site.kind not in ("launch", "device"):
        return None
    return site.text, record[layout.CALL_NUMBERS // 8]


def _kernel(spec: FunctionSpec, code: int, record: Sequence[int], ordinal: int) -> TilewrightError:
    launch = spec.launches[ordinal] if 0 <= ordinal < len(spec.launches) else None
    text, a, b = (record[o // 8] for o in (layout.CALL_TEXT, layout.CALL_A, layout.CALL_B))
    words = ctypes.string_at(text).decode(errors="replace") if text else f"code {code}"
    kinds = {table.CODE_BOUNDS: "out of bounds", table.CODE_RANGE: "out of range"}
    where = f"function {public_name(spec.name)!r}"
    if launch is not None:
        where += f", kernel {launch.kernel!r} (binding {launch.binding!r})"
    return KernelError(
        f"{kinds.get(code, 'failed')}: {words} ({a}, {b})",
        where=where,
        details={"code": code, "numbers": [a, b], "kernel": launch.kernel if launch else None},
    )


def _described(argument: Any) -> tuple[str, str, str]:
    """Describe what was passed: dtype, shape and strides."""
    dtype, shape = getattr(argument, "dtype", "?"), getattr(argument, "shape", ())
    strides: Any = getattr(argument, "strides", None)
    if callable(getattr(argument, "stride", None)):
        strides = argument.stride()
    return str(dtype), str(tuple(shape)), str(strides)


def _argument(spec: FunctionSpec, param: ParamSpec, problem: int, argument: Any) -> TilewrightError:
    dtype, shape, strides = _described(argument)
    where = place(spec.name, param)
    details: dict[str, Json] = {
        "function": spec.name, "parameter": param.name, "annotation": param.annotation,
        "dtype": dtype, "shape": shape,
    }  # fmt: skip
    match problem:
        case layout.PROBLEM_DTYPE:
            return DTypeError(
                f"expected {param.dtype}, got {dtype}", where=where, details=details,
                hint=f"convert it to {param.dtype} first",
            )  # fmt: skip
        case layout.PROBLEM_RANK:
            rank = len(getattr(argument, "shape", ()))
            return RankError(
                f"expected {param.rank} dimensions, got {rank}: shape {shape}", where=where,
                details={**details, "expected": param.rank, "actual": rank},
            )  # fmt: skip
        case layout.PROBLEM_DEVICE:
            device = str(getattr(argument, "device", "another device"))
            return DeviceError(
                f"expected a tensor on {spec.device}, got one on {device}", where=where,
                details={**details, "expected": spec.device, "actual": device},
                hint="copy it to the host first",
            )  # fmt: skip
        case layout.PROBLEM_STRIDES:
            return StrideError(
                f"expected row-major compact elements, got strides {strides} of shape {shape}",
                where=where, details={**details, "strides": strides},
                hint="np.ascontiguousarray(x), or x.contiguous(), makes a compact copy",
            )  # fmt: skip
        case layout.PROBLEM_ALIGNMENT:
            multiple = f"the element size of {param.dtype}" if spec.device == "cpu" else "16 bytes"
            return AlignmentError(
                f"expected an address that is a multiple of {multiple}",
                where=where, details=details, hint="a copy is aligned",
            )  # fmt: skip
        case layout.PROBLEM_READ_ONLY:
            return ReadOnlyError(
                f"the function writes this parameter ({param.access}), the argument is read-only",
                where=where, details=details, hint="pass a writable array",
            )  # fmt: skip
        case _:
            return CallError("the argument is not understood", where=where, details=details)


def _dimension(
    spec: FunctionSpec, site: Site, numbers: Sequence[int], argument: Any
) -> TilewrightError:
    param = spec.params[site.param]
    expected, actual = numbers[0], numbers[1]
    values = dict(zip(site.names, numbers[2:], strict=False))
    known = ", ".join(f"{name} = {value}" for name, value in values.items())
    meaning = f"{expected}" if site.text == str(expected) else f"{site.text} = {expected}"
    which = f"dimension {site.dim}"
    if param.form == "integer":
        which = "the integer"
    elif site.dim < -1:
        which = f"element {-2 - site.dim}"
    elif site.dim == -1:
        which = "the rank"
    shape = f" of shape {tuple(argument.shape)}" if hasattr(argument, "shape") else ""
    bound = f" (with {known} from the other arguments)" if known else ""
    if site.text in values:
        bound = " from the other arguments"
    return ShapeMismatchError(
        f"{which}{shape}: expected {meaning}{bound}, got {actual}",
        where=place(spec.name, param),
        details={
            "function": spec.name, "parameter": param.name, "annotation": param.annotation,
            "dimension": site.dim, "expected": expected, "actual": actual, "symbols": {**values},
        },
    )  # fmt: skip


def _stride(spec: FunctionSpec, site: Site, numbers: Sequence[int]) -> TilewrightError:
    param = spec.params[site.param]
    return StrideError(
        f"dimension {site.dim}: expected a stride of {site.text} = {numbers[0]} elements, "
        f"got {numbers[1]}",
        where=place(spec.name, param),
        details={
            "function": spec.name, "parameter": param.name, "annotation": param.annotation,
            "dimension": site.dim, "expected": numbers[0], "actual": numbers[1],
        },
    )  # fmt: skip


def aliased(spec: FunctionSpec, site: Site) -> TilewrightError:
    """Make the error of a written argument that shares memory with another one."""
    written, other = spec.params[site.param], spec.params[site.other]
    return AliasError(
        f"{written.name!r} ({written.access}) shares memory with {other.name!r} ({other.access})",
        where=place(spec.name, written),
        details={"function": spec.name, "parameter": written.name, "other": other.name},
        hint="pass a copy of one of them",
    )


def _program(spec: FunctionSpec, site: Site, numbers: Sequence[int]) -> TilewrightError:
    values = dict(zip(site.names, numbers, strict=False))
    known = ", ".join(f"{name} = {value}" for name, value in values.items())
    suffix = f", with {known}" if known else ""
    where = f"function {public_name(spec.name)!r}"
    details: dict[str, Json] = {"function": spec.name, "check": site.text, "values": {**values}}
    match site.kind:
        case "bound":
            message = f"a symbol is out of its range: {site.text} fails{suffix}"
            return FactError(message, where=where, details=details)
        case "fact":
            message = f"the program assumes {site.text}{suffix}"
            return FactError(message, where=where, details=details, hint=f"from {site.origin}")
        case "check":
            return CheckError(f"{site.text} fails{suffix}", where=where, details=details)
        case "divisor":
            return SizeError(f"division by zero: {site.text}{suffix}", where=where, details=details)
        case "negative":
            message = f"size {site.text} is negative: {numbers[0]}"
            return SizeError(message, where=where, details=details)
        case "overflow":
            message = f"size {site.text} is too large to count"
            return SizeError(message, where=where, details=details)
        case "memory":
            message = f"no memory for {site.text or 'the arena'}: {numbers[0]} bytes"
            return OutOfMemoryError(message, where=where, details=details)
        case "device":
            message = f"{site.text} on the device failed{suffix}"
            return LaunchError(message, where=where, details=details)
        case "launch":
            message = f"kernel {site.text!r} did not run: the device says {numbers[0]}"
            return LaunchError(message, where=where, details=details)
        case "grid":
            message = f"the grid of {site.text} has {numbers[0]} blocks, at most {numbers[1]} fit"
            hint = "let a block do more of the loop that is bound to it"
            return LaunchError(message, where=where, details=details, hint=hint)
        case "library":
            message = f"library function {site.text!r} returned {numbers[0]}"
            return LibraryError(message, where=where, details=details)
        case _:
            return CallError(f"{site.text} fails{suffix}", where=where, details=details)
