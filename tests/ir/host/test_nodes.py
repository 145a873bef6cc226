from __future__ import annotations

from tilewright.ir.host.nodes import HostFunc, Local
from tilewright.ir.host.text import to_text


def test_print_shows_the_text_and_repr_one_line():
    func = HostFunc("main__entry", (Local("instance", "ptr"), Local("call", "ptr")), ())
    assert str(func) == to_text(func)
    assert repr(func) == "<HostFunc main__entry: 2 parameters>"
