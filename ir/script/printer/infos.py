"""Printing of annotations of graph-level values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ...graph.nodes import (
    DEFAULT_DEVICE,
    CallableInfo,
    Info,
    ObjectInfo,
    PrimInfo,
    ShapeInfo,
    TensorInfo,
    TupleInfo,
)
from ..names import quote
from .terms import TermPrinter


def info_text(info: Info, terms: TermPrinter) -> str:
    """Return an annotation as text: ``Tensor[(n, 4), f32]``, ``Tuple[...]``, ``Object``."""
    match info:
        case ObjectInfo():
            return "Object"
        case PrimInfo(dtype=dtype, value=value):
            return f"Prim[{dtype}]" if value is None else f"Prim[{dtype}, {terms.text(value)}]"
        case ShapeInfo():
            return _shape(info, terms)
        case TensorInfo():
            return _tensor(info, terms)
        case TupleInfo(fields=fields):
            return f"Tuple[{infos_text(fields, terms) or '()'}]"
        case CallableInfo(params=params, result=result):
            return f"Callable[[{infos_text(params, terms)}], {info_text(result, terms)}]"
        case _:
            assert_never(info)


def infos_text(infos: Sequence[Info], terms: TermPrinter) -> str:
    """Return several annotations as text."""
    return ", ".join(info_text(i, terms) for i in infos)


def _shape(info: ShapeInfo, terms: TermPrinter) -> str:
    if info.dims is not None:
        return f"Shape[{terms.tuple(info.dims)}]"
    return f"Shape(None, rank={info.rank})"


def _tensor(info: TensorInfo, terms: TermPrinter) -> str:
    shape = "None" if info.shape is None else terms.tuple(info.shape)
    options: list[str] = []
    if info.device != DEFAULT_DEVICE:
        options.append(f"device={quote(info.device)}")
    if info.elements is not None:
        options.append(f"elements={terms.tuple(info.elements)}")
    if info.shape is None and info.rank is not None:
        options.append(f"rank={info.rank}")
    if options:
        return f"Tensor({', '.join([shape, str(info.dtype), *options])})"
    return f"Tensor[{shape}, {info.dtype}]"
