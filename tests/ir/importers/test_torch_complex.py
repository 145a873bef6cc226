"""Import of PyTorch programs with complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tilewright as tw
from tilewright.errors import UnsupportedOperatorsError
from tilewright.ir.importers import from_exported_program
from tilewright.ir.interpreter.graph import run_graph

N = torch.export.Dim("n", max=64)

# Functions of complex x, w (3, n), and f, the real part of x.
FUNCTIONS = {
    "arithmetic": lambda x, w, f: x * w - 2.0 + 1j * x,
    "division": lambda x, w, f: x / w + x.reciprocal(),
    "numbers": lambda x, w, f: (x * (0.5 - 1.5j) + 3) / (2j),
    "promotion": lambda x, w, f: (f * w + f) * f.double(),
    "parts": lambda x, w, f: torch.complex(x.imag, w.real),
    "conjugate": lambda x, w, f: torch.conj(x) * w.conj_physical() + x.conj().resolve_conj(),
    "absolute values": lambda x, w, f: x.abs() + torch.angle(w),
    "exponential": lambda x, w, f: torch.exp(x),
    "logarithm and roots": lambda x, w, f: torch.log(x) + torch.sqrt(w),
    "trigonometry": lambda x, w, f: torch.sin(x) + torch.cos(w) * torch.tan(x),
    "hyperbolic functions": lambda x, w, f: torch.sinh(x) + torch.cosh(w) * torch.tanh(x),
    "inverse functions": lambda x, w, f: torch.asin(x) + torch.acos(w) * torch.atan(x),
    "inverse hyperbolic": lambda x, w, f: torch.asinh(x) + torch.acosh(w) * torch.atanh(x),
    "powers": lambda x, w, f: x**w + x**3 + w**0.5 + torch.pow(2.0, x),
    "running sums": lambda x, w, f: torch.cumsum(x, 1) + torch.cumprod(w, 0),
    "polar": lambda x, w, f: torch.polar(f.abs(), w.real),
    "views": lambda x, w, f: torch.view_as_complex(torch.view_as_real(x * w) * 2.0),
    "sums": lambda x, w, f: x.sum(0) + w.mean(0) + x.prod(0),
    "products": lambda x, w, f: x @ w.mT + (x @ w.mH),
    "comparison": lambda x, w, f: (x == w) | (x != x.conj()),
    "selection": lambda x, w, f: torch.where(f > 0, x, w),
    "movement": lambda x, w, f: torch.cat([x, w[1:]], 0).transpose(0, 1).reshape(-1),
    "casts": lambda x, w, f: f.to(torch.complex128) + x.to(torch.complex128),
    "power of two": lambda x, w, f: x.square() - (-w),
}


def drawn(*shape):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.complex(
        torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)
    )


def exported(module, arguments, dynamic):
    program = torch.export.export(module.eval(), arguments, dynamic_shapes=dynamic)
    return from_exported_program(program)


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, w, f):
        return self.function(x, w, f)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    module = Function(FUNCTIONS[name])
    axis = {1: N}
    imported = exported(module, (drawn(3, 5), drawn(3, 5) * 2j, drawn(3, 5).real), (axis,) * 3)
    for n in (1, 7):
        x, w = drawn(3, n), drawn(3, n) * 1j
        f = x.real.clone()
        want = module(x, w, f).resolve_conj().numpy()
        (got,) = run_graph(imported, [x.numpy(), w.numpy(), f.numpy()])
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


class Rotary(torch.nn.Module):
    """Queries and keys with rotary embeddings, as in the reference code of Llama."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.wq = torch.nn.Linear(width, width, bias=False)
        self.wk = torch.nn.Linear(width, width, bias=False)
        size = width // heads
        freqs = 1.0 / (10000.0 ** (torch.arange(0, size, 2)[: size // 2].float() / size))
        angles = torch.outer(torch.arange(length, dtype=torch.float32), freqs)
        self.register_buffer("freqs_cis", torch.polar(torch.ones_like(angles), angles))

    def rotated(self, x, freqs):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        freqs = freqs.view(1, freqs.shape[0], 1, freqs.shape[1])
        return torch.view_as_real(pairs * freqs).flatten(3).type_as(x)

    def forward(self, x):
        batch, length, width = x.shape
        freqs = self.freqs_cis[:length]
        shape = (batch, length, self.heads, width // self.heads)
        return tuple(self.rotated(w(x).view(shape), freqs) for w in (self.wq, self.wk))


def test_rotary_embeddings_equal_pytorch():
    torch.manual_seed(0)
    module = Rotary(32, 2, 64)
    imported = exported(module, (torch.randn(2, 9, 32),), ({1: N},))
    executable = tw.compile(imported)
    for length in (1, 9, 33):
        x = torch.randn(2, length, 32)
        with torch.no_grad():
            wanted = module(x)
        for got, want in zip(executable(x.numpy()), wanted, strict=True):
            np.testing.assert_allclose(got, want.numpy(), rtol=2e-6, atol=2e-6)


class Angles(torch.nn.Module):
    def forward(self, x):
        length, size = x.shape[1], x.shape[2]
        angles = torch.outer(torch.arange(length).float(), torch.arange(size // 2).float() * 0.1)
        freqs = torch.polar(torch.ones_like(angles), angles)
        pairs = torch.view_as_complex(x.reshape(x.shape[0], length, size // 2, 2))
        return torch.view_as_real(pairs * freqs).flatten(2)


def test_angles_that_depend_on_the_length():
    imported = exported(Angles(), (torch.randn(2, 9, 16),), ({1: N},))
    for length in (1, 9, 20):
        x = torch.randn(2, length, 16)
        (got,) = run_graph(imported, [x.numpy()])
        np.testing.assert_allclose(got, Angles()(x).numpy(), rtol=2e-5, atol=2e-5)


def test_conjugated_buffers_are_constants_of_their_own():
    class Buffers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            plain = torch.tensor([1 + 2j, 3 - 1j])
            self.register_buffer("plain", plain)
            self.register_buffer("conjugate", plain.conj())

        def forward(self, x):
            return x * self.plain + self.conjugate

    x = drawn(2)
    imported = exported(Buffers(), (x,), None)
    (got,) = run_graph(imported, [x.numpy()])
    np.testing.assert_allclose(got, Buffers()(x).resolve_conj().numpy(), rtol=1e-6)


def test_complex_numbers_of_halves_are_named_as_unsupported() -> None:
    class Halves(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.chalf().real

    program = torch.export.export(Halves(), (torch.ones(3),))
    with pytest.raises(UnsupportedOperatorsError, match="complex32 is not supported"):
        tw.from_exported_program(program)
