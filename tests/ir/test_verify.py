"""Errors about ill-formed programs: excerpts of functions of both levels, and hostile names."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

import tilewright
from tilewright.errors import MalformedProgramError
from tilewright.ir.graph.rules import RULES as GRAPH_RULES
from tilewright.ir.loop.rules import RULES as LOOP_RULES
from tilewright.ir.module import Module
from tilewright.ir.structural_hash import structural_hash
from tilewright.ir.verify import IllFormedProgramError, Violation, verify, violations

from tests.ir.script.texts import unverified as parse

GRAPH = """n = symbols("n", lower=1)
@graph_func
def main(x: Tensor[(n, 8), f32], w: Tensor[(6, 4), f32]):
    h = relu(x)
    y: Tensor[(n, 4), f32] = matmul(h, w)
    return y
"""
LOOP = """n = symbols("n", lower=1)
@prim_func
def f(x: Buffer[(n,), f32]):
    for i in range(n):
        with block("zero"):
            vi = spatial(i)
            x[vi] = 0.0
"""
HOSTILE = st.lists(
    st.sampled_from([*"<>&\"'\x00\x1b\r\u202e\u2028\ud800a", "<script>", "]]>"]),
    min_size=1,
    max_size=12,
).map("".join)


def error_of(program: object) -> IllFormedProgramError:
    with pytest.raises(IllFormedProgramError) as caught:
        verify(program)
    return caught.value


def test_a_graph_error_underlines_the_binding() -> None:
    module = parse(GRAPH)
    for program in (module, module.graph()):
        error = error_of(program)
        assert "cannot multiply (n, 8) by (6, 4)" in error.message
        assert "operands are h: Tensor[(n, 8), f32], w: Tensor[(6, 4), f32]" in error.message
        assert "requires: every operator is registered and accepts its operands" in error.message
        assert "6 |     y: Tensor[(n, 4), f32] = matmul(h, w)\n      |     ^" in str(error)


def test_a_loop_error_underlines_the_access() -> None:
    error = error_of(parse(LOOP))
    assert "8 |             x[vi] = 0.0\n      |             ^" in str(error)
    assert error.hint == "declare the parameter with Out[...], InOut[...] or State[...]"


def test_a_violation_of_the_module_has_no_excerpt_of_a_missing_function() -> None:
    module = parse(LOOP.replace("Buffer", "InOut"))
    stored = replace(module, functions={"g": module.prim("f")})
    error = error_of(stored)
    assert error.excerpts() == ()
    assert "stored under the key 'g'" in str(error)


def test_every_rule_has_a_fix() -> None:
    assert [r.number for r in (*LOOP_RULES, *GRAPH_RULES) if not r.fix] == []


def test_many_violations_are_shortened() -> None:
    params = ", ".join(f"x{k}: Buffer[(4,), f32]" for k in range(40))
    body = "".join(
        f'    with block("b{k}"):\n        x{k}[0] = 0.0\n        x{k}[1] = 0.0\n'
        for k in range(40)
    )
    error = error_of(parse(f"@prim_func\ndef f({params}):\n{body}"))
    assert len(error.violations) == 40
    assert "(and 39 more)" in error.message
    assert error.message.endswith("- ...")
    assert len(error.excerpts()) <= 3


@given(HOSTILE)
def test_names_cannot_inject_markup_or_control_characters(name: str) -> None:
    function = replace(parse(LOOP).prim("f"), name=name)
    error = error_of(Module().with_functions(function))
    assert isinstance(error, MalformedProgramError)
    assert "<script" not in error._repr_html_()
    assert not {"\x00", "\x1b", "\u202e", "\u2028"} & set(error._repr_html_())
    assert error.to_json()["details"]["violations"][0]["function"] == name


def test_a_well_formed_program_passes() -> None:
    module = parse(LOOP.replace("Buffer", "InOut"))
    assert violations(module) == ()
    verify(module)


@pytest.mark.parametrize("target", ["cpu", "simt"])
def test_each_door_checks_a_module_once(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser, a schedule and the compiler check a program; none checks it again."""
    counts: Counter[str] = Counter()

    def counted(module: Module) -> tuple[Violation, ...]:
        counts[structural_hash(module)] += 1
        return violations(module)

    monkeypatch.setattr("tilewright.ir.verify.violations", counted)
    module = tilewright.parse(LOOP.replace("Buffer", "InOut"))
    assert list(counts.values()) == [1]
    built = Module().with_functions(replace(module.prim("f"), name="built"))
    for program in (module, built):
        for _ in range(2):
            tilewright.compile(program, target)
            tilewright.Schedule(program)
    own = {structural_hash(program) for program in (module, built)}
    assert own <= set(counts)
    assert set(counts.values()) == {1}


@pytest.mark.parametrize("door", ["parse", "Schedule", "compile"])
def test_each_door_rejects_an_ill_formed_program(door: str) -> None:
    with pytest.raises(IllFormedProgramError, match="has access mode 'in' but is written"):
        getattr(tilewright, door)(LOOP if door == "parse" else parse(LOOP))
