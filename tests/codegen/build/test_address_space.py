"""Loaded code is in one region of the address space, however fragmented that is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import ctypes, mmap, sys
import numpy as np
import tilewright as tw
from tilewright.codegen.build.address_space import _libc, _reserve

TEXT = '''
n = symbols("n", lower=1)

@graph_func
def main(a: Tensor[(n, {k}), f32], b: Tensor[({k}, 64), f32]):
    c: Tensor[(n, 64), f32] = matmul(a, b)
    d: Tensor[(n, 64), f32] = softmax(c, axis=1)
    return d
'''

def run(k):
    exe = tw.compile(tw.parse(TEXT.replace("{k}", str(k))))
    print(exe(np.ones((5, k), "float32"), np.ones((k, 64), "float32")).shape)

run(64)
pages, far = int(sys.argv[1]), 8 << 30
base = _reserve(far)
while (filled := _reserve((pages + 1) * mmap.PAGESIZE)) > base:
    pass
for k in range(1, 2000):
    _libc().munmap(base + far - k * (1 << 16), pages * mmap.PAGESIZE)
run(80)
"""
"""Leave gaps of some pages more than 8 GiB above the remaining free address space."""


@pytest.mark.parametrize("pages", [1, 2, 3, 5])
def test_code_loads_in_a_fragmented_address_space(pages: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(pages)],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "(5, 64)\n(5, 64)\n"
