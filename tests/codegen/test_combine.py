"""Combined programs: names, common constants and kernels, state, and one export."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.combine import CombinationError
from tilewright.codegen.program import NotAProgramError
from tilewright.ir.dtype import f32
from tilewright.ir.interpreter import run_graph
from tilewright.ir.module import Constant, Module

from tests.codegen.export.test_package import loaded

TEXT = """
constant("w", (48, 32), f32)
constant("{bias}", (48,), f32)
{symbol} = symbols("{symbol}", lower={lower})

@graph_func
def main(x: Tensor[({symbol}, 32), f32]):
    t = permute_dims(const("w"), axes=(1, 0))
    y = matmul(x, t)
    z = add(y, const("{bias}"))
    return {result}
"""
RNG = np.random.default_rng(0)
WEIGHT = RNG.standard_normal((48, 32)).astype(np.float32)
BIAS = RNG.standard_normal((2, 48)).astype(np.float32)


def program(number: int, result: str = "z", **text: str) -> Module:
    """Return a program with its own copies of the weight and of a bias."""
    words = {"bias": "b", "symbol": "n", "lower": "1", "result": result, **text}
    arrays = {"w": WEIGHT.copy(), words["bias"]: BIAS[number].copy()}
    constants = {
        key: Constant(array.shape, f32, lambda array=array: array) for key, array in arrays.items()
    }
    return tw.parse(TEXT.format(**words), constants=constants)


PREFILL = program(0)
DECODE = program(1, symbol="rows", lower="2", result="y, z")


def test_equal_constants_become_one_and_functions_have_the_names_of_the_arguments() -> None:
    made = tw.combine(prefill=PREFILL, decode=DECODE)
    assert list(made.functions) == ["prefill", "decode"]
    assert list(made.constants) == ["w", "b", "decode.b"]
    x = RNG.standard_normal((3, 32)).astype(np.float32)
    for name, original in (("prefill", PREFILL), ("decode", DECODE)):
        wanted = run_graph(original, (x,))
        found = run_graph(made, (x,), function=name)
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_equal_constants_of_other_names_become_one() -> None:
    made = tw.combine(first=program(0), second=program(0, bias="offset"), third=program(1))
    assert list(made.constants) == ["w", "b", "third.b"]


def test_the_text_of_a_combination_parses_to_an_equal_program() -> None:
    made = tw.combine(prefill=PREFILL, decode=DECODE)
    arrays = {key: constant.load() for key, constant in made.constants.items()}
    again = tw.parse(str(made), constants=arrays)
    assert str(again) == str(made)


def test_one_export_with_both_functions_equals_the_separate_ones(tmp_path: Path) -> None:
    made = tw.export(tw.combine(prefill=PREFILL, decode=DECODE), tmp_path / "both", name="both")
    both = loaded(made.directory, "both")
    x = RNG.standard_normal((5, 32)).astype(np.float32)
    sizes: list[int] = []
    for name, original in (("prefill", PREFILL), ("decode", DECODE)):
        alone = tw.export(original, tmp_path / name, name=name)
        sizes.append(alone.files[f"{name}.safetensors"])
        found, wanted = getattr(both, name)(x), loaded(alone.directory, name).main(x)
        found, wanted = (r if isinstance(r, tuple) else (r,) for r in (found, wanted))
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
    assert made.files["both.safetensors"] <= max(sizes) + 4 * 48 + 200
    manifest = json.loads((made.directory / "both.json").read_text())
    assert [f["symbol"] for f in manifest["functions"]] == ["both_prefill", "both_decode"]


KERNELS = """
n = symbols("n", lower=0)

@prim_func
def {kernel}(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i] {operation} {factor}

@graph_func
def main(x: Tensor[(n,), f32]):
    y: Tensor[(n,), f32] = call_tir({kernel}, x)
    return y
"""


def kernels(kernel: str, factor: str, operation: str = "*") -> Module:
    return tw.parse(KERNELS.format(kernel=kernel, factor=factor, operation=operation))


def test_equal_kernels_become_one_and_others_are_renamed() -> None:
    made = tw.combine(
        a=kernels("scale", "2.0"), b=kernels("scale", "3.0"), c=kernels("double", "2.0")
    )
    assert sorted(f.name for f in made.prims) == ["a_scale", "b_scale"]
    exe = tw.compile(made)
    x = np.arange(4, dtype=np.float32)
    assert [exe[name](x).tolist() for name in "abc"] == [
        [0, 2, 4, 6], [0, 3, 6, 9], [0, 2, 4, 6],
    ]  # fmt: skip


def test_scheduled_programs_keep_their_steps_and_prepared_constants() -> None:
    parts: dict[str, tw.Schedule] = {}
    for name, original in (("prefill", PREFILL), ("decode", DECODE)):
        parts[name] = tw.Schedule(original)
        parts[name].lift_transforms("main")
    made = tw.combine(**parts)
    assert set(made.functions) == {"prefill", "prefill_prepare", "decode", "decode_prepare"}
    assert list(made.constants) == ["w", "b", "prepared.t", "decode.b", "decode.prepared.t"]
    exe = tw.compile(made)
    x = RNG.standard_normal((3, 32)).astype(np.float32)
    for name, original in (("prefill", PREFILL), ("decode", DECODE)):
        found = exe[name](x)
        found = found if isinstance(found, tuple) else (found,)
        for a, b in zip(found, run_graph(original, (x,)), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


STATE = """
@graph_func
def main(x: Tensor[(4,), f32], total: State[Tensor[(4,), f32]]):
    new = {operator}(total, x)
    return new, updates(total=new)
"""


def test_functions_share_a_state_of_one_name(tmp_path: Path) -> None:
    parts = {name: tw.parse(STATE.format(operator=name)) for name in ("add", "multiply")}
    made = tw.combine(**parts)
    model = loaded(tw.export(made, tmp_path / "made", name="calc").directory, "calc")
    state = model.new_state()
    three = np.full(4, 3, np.float32)
    assert model.add(three, state=state).tolist() == [3] * 4
    assert model.multiply(three, state=state).tolist() == [9] * 4


def test_programs_that_cannot_be_combined() -> None:
    with pytest.raises(CombinationError, match=r"(?s)two programs have a function 'main'.*first="):
        tw.combine(PREFILL, DECODE)
    with pytest.raises(CombinationError, match="there is no program"):
        tw.combine()
    with pytest.raises(NotAProgramError, match="got int"):
        tw.combine(first=3)  # pyright: ignore[reportArgumentType]
