from __future__ import annotations

from tilewright.ir.symbolic import var
from tilewright.ir.thread.function import ThreadFunc
from tilewright.ir.thread.text import to_text


def test_print_shows_the_text_and_repr_one_line():
    func = ThreadFunc("kernel", (var("n"),), ())
    assert str(func) == to_text(func)
    assert repr(func) == "<ThreadFunc kernel: 1 parameter>"
