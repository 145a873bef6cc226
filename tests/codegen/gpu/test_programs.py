"""The GPU kernels compared with the interpreter."""

from __future__ import annotations

import pytest

from tilewright.ir.script import parse

from tests.codegen.gpu import kernels
from tests.codegen.gpu.running import agrees, artifact_of, data, launch

CASES = [
    *(("elementwise", {"m": m, "n": n}, 1e-5) for m, n in [(1, 1), (3, 5), (16, 64), (33, 31)]),
    *(("softmax", {"rows": r, "columns": c}, 1e-6) for r, c in [(1, 1), (3, 5), (2, 256), (3, 99)]),
    *(
        ("matmul", {"M": m, "N": n, "K": k}, 0.0)
        for m, n, k in [(1, 1, 1), (16, 20, 16), (65, 30, 17), (7, 70, 3)]
    ),
    *(
        (name, {"M": m, "N": n, "K": k}, 0.0)
        for name in ("tensor_matmul", "half_matmul", "half_sums")
        for m, n, k in [(1, 1, 1), (16, 8, 16), (33, 20, 17), (9, 70, 65)]
    ),
]


@pytest.mark.parametrize(("name", "sizes", "tolerance"), CASES)
def test_kernel_equals_interpreter(name, sizes, tolerance):
    """Products of small integers are exact, in any order and in half precision, too."""
    naive = parse(kernels.PROGRAMS[name]).prims[0]
    agrees(kernels.scheduled(name), naive, sizes, tolerance=tolerance)


@pytest.mark.parametrize("name", sorted(kernels.PROGRAMS))
def test_shared_memory_is_free_of_bank_conflicts(name):
    sizes = dict.fromkeys(("m", "n", "M", "N", "K", "rows", "columns"), 64)
    func = kernels.scheduled(name)
    report = launch(artifact_of(func), data(func, sizes), sizes)
    assert report.findings == ()
    shared = [c for c in report.counters if c.space == "shared"]
    assert sum(c.conflicts for c in shared) == 0
    assert bool(shared) == (name != "elementwise")
