"""Constants in program texts."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
from tilewright.ir.dtype import f32
from tilewright.ir.module import Constant
from tilewright.ir.script import (
    ConstantMismatchError,
    MissingConstantError,
    UnprintableProgramError,
    is_valid_name,
    parse,
    to_text,
    to_valid_name,
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


def test_supplied_values_are_loaded() -> None:
    module = parse(TEXT, constants=supplied())
    np.testing.assert_array_equal(module.constants["enc.w"].load(), [0, 1, 2, 3])
    assert module.constants["enc.w"].source == "m.safetensors"
    assert to_text(module) == TEXT


def test_loading_missing_values_raises() -> None:
    constant = parse(TEXT).constants["enc.w"]
    assert (constant.shape, constant.dtype, constant.digest) == ((4,), f32, "ab")
    with pytest.raises(MissingConstantError, match=r"'enc\.w' were not supplied"):
        constant.load()


@pytest.mark.parametrize(
    ("given", "property_name"), [(supplied((5,)), "shape"), (supplied(digest="cd"), "digest")]
)
def test_mismatched_values_are_rejected(given: dict[str, Constant], property_name: str) -> None:
    with pytest.raises(ConstantMismatchError, match=property_name):
        parse(TEXT, constants=given)


def test_an_unknown_digest_is_accepted() -> None:
    module = parse(TEXT, constants=supplied(digest=""))
    assert module.constants["enc.w"].digest == "ab"


def test_single_functions_annotate_constants() -> None:
    module = parse(TEXT)
    alone = to_text(module.graph())
    assert 'const("enc.w", Tensor[(4,), f32])' in alone
    assert to_text(parse(alone).graph()) == alone
    assert to_text(module.graph(), module=module) == TEXT.split("\n\n\n")[1]


def test_invalid_names_cannot_be_printed() -> None:
    from dataclasses import replace

    module = parse(TEXT)
    func = module.graph()
    for name in ("x.1", "lambda", "inf", "", "1x", "ﬁ"):
        assert not is_valid_name(name)
        assert is_valid_name(to_valid_name(name))
        value = replace(func.params[0].value, name=name)
        bad = replace(func, params=(replace(func.params[0], value=value),))
        with pytest.raises(UnprintableProgramError, match="not valid in the text format"):
            to_text(bad)


INLINE = """
@graph_func
def main(x: Tensor[(4,), f32]):
    y = add(x, const("enc.w", Tensor[(4,), f32]))
    z = multiply(y, const("enc.w", Tensor[(4,), f32]))
    return z
"""


def test_values_of_constants_declared_inline() -> None:
    module = parse(INLINE, constants=supplied())
    np.testing.assert_array_equal(module.constants["enc.w"].load(), [0, 1, 2, 3])
    again = parse(to_text(module), constants=module.constants)
    assert to_text(again) == to_text(module)
    assert not parse(INLINE).constants


@pytest.mark.parametrize(
    ("text", "given", "property_name"),
    [
        (INLINE, supplied((5,)), r"expected shape \(4,\) for constant 'enc\.w', got \(5,\)"),
        (INLINE, {"enc.w": np.zeros(4)}, r"expected dtype f32 for constant 'enc\.w', got f64"),
        (INLINE.replace("4,", "n,", 3), {"enc.w": np.zeros(4, np.float32)}, "shape of integers"),
        (
            TEXT,
            {"enc.w": [1.0, 2.0]},
            r"(?s)expected an array for constant 'enc\.w', got list.*a NumPy array",
        ),
        (TEXT, {"enc.w": None}, r"got NoneType"),
    ],
)
def test_values_not_matching_the_text_are_rejected(text, given, property_name) -> None:
    declared = 'n = symbols("n", lower=1)\n' + text
    with pytest.raises(ConstantMismatchError, match=property_name):
        parse(declared, constants=given)


@pytest.mark.parametrize("text", [TEXT, INLINE])
def test_arrays_as_values(text) -> None:
    weight = np.arange(8, dtype=np.float32)[::2]
    module = parse(text.replace(', digest="ab"', ""), constants={"enc.w": weight, "other": weight})
    assert set(module.constants) == {"enc.w"}
    assert np.shares_memory(module.constants["enc.w"].load(), weight)
    program = tilewright.compile(module, target="cpu")
    found = np.asarray(program(np.ones(4, np.float32)))
    want = 1 + weight if text == TEXT else (1 + weight) * weight
    np.testing.assert_allclose(found, want)


def test_arrays_of_foreign_byte_order() -> None:
    weight = np.arange(4, dtype=">f4")
    (constant,) = parse(INLINE, constants={"enc.w": weight}).constants.values()
    assert constant.load().dtype == np.dtype("<f4")
    np.testing.assert_array_equal(constant.load(), weight)
