"""Every registered instruction satisfies the contract; unknown names are reported."""

import pytest

from tilewright.ir.analysis import injective_in, ranges_of
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.visit import walk
from tilewright.ir.symbolic import Facts, const_value
from tilewright.ir.thread.operations import OPERATIONS
from tilewright.ir.verify import violations
from tilewright.schedules.intrinsics.match import pattern_of, unify
from tilewright.schedules.intrinsics.nest import nest_of
from tilewright.schedules.intrinsics.registry import (
    DuplicateIntrinsicError,
    UnknownIntrinsicError,
    get_intrinsic,
    has_intrinsic,
    intrinsics_for,
    register,
)
from tilewright.target.target import Target, provides

ALL = intrinsics_for(None)


@pytest.mark.parametrize("intrinsic", ALL, ids=lambda i: i.name)
def test_semantics_are_one_perfect_nest_over_constant_shapes(intrinsic):
    function, nest = intrinsic.semantics, pattern_of(intrinsic)
    assert violations(function) == ()
    assert all(const_value(x.extent) is not None for x in nest.loops)
    shapes = [d for b in function.buffer_params for d in b.shape]
    assert all(const_value(d) is not None for d in shapes)
    (block,) = (s for s in walk(function.body) if isinstance(s, Block))
    assert block.init is None
    assert not nest.guards
    assert intrinsic.summary.endswith(".")
    assert intrinsic.needs


@pytest.mark.parametrize("intrinsic", ALL, ids=lambda i: i.name)
def test_spatial_loops_write_different_elements(intrinsic):
    nest = pattern_of(intrinsic)
    found = injective_in(nest.store.indices, ranges_of(nest.loops), Facts())
    spatial = {v for v, kinds in nest.kinds.items() if kinds == {"spatial"}}
    assert spatial <= found
    assert all(len(kinds) == 1 for kinds in nest.kinds.values())


@pytest.mark.parametrize("intrinsic", ALL, ids=lambda i: i.name)
def test_an_instruction_matches_its_own_semantics(intrinsic):
    nest = nest_of(intrinsic.semantics.body, Facts())
    found = unify(nest, intrinsic)
    assert found.differences == ()
    assert found.loops == nest.loops


def test_parameters_are_numbered_and_partial_loops_exist():
    for intrinsic in ALL:
        assert intrinsic.partial <= set(range(len(pattern_of(intrinsic).loops)))
        assert len(intrinsic.layouts) in (0, len(intrinsic.semantics.buffer_params))


def test_an_unknown_name_lists_similar_names():
    with pytest.raises(UnknownIntrinsicError, match=r"intrinsics are avx512\.fma\.f32\.14x32"):
        get_intrinsic("avx512.fma.f32.14x23")
    assert not has_intrinsic("avx512.fma.f32.14x23")


def test_names_are_unique():
    known = get_intrinsic("avx2.fma.f32.6x16")
    assert register(known) is known
    other = type(known)(known.name, "", known.semantics, (), known.expand)
    with pytest.raises(DuplicateIntrinsicError, match=r"avx2\.fma"):
        register(other)


def test_a_target_has_the_instructions_it_provides():
    target = Target("cpu", features=("avx2",))
    names = {i.name for i in intrinsics_for(target)}
    assert "avx2.fma.f32.6x16" in names
    assert "avx512.fma.f32.14x32" not in names
    assert not any(n.startswith("cuda.") for n in names)
    gpu = intrinsics_for(Target("cuda", arch="sm_80"))
    assert {i.scope for i in gpu} == {"warp"}
    needs = {n for o in OPERATIONS.values() for n in o.needs}
    assert all(provides(Target("cuda", arch="sm_90a"), n) is not None for n in needs if "sm_" in n)
