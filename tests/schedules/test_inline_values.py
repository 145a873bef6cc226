"""Inlining of values that are used several times, and of several values at once."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.codegen.lower import lower_kernel
from tilewright.errors import TilewrightError
from tilewright.ir.interpreter.loops import call_prim
from tilewright.ir.loop.nodes import Bind, Block, Stmt
from tilewright.ir.loop.visit import elements, walk
from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.ir.thread.text import to_text
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule
from tilewright.schedules.inline_values import producer_of
from tilewright.schedules.rules import with_default_schedule
from tilewright.target.target import Target

from tests.cpu_time import relative_ms, timed

SILU = "v / (1.0 + exp(-v))"


def chain(count: int, value: str = SILU) -> Module:
    """Return a function of blocks that each use the result of the previous one."""
    lines = ['n = symbols("n", lower=0)', "@prim_func"]
    lines += ["def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):"]
    lines += [f"    t{k} = alloc((n,), f32)" for k in range(count - 1)]
    for k in range(count):
        source, target = f"t{k - 1}" if k else "x", f"t{k}" if k + 1 < count else "y"
        lines += [
            f"    for i{k} in range(n):",
            f'        with block("b{k}"):',
            f"            vi{k} = spatial(i{k})",
            f"            {target}[vi{k}] = {value.replace('v', f'{source}[vi{k}]')}",
        ]
    return parse("\n".join(lines) + "\n")


def nodes(module: Module) -> int:
    return sum(1 for f in module.prims for _ in elements(f.body))


def inlined(count: int, *, consumers: bool = False, value: str = SILU) -> Schedule:
    sch = Schedule(chain(count, value))
    for k in range(1, count):
        if consumers:
            sch.reverse_compute_inline(f"b{k}")
        else:
            sch.compute_inline(f"b{k - 1}")
    return sch


@pytest.mark.parametrize("consumers", [False, True])
def test_chains_grow_linearly(consumers):
    small, large = (nodes(inlined(k, consumers=consumers).module) for k in (10, 20))
    assert large == 2 * small
    assert large <= 20 * 10


@timed
def test_twenty_values_used_twice_schedule_and_lower_in_linear_time():
    def cost(count: int) -> tuple[float, int]:
        texts: list[str] = []

        def run() -> None:
            func = inlined(count).module.prim("f")
            texts.append(to_text(lower_kernel(func, Target("cpu")).function))

        return relative_ms(run), len(texts[0])

    cost(2)
    (small, short), (large, long) = cost(5), cost(20)
    assert long <= 5 * short
    assert large <= 12 * max(small, 50)  # each of the 20 steps copies the program


@pytest.mark.parametrize("consumers", [False, True])
def test_inlining_changes_no_bits(consumers):
    sch, plain = inlined(12, consumers=consumers), chain(12)
    assert str(parse(str(sch.module))) == str(sch.module)
    one, other = compile(sch, "cpu"), compile(plain, "cpu")
    for n in (0, 1, 5, 33, 1003):
        x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        np.testing.assert_array_equal(one(x), other(x))
        if n < 40:
            got, want = (call_prim(m.prim("f"), [x]) for m in (sch.module, plain))
            np.testing.assert_array_equal(got[0], want[0])


def test_the_operators_of_a_graph_are_fused():
    lines = [f"    v{k + 1} = silu(v{k})" for k in range(20)]
    text = 'n = symbols("n", lower=1)\n@graph_func\ndef main(v0: Tensor[(n, 8), f32]):\n'
    module = with_default_schedule(parse(text + "\n".join(lines) + "\n    return v20\n"))
    assert len(module.prims) == 1
    assert nodes(module) <= 20 * 14


TWO = """
n, m = symbols("n m", lower=1)

@prim_func
def f(x: Buffer[(n, m), f32], y: Out[(n, m), f32], z: Out[(n,), f32]):
    s = alloc((n, m), f32)
    d = alloc((n, m), f32)
    for i in range(n):
        for j in range(m):
            with block("both"):
                vi, vj = spatial(i), spatial(j)
                t = x[vi, vj] * 2.0
                s[vi, vj] = t + exp(t)
                d[vi, vj] = t - 1.0
    for a in range(n):
        for b in range(m):
            with block("use"):
                va, vb = spatial(a), spatial(b)
                y[va, vb] = s[va, vb] * d[va, vb] + s[va, m - 1 - vb]
    for c in range(n):
        for e in range(m):
            with block("sum"):
                vc, ve = spatial(c), reduce(e)
                with init(): z[vc] = 0.0
                z[vc] += s[vc, ve] * s[vc, ve]
