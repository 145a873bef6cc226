from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from tilewright.ir.dtype import f32
from tilewright.ir.graph.live_ranges import LiveRanges
from tilewright.ir.graph.nodes import (
    AllocStorage,
    Binding,
    GraphFunc,
    GraphParam,
    LaunchKernel,
    ObjectInfo,
    TensorInfo,
    Value,
    ViewTensor,
)
from tilewright.ir.graph.sharing import samples_of, shared_storages
from tilewright.ir.identity import UidSource
from tilewright.ir.symbolic import Const, Expr, as_expr, evaluate, var

from tests.cpu_time import relative_ms, timed

N = var("n", lower=1)


def chain_of(sizes: list[Expr], uses: int = 1) -> GraphFunc:
    """Return a function whose tensor k is made, and used by the next ``uses`` launches."""
    mint = UidSource()
    x = GraphParam(Value(mint(), "x", TensorInfo((N,), f32)))
    bindings: list[Binding] = []
    tensors: list[Value] = [x.value]
    for k, size in enumerate(sizes):
        storage = Value(mint(), f"s{k}", ObjectInfo())
        info = TensorInfo((size,), f32)
        tensor = Value(mint(), f"t{k}", info)
        bindings.append(Binding(storage, AllocStorage(size * 4, info.device)))
        bindings.append(Binding(tensor, ViewTensor(storage, Const(0), info)))
        args = (*tensors[-uses:], tensor)
        bindings.append(Binding(Value(mint(), "run", ObjectInfo()), LaunchKernel("f", args)))
        tensors.append(tensor)
    return GraphFunc("main", (x,), tuple(bindings), (tensors[-1],), stage="memory")


def check(func: GraphFunc) -> dict[str, str]:
    """Check that tensors in the same storage are live at different times, and fit into it."""
    live = LiveRanges(func)
    shared = shared_storages(func)
    members: dict[Value, list[Value]] = {}
    for storage in live.ranges:
        members.setdefault(shared.get(storage, storage), []).append(storage)
    for owner, storages in members.items():
        ordered = sorted((live.ranges[s] for s in storages), key=lambda r: r.first)
        assert ordered[0].storage is owner
        assert all(a.last < b.first for a, b in itertools.pairwise(ordered))
        have = live.ranges[owner].size
        for n in (1, 7, 500):
            wanted = [evaluate(r.size, dict.fromkeys(r.size.free, n)) for r in ordered]
            room = evaluate(have, dict.fromkeys(have.free, n))
            assert all(w == room or w <= room <= 2 * w for w in wanted)
    assert not live.roots_of(func.results) & {*shared, *shared.values()}
    return {a.name: b.name for a, b in shared.items()}


def test_the_oldest_sufficient_storage_is_used() -> None:
    assert check(chain_of([N, N, N, N, N])) == {"s2": "s0", "s3": "s1"}


def test_a_storage_is_not_used_for_less_than_half_of_its_size() -> None:
    assert check(chain_of([N * 8, N, N * 3, N * 4, N])) == {"s3": "s0"}


def test_constant_and_symbolic_sizes() -> None:
    found = check(chain_of([as_expr(100), N, as_expr(60), N + 1, as_expr(70), N]))
    assert found == {"s2": "s0", "s4": "s0"}


def test_a_size_without_a_value_is_shared_with_itself_only() -> None:
    size = N // (N - 64)
    assert samples_of(size) == (-1, -1, -1)
    assert check(chain_of([size, N, size, N, N])) == {"s2": "s0", "s3": "s1"}


factors = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=12)


@given(factors, st.integers(1, 4))
def test_shared_tensors_fit_and_are_not_live_together(
    drawn: list[tuple[int, int]], uses: int
) -> None:
    check(chain_of([N * a + b for a, b in drawn], uses))


@timed
@pytest.mark.parametrize("kind", ["equal", "constants", "terms"])
def test_many_storages_are_shared_in_nearly_linear_time(kind: str) -> None:
    sizes = {
        "equal": lambda k: N,
        "constants": lambda k: as_expr(k + 1),
        "terms": lambda k: N * (k % 37 + 1) + k,
    }[kind]

    def milliseconds(count: int) -> float:
        func = chain_of([sizes(k) for k in range(count)])
        return relative_ms(lambda: shared_storages(func))

    small = min(milliseconds(300) for _ in range(3))
    assert milliseconds(3000) <= 20 * small
