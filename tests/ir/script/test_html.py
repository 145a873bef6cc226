from __future__ import annotations

import numpy as np
from hypothesis import given

from tilewright.display import FOLD_AFTER, FOLDED
from tilewright.errors import Mark
from tilewright.ir.dtype import f32
from tilewright.ir.module import Constant, Module
from tilewright.ir.script.html import program_html

from tests.ir.script.test_node_text import hostile
from tests.ir.script.texts import parse
from tests.static_html import check_static, names

TEXT = """@prim_func
def zero(y: Out[(8,), f32]):
    for i in range(8):
        y[i] = 0.0"""


def test_lines_are_numbered_and_tokens_have_colors():
    html = program_html(parse(TEXT))
    assert check_static(html).splitlines() == [
        "1  @prim_func",
        "2  def zero(y: Out[(8,), f32]):",
        "3      for i in range(8):",
        "4          y[i] = 0.0",
    ]
    assert html.count("color:#") > 4


def test_highlighted_parts_are_marked():
    html = program_html(parse(TEXT), highlight=[Mark(3, 9, 10)])
    assert html.count("<mark") == 1
    assert ">i</mark>" in html


def test_functions_and_modules_have_a_title():
    module = parse(TEXT)
    assert check_static(module._repr_html_()).startswith("Module: loops zero")
    title = check_static(module.prim("zero")._repr_html_())
    assert title.startswith("PrimFunc zero: 1 parameter")


def test_a_long_program_is_folded():
    count = 10_000
    text = "\n".join(["@prim_func", "def f(y: Out[(8,), f32]):", *["    y[0] = 0.0"] * count])
    html = parse(text)._repr_html_()
    lines = check_static(html).splitlines()
    assert html.count("<details>") == 1
    assert len(lines) < FOLD_AFTER + FOLDED + 10
    assert len(html) < 2_000_000
    hidden = count + 2 - FOLD_AFTER
    assert any(f"{hidden} more lines" in line for line in lines)
    assert lines[-1] == f"... {hidden - FOLDED} more lines; print() shows all"


@given(names(), names())
def test_names_are_escaped(name, other):
    constant = Constant((2,), f32, lambda: np.zeros(2, np.float32), source=other)
    module = Module(attributes={name: other}).with_functions(hostile(name))
    module = module.with_constants({name: constant})
    check_static(module._repr_html_())
    check_static(hostile(name)._repr_html_())
