"""Programs whose threads work on their own rows, for the tests of barriers."""

from __future__ import annotations

GUARDED = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(n, m), f32], y: InOut[(n, m), f32]):
    for i_0 in range(ceildiv(n, 4)):
        for i_1 in thread(4, "threadIdx.x"):
            for j in range(m):
                with block("scan"):
                    vi, vj = spatial(n, i_0 * 4 + i_1), ordered(j)
                    guard(i_0 * 4 + i_1 < n)
                    y[vi, vj] = where(vj >= 1, y[vi, vj - 1], 0.0) + x[vi, vj]
"""

BLOCKED = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(n, m), f32], y: InOut[(n, m), f32]):
    for i_1 in thread(4, "threadIdx.x"):
        for i_0 in range(ceildiv(n, 4)):
            for j in range(m):
                with block("scan"):
                    vi, vj = spatial(n, i_1 * ceildiv(n, 4) + i_0), ordered(j)
                    guard(i_1 * ceildiv(n, 4) + i_0 < n)
                    y[vi, vj] = where(vj >= 1, y[vi, vj - 1], 0.0) + x[vi, vj]
"""

TEMPORARY = """
m = symbols("m", lower=0)

@prim_func
def f(x: Buffer[(3, m), f32], y: Out[(3, m), f32]):
    t = alloc((3, m), f32)
    for i in thread(4, "threadIdx.x"):
        for j in range(m):
            with block("scan"):
                vi, vj = spatial(3, i), ordered(j)
                guard(i < 3)
                t[vi, vj] = scan(max, x[vi, vj])
        for k in range(m):
            with block("use"):
                wi, wk = spatial(3, i), spatial(k)
                guard(i < 3)
                y[wi, wk] = t[wi, m - 1 - wk] + x[wi, wk]
"""

SECOND_NEST = """
m = symbols("m", lower=0)

@prim_func
def f(x: Buffer[(5, m), f32], y: Out[(5, m), f32]):
    t = alloc((5, m), f32)
    for i_0 in range(2):
        for i_1 in thread(4, "threadIdx.x"):
            for j in range(m):
                with block("scan"):
                    vi, vj = spatial(5, i_0 * 4 + i_1), ordered(j)
                    guard(i_0 * 4 + i_1 < 5)
                    t[vi, vj] = scan(add, x[vi, vj])
    for a_0 in range(2):
        for a_1 in thread(4, "threadIdx.x"):
            for b in range(m):
                with block("use"):
                    va, vb = spatial(5, a_0 * 4 + a_1), spatial(b)
                    guard(a_0 * 4 + a_1 < 5)
                    y[va, vb] = t[va, m - 1 - vb]
"""

ONE_ROW = """
m = symbols("m", lower=0)

@prim_func
def f(x: Buffer[(1, m), f32], y: Out[(1, m), f32]):
    t = alloc((1, m), f32)
    for i in thread(32, "threadIdx.x"):
        for j in range(m):
            with block("scan"):
                vi, vj = spatial(1, i), ordered(j)
                guard(i < 1)
                t[vi, m - 1 - vj] = scan(add, x[vi, m - 1 - vj])
        for k in range(m):
            with block("use"):
                wi, wk = spatial(1, i), spatial(k)
                guard(i < 1)
                y[wi, wk] = t[wi, wk] * 2.0
"""

PLANE = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(n, m, 8), f32], y: InOut[(n, m, 8), f32]):
    for b in thread(n, "blockIdx.x"):
        for a in thread(3, "threadIdx.y"):
            for t in thread(4, "threadIdx.x"):
                for c in range(2):
                    for i_0 in range(ceildiv(m, 3)):
                        if i_0 * 3 + a < m:
                            for k in range(i_0 * 3 + a + 1):
                                with block("step"):
                                    vb, vi = spatial(b), spatial(m, i_0 * 3 + a)
                                    vj, vk = spatial(8, c * 4 + t), ordered(m, k)
                                    y[vb, vi, vj] = y[vb, vi, vj] + x[vb, vk, vj]
"""

PROGRAMS = {
    "rows of a parameter, interleaved over threads": GUARDED,
    "rows of a parameter, consecutive for each thread": BLOCKED,
    "rows of a temporary, fewer than threads": TEMPORARY,
    "rows of a temporary in two nests": SECOND_NEST,
    "one row for many threads": ONE_ROW,
    "elements of a plane of threads, in a triangle": PLANE,
}
"""The programs by the elements of a thread; none needs a barrier."""
