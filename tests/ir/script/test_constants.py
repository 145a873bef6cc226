"""Constants are in the text by reference."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.dtype import f32
from tilewright.ir.module import Constant
from tilewright.ir.script import (
    ConstantMismatchError,
    MissingConstantError,
    UnprintableProgramError,
    is_writable,
    parse,
    to_text,
    writable,
)

TEXT = """\
constant("enc.w", (4,), f32, digest="ab", source="m.safetensors")


@graph_func
def main(x: Tensor[(4,), f32]):
    y: Tensor[(4,), f32] = add(x, const("enc.w"))
    return y"""


def supplied(shape: tuple[int, ...] = (4,), digest: str = "ab") -> dict[str, Constant]:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return {"enc.w": Constant(shape, f32, lambda: values, digest)}


def test_values_are_those_supplied() -> None:
    module = parse(TEXT, constants=supplied())
    np.testing.assert_array_equal(module.constants["enc.w"].load(), [0, 1, 2, 3])
    assert module.constants["enc.w"].source == "m.safetensors"
    assert to_text(module) == TEXT


def test_values_that_are_missing_are_an_error_when_they_are_needed() -> None:
    constant = parse(TEXT).constants["enc.w"]
    assert (constant.shape, constant.dtype, constant.digest) == ((4,), f32, "ab")
    with pytest.raises(MissingConstantError, match=r"'enc\.w' were not supplied"):
        constant.load()


@pytest.mark.parametrize(
    ("given", "what"), [(supplied((5,)), "shape"), (supplied(digest="cd"), "digest")]
)
def test_values_that_do_not_fit(given: dict[str, Constant], what: str) -> None:
    with pytest.raises(ConstantMismatchError, match=what):
        parse(TEXT, constants=given)


def test_an_unknown_digest_fits() -> None:
    module = parse(TEXT, constants=supplied(digest=""))
    assert module.constants["enc.w"].digest == "ab"


def test_a_function_alone_says_what_its_constants_are() -> None:
    module = parse(TEXT)
    alone = to_text(module.graph())
    assert 'const("enc.w", Tensor[(4,), f32])' in alone
    assert to_text(parse(alone).graph()) == alone
    assert to_text(module.graph(), module=module) == TEXT.split("\n\n\n")[1]


def test_names_that_cannot_be_written() -> None:
    from dataclasses import replace

    module = parse(TEXT)
    func = module.graph()
    for name in ("x.1", "lambda", "inf", "", "1x", "ﬁ"):
        assert not is_writable(name)
        assert is_writable(writable(name))
        value = replace(func.params[0].value, name=name)
        bad = replace(func, params=(replace(func.params[0], value=value),))
        with pytest.raises(UnprintableProgramError, match="cannot be written"):
            to_text(bad)
