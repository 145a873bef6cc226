"""Import of PyTorch modules in one call, and calls of the executables like the module."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import tilewright as tw
from tilewright.ir.importers.torch_call import ModuleCallError
from tilewright.ir.importers.torch_module import TorchExportError


class Nested(torch.nn.Module):
    """Nested arguments and results, constants, and defaults."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(
        self, x: Any, cache: Any = None, *, scale: float = 2.0, total: bool = True
    ) -> dict[str, Any]:
        y = self.linear(x) * scale
        if cache is not None:
            y = y + cache["rows"][0]
        return {"y": y, "none": None, "pair": (y.sum(-1), 3) if total else (y,)}


@pytest.fixture(scope="module")
def model() -> Nested:
    torch.manual_seed(0)
    return Nested().eval()


@pytest.fixture(scope="module")
def executable(model: Nested) -> Any:
    return tw.compile(tw.from_torch(model, (torch.ones(3, 8),), dynamic={"x": {0: "batch"}}))


def equal(found: Any, expected: Any) -> None:
    leaves, spec = torch.utils._pytree.tree_flatten(found)
    wanted, wanted_spec = torch.utils._pytree.tree_flatten(expected)
    assert spec == wanted_spec
    for a, b in zip(leaves, wanted, strict=True):
        if isinstance(b, torch.Tensor):
            torch.testing.assert_close(a, b.detach(), rtol=1e-5, atol=1e-5)
        else:
            assert a == b


@pytest.mark.parametrize("rows", [0, 1, 2, 7])
def test_calls_like_the_module(model, executable, rows):
    x = torch.randn(rows, 8)
    equal(executable(x), model(x))
    equal(executable(x=x, cache=None), model(x))
    equal(executable(x, total=True), model(x))


def test_tensors_that_are_not_compact_or_need_gradients(model, executable):
    x = torch.randn(8, 5).T
    equal(executable(x), model(x))
    equal(executable(torch.ones(2, 8, requires_grad=True)), model(torch.ones(2, 8)))
    equal(executable(np.ones((2, 8), np.float32)), model(torch.ones(2, 8)))


def test_the_flat_function_takes_arrays(model, executable):
    found = executable["main"](np.ones((2, 8), np.float32))
    assert isinstance(found[0], np.ndarray)
    assert found._fields == ("y", "pair_0")


def test_the_signature_is_that_of_the_module(executable):
    assert str(inspect.signature(executable)) == "(x, cache=None)"


def test_nested_arguments_by_name(model):
    cache = {"rows": [torch.ones(3, 4)]}
    module = tw.from_torch(
        model, (torch.ones(3, 8),), {"cache": cache, "scale": 3.0},
        dynamic={"x": {0: "batch"}, "cache": {"rows": [{0: "batch"}]}},
    )  # fmt: skip
    run = tw.compile(module)
    x, other = torch.randn(5, 8), {"rows": [torch.randn(5, 4)]}
    equal(run(x, other, scale=3.0), model(x, other, scale=3.0))
    equal(run(cache=other, x=x), model(x, other, scale=3.0))
    with pytest.raises(ModuleCallError, match=r"scale is 2.0; the module was exported with 3.0"):
        run(x, other, scale=2.0)
    with pytest.raises(ModuleCallError, match=r"missing: cache\['rows'\]\[0\]"):
        run(x, {"rows": []})


@pytest.mark.parametrize("size", [1, 4])
def test_functions_with_any_number_of_arguments(size):
    def combine(first: Any, *others: Any) -> Any:
        return first + others[0] * others[1]

    sizes = {"first": {0: "n"}, "others": ({0: "n"}, {0: "n"})}
    run = tw.compile(tw.from_torch(combine, (torch.ones(3),) * 3, dynamic=sizes))
    x = torch.arange(float(size))
    equal(run(x, x, x), combine(x, x, x))


def test_automatic_dimensions_and_dtypes_without_a_numpy_dtype():
    def low(pair: Any) -> Any:
        return (pair["a"].float() + pair["b"][0]).bfloat16()

    example = {"a": torch.ones(3, 3, dtype=torch.bfloat16), "b": [torch.ones(3, 3)]}
    run = tw.compile(tw.from_torch(low, (example,), dynamic="auto"))
    other = {"a": torch.full((4, 2), 0.5, dtype=torch.bfloat16), "b": [torch.ones(4, 2)]}
    equal(run(other), low(other))


def test_a_written_argument():
    def add(x: Any, y: Any) -> Any:
        x.add_(y)
        return x * 2

    run = tw.compile(tw.from_torch(add, (torch.ones(3), torch.ones(3))))
    x, y = torch.ones(3), torch.arange(3.0)
    equal(run(x, y), torch.tensor([2.0, 4.0, 6.0]))
    equal(x, torch.tensor([1.0, 2.0, 3.0]))


