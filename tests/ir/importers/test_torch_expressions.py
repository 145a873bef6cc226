"""Expressions of exported programs: arithmetic on sizes is accepted, everything else is not."""

from __future__ import annotations

import pytest

from tilewright.ir.importers.torch_expressions import is_guard, is_identifier, is_plain, is_size

SYMBOL = "Symbol('s77', positive=True, integer=True)"


@pytest.mark.parametrize(
    "text",
    [
        SYMBOL,
        f"Add(Mul(Integer(32), {SYMBOL}), Mul(Integer(-1), {SYMBOL}))",
        f"Pow({SYMBOL}, Integer(2))",
        f"Min({SYMBOL}, FloorDiv({SYMBOL}, Integer(4)))",
        f"Equality({SYMBOL}, Integer(3))",
        "s0 // 2 + 3 * s1",
    ],
)
def test_sizes(text: str) -> None:
    assert is_size(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "exit()",
        "().__class__",
        "s0.name",
        "[x for x in y]",
        "lambda: 0",
        "(yield)",
        "x := 3",
        "Symbol('a b')",
        "Symbol(open)('a')",
        "Symbol('a', cls=Function)",
        "Integer('9')",
        "Lambda(a, b)",
        "sympify('exit()')",
        "S('exit()')",
        "f'{exit()}'",
        "'exit()'",
        "9 ** 9 ** 9",
        "Pow(9, 10**9)",
        "PowByNatural(9, s0)",
        "9" * 60,
        "a\nb",
        "a # b",
        "(" * 10_000 + "1" + ")" * 10_000,
        "1" + "+1" * 60_000,
        "Symbol('\u0430')",
    ],
)
def test_other_expressions_are_not_sizes(text: str) -> None:
    assert not is_size(text)


@pytest.mark.parametrize(
    "text",
    [
        "L['ids'].size()[1] + L['past'][0][0].size()[2] <= 2*L['mask'].size()[1] + (-1)",
        "min(8*L['a'].size()[1], 16) == 8*L['a'].size()[1]",
        "Mod(L['x'].size()[0], 2) != 0 and not L['flag'] == True",
    ],
)
def test_guards(text: str) -> None:
    assert is_guard(text)


@pytest.mark.parametrize(
    "text",
    [
        "exit()",
        "L['x'].__class__",
        "L['x'].tofile('f')",
        "L['x'].size(open('f'))",
        "L['x; exit()']",
        'L["x"]',
        "math.system('ls')",
        "torch.os.system('ls')",
        "L['x'] if exit() else 1",
    ],
)
def test_other_expressions_are_not_guards(text: str) -> None:
    assert not is_guard(text)


def test_names_and_plain_texts() -> None:
    assert is_identifier("p_layer_0")
    assert is_identifier("")
    assert not is_identifier("a.b")
    assert not is_identifier("a" * 2000)
    assert is_plain("encoder.layer.0/weight <=2.4")
    assert not is_plain("a\nb")
    assert not is_plain("a'b")
