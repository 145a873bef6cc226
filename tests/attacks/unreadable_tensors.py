"""Passes tensors that native code must not read; ends with a signal if it reads them.

``python -m tests.attacks.unreadable_tensors`` prints one line per tensor: how it was passed, and
the error.
"""

from __future__ import annotations

import ctypes
import sys
import warnings

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import tilewright as tw

PROGRAM = """
n = symbols("n", lower=0)

@prim_func
def add(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i] + 1.0
"""


class Versioned(ctypes.Structure):
    """A managed tensor of DLPack with a version."""

    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32), ("ordinal", ctypes.c_int32), ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64),
    )  # fmt: skip


class Producer:
    """A DLPack producer of eight ones, with any version and any address."""

    def __init__(self, major: int, address: int | None) -> None:
        """Store the tensor."""
        self.array, self.extents = np.ones(8, np.float32), (ctypes.c_int64 * 1)(8)
        data = self.array.ctypes.data if address is None else address
        shape = ctypes.addressof(self.extents)
        self.tensor = Versioned(major, 0, None, None, 0, data, 1, 0, 1, 2, 32, 1, shape, None, 0)

    def __dlpack__(self, **_: object) -> object:
        """Return a capsule of the tensor."""
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor_versioned", None)


def tensors() -> dict[str, object]:
    """Return tensors that are not readable, by name."""
    with FakeTensorMode():
        fake, large = torch.ones(8), torch.ones(10**7)
    zero = torch._efficientzerotensor((8,))  # made by differentiation
    complex_ones = torch.ones(8, dtype=torch.complex64)
    return {
        "fake": fake,
        "part of a fake": fake[1:],
        "part of a large fake": large[10**6 :],
        "zero without memory": zero,
        "part of zero": zero[2:],
        "null": Producer(1, 0),
        "version 2": Producer(2, None),
        "version 99": Producer(99, None),
        "negative bit": torch._neg_view(torch.arange(8.0)),  # made by `conj().imag`
        "imaginary part": complex_ones.conj().imag,
        "conjugate bit": complex_ones.conj(),
        "masked array": np.ma.masked_array(np.ones(8, np.float32), [True] + [False] * 7),
    }


def attempt(name: str, call: object) -> None:
    """Print the error of a call."""
    try:
        call()
    except tw.TilewrightError as error:
        sys.stdout.write(f"{name}: {type(error).__name__}: {error.message}\n")
    else:
        sys.stdout.write(f"{name}: accepted\n")


def main() -> None:
    """Pass each tensor as an argument, and as the memory of a result."""
    exe = tw.compile(tw.parse(PROGRAM))
    x = np.ones(8, np.float32)
    for name, tensor in tensors().items():
        attempt(f"{name}, read", lambda t=tensor: exe(t))
        size = getattr(tensor, "shape", (8,))[0]
        attempt(f"{name}, written", lambda t=tensor, n=size: exe["add"].into(np.ones(n, "f4"), t))
    traced = torch.func.functionalize(lambda t: exe(t))
    attempt("traced, read", lambda: traced(torch.ones(8)))
    np.testing.assert_array_equal(exe(torch.ones(8)[2:]), x[2:] + 1)
    with FakeTensorMode():
        empty = torch.ones(0)
    np.testing.assert_array_equal(exe(empty), x[:0])
    np.testing.assert_array_equal(exe(Producer(1, None)), x + 1)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # PyTorch warns about its fake tensors
    main()