def test_ranges_that_pytorch_finds():
    class Positions(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Parameter(torch.randn(16, 4))

        def forward(self, x: Any) -> Any:
            return x + self.table[: x.shape[0]]

    module = Positions()
    run = tw.compile(tw.from_torch(module, (torch.ones(3, 4),), dynamic={"x": {0: "seq"}}))
    for length in (1, 16):
        equal(run(torch.ones(length, 4)), module(torch.ones(length, 4)))
    with pytest.raises(tw.TilewrightError, match="16"):
        run(torch.ones(17, 4))


def test_a_scheduled_module_is_called_like_the_module(model):
    sch = tw.Schedule(tw.from_torch(model, (torch.ones(3, 8),), dynamic={"x": {0: "batch"}}))
    sch.default_schedule()
    x = torch.randn(4, 8)
    equal(tw.compile(sch)(x), model(x))


def test_transformers_outputs_and_caches():
    config = transformers.LlamaConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        intermediate_size=48, vocab_size=50,
    )  # fmt: skip
    torch.manual_seed(0)
    llama = transformers.LlamaForCausalLM(config).eval()
    module = tw.from_torch(
        llama, (torch.zeros(2, 7, dtype=torch.long),),
        dynamic={"input_ids": {0: "batch", 1: "seq"}},
    )  # fmt: skip
    run = tw.compile(module)
    tokens = torch.randint(0, 50, (3, 5))
    with torch.no_grad():
        expected = llama(tokens)
    found = run(tokens)
    assert type(found) is type(expected)
    torch.testing.assert_close(found.logits, expected.logits, rtol=1e-4, atol=1e-4)
    cache = "cache" if "cache" in found else "past_key_values"
    torch.testing.assert_close(
        found[cache].layers[0].keys, expected[cache].layers[0].keys, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    ("args", "named", "message"),
    [
        ((), {}, "missing argument: x"),
        ((3,), {}, r"x is 3; it was a tensor at the export"),
        ((torch.ones(2, 8), None, 1), {}, "at most 2 positional arguments, got 3"),
        ((torch.ones(2, 8),), {"x": torch.ones(2, 8)}, "passed by position and by name"),
        ((torch.ones(2, 8),), {"scale": 3.0}, "had no value at the export but its default 2.0"),
        ((torch.ones(2, 8),), {"total": 1}, "'total' had no value at the export"),
        ((torch.ones(2, 8),), {"other": 1}, "'other' had no value at the export"),
        (((torch.ones(2, 8),),), {}, r"missing: x; unexpected: x\[0\]"),
    ],
)
def test_invalid_calls(executable, args, named, message):
    with pytest.raises(ModuleCallError, match=message):
        executable(*args, **named)


@pytest.mark.parametrize(
    ("args", "dynamic", "message"),
    [
        ((torch.ones(3, 8),), {"z": {0: "n"}}, "no argument 'z'; the arguments are x"),
        ((torch.ones(1, 8),), {"x": {0: "n"}}, "has the size 1 in the example"),
        ((torch.ones(3, 8),), {"x": {2: "n"}}, "no axis 2"),
        ((torch.ones(3, 8),), {"x": {0: "1n"}}, "not an identifier"),
        ((torch.ones(3, 8),), {"x": 0}, "expected a mapping of axes"),
        ((torch.ones(3, 8),), {"x": {1: "width"}}, "one size only.*width = 8"),
        ((torch.ones(3, 8),), ["x"], "expected a mapping of argument names"),
        ((), None, "missing a required argument: 'x'"),
        (torch.ones(3, 8), None, r"expected a tuple of arguments, got a Tensor"),
        ((torch.ones(3, 7),), None, "RuntimeError"),
    ],
)
def test_invalid_exports(model, args, dynamic, message):
    with pytest.raises(TorchExportError, match=message):
        tw.from_torch(model, args, dynamic=dynamic)


@pytest.mark.parametrize("module", [Nested, 3])
def test_other_objects_than_modules(module):
    with pytest.raises(TorchExportError, match=r"a torch\.nn\.Module or a function"):
        tw.from_torch(module, ())


def test_a_damaged_convention():
    module = tw.from_torch(torch.nn.ReLU(), (torch.ones(3),))
    for text in ("", "[]", '{"names": 1}'):
        damaged = replace(module, attributes={**module.attributes, "torch_call": text})
        with pytest.raises(ModuleCallError, match="cannot read the calling convention"):
            tw.compile(damaged)


def test_a_changed_main_is_called_with_flat_arguments():
    module = tw.from_torch(torch.nn.ReLU(), (torch.ones(3),))
    other = tw.parse("""
@graph_func
def main(a: Tensor[(3,), f32], b: Tensor[(3,), f32]):
    c = add(a, b)
    return c
""")
    run = tw.compile(module.with_functions(other.graph()))
    ones = np.ones(3, np.float32)
    np.testing.assert_array_equal(run(ones, ones), 2 * ones)
