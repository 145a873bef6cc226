"""verify() finds what differs, and says what it left out."""

import pytest

from tilewright.ir.script import parse
from tilewright.schedules.verify import VerificationError, verify

from tests.schedules.helpers import CHAIN, MATMUL, schedule

EXP = """
n = symbols("n", lower=1)

@prim_func
def total(x: Buffer[(n, 6), f32], y: Out[(n,), f32]):
    for i in range(n):
        for k in range(6):
            with block("sum"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0.0
                y[vi] += exp(x[vi, vk])
"""

GRAPH = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 8), f32], w: Tensor[(8, 4), f32]):
    y = matmul(x, w)
    z = relu(y)
    return z
"""


def test_a_wrong_program_is_found():
    right, wrong = parse(CHAIN), parse(CHAIN.replace("u[vk] - x[vk]", "u[vk] - x[0]"))
    found = verify(right, wrong)
    assert not found.ok
    with pytest.raises(VerificationError, match="WRONG"):
        found.required()


def test_reordered_sums_of_irrational_numbers_agree_to_rounding():
    sch = schedule(EXP)
    block = sch.get_block("sum")
    i, k = sch.get_loops(block)
    k0, k1 = sch.split(k, factors=(2, 3))
    sch.reorder((k1, k0))
    found = sch.verify().required()
    assert all(c.difference <= 1e-9 for c in found.compared)
    assert i in sch.get_loops(block)


def test_what_would_take_too_long_is_said_to_be_skipped():
    sch = schedule(MATMUL)
    i, _, _ = sch.get_loops(sch.get_block("mm"))
    sch.parallel(i)
    found = sch.verify(limit=10)
    assert found.compared == ()
    assert "not run, as it has" in str(found)


def test_nothing_changed():
    assert str(schedule(CHAIN).verify()) == "nothing changed"


def test_graphs_are_run_as_a_whole():
    sch = schedule(GRAPH)
    sch.legalize()
    sch.fuse_ops()
    sch.fuse_tir()
    found = sch.verify().required()
    assert {c.function for c in found.compared} == {"main"}
