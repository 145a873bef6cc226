"""Offsets of temporaries in one memory, of which those with disjoint live ranges share bytes."""

from __future__ import annotations

import random

import pytest

from tilewright.codegen.lower.to_thread.shared_offsets import MOST_TERMS, Request, shared_offsets
from tilewright.ir.symbolic import Facts, as_expr, evaluate, var

from tests.cpu_time import relative_ms, timed

N, M = var("n", lower=1), var("m", lower=1)


def request(size, first: int, last: int) -> Request:
    return Request(as_expr(size), first, last)


def check(requests: list[Request], **values: int) -> tuple[int, int]:
    """Check that live temporaries are disjoint; return the size and the maximum of live bytes."""
    known = {v: values[v.name] for v in (N, M) if v.name in values}
    offsets, total = shared_offsets(requests, Facts())
    parts = [
        (int(evaluate(o, known)), int(evaluate(r.size, known)), r)
        for o, r in zip(offsets, requests, strict=True)
    ]
    size = int(evaluate(total, known))
    for k, (start, count, one) in enumerate(parts):
        assert 0 <= start <= start + count <= size
        for other_start, other_count, other in parts[:k]:
            if one.first <= other.last and other.first <= one.last:
                assert start + count <= other_start or other_start + other_count <= start
    peak = max(
        sum(c for _, c, r in parts if r.first <= at <= r.last) for at in {r.first for r in requests}
    )
    return size, peak


def test_no_temporary_takes_no_memory():
    assert shared_offsets([], Facts()) == ([], as_expr(0))


def test_temporaries_of_nested_scopes_take_the_peak_of_live_bytes():
    scopes = [(0, 9), (1, 4), (2, 3), (5, 9), (6, 8)]
    nested = [request(64 * k, *r) for k, r in enumerate(scopes, 1)]
    assert check(nested) == (64 * 10, 64 * 10)


def test_scopes_of_incomparable_sizes_share_memory():
    requests = [request(N * 64, 0, 1), request(M * 64, 2, 3)]
    offsets, total = shared_offsets(requests, Facts())
    assert offsets == [as_expr(0), as_expr(0)]
    assert [evaluate(total, {N: n, M: 5}) for n in (3, 7)] == [320, 448]


def test_a_temporary_takes_a_larger_block_in_front_of_a_live_one():
    requests = [request(N * 128, 0, 2), request(M * 64, 1, 9), request(N * 64, 3, 4)]
    assert check(requests, n=5, m=3) == (5 * 128 + 3 * 64, 5 * 128 + 3 * 64)


def test_blocks_that_are_free_side_by_side_become_one():
    requests = [request(64, 0, 1), request(128, 0, 2), request(64, 0, 9), request(192, 3, 4)]
    assert check(requests) == (256, 256)


def test_temporaries_that_are_live_at_one_position_are_disjoint():
    assert check([request(64, 0, 3), request(64, 3, 5)]) == (128, 128)


@pytest.mark.parametrize("seed", range(40))
def test_live_temporaries_are_disjoint_in_random_programs(seed: int):
    choose = random.Random(seed)
    requests = list[Request]()
    for _ in range(60):
        first = choose.randrange(40)
        size = choose.choice([64, 128, 192, 4096, N * 64, N * 128, M * 64, N * 64 + M * 128])
        requests.append(request(size, first, min(40, first + choose.randrange(12))))
    size, peak = check(requests, n=choose.randrange(1, 9), m=choose.randrange(1, 9))
    assert peak <= size <= sum(64 * 9 * 3 + 4096 for _ in requests)


def test_the_size_has_a_limited_number_of_terms():
    sizes = [var(f"n{k}", lower=1) for k in range(3 * MOST_TERMS)]
    requests = [request(n * 64, 2 * k, 2 * k + 1) for k, n in enumerate(sizes)]
    _, total = shared_offsets(requests, Facts())
    values = {n: k + 1 for k, n in enumerate(sizes)}
    assert 64 * len(sizes) <= evaluate(total, values) <= sum(64 * v for v in values.values())


@timed
def test_the_time_is_about_linear_in_the_number_of_temporaries():
    choose = random.Random(0)

    def requests(count: int) -> list[Request]:
        firsts = [choose.randrange(count) for _ in range(count)]
        return [request(64 * choose.randrange(1, 99), f, f + choose.randrange(50)) for f in firsts]

    small, large = requests(1_000), requests(8_000)
    assert relative_ms(lambda: shared_offsets(large, Facts())) < 16 * relative_ms(
        lambda: shared_offsets(small, Facts())
    )
