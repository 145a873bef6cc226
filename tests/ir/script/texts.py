"""Programs that together use every form of the text format, exactly as printed."""

from __future__ import annotations

from functools import partial

from tilewright.ir.analysis.store_blocks import with_store_blocks
from tilewright.ir.module import Module
from tilewright.ir.script import parse as parse_and_check

parse = partial(parse_and_check, check=False)
"""The parser without checks: the text format prints and reads ill-formed programs too."""


def unverified(text: str) -> Module:
    """Parse a program and put its stores in blocks, without checks of the result."""
    module = parse(text)
    return module.with_functions(*map(with_store_blocks, module.prims))


LOOPS = """\
n, k, m = symbols("n k m", lower=1)

@prim_func
def matmul(A: Buffer[(n, k), f32], B: Buffer[(k, m), f32], C: Out[(n, m), f32]):
    for i in parallel(n):
        for j in range(m):
            for r in range(k):
                with block("C"):
                    vi, vj, vr = spatial(i), spatial(j), reduce(r)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vr] * B[vr, vj]


n = symbols("n", lower=8, upper=512, multiple_of=8)
m, offset = symbols("m offset")

@prim_func(
    target=Target("cpu", arch="x86_64", features=("avx2", "fma"), threads=2),
    scheduled=True,
    weight=0.5,
    tile=(4, 16),
    size=n * 2,
    one=expr(1),
    **{"pragma.unroll": "auto"},
    **{"target": 1},
)
def kitchen(
    x: Buffer[(n, m + 3), f32],
    packed: Buffer((n, m), f32, strides=(m * 2, 2), alignment=16),
    scale: Buffer[(), f32],
    flags: Buffer[(n,), bool],
    which: Buffer[(n,), i64],
    y: InOut[(n, m), f32],
    cache: State[(n,), i32],
    offset: Int,
    m: Int,
):
    fact(m <= 1024, "position embeddings", at="model.py:3", by="entry_check")
    fact(n % 16 == 0, "the caller pads", by="caller")
    t = alloc((8, 16), f32, scope="local")
    u = alloc((n, m), f16, layout=lambda i, j: (j // 4, i, j % 4))
    for i0 in range(n // 4, note='a "quoted" b', ratio=1e-05, parts=(1, ("x", -2))):
        for i1 in vectorized(4):
            with block("copy", stage=1):
                vi = spatial(n, i0 * 4 + i1)
                guard(i0 * 4 + i1 < n)
                reads(x[vi, 3:m + 3], scale[()])
                writes(y[0:n, 0:m])
                for j in unrolled(m):
                    y[vi, j] = x[vi, j + 3] / scale[()] - 1.0
    for b in thread(32, "blockIdx.x"):
        with block("weird"):
            vb, vo = spatial(b), ordered(3, 2)
            with init():
                cache[vb] = -1
                cache[vb] = vb
            if vb < 4:
                cache[vb] = min(cache[vb], 7) // 2 % 3 ^ 5 | cache[vb] << 2 & ~cache[vb]
            elif vb == 5 and vo != 1:
                cache[vb] *= -3
            else:
                cache[vb] -= i32(i64(vo + 1))
    for i in range(n):
        with checked(which[i], 0, m) as v:
            y[i, v] = where(flags[i] & (v <= 2), exp(x[i, v]), 2.0 - -f32(1.0))
        with clamped(which[i], 0, m, bounds=(0, 100)) as w:
            y[i, w] = f32(u[i, w]) * f32(w) + fma(x[i, w], 2.0, atan2(1.0, x[i, w]))
        with proved(which[i], i, i + 1) as z:
            y[i, z] = where(not flags[i], inf, -inf) + where(isnan(x[i, z]), nan, 1e+20)
    for q in range(8):
        own = alloc((q + 1,), f32)
        own[q] = y[q, q]


@prim_func
def scalar(y: Out[(), i64], z: Out[(2,), bool]):
    y[()] = index(3, i64)
    z[0] = condition(True)
    z[1] = bool(i64(1) < 2)


@prim_func
def bits(x: Buffer[(4,), i4], w: Buffer[(4,), f8_e4m3], y: Out[(4,), u4], z: Out[(4,), f32]):
    for i in range(4):
        y[i] = reinterpret(x[i], u4) + 3
        z[i] = f32(w[i] * 0.5) + reinterpret(i32(x[i]), f32)
"""

LOOPS += """

m = symbols("m", lower=1)

@prim_func
def bound(x: Buffer[(m,), f32], best: Out[(), f32], at: Out[(), i64], s: Out[(), f32]):
    for i in range(m):
        with block("best"):
            vi = reduce(i)
            with init():
                best[()] = -inf
                at[()] = 0
            t = x[vi] * 2.0
            u = t * t + f32(vi)
            best[()], at[()] = argmax(u, vi)
    for j in range(m):
        with block("s"):
            vj = reduce(j)
            @reducer(identity=(0.0,), commutative=False)
            def last(a: f32, b: f32):
                d = b * 2.0
                return a * 0.5 + d
            with init(): s[()] = 0.0
            s[()] = last(x[vj])
"""

