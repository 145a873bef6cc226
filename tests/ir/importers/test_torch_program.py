"""Imported torch.export programs compute the same results as PyTorch."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from tilewright.errors import UnsupportedOperatorsError
from tilewright.ir.dtype import f32
from tilewright.ir.graph.nodes import Call, GraphFunc, TensorInfo
from tilewright.ir.importers import from_exported_program
from tilewright.ir.importers.torch_program import UnsupportedInputError
from tilewright.ir.importers.torch_symbols import SymbolicDimensionError
from tilewright.ir.interpreter.graph import GraphCheckError, run_graph
from tilewright.ir.module import Module
from tilewright.ir.script import parse, to_text as to_script
from tilewright.ir.structural_hash import explain_difference
from tilewright.ir.symbolic import Discharge, Expr, evaluate, to_text
from tilewright.ir.verify import verify

from tests.ir.importers.models import (
    PAIRS,
    PAST,
    Arrays,
    bert,
    cached_llama,
    encoder_inputs,
    exported_bert,
    exported_llama,
    exported_minilm,
    llama_inputs,
    minilm,
    run_encoder,
    run_llama,
)
from tests.ir.importers.unknown_operator import unknown

ATTENTION = ("eager", "sdpa")


@pytest.fixture(scope="module", params=ATTENTION)
def attention(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def compare(found: Any, expected: Arrays, tolerance: float) -> None:
    assert len(found) == len(expected)
    for have, want in zip(found, expected, strict=True):
        assert have.shape == want.shape
        np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance)


def in_double(module: Module) -> Module:
    """Convert the weights to float64 once instead of at every run."""
    wide = {k: c.load().astype(np.float64) for k, c in module.constants.items() if c.dtype is f32}
    held = {k: replace(module.constants[k], load=partial(np.asarray, a)) for k, a in wide.items()}
    return module.with_constants(held)


def texts(shape: tuple[Expr, ...] | None) -> list[str]:
    assert shape is not None
    return [to_text(d) for d in shape]


def params(function: GraphFunc) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for param in function.params:
        assert isinstance(param.value.info, TensorInfo)
        found[param.value.name] = texts(param.value.info.shape)
    return found


def operators(function: GraphFunc) -> list[str]:
    return [b.right.op for b in function.bindings if isinstance(b.right, Call)]


def admitted(function: GraphFunc, **sizes: int) -> bool:
    """Return whether the entry checks accept these sizes."""
    facts = [f.predicate for f in function.facts if f.discharge is Discharge.ENTRY_CHECK]
    symbols = {v.name: v for f in facts for v in f.free}
    env = {symbols[name]: size for name, size in sizes.items() if name in symbols}
    return all(evaluate(f, env) for f in facts)


def test_bert_equals_pytorch_at_every_shape(attention: str) -> None:
    module = from_exported_program(exported_bert(attention))
    model = bert(attention).double()
    for batch, length in PAIRS:
        inputs = encoder_inputs(batch, length)
        compare(run_graph(module, inputs, precise=True), run_encoder(model, inputs), 1e-12)


def test_bert_keeps_names_and_facts(attention: str) -> None:
    module = from_exported_program(exported_bert(attention))
    function = module.graph()
    assert params(function) == {
        "input_ids": ["batch", "seq"],
        "attention_mask": ["batch", "seq"],
    }
    assert admitted(function, batch=128, seq=64)
    assert admitted(function, batch=1, seq=1)
    assert not admitted(function, batch=129, seq=64)
    assert not admitted(function, batch=1, seq=65)
    assert function.result_names == ("last_hidden_state", "pooler_output")
    origins = {o for b in function.bindings for o in b.origins}
    assert "encoder.layer.0.attention.self.query" in origins
    assert dict(function.hints) == {"batch": (2,), "seq": (7,)}


def test_bert_is_lean(attention: str) -> None:
    """Positions, token types, and the indexing of the mask need no computation."""
    function = from_exported_program(exported_bert(attention)).graph()
    used = operators(function)
    assert used.count("take") == 1
    assert used.count("cast") == 1
    assert not {"arange", "gather_elements", "index", "broadcast_to", "full"} & set(used) - (
        {"full"} if attention == "eager" else set()
    )
    assert used.count("matmul") == 2 * 8 + 1


@pytest.mark.model
def test_minilm_equals_pytorch_at_every_shape() -> None:
    module = in_double(from_exported_program(exported_minilm()))
    model = minilm().double()
    for batch, length in PAIRS:
        inputs = encoder_inputs(batch, length)
        compare(run_graph(module, inputs, precise=True), run_encoder(model, inputs), 1e-10)


@pytest.mark.model
def test_weights_are_shared_with_the_model() -> None:
    program = exported_minilm()
    module = from_exported_program(program)
    name = "embeddings.word_embeddings.weight"
    assert np.shares_memory(
        module.constants[name].load(), program.state_dict[name].detach().numpy()
    )
    assert module.constants[name].shape == (30522, 384)


def test_llama_equals_pytorch_with_a_growing_cache(attention: str) -> None:
    """The tolerance is large because the model computes the rotary embedding in float32."""
    module = from_exported_program(exported_llama(attention))
    model = cached_llama(attention).double()
    for (batch, length), past in zip(PAIRS, cycle(PAST), strict=False):
        inputs = llama_inputs(batch, length, past)
        compare(run_graph(module, inputs, precise=True), run_llama(model, inputs), 1e-6)


def test_llama_decodes_as_it_prefills() -> None:
    module = from_exported_program(exported_llama("sdpa"))
    ids = np.random.default_rng(0).integers(0, 99, (2, 6))
    empty = [np.zeros((2, 2, 0, 8)) for _ in range(4)]
    ones = np.ones((2, 6), np.int64)
    whole = run_graph(module, [ids, ones, *empty], precise=True)
    cache: Any = empty
    for k in range(6):
        step = run_graph(module, [ids[:, k : k + 1], ones[:, : k + 1], *cache], precise=True)
        cache = step[1:]
        np.testing.assert_allclose(step[0][:, 0], whole[0][:, k], atol=1e-10)


def test_dimensions_that_guards_equate_are_one_symbol() -> None:
    function = from_exported_program(exported_llama("sdpa")).graph()
    found = params(function)
    assert found["mask"] == ["batch", "seq + past"]
    assert found["past_0_0"] == ["batch", "2", "past", "8"]
    assert admitted(function, batch=1, seq=1, past=0)
    assert admitted(function, batch=128, seq=32, past=32)
    assert not admitted(function, batch=1, seq=1, past=33)


def test_guards_on_variadic_inputs_are_entry_checks() -> None:
    import torch

    class HalfOfSecond(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return args[0] + 1, torch.tensor_split(args[1], 2, 0)[0]

    sizes = (({0: torch.export.Dim.DYNAMIC}, {0: torch.export.Dim.DYNAMIC}),)
    inputs = torch.zeros(3, 7), torch.zeros(4, 7)
    program = export(HalfOfSecond(), *inputs, dynamic_shapes=sizes)
    function = from_exported_program(program).graph()
    assert admitted(function, args_0_dim0=3, args_1_dim0=6)
    assert not admitted(function, args_0_dim0=3, args_1_dim0=5)


@pytest.mark.parametrize("strict", [False, True])
def test_guards_on_nested_and_keyword_inputs_are_entry_checks(strict: bool) -> None:
    import torch

    class PrefixOfBoth(torch.nn.Module):
        def forward(self, pair: Any, *, last: Any) -> Any:
            return torch.cat([pair["a"], last])[: pair["b"].shape[0]] + pair["b"]

    size = {0: torch.export.Dim.DYNAMIC}
    pair = {"a": torch.zeros(5), "b": torch.zeros(4)}
    sizes = {"pair": {"a": size, "b": size}, "last": size}
    options: Any = {"dynamic_shapes": sizes, "strict": strict, "kwargs": {"last": torch.zeros(6)}}
    function = from_exported_program(export(PrefixOfBoth(), pair, **options)).graph()
    assert admitted(function, pair_a_dim0=1, pair_b_dim0=3, last_dim0=2)
    assert not admitted(function, pair_a_dim0=1, pair_b_dim0=4, last_dim0=2)


def test_a_wrong_size_is_rejected_at_entry() -> None:
    module = from_exported_program(exported_llama("sdpa"))
    inputs = llama_inputs(2, 3, 5)
    inputs[1] = inputs[1][:, :7]
    with pytest.raises(GraphCheckError, match=r"dimension 1: expected seq \+ past = 8, got 7"):
        run_graph(module, inputs, precise=True)


def export(module: Any, *args: Any, **options: Any) -> Any:
    import torch

    return torch.export.export(module.eval(), args, **options)


def small(forward: Any) -> Any:
    import torch

    class Small(torch.nn.Module):
        pass

    Small.forward = forward  # pyright: ignore[reportAttributeAccessIssue]
    return Small()


def test_an_argument_keeps_its_name_beside_an_element_of_a_list() -> None:
    import torch

    def forward(_: Any, a: Any, a_0: Any, *, b_1: Any, b: Any) -> Any:
        return a[0] - a_0 * 2 + b["1"] * 4 - b_1 * 8

    tensors = [torch.full((2,), float(k)) for k in range(4)]
    one, two, three, four = tensors
    options = {"kwargs": {"b_1": three, "b": {"1": four}}}
    module = from_exported_program(export(small(forward), [one], two, **options))
    names = [p.value.name for p in module.graph().params]
    assert names == ["a_0_1", "a_0", "b_1", "b_1_1"]
    (found,) = run_graph(module, [t.numpy() for t in tensors])
    np.testing.assert_array_equal(found, (one - two * 2 + four * 4 - three * 8).numpy())


def test_a_guard_about_fractions_of_sizes_is_an_entry_check() -> None:
    import torch

    def forward(_: Any, x: Any) -> Any:
        return x + 1 if x.shape[0] / 2 > 2 else x

    axes = ({0: torch.export.Dim.DYNAMIC},)
    program = export(small(forward), torch.ones(8), dynamic_shapes=axes)
    function = from_exported_program(program).graph()
    assert admitted(function, x_dim0=5)
    assert not admitted(function, x_dim0=4)


def test_a_guard_that_excludes_a_size_is_an_entry_check() -> None:
    import torch

    def forward(_: Any, x: Any) -> Any:
        return x if x.shape[0] != 7 else x + 1

    axes = ({0: torch.export.Dim.DYNAMIC},)
    program = export(small(forward), torch.ones(8), dynamic_shapes=axes)
    function = from_exported_program(program).graph()
    assert admitted(function, x_dim0=1)
    assert admitted(function, x_dim0=8)
    assert not admitted(function, x_dim0=7)


@pytest.mark.parametrize("kind", ["root", "decimal"])
def test_a_guard_about_sizes_that_has_no_integer_form_is_rejected(kind: str) -> None:
    import torch

    def root(_: Any, x: Any) -> Any:
        return x + 1 if torch.sym_sqrt(x.shape[0]) > 1.5 else x

    def decimal(_: Any, x: Any) -> Any:
        return x + 1 if int(x.shape[0] * 0.3) > 1 else x

    forward = {"root": root, "decimal": decimal}[kind]
    axes = ({0: torch.export.Dim.DYNAMIC},)
    program = export(small(forward), torch.ones(8), dynamic_shapes=axes)
    with pytest.raises(SymbolicDimensionError, match=r"requires .*size\(\)\[0\]"):
        from_exported_program(program)


def test_automatic_dimensions_become_symbols_named_by_input_and_axis() -> None:
    import torch
    from torch.export import Dim

    def forward(_: Any, x: Any, y: Any) -> Any:
        return x * y

    for automatic in (Dim.DYNAMIC, Dim.AUTO):
        axes = {0: automatic, 1: automatic}
        program = export(
            small(forward),
            torch.ones(4, 3),
            torch.ones(4, 3),
            dynamic_shapes={"x": axes, "y": axes},
        )
        function = from_exported_program(program).graph()
        first, second = params(function).values()
        assert first == second
        assert len(set(first)) == 2
        assert not list(function.facts)
        module = from_exported_program(program)
        ones = np.ones((1, 1), np.float32)
        assert run_graph(module, [ones, ones])[0].shape == (1, 1)


def test_a_lower_bound_above_two_is_a_fact() -> None:
    import torch
    from torch.export import Dim

    def forward(_: Any, x: Any) -> Any:
        return x + 1

    rows = Dim("rows", min=4, max=9)
    function = from_exported_program(
        export(small(forward), torch.ones(5, 2), dynamic_shapes={"x": {0: rows}})
    ).graph()
    assert [n for n in range(12) if admitted(function, rows=n)] == [4, 5, 6, 7, 8, 9]


def test_a_derived_dimension_is_solved_for() -> None:
    import torch
    from torch.export import Dim

    def forward(_: Any, x: Any, y: Any) -> Any:
        return x + y[1:]

    n = Dim("n", max=9)
    program = export(
        small(forward),
        torch.ones(8),
        torch.ones(9),
        dynamic_shapes={"x": {0: 2 * n}, "y": {0: 2 * n + 1}},
    )
    module = from_exported_program(program)
    found = run_graph(module, [np.ones(6, np.float32), np.arange(7, dtype=np.float32)])
    np.testing.assert_array_equal(found[0], np.arange(1, 7) + 1)
    with pytest.raises(GraphCheckError):
        run_graph(module, [np.ones(5, np.float32), np.ones(6, np.float32)])


def test_the_factor_of_a_derived_dimension_may_be_0_or_1() -> None:
    import torch
    from torch.export import Dim

    def forward(_: Any, x: Any) -> Any:
        return x.view(-1, 4, 3).sum(1)

    shapes = {"x": {0: 4 * Dim("n", max=5)}}
    module = from_exported_program(export(small(forward), torch.ones(8, 3), dynamic_shapes=shapes))
    for factor in (0, 1, 2, 5):
        x = np.arange(12.0 * factor, dtype=np.float32).reshape(4 * factor, 3)
        (found,) = run_graph(module, [x])
        np.testing.assert_array_equal(found, x.reshape(factor, 4, 3).sum(1), strict=True)
    for rows in (7, 24):
        with pytest.raises(GraphCheckError):
            run_graph(module, [np.ones((rows, 3), np.float32)])


def test_tied_weights_are_one_constant() -> None:
    import torch

    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(7, 4)
            self.head = torch.nn.Linear(4, 7, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids: Any) -> Any:
            return self.head(self.embed(ids))

    module = from_exported_program(export(Tied(), torch.zeros(3, dtype=torch.long)))
    assert list(module.constants) == ["embed.weight"]


def test_bfloat16_weights_keep_their_bits() -> None:
    import torch

    model = torch.nn.Linear(3, 2).to(torch.bfloat16)
    module = from_exported_program(export(model, torch.ones(1, 3, dtype=torch.bfloat16)))
    array = module.constants["weight"].load()
    assert array.dtype.name == "bfloat16"
    expected = model.weight.detach().float().numpy()
    np.testing.assert_array_equal(array.astype(np.float32), expected)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_weights_of_8_bit_floats_keep_their_bits(name: str) -> None:
    import torch

    dtype = getattr(torch, name)

    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(3, 5).to(dtype), requires_grad=False)

        def forward(self, x: Any) -> Any:
            return (x * self.weight.to(torch.float32)).to(dtype)

    model = Scaled()
    module = from_exported_program(export(model, torch.ones(3, 5)))
    array = module.constants["weight"].load()
    assert array.dtype.name == name
    np.testing.assert_array_equal(array.view(np.uint8), model.weight.view(torch.uint8).numpy())
    x = np.linspace(-3, 3, 15, dtype=np.float32).reshape(3, 5)
    (got,) = run_graph(module, (x,))
    expected = model(torch.from_numpy(x)).view(torch.uint8).numpy()
    np.testing.assert_array_equal(got.view(np.uint8), expected)


def test_all_unsupported_operators_are_listed_with_their_locations() -> None:
    import torch

    class Odd(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.special.airy_ai(x)

    class Outer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pool = Odd()

        def forward(self, x: Any) -> Any:
            return unknown(self.pool(x)) + x

    program = export(Outer(), torch.randn(3, 4, 4))
    with pytest.raises(UnsupportedOperatorsError) as caught:
        from_exported_program(program)
    found = caught.value.details["operators"]
    assert isinstance(found, list)
    names = {str(f["operator"]) for f in found if isinstance(f, dict)}
    for name in ("airy_ai", "tests.unknown"):
        assert any(name in n for n in names)
    assert "pool (" in str(caught.value)
    assert "test_torch_program.py" in str(caught.value)


def test_automatic_mixed_precision_is_rejected() -> None:
    import torch

    def forward(_: Any, x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return x @ x

    with pytest.raises(UnsupportedOperatorsError, match="mixed precision"):
        from_exported_program(export(small(forward), torch.ones(2, 2)))


def test_in_place_operators_are_functionalized() -> None:
    import torch

    def forward(_: Any, x: Any) -> Any:
        y = x * 2
        y.add_(1)
        return y

    module = from_exported_program(export(small(forward), torch.ones(3)))
    np.testing.assert_array_equal(run_graph(module, [np.ones(3, np.float32)])[0], [3, 3, 3])


def test_a_sentence_embedding_is_normalized() -> None:
    import torch

    def forward(_: Any, x: Any) -> Any:
        return torch.nn.functional.normalize(x, dim=-1)

    module = from_exported_program(export(small(forward), torch.ones(2, 3)))
    x = np.array([[3, 0, 4], [0, 0, 2]], np.float32)
    expected = torch.nn.functional.normalize(torch.from_numpy(x), dim=-1).numpy()
    np.testing.assert_allclose(run_graph(module, [x])[0], expected, rtol=1e-6)


def test_imported_programs_are_well_formed_and_round_trip(attention: str) -> None:
    for program in (exported_bert(attention), exported_llama(attention)):
        module = from_exported_program(program)
        verify(module)
        assert not explain_difference(module, parse(to_script(module)))


def test_an_input_that_is_not_a_tensor_is_rejected() -> None:
    import torch
    from torch.export import Dim

    def forward(_: Any, x: Any, n: int) -> Any:
        return x * n

    program = export(small(forward), torch.ones(2), 3, dynamic_shapes={"x": None, "n": Dim.DYNAMIC})
    with pytest.raises(UnsupportedInputError, match="'n' of the exported program is a SymInt"):
        from_exported_program(program)


def test_a_model_that_is_not_exported_is_rejected() -> None:
    import torch

    with pytest.raises(UnsupportedInputError, match="ExportedProgram, got Linear"):
        from_exported_program(torch.nn.Linear(2, 2))


def test_shapes_evaluate_as_pytorch_computes_them() -> None:
    """The interpreter checks every deduced shape; this test also compares it with PyTorch."""
    program = exported_bert("sdpa")
    module = from_exported_program(program)
    function = module.graph()
    symbols = {v.name: v for p in function.params for v in free(p.value.info)}
    result = function.results[0].info  # pyright: ignore[reportAttributeAccessIssue]
    env = {symbols["batch"]: 3, symbols["seq"]: 9}
    assert [evaluate(d, env) for d in result.shape] == [3, 9, 32]


def free(info: Any) -> set[Any]:
    return {v for d in info.shape for v in d.free}