"""


def check(sch: Schedule, original: Module) -> None:
    assert str(parse(str(sch.module))) == str(sch.module)
    exe = compile(sch, "cpu")
    for n, m in ((1, 1), (3, 5), (2, 33)):
        x = np.random.default_rng(n).standard_normal((n, m)).astype(np.float32)
        want = call_prim(original.prim("f"), [x])
        for got in (call_prim(sch.module.prim("f"), [x]), exe(x)):
            for a, b in zip(tuple(got), want, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_a_block_with_two_stores_is_inlined():
    module = parse(TWO)
    sch = Schedule(module)
    sch.compute_inline("both")
    assert [b.name for b in sch.get_blocks("f")] == ["use", "sum"]
    assert not sch.module.prim("f").buffers
    check(sch, module)


def test_blocks_with_several_stores_are_refused_by_name_elsewhere():
    sch = Schedule(parse(TWO))
    loop = sch.get_loops("use")[0]
    with pytest.raises(TilewrightError, match="stores to several buffers, 'd', 's'"):
        sch.compute_at("both", loop)
    both = TWO.replace("d = alloc((n, m), f32)\n    ", "").replace(
        "z: Out[(n,), f32])", "z: Out[(n,), f32], d: InOut[(n, m), f32])"
    )
    with pytest.raises(TilewrightError, match="which is a parameter; expected a temporary"):
        Schedule(parse(both)).compute_inline("both")


def test_a_consumer_is_inlined_into_a_block_with_two_stores():
    text = TWO[: TWO.index("    for c in range(n)")].replace(", z: Out[(n,), f32]", "")
    text = text.replace("s[va, m - 1 - vb]", "s[va, vb]").replace("d[va, vb]", "1.0")
    text = text.replace("    d = alloc((n, m), f32)\n", "").replace(
        "y: Out[(n, m), f32]", "y: Out[(n, m), f32], d: Out[(n, m), f32]"
    )
    module = parse(text)
    sch = Schedule(module)
    sch.reverse_compute_inline("use")
    assert [b.name for b in sch.get_blocks("f")] == ["both"]
    check(sch, module)


PADDED = """
@prim_func
def f(x: Buffer[(8,), f32], y: Out[(12,), f32]):
    t = alloc((8,), f32)
    for i in range(8):
        with block("t"):
            vi = spatial(i)
            q = x[vi] * 2.0
            t[vi] = q + exp(q) + exp(q * 0.5) + exp(q * 0.25) + exp(q * 0.125)
    for j in range(12):
        with block("y"):
            vj = spatial(j)
            y[vj] = {value}
"""


@pytest.mark.parametrize(
    ("value", "binds"),
    [
        ("where(vj < 8, t[min(vj, 7)] * t[min(vj, 7)], 0.0)", 2),
        ("where(vj < 8, t[vj] * t[vj], 0.0)", 2),
        ("where(vj < 8, t[vj], 0.0) + where(vj < 6, t[vj], 1.0)", 0),
        ("where(vj < 8, where(vj > 2, t[vj] * t[vj], t[vj]), 0.0)", 2),
        ("where(vj < 4, t[vj], t[vj - 4] * t[vj - 4])", 3),
    ],
)
def test_values_are_evaluated_only_where_they_are_used(value, binds):
    module = parse(PADDED.format(value=value))
    sch = Schedule(module)
    sch.compute_inline("t")
    assert sum(isinstance(s, Bind) for s in walk(sch.module.prim("f").body)) == binds
    x = np.random.default_rng(0).standard_normal(8).astype(np.float32)
    want = call_prim(module.prim("f"), [x])[0]
    np.testing.assert_array_equal(call_prim(sch.module.prim("f"), [x])[0], want)
    np.testing.assert_allclose(compile(sch, "cpu")(x), want, rtol=1e-5)


def test_only_straight_line_blocks_are_producers():
    text = TWO.replace(
        "d[vi, vj] = t - 1.0", "for q in range(2):\n                    d[vi, vj] = t"
    )
    for source, expected in ((TWO, True), (text, False)):
        (block, *_) = (s for s in walk(parse(source).prim("f").body) if isinstance(s, Block))
        assert (producer_of(block) is not None) is expected


UPDATE = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n + 2,), f32], e: Buffer[(n,), f32], y: Out[(n,), f32], z: Out[(n,), f32]):
    s = alloc((n + 2,), f32)
    for i in range(n + 2):
        with block("s"):
            vi = spatial(i)
            q = x[vi] + 1.0
            s[vi] = q * q - q
{body}"""

