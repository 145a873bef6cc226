from __future__ import annotations

import dataclasses

import pytest

from tilewright.ir.graph import nodes as graph
from tilewright.ir.loop import nodes as loop
from tilewright.ir.printable import Printable, PrintableFunction
from tilewright.ir.script import parse

from tests.static_html import check_static

NODES = [
    cls
    for module in (loop, graph)
    for cls in vars(module).values()
    if isinstance(cls, type) and dataclasses.is_dataclass(cls) and cls.__module__ == module.__name__
]


@pytest.mark.parametrize("cls", NODES, ids=lambda cls: cls.__name__)
def test_every_node_prints_as_program_text(cls):
    assert issubclass(cls, Printable)
    assert cls.__repr__ is Printable.__repr__
    assert cls.__str__ is Printable.__str__


def test_functions_have_html():
    func = parse("@prim_func\ndef zero(y: Out[(), f32]):\n    y[()] = 0.0").prim("zero")
    assert isinstance(func, PrintableFunction)
    assert "def zero" in check_static(func._repr_html_())
