"""The memory of shaders: indices of bindings that start in the middle of a buffer, and mutants."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.wgsl import from_bytes
from tilewright.ir.script import parse

from tests.codegen.gpu import kernels
from tests.codegen.wgsl import tint
from tests.codegen.wgsl.guarded import GuardedDevice, guarded_device
from tests.codegen.wgsl.running import agrees, compiled, shader_texts

PERMUTED = """
k = symbols("k", lower=1)

@prim_func
def permuted(x: Buffer[(16 * k,), i4], y: Out[(k, 16), i2]):
    for p in range(16 * k):
        with block("y"):
            vp = spatial(p)
            y[vp % k, vp // k] = i2(-(i32(x[vp])))
"""

HALVES = """
n = symbols("n", lower=0)

@prim_func
def halves(x: Buffer[(n,), i16], y: Out[(n,), i16]):
    for i in range(n):
        with block("add"):
            vi = spatial(i)
            y[vi] = x[vi] + i16(vi % 100) + i16(1)
"""

WORDS = """
n = symbols("n", lower=0)

@prim_func
def words(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("add"):
            vi = spatial(i)
            y[vi] = x[vi] + 1.0
"""


@pytest.mark.parametrize("k", [1, 2, 7, 36])
def test_an_index_that_is_a_shift_is_added_to_the_start_of_a_binding(k):
    """``start + p >> 1`` is the half of the sum in some compilers, and an error in others."""
    with guarded_device() as device:
        exe = compiled(PERMUTED)
        agrees(exe, parse(PERMUTED).prims[0], {"k": k})
        assert device.damage() == []


@pytest.mark.browser
def test_tint_accepts_shifts_in_indices(chromium):
    texts = shader_texts(compiled(PERMUTED))
    assert set(tint.messages(texts, chromium)) == {""}


MATMUL = {"M": 65, "N": 30, "K": 17}
MUTANTS = {
    "dropped barrier": (
        kernels.scheduled("matmul"),
        MATMUL,
        [("workgroupBarrier();", ""), ("storageBarrier();", "")],
    ),
    "shifted store": (WORDS, {"n": 300}, [("y[sizes.y_start +", "y[sizes.y_start + 1i +")]),
    "shifted load": (WORDS, {"n": 300}, [("x[sizes.x_start +", "x[sizes.x_start - 1i +")]),
    "missing tail guard": (
        WORDS,
        {"n": 300},
        [("if (blockIdx_x * 256i + threadIdx_x) < sizes.n {", "if true {")],
    ),
    "swapped halves of a word": (HALVES, {"n": 301}, [("& 1i) * 16u", "& 1i ^ 1i) * 16u")]),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_noticed(name):
    """Wrong results, or changed words around a tensor; the shader without the edits has none."""
    program, sizes, edits = MUTANTS[name]
    found = []
    for chosen in ([], edits):
        device = GuardedDevice()
        device.edits = chosen
        with guarded_device(device):
            exe = compiled(program)
            try:
                agrees(exe, _naive(program), sizes)
            except AssertionError:
                found.append("result")
            else:
                found.append("; ".join(device.damage()))
        assert bool(device.edited) == bool(chosen)
    assert found[0] == ""
    assert found[1] != ""


def _naive(program):
    text = program if isinstance(program, str) else kernels.PROGRAMS["matmul"]
    return parse(text).prims[0]


def test_a_write_behind_a_tensor_changes_only_guard_words():
    """Each result is right, so only the guard words show the missing condition."""
    device = GuardedDevice()
    device.edits = MUTANTS["missing tail guard"][2]
    with guarded_device(device):
        exe = compiled(WORDS)
        x = np.arange(300, dtype=np.float32)
        np.testing.assert_array_equal(exe(x), x + 1)
        y = exe(device.upload(x))
        assert any("of a buffer of 1200 bytes" in text for text in device.damage())
        del y


def test_guard_words_are_part_of_the_bindings():
    with guarded_device() as device:
        exe = compiled(WORDS)
        for size in (0, 1, 2, 63, 64, 65, 257):
            x = device.upload(np.arange(size, dtype=np.float32))
            y = exe(x)
            np.testing.assert_array_equal(y.numpy(), np.arange(size) + 1)
            assert device.damage() == []
    assert all(s.messages == () for i in exe.artifact.images.values() for s in from_bytes(i))
