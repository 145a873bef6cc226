"""Scans by operations that a PyTorch program defines, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch._higher_order_ops.associative_scan import associative_scan

from tilewright import compile, from_exported_program
from tilewright.ir.graph.nodes import CallTIR, Loop
from tilewright.ir.importers.unsupported import UnsupportedOperatorsError
from tilewright.ir.interpreter import run_graph
from tilewright.ir.loop.nodes import Block, Cast
from tilewright.ir.loop.visit import walk, walk_element
from tilewright.ir.script import parse
from tilewright.ir.verify import violations

SCAN = torch.ops.higher_order.associative_scan
LENGTH = torch.export.Dim("length", min=1)


class Scan(torch.nn.Module):
    """A scan along any axis, as PyTorch itself moves and reverses it."""

    def __init__(self, combine, axis=0, reverse=False):
        super().__init__()
        self.combine, self.axis, self.reverse = combine, axis, reverse

    def forward(self, *terms):
        moved = [x.movedim(self.axis, 0) for x in terms]
        moved = [x.flip([0]) for x in moved] if self.reverse else moved
        found = SCAN(self.combine, moved, ())
        found = [x.flip([0]) for x in found] if self.reverse else found
        return tuple(x.movedim(0, self.axis) for x in found)


def imported(model, *examples, axis=0):
    dims = (tuple({axis: LENGTH} for _ in examples),)
    program = torch.export.export(model.eval(), examples, dynamic_shapes=dims)
    module = from_exported_program(program)
    assert violations(module) == ()
    assert str(parse(str(module))) == str(module)
    return module


def reducer_of(module):
    (call,) = [b.right for b in module.graph().bindings if isinstance(b.right, CallTIR)]
    (block,) = [s for s in walk(module.prim(call.function).body) if isinstance(s, Block)][:1]
    return block.reducer


def agree(module, model, draw, sizes=(1, 2, 7), *, targets=("cpu",)) -> None:
    """Compare the interpreter and compiled code with PyTorch."""
    runs = [lambda *xs: run_graph(module, xs), *(compile(module, target=t) for t in targets)]
    for n in sizes:
        terms = draw(n)
        expected = model(*terms)
        for run in runs:
            made = run(*(x.numpy() for x in terms))
            made = made if isinstance(made, tuple) else (made,)
            for a, b in zip(made, expected, strict=True):
                np.testing.assert_allclose(a, b.numpy(), rtol=1e-5, atol=1e-6)


def test_a_sum_is_the_scan_by_add() -> None:
    model = Scan(lambda p, q: (q + p,))
    module = imported(model, torch.randn(5, 3))
    assert reducer_of(module).name == "add"
    agree(module, model, lambda n: (torch.randn(n, 3),), targets=("cpu", "simt"))


@pytest.mark.parametrize(("axis", "reverse"), [(0, True), (1, False), (1, True), (2, True)])
def test_a_recurrence_along_any_axis(axis: int, reverse: bool) -> None:
    def combine(a, b, c, d):
        return a * c, c * b + d

    def draw(n):
        shape = [2, 3]
        shape.insert(axis, n)
        return torch.rand(shape), torch.randn(shape)

    model = Scan(combine, axis, reverse)
    module = imported(model, *draw(5), axis=axis)
    assert reducer_of(module).commutative is False
    agree(module, model, draw)


def test_a_long_recurrence_is_divided_into_parts() -> None:
    model = Scan(lambda a, b, c, d: (a * c, c * b + d))
    module = imported(model, torch.rand(5), torch.rand(5))
    agree(module, model, lambda n: (torch.rand(n), torch.randn(n)), (1, 40, 5000))
    agree(module, model, lambda n: (torch.rand(n), torch.randn(n)), (3, 600), targets=("simt",))


def test_the_first_results_are_the_first_terms() -> None:
    model = Scan(lambda a, b, c, d: (a * c, c * b + d))
    module = imported(model, torch.rand(5), torch.rand(5))
    a, b = torch.tensor([float("inf"), 2.0]), torch.tensor([-3.0, 1.0])
    _, state = compile(module)(a.numpy(), b.numpy())
    np.testing.assert_array_equal(state, [-3.0, -5.0])


def test_values_of_several_dtypes_with_a_shared_condition() -> None:
    def combine(x, i, y, j):
        take = (y > x) | ((y == x) & (j > i))
        return torch.where(take, y, x), torch.where(take, j, i)

    def draw(n):
        return torch.randint(0, 4, (n, 3)).float(), torch.arange(n)[:, None].repeat(1, 3)

    model = Scan(combine)
    module = imported(model, *draw(5))
    assert len(reducer_of(module).binds) == 1
    agree(module, model, draw, targets=("cpu", "simt"))


def test_16_bit_floats_are_combined_in_float32() -> None:
    model = Scan(lambda p, q: (p + q,))
    module = imported(model, torch.zeros(5, dtype=torch.bfloat16))
    ones = torch.ones(300, dtype=torch.bfloat16)
    found = compile(module)(ones)
    np.testing.assert_array_equal(np.asarray(found, np.float32)[-1], np.float32(300))


def test_conversions_between_16_bit_floats_and_float32_are_omitted() -> None:
    model = Scan(lambda a, b, c, d: (a * c, (c.float() * b.float()).bfloat16() + d))
    module = imported(model, *torch.zeros(2, 5, dtype=torch.bfloat16))
    assert not any(isinstance(x, Cast) for r in reducer_of(module).results for x in walk_element(r))
    a, b = np.full(300, 1, np.float32), np.full(300, 1, np.float32)
    given = (torch.from_numpy(x).bfloat16() for x in (a, b))
    _, found = compile(module)(*given)
    np.testing.assert_array_equal(np.asarray(found, np.float32)[-1], np.float32(300))


@pytest.mark.parametrize("shape", [(), (1, 3), (1, 1)])
def test_slices_of_size_one(shape) -> None:
    model = Scan(lambda p, q: (torch.maximum(p, q) + 0 * p,))
    module = imported(model, torch.randn(5, *shape))
    assert reducer_of(module).name == "combine"
    agree(module, model, lambda n: (torch.randn(n, *shape),))


class Matrices(torch.nn.Module):
    def forward(self, x):
        return SCAN(lambda p, q: (p @ q,), [x], ())[0]


def test_an_operation_that_is_not_elementwise_is_a_loop() -> None:
    module = imported_matrices()
    assert any(isinstance(b.right, Loop) for b in module.graph().bindings)
    exe = compile(module)
    for n in (1, 2, 6):
        x = torch.randn(n, 3, 3)
        for found in (run_graph(module, (x.numpy(),))[0], exe(x.numpy())):
            np.testing.assert_allclose(found, Matrices()(x).numpy(), rtol=1e-4, atol=1e-5)


def imported_matrices():
    program = torch.export.export(
        Matrices(), (torch.randn(5, 3, 3),), dynamic_shapes=({0: LENGTH},)
    )
    return from_exported_program(program)


def test_an_empty_scan_has_no_results() -> None:
    scan = imported(Scan(lambda p, q: (p * q + p,)), torch.randn(5, 3))
    assert np.shape(compile(scan)(np.zeros((0, 3), np.float32))) == (0, 3)
    matrices = imported_matrices()
    assert np.shape(compile(matrices)(np.zeros((0, 3, 3), np.float32))) == (0, 3, 3)


class Captured(torch.nn.Module):
    def forward(self, x, low):
        return SCAN(lambda p, q, r: (torch.minimum(torch.maximum(p, q), r),), [x], (low,))[0]


def test_an_operation_may_use_other_tensors() -> None:
    args = (torch.randn(5, 3), torch.randn(3))
    program = torch.export.export(Captured(), args, dynamic_shapes=({0: LENGTH}, {}))
    module = from_exported_program(program)
    x, bound = torch.randn(4, 3), torch.full((3,), 9.0)
    np.testing.assert_array_equal(compile(module)(x.numpy(), bound.numpy()), Captured()(x, bound))


class Generic(torch.nn.Module):
    """The form that PyTorch writes out for a fixed length."""

    def forward(self, x, y):
        def combine(p, q):
            return p[0] * q[0], q[0] * p[1] + q[1]

        return associative_scan(combine, (x, y), dim=1, reverse=True, combine_mode="generic")


@pytest.mark.parametrize("length", [1, 2, 7])
def test_the_generic_mode_is_a_composition_of_slices(length: int) -> None:
    args = (torch.rand(3, length), torch.randn(3, length))
    module = from_exported_program(torch.export.export(Generic(), args))
    for found, wanted in zip(
        compile(module)(*(x.numpy() for x in args)), Generic()(*args), strict=True
    ):
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5, atol=1e-6)


class Airy(torch.nn.Module):
    def forward(self, x):
        def combine(p, q):
            return (torch.special.airy_ai(p + q),)

        return SCAN(combine, [x], ())[0]


def test_an_unsupported_operator_in_the_operation_is_reported() -> None:
    program = torch.export.export(Airy(), (torch.randn(5, 3, 3),))
    with pytest.raises(UnsupportedOperatorsError, match="airy_ai"):
        from_exported_program(program)
