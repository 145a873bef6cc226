"""The verdict on pairs of exports."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.export.compatibility import Verdict, compare
from tilewright.codegen.export.inspection import read_description
from tilewright.ir.dtype import f32
from tilewright.ir.module import Constant, Module
from tilewright.ir.script import parse

TEXT = """
n = symbols("n", lower=1, upper=64)
constant("weight", (24, 8), f32)

@graph_func
def main(x: Tensor[(n, 24), f32]):
    fact(n <= 60, "the longest batch", at="model.py:3", by="entry_check")
    y = matmul(x, const("weight"))
    return y

@graph_func
def other(x: Tensor[(4, 8), f32]):
    z = relu(x)
    return z
"""
ALSO = """
@graph_func
def more(x: Tensor[(n,), f32]):
    z = relu(x)
    return z
"""
STATE = """
@graph_func
def more(x: Tensor[(4,), f32], seen: State[Tensor[(4,), f32]]):
    z = add(x, seen)
    return z, updates(seen=z)
"""
RANGE, FACT = 'symbols("n", lower=1, upper=64)', "n <= 60"


def program(text: str, seed: int = 0) -> Module:
    shape = (25, 8) if "(25, 8)" in text else (24, 8)
    weight = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return parse(text, constants={"weight": Constant(shape, f32, lambda: weight)})


_MADE: dict[tuple[object, ...], Path] = {}


@pytest.fixture
def exported(tmp_path_factory):
    def made(text: str, *, seed: int = 0, features: str = "avx2", **options: object) -> Path:
        key = (text, seed, features, *sorted(options.items()))
        if key not in _MADE:
            target = tw.Target("cpu", features=(features,), threads=options.pop("threads", 0))
            folder = tmp_path_factory.mktemp("pair") / "made"
            options = {"kind": "object", "target": target, **options}
            _MADE[key] = tw.export(program(text, seed), folder, name="m", **options).directory
        return _MADE[key]

    return made


OTHER = "other(x: Tensor[(4, 8), f32])"
PAIRS = {
    "weights": (TEXT, {"seed": 1}, "COMPATIBLE", None),
    "code": (TEXT.replace("relu(x)", "negative(x)"), {}, "COMPATIBLE", "the program differs"),
    "metadata": (TEXT, {"metadata": (("version", "2"),)}, "COMPATIBLE", "metadata: {} becomes"),
    "new function": (TEXT + ALSO, {}, "ADDITIVE", "function 'more' is added"),
    "wider range": (
        TEXT.replace(RANGE, 'symbols("n", lower=0, upper=128)'), {}, "ADDITIVE",
        "function 'main': the range of n: 1 to 64 becomes 0 to 128",
    ),
    "fewer assumptions": (
        "\n".join(line for line in TEXT.splitlines() if FACT not in line), {}, "ADDITIVE",
        "function 'main': it no longer assumes n <= 60",
    ),
    "replaceable": (TEXT, {"weights": "replaceable"}, "ADDITIVE", "the weights are replaceable"),
    "removed function": (
        TEXT.split("@graph_func\ndef other", maxsplit=1)[0], {}, "BREAKING",
        "function 'other' is removed",
    ),
    "narrower range": (
        TEXT.replace(RANGE, 'symbols("n", lower=2, upper=64)'), {}, "BREAKING",
        "function 'main': the range of n: 1 to 64 becomes 2 to 64",
    ),
    "dtype": (
        TEXT.replace(OTHER, "other(x: Tensor[(4, 8), f64])"), {}, "BREAKING",
        "function 'other': parameter 'x': Tensor((4, 8), f32), in becomes Tensor((4, 8), f64), in",
    ),
    "shape": (
        TEXT.replace(OTHER, "other(x: Tensor[(5, 8), f32])"), {}, "BREAKING",
        "function 'other': parameter 'x': Tensor((4, 8), f32) becomes Tensor((5, 8), f32)",
    ),
    "parameter": (
        TEXT.replace(OTHER, "other(y: Tensor[(4, 8), f32])").replace("relu(x)", "relu(y)"), {},
        "BREAKING", "function 'other': parameters (x) become (y)",
    ),
    "result": (
        TEXT.replace("z = relu(x)\n    return z", "w = relu(x)\n    return w"), {}, "BREAKING",
        "function 'other': results (z: Tensor((4, 8), f32)) become (w: Tensor((4, 8), f32))",
    ),
    "new assumption": (
        TEXT.replace("n <= 60", "n <= 50"), {}, "BREAKING",
        "function 'main': it also assumes n <= 50",
    ),
    "processor": (TEXT, {"features": "avx512"}, "BREAKING", "the processor must also have avx512"),
    "threads": (
        TEXT, {"threads": 2}, "BREAKING",
        "the maximum number of threads is reduced from 65536 to 2",
    ),
    "kind": (TEXT, {"kind": "static"}, "BREAKING", "kind: object becomes static"),
    "state": (TEXT + STATE, {}, "BREAKING", "states (none) become (seen: Tensor((4,), f32))"),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_the_verdict_on_a_pair(exported, name):
    text, options, verdict, difference = PAIRS[name]
    given = {k: dict(v) if k == "metadata" else v for k, v in options.items()}
    made = exported(text, **given) if "metadata" not in given else _with_metadata(exported, given)
    found = compare(read_description(exported(TEXT)), read_description(made))
    texts = [d.text for d in found.differences]
    assert found.verdict is Verdict[verdict], texts
    if difference is None:
        assert texts == []
    else:
        assert any(text.startswith(difference) for text in texts), texts
    effects = [d.verdict for d in found.differences]
    assert effects == sorted(effects, reverse=True)


def _with_metadata(exported, given) -> Path:
    folder = exported(TEXT).parent / "with_metadata"
    target = tw.Target("cpu", features=("avx2",))
    return tw.export(
        program(TEXT), folder, name="m", kind="object", target=target, **given
    ).directory


def test_an_export_is_compatible_with_itself(exported):
    found = read_description(exported(TEXT))
    assert compare(found, found).differences == ()
    assert compare(found, found).verdict is Verdict.COMPATIBLE


def test_the_reverse_of_an_addition_is_breaking(exported):
    old, new = (read_description(exported(t)) for t in (TEXT + ALSO, TEXT))
    assert compare(old, new).verdict is Verdict.BREAKING


def test_other_weights_files_are_breaking_if_they_are_replaceable(exported):
    wide = TEXT.replace("(24, 8)", "(25, 8)").replace("(n, 24)", "(n, 25)")
    old, new = (read_description(exported(text, weights="replaceable")) for text in (TEXT, wide))
    texts = [str(d) for d in compare(old, new).differences]
    wanted = "files of weights that were packed for the old export are not accepted"
    assert f"breaking: {wanted}" in texts
    same = compare(old, read_description(exported(TEXT, seed=3, weights="replaceable")))
    assert same.differences == ()


def test_a_symbol_that_includes_a_size_accepts_more(exported):
    text = TEXT.replace(OTHER, "other(x: Tensor[(n, 8), f32])")
    found = compare(read_description(exported(TEXT)), read_description(exported(text)))
    texts = {d.text: d.verdict for d in found.differences}
    wider = "function 'other': parameter 'x': Tensor((4, 8), f32) becomes Tensor((n, 8), f32)"
    assert texts[wider] is Verdict.ADDITIVE