REDUCTION = """    for a in range(n):
        for r in range(3):
            with block("y"):
                va, vr = spatial(a), reduce(r)
                @reducer(identity=(0.0, inf))
                def both(a0: f32, a1: f32, b0: f32, b1: f32):
                    return a0 + b0, min(a1, b1)
                with init():
                    y[va] = {first}
                    z[va] = {second}
                w = {value}
                y[va], z[va] = both({terms})
"""

SCAN = """    for a in range(n):
        with block("y"):
            va = ordered(a)
            @reducer(identity=(0.0, inf))
            def both(a0: f32, a1: f32, b0: f32, b1: f32):
                return a0 + b0, min(a1, b1)
            y[va], z[va] = scan(both, {terms}{start})
"""


def reduction(terms: str, first: str = "0.0", second: str = "inf", value: str = "x[va]") -> str:
    return REDUCTION.format(terms=terms, first=first, second=second, value=value)


def scan(terms: str, start: str = "") -> str:
    return SCAN.format(terms=terms, start=start and f", start=({start})")


def body_of(sch: Schedule) -> Stmt:
    return sch.module.prim("f").body


UPDATES = {
    "both terms": reduction("s[va + vr], s[va + vr] + 1.0"),
    "other elements": reduction("s[va + vr], s[va]"),
    "init": reduction("x[va + vr], w", "s[va] * s[va]", "s[va + 1]"),
    "init and terms": reduction("s[va + vr], s[va + vr] * s[va]", "s[va]", "s[va] * 2.0"),
    "bound": reduction("w * w, w + s[va]", value="s[va + vr] * s[va]"),
    "guarded": reduction("where(va + vr >= 1, s[va + vr - 1], 0.0), x[va]"),
    "index": reduction("where(vr < 2, w, s[va + 1]), s[va + 1]", value="s[va + 1]"),
    "scan": scan("s[va], s[va] * s[va + 1]"),
    "start": scan("x[va], x[va + 1]", "s[0], s[0] * s[1]"),
    "start and terms": scan("s[va], s[va + 1]", "s[0], s[0] * s[0]"),
}


@pytest.mark.parametrize("parts", [False, True], ids=["whole", "parts"])
@pytest.mark.parametrize("name", UPDATES)
def test_values_are_bound_before_an_update_by_a_reducer(name, parts):
    module = parse(UPDATE.format(body=UPDATES[name]))
    sch = Schedule(module)
    sch.inline_elementwise("f")
    assert [b.name for b in sch.get_blocks("f")] == ["y"]
    assert any(isinstance(s, Bind) and s.local.name[0] == "q" for s in walk(body_of(sch)))
    if parts and "start" not in name and name != "scan":
        sch.rfactor("y", sch.get_loops("y")[1])
    elif parts:
        sch.scan_blocks("y", 4)
    assert not list(violations(sch.module))
    assert str(parse(str(sch.module))) == str(sch.module)
    exe = compile(sch, "cpu")
    for n in (0, 1, 2, 9):
        x = np.random.default_rng(n).integers(-4, 5, n + 2).astype(np.float32)
        args = [x, np.zeros(n, np.float32)]
        want = call_prim(module.prim("f"), args)
        for got in (call_prim(sch.module.prim("f"), args), exe(*args)):
            for a, b in zip(tuple(got), want, strict=True):
                np.testing.assert_array_equal(a, b)


def test_a_value_is_bound_before_an_update_at_a_loaded_index():
    text = UPDATE[: UPDATE.index("{body}")].replace(
        "e: Buffer[(n,), f32], y: Out[(n,), f32], z: Out[(n,), f32]",
        "e: Buffer[(n,), f32], at: Buffer[(n + 2,), i32], y: InOut[(4,), f32], z: InOut[(4,), i64]",
    )
    text += """
    for k in range(n + 2):
        with block("y"):
            vk = reduce(k)
            with checked(at[vk], 0, 4) as j:
                y[j], z[j] = argmax(s[vk] * s[vk], vk)
"""
    module = parse(text)
    sch = Schedule(module)
    sch.compute_inline("s")
    assert not list(violations(sch.module))
    assert any(isinstance(s, Bind) and s.local.name[0] == "q" for s in walk(body_of(sch)))
    x, at = np.arange(9, dtype=np.float32) - 5, (np.arange(9) % 3).astype(np.int32)
    args = [x, np.zeros(7, np.float32), at, np.zeros(4, np.float32), np.full(4, -1)]
    want = call_prim(module.prim("f"), [a.copy() for a in args])
    exe = compile(sch, "cpu")
    got = [a.copy() for a in args]
    exe(*got)
    inlined = call_prim(sch.module.prim("f"), [a.copy() for a in args])
    for a, b, c in zip(want, inlined, got[3:], strict=True):
        np.testing.assert_array_equal(b, a)
        np.testing.assert_array_equal(c, a)
