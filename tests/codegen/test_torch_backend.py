"""The backend of ``torch.compile``: results, gradients, writes, and graphs left to PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import transformers

from tilewright.codegen import torch_backend
from tilewright.codegen.torch_backend import PyTorchGraphWarning, TorchBackendError, report
from tilewright.ir.importers.unsupported import UnsupportedOperatorsError


@pytest.fixture(autouse=True)
def _no_graphs() -> Iterator[None]:
    torch._dynamo.reset()
    torch_backend.clear_report()
    with warnings.catch_warnings():
        warnings.simplefilter("error", PyTorchGraphWarning)
        yield


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, backend="tilewright", **options)


def locations() -> list[tuple[Any, Any]]:
    """Return the kind of each graph and where it runs."""
    return [(row[1], row[5]) for row in report().rows]


def close(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_the_backend_is_registered():
    assert "tilewright" in torch._dynamo.list_backends()


def test_sizes_among_inputs_and_outputs():
    def products(x: Any, y: Any) -> Any:
        z = (x @ y).relu()
        return z, x.shape[0] * 2, z.sum(-1), x

    run = compiled(products, dynamic=True)
    for n in (3, 4, 7, 1):
        x, y = torch.randn(n, 5), torch.randn(5, n)
        found, expected = run(x, y), products(x, y)
        assert found[1] == expected[1]
        assert found[3] is x
        close((found[0], found[2]), (expected[0], expected[2]))
    assert locations() == [("inference", "Tilewright")] * 2  # one for the size 1


def test_a_relation_between_sizes():
    """The size ``n`` of ``y`` must be the half of that of ``x``, which PyTorch checks."""

    def halves(x: Any, y: Any) -> Any:
        return x.reshape(2, -1) + y

    run = compiled(halves, dynamic=True)
    for n in (4, 6):
        x, y = torch.randn(2 * n), torch.randn(n)
        close(run(x, y), halves(x, y))
    assert len(locations()) == 1


def test_a_gradient():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    run, x = compiled(model), torch.randn(6, 8)
    run(x).pow(2).sum().backward()
    found = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model(x).pow(2).sum().backward()
    close(found, [p.grad for p in model.parameters()])
    assert locations() == [("forward", "Tilewright"), ("backward", "Tilewright")]


def test_a_step_of_training_changes_the_weights():
    """Weights are inputs, so a call after a step of the optimizer uses the new ones."""
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3)
    run, x = compiled(model), torch.randn(5, 4)
    with torch.no_grad():
        close(run(x), model(x))
        for p in model.parameters():
            p.data = p.data * 2
        close(run(x), model(x))


def test_writes_and_views():
    def update(x: Any) -> Any:
        x.add_(1)
        return x[1:], x.t()

    x = torch.randn(4, 4)
    y = x.clone()
    found, expected = compiled(update)(x), update(y)
    close((x, *found), (y, *expected))
    found[1][0, 0] = 5.0
    assert x[0, 0] == 5.0


def test_dtypes_without_a_numpy_dtype():
    def low(x: Any) -> Any:
        return (x.bfloat16() @ x.bfloat16().t()).relu(), x > 0

    x = torch.randn(3, 5)
    close(compiled(low)(x), low(x))


def test_tokens_of_a_decoder_with_its_cache():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        intermediate_size=48, vocab_size=50,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    prompt = torch.randint(0, 50, (1, 5))
    expected = model.generate(prompt, max_new_tokens=6, do_sample=False)
    model.forward = compiled(model.forward, dynamic=True)
    assert torch.equal(model.generate(prompt, max_new_tokens=6, do_sample=False), expected)
    assert {location for _, location in locations()} == {"Tilewright"}


def unsupported(x: Any) -> Any:
    return torch.special.airy_ai(x)


def test_a_graph_that_runs_in_pytorch_is_reported():
    run, x = compiled(unsupported), torch.ones(3)
    with pytest.warns(PyTorchGraphWarning, match=r"graph 0 .*runs in PyTorch.*airy_ai"):
        found = run(x)
    close(found, unsupported(x))
    ((_, _, operators, kernels, calls, location, reason),) = report().rows
    assert (operators, kernels, calls, location) == (1, None, 1, "PyTorch")
    assert "airy_ai" in str(reason)
    assert "airy_ai" in str(report())


def test_random_numbers_differ_between_calls():
    """A compiled program returns the same numbers on each call, so PyTorch runs the graph."""
    run = compiled(lambda x: torch.rand_like(x) + torch.nn.functional.dropout(x, 0.5, True))
    x = torch.ones(100)
    with pytest.warns(PyTorchGraphWarning, match="random operators"):
        first = run(x)
    assert not torch.equal(first, run(x))


def test_an_error_in_place_of_a_graph_in_pytorch():
    run = compiled(unsupported, options={"fallback": False})
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="airy_ai") as caught:
        run(torch.ones(3))
    assert isinstance(caught.value.inner_exception, UnsupportedOperatorsError)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"options": {"freez": True}}, "no option 'freez'"),
        ({"mode": "max-autotune"}, "no mode 'max-autotune'"),
    ],
)
def test_invalid_options(options, message):
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=message) as caught:
        compiled(unsupported, **options)(torch.ones(3))
    assert isinstance(caught.value.inner_exception, TorchBackendError)


def test_a_graph_without_computation():
    def identity(x: Any) -> Any:
        return x, None

    x = torch.ones(3)
    assert compiled(identity)(x)[0] is x