GRAPHS = """\
module(model="tiny", **{"a.b": "c"})
constant("enc.weight", (4, 8), f32, digest="ab", source="m.safetensors")
constant("scale", (), f32)


n, seq = symbols("n seq", lower=1)
k = symbols("k")
index, left = symbols("index left", lower=0)

@graph_func(version=2)
def main(
    x: Tensor[(n, seq, 4), f32],
    cache: State[Tensor[(n, 16), f32]],
    total: State[Tensor[(), f32], const("scale")],
    mask: Tensor(None, i64, rank=2),
    dims: Tensor((2,), i64, elements=(n, seq * 2)),
    shape: Shape[(n, 4)],
    any_shape: Shape(None, rank=3),
    size: Prim[i64, n + 1],
    other: Prim[i32],
    anything: Object,
    gpu: Tensor((n,), f32, device="cuda:1"),
    f: Callable[[Tensor[(n,), f32]], Tuple[Tensor[(n,), f32], Prim[i64]]],
):
    fact(seq <= 512, "position embeddings", at="model.py:3", by="entry_check")
    hint("seq", 32, 128)
    hint("n")
    w: Tensor[(n, seq, 8), f32] = matmul(x, const("enc.weight"))
    v: Tensor[(n, seq, 8), f32] = add(w, const("later", Tensor[(8,), f32]))
    s: Tensor[(n, seq, 8), f32] = nn.softmax(v, axis=-1, eps=1e-05, dims=(1, 2), size=n, name="a b")
    y: Tensor[(n, seq, 8), f32] = op("call_tir", s, 1.0, f16(1.0), True, -2)
    z: Tuple[Tensor[(n,), f32], Tensor[(seq,), f32]] = call_tir(
        kernel,
        y,
        (n, 4),
        scalars=(n * 2,),
        versions=(when(n == 1, gemv), when(n % 8 == 0, by_eight, scalars=(n // 8,))),
    )
    z0 = z[0]
    z1: Object = z[1]
    c = match_cast(z1, Tensor[(k,), f32])
    lib: Tensor[(n,), f32] = call_library("user.scale", z0, alpha=1.0)
    lib2: Object = call_library("user.scale", z0, outputs=(Tensor[(n,), f32],))
    g: Tensor[(n,), f32] = call(helper, lib, (n, k))
    none: Tuple[()] = ()
    both: Tuple[Tensor[(n,), f32], Tuple[()]] = (g, none)
    with attributes(stream=1):
        e: Tensor[(n,), f32] = exp(g)
    if bool(True):
        p: Tensor[(n,), f32] = exp(e)
        q: Tuple[Tensor[(n,), f32], Shape[(n,)]] = (p, (n,))
    else:
        q = (e, (n,))
    @loop(index, count=n)
    def folded(
        sums: Tensor[(8,), f32] = const("later", Tensor[(8,), f32]),
        part: Tensor[(4,), f32] = each(g),
    ) -> Tuple[Tensor[(8,), f32], Tensor[(left,), bool]]:
        going: Tensor[(), bool] = check_all(sums, part)
        while going:
            with attributes(stream=2):
                more: Tensor[(8,), f32] = add(sums, part)
            return more, going
    new: Tuple[Tensor[(n, 16), f32], Tensor[(), f32]] = call_tir(
        append, cache, y, total, updates=(0, 2)
    )
    u0 = new[0]
    u1: Tuple[Tensor[(n,), f32], Tensor[(), f32]] = call_tir(kernel, total, updates=(0,))
    u2: Object = call_tir(kernel, u0, outputs=(Tensor[(n,), f32],), updates=(0,))
    u3: Tensor[(), f32] = call_tir(kernel, total, scalars=(n,), updates=(0,))
    u4: Tensor[(n, 16), f32] = call(helper, u0, updates=(0,))
    return {"a": q, "b": c}, updates(cache=u4, total=u3)


n = symbols("n", lower=1)

@graph_func(result_names=("one",))
def helper(x: Tensor[(n,), f32], y: Out[Tensor[(n,), f32]]):
    return x, (n,)


n = symbols("n", lower=8, upper=64, multiple_of=8)

@graph_func(stage="memory")
def planned(x: Tensor[(n,), f32], y: Out[Tensor[(n,), f32]]):
    s = alloc_storage(n * 4, device="cuda", alignment=128, stream=1)
    t = view(s, 0, Tensor[(n,), f32])
    r = view(t, n * 2, Tensor[(n // 2, 2), f32])
    check(n <= 48, "too long")
    if n == 8:
        launch(small, x, t, stream=1)
    elif n < 32:
        done = launch(middle, x, t, scalars=(n,), versions=(when(n == 16, sixteen),))
    else:
        launch_library("user.axpy", x, outputs=(t,), alpha=1.0)
    with binding("choice", Tensor[(n,), f32]):
        if n == 8:
            kill(t)
    copy(x, t)
    copied = copy(x, t, "the operand is used later", stream=2)
    grown = grow(t, Tensor[(n + 1,), f32])
    kill(s)
    return ((n,),)
"""
