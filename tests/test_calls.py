"""Tests of the errors for calls with wrong parameters."""

from collections.abc import Callable
from typing import Any

import pytest

import tilewright as tw
from tilewright.calls import SignatureError, checked_call, checked_calls

SCALE = """
n = symbols("n", lower=1)

@prim_func
def scale(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("double"):
            v = spatial(i)
            y[v] = x[v] * 2.0
"""


def call(name: str, /, *args: object, **named: object) -> Callable[[], object]:
    return lambda: getattr(tw, name)(*args, **named)


def schedule() -> Any:
    return tw.Schedule(tw.parse(SCALE))


def executable() -> Any:
    return tw.compile(tw.parse(SCALE))


WRONG: list[tuple[Callable[[], object], str, str]] = [
    (call("parse", SCALE, name="f"), "parse has no parameter 'name'", "parse(text, *"),
    (call("from_onnx"), "from_onnx: missing a required argument: 'source'", "from_onnx(source"),
    (call("from_exported_program", 1, 2), "too many positional", "from_exported_program(program"),
    (call("compile", 1, optimize=3), "compile has no parameter 'optimize'", "debug=False"),
    (call("compile", 1, debgu=True), "'debgu'; did you mean 'debug'?", "compile(program"),
    (call("lower", 1, stopafter="x"), "did you mean 'stop_after'?", "lower(program"),
    (call("measure"), "measure: missing a required argument: 'program'", "measure(program"),
    (call("export", 1), "missing a required argument: 'directory'", "export(program, directory"),
    (call("composite", return_=None), "did you mean 'returns'?", "composite("),
    (call("Target", "cpu", thread=3), "did you mean 'threads'?", "Target(kind='cpu', *"),
    (call("Schedule"), "Schedule: missing a required argument: 'module'", "Schedule(module"),
    (call("Workbench", 1, hight=3), "did you mean 'height'?", "Workbench(program"),
    (lambda: schedule().verify(run=3), "did you mean 'runs'?", "verify(*, runs=4"),
    (lambda: schedule().undo(3), "undo: too many positional arguments", "usage: undo()"),
    (lambda: executable().memory(n=3), "memory has no parameter 'n'", "memory(shapes=None"),
]


@pytest.mark.parametrize(("wrong", "message", "usage"), WRONG, ids=[m for _, m, _ in WRONG])
def test_a_wrong_call_of_a_public_function(
    wrong: Callable[[], object], message: str, usage: str
) -> None:
    with pytest.raises(SignatureError) as caught:
        wrong()
    assert message in caught.value.message
    assert usage in caught.value.hint
    assert isinstance(caught.value, TypeError)


def test_an_error_of_the_body_is_not_changed() -> None:
    @checked_call
    def broken(count: int) -> int:
        return count + None  # type: ignore[operator]

    with pytest.raises(TypeError, match="unsupported operand") as caught:
        broken(1)
    assert not isinstance(caught.value, SignatureError)


def test_private_methods_of_a_class_are_not_wrapped() -> None:
    @checked_calls
    class Counter:
        def __init__(self, start: int = 0) -> None:
            self.count = start

        def add(self, count: int) -> int:
            return self._sum(count)

        def _sum(self, count: int) -> int:
            return self.count + count

    assert Counter(2).add(3) == 5
    assert not hasattr(Counter._sum, "__wrapped__")
    with pytest.raises(SignatureError, match="usage: Counter"):
        Counter(begin=1)  # type: ignore[call-arg]
