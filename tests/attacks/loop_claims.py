"""Claims in text: concurrent loops whose iterations race, and others that only seem to.

Each program is a function without its decorator and without the declarations of its symbols.
"""

from __future__ import annotations

RACES = {
    "squares modulo a size": """
def f(x: Buffer[(n,), f32], y: InOut[(n,), f32]):
    for i in parallel(n):
        with block("b"):
            vi = spatial(i)
            y[vi * vi % n] = x[vi]
""",
    "a distance of 200 iterations": """
def f(x: Buffer[(1000,), f32], y: InOut[(1200,), f32]):
    for i in parallel(1000):
        with block("b"):
            vi = spatial(i)
            y[vi + 200] = y[vi] + x[vi]
""",
    "the last of 100,000 iterations writes the first element": """
def f(x: Buffer[(100000,), f32], y: InOut[(100000,), f32]):
    for i in parallel(100000):
        with block("b"):
            vi = spatial(i)
            y[vi % 99999] = x[vi]
""",
    "reads of the mirrored element": """
def f(x: Buffer[(n,), f32], y: InOut[(n,), f32]):
    for i in parallel(n):
        with block("b"):
            vi = spatial(i)
            y[vi] = y[n - 1 - vi] + x[vi]
""",
    "every pair is swapped twice": """
def f(y: InOut[(n,), f32]):
    for i in parallel(n):
        t = alloc((1,), f32)
        with block("a"):
            vi = spatial(n, i)
            t[0] = y[vi]
        with block("b"):
            vj = spatial(n, i)
            y[vj] = y[n - 1 - vj]
        with block("c"):
            vk = spatial(n, i)
            y[n - 1 - vk] = t[0]
""",
    "a whole matrix is transposed in place": """
def f(y: InOut[(n, n), f32]):
    for i in parallel(n):
        for j in range(n):
            with block("b"):
                vi, vj = spatial(i), spatial(n, j)
                y[vi, vj] = y[vj, vi]
""",
    "every second iteration writes one element": """
def f(x: Buffer[(n,), f32], y: InOut[(n,), f32]):
    for i in parallel(n):
        with block("b"):
            vi = spatial(i)
            guard(i % 2 == 1)
            y[0] = x[vi]
""",
    "a temporary that only some iterations fill": """
def f(x: Buffer[(n, 4), f32], y: Out[(n, 4), f32]):
    t = alloc((4,), f32)
    for i in parallel(n):
        for j in range(4):
            with block("a"):
                vi, vj = spatial(i), spatial(j)
                guard(i % 2 == 0)
                t[vj] = x[vi, vj]
        for k in range(4):
            with block("b"):
                wi, wk = spatial(i), spatial(k)
                y[wi, wk] = t[3 - wk]
""",
    "a temporary that is read after the loop": """
def f(x: Buffer[(n, 4), f32], y: Out[(n, 4), f32], z: Out[(4,), f32]):
    t = alloc((4,), f32)
    for i in parallel(n):
        for j in range(4):
            with block("a"):
                vi, vj = spatial(i), spatial(j)
                t[vj] = x[vi, vj]
        for k in range(4):
            with block("b"):
                wi, wk = spatial(i), spatial(k)
                y[wi, wk] = t[3 - wk]
    for l in range(4):
        with block("c"):
            vl = spatial(l)
            z[vl] = t[vl]
""",
    "lanes read the next element": """
def f(x: Buffer[(16,), f32], y: InOut[(17,), f32]):
    for i in vectorized(16):
        with block("b"):
            vi = spatial(i)
            y[vi] = y[vi + 1] + x[vi]
""",
    "a sum in a parallel loop": """
def f(x: Buffer[(16,), f32], y: InOut[(1,), f32]):
    for i in parallel(16):
        with block("b"):
            vi = reduce(i)
            y[0] += x[vi]
""",
    "the outer loop of a polynomial product": """
def f(x: Buffer[(n, n), f32], y: InOut[(2 * n,), f32]):
    for i in parallel(n):
        for j in range(n):
            with block("b"):
                vi, vj = spatial(i), spatial(j)
                y[vi + vj] = x[vi, vj]
""",
    "two parallel loops and the transposed element": """
def f(x: Buffer[(n, n), f32], y: InOut[(n, n), f32]):
    for i in parallel(n):
        for j in parallel(n):
            with block("b"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = y[vj, vi] + x[vi, vj]
""",
    "a scatter": """
def f(x: Buffer[(n,), f32], p: Buffer[(n,), i32], y: InOut[(n,), f32]):
    for i in parallel(n):
        with block("b"):
            vi = spatial(i)
            with checked(p[vi], 0, n) as k:
                y[k] = x[vi]
""",
    "an index plus a loaded integer": """
def f(x: Buffer[(n,), f32], p: Buffer[(n,), i32], y: InOut[(n + 8,), f32]):
    for i in parallel(n):
        with block("b"):
            vi = spatial(i)
            with checked(p[vi], 0, 8) as k:
                y[vi + k] = x[vi]
""",
    "reads of all previous elements": """
def f(x: Buffer[(n,), f32], y: InOut[(n,), f32]):
    for i in parallel(n):
        for j in range(i):
            with block("a"):
                vi, vj = spatial(i), reduce(n, j)
                y[vi] += y[vj] * x[vi]
""",
    "the index of the last iterations is clipped": """
def f(x: Buffer[(n,), f32], y: InOut[(n,), f32]):
    for i in parallel(n):
        with block("a"):
            vi = spatial(i)
            y[min(vi, max(n - 2, 0))] = x[vi]
""",
    "two buffers with a distance": """
def f(a: InOut[(n,), f32], b: InOut[(n + 1,), f32]):
    for i in parallel(n):
        with block("a"):
            vi = spatial(i)
            a[vi] = b[vi + 1] + 1.0
        with block("b"):
            vj = spatial(i)
            b[vj] = a[vj] * 2.0
""",
    "rows that overlap by one element": """
def f(m: Int, x: Buffer[(n,), f32], y: InOut[(n * m + n + 1,), f32]):
    for i in parallel(n):
        for j in range(m + 1):
            with block("a"):
                vi, vj = spatial(i), spatial(m + 1, j)
                y[vi * m + vj] = x[vi]
""",
    "thread blocks exchange elements": """
def f(x: Buffer[(64,), f32], y: InOut[(64,), f32]):
    t = alloc((64,), f32)
    for b in thread(64, "blockIdx.x"):
        with block("a"):
            vb = spatial(b)
            t[vb] = x[vb]
        with block("c"):
            wb = spatial(b)
            y[wb] = t[63 - wb]
""",
    "threads exchange elements without a barrier": """
def f(x: Buffer[(64,), f32], y: InOut[(64,), f32]):
    t = alloc((64,), f32, scope="shared")
    for b in thread(64, "threadIdx.x"):
        with block("a"):
            vb = spatial(b)
            t[vb] = x[vb]
        with block("c"):
            wb = spatial(b)
            y[wb] = t[63 - wb]
""",
    "diagonals of two thread axes": """
def f(x: Buffer[(64,), f32], y: InOut[(64,), f32]):
    for a in thread(8, "threadIdx.y"):
        for b in thread(8, "threadIdx.x"):
            with block("a"):
                va, vb = spatial(a), spatial(b)
                y[va + vb] = x[va * 8 + vb]
""",
    "eight threads with a stride of seven": """
def f(x: Buffer[(64,), f32], y: InOut[(64,), f32]):
    for a in thread(8, "threadIdx.y"):
        for b in thread(8, "threadIdx.x"):
            with block("a"):
                va, vb = spatial(a), spatial(b)
                y[va + 7 * vb] = x[va * 8 + vb]
""",
    "lanes read the element of the first one": """
def f(x: Buffer[(64,), f32], y: InOut[(64,), f32]):
    for a in parallel(8):
        for b in vectorized(8):
            with block("a"):
                va, vb = spatial(a), spatial(b)
                y[va * 8 + vb] = y[(va * 8 + vb) // 8 * 8] + x[vb]
""",
    "two stores of a lane that overlap those of the next one": """
def f(x: Buffer[(64,), f32], y: InOut[(65,), f32]):
    for b in vectorized(64):
        with block("a"):
            vb = spatial(b)
            y[vb] = x[vb]
            y[vb + 1] = x[vb] * 2.0
""",
    "one accumulator of all iterations": """
def f(x: Buffer[(16, 16), f32], y: InOut[(16, 16), f32]):
    t = alloc((), f32)
    for z in range(1):
        with block("z"):
            vz = spatial(z)
            t[()] = x[vz, 0]
    for i in parallel(16):
        for j in range(16):
            with block("a"):
                vi, vj = spatial(16, i), ordered(16, j)
                t[()] = t[()] + x[vi, vj]
                y[vi, vj] = t[()]
""",
    "an index array is changed while others read it": """
def f(p: InOut[(17,), i32], y: InOut[(16,), f32]):
    for i in parallel(16):
        with checked(p[i + 1], 0, 16) as r:
            with block("a"):
                vi, vr = spatial(16, i), spatial(16, r)
                y[vi] = 1.0
        with block("b"):
            wi = spatial(16, i)
            p[wi] = 3
""",
    "one branch reads elements that the other one writes": """
def f(x: Buffer[(64,), f32], y: InOut[(64,), f32]):
    for i in parallel(64):
        if i < 32:
            with block("a"):
                vi = spatial(64, i)
                y[vi] = x[vi]
        else:
            with block("b"):
                wi = spatial(64, i)
                y[wi] = y[wi - 32] * 2.0
""",
}

INDEPENDENT = {
    "reads of the other half": """
def f(x: Buffer[(n,), f32], y: InOut[(n,), f32]):
    for i in parallel(n // 2):
        with block("b"):
            vi = spatial(n // 2, i)
            y[vi] = y[n - 1 - vi] + x[vi]
""",
    "each pair is swapped once": """
def f(y: InOut[(n,), f32]):
    for i in parallel(n // 2):
        t = alloc((1,), f32)
        with block("a"):
            vi = spatial(n // 2, i)
            t[0] = y[vi]
        with block("b"):
            vj = spatial(n // 2, i)
            y[vj] = y[n - 1 - vj]
        with block("c"):
            vk = spatial(n // 2, i)
            y[n - 1 - vk] = t[0]
""",
    "odd elements to even ones": """
def f(y: InOut[(n,), f32]):
    for i in parallel(n // 2):
        with block("b"):
            vi = spatial(n // 2, i)
            y[2 * vi] = y[2 * vi + 1] * 2.0
""",
    "a packed triangle": """
def f(x: Buffer[(n, n), f32], y: InOut[(n * (n + 1) // 2,), f32]):
    for i in parallel(n):
        for j in range(i + 1):
            with block("b"):
                vi, vj = spatial(i), spatial(n, j)
                y[vi * (vi + 1) // 2 + vj] = x[vi, vj]
""",
    "the upper triangle to the lower one": """
def f(y: InOut[(n, n), f32]):
    for i in parallel(n):
        for j in range(i):
            with block("b"):
                vi, vj = spatial(i), spatial(n, j)
                y[vi, vj] = y[vj, vi]
""",
    "a permutation by a product modulo a size": """
def f(x: Buffer[(16,), f32], y: InOut[(16,), f32]):
    for i in parallel(16):
        with block("b"):
            vi = spatial(i)
            y[vi * 7 % 16] = x[vi]
""",
    "one iteration passes the guard": """
def f(x: Buffer[(n,), f32], y: InOut[(n,), f32]):
    for i in parallel(n):
        with block("b"):
            vi = spatial(i)
            guard(i == n - 1)
            y[0] = x[vi]
""",
    "one iteration passes the branch": """
def f(x: Buffer[(n,), f32], y: InOut[(n,), f32]):
    for i in parallel(n):
        if i == 3:
            with block("b"):
                vi = spatial(n, i)
                y[0] = x[vi]
""",
    "at most one iteration": """
def f(n: Int, x: Buffer[(8,), f32], y: InOut[(8,), f32]):
    fact(n <= 1, "one", by="entry_check")
    for i in parallel(n):
        with block("b"):
            vi = spatial(i)
            y[0] = x[vi]
""",
    "a temporary that every iteration fills": """
def f(x: Buffer[(n, 4), f32], y: Out[(n, 4), f32]):
    t = alloc((4,), f32)
    for i in parallel(n):
        for j in range(4):
            with block("a"):
                vi, vj = spatial(i), spatial(j)
                t[vj] = x[vi, vj]
        for k in range(4):
            with block("b"):
                wi, wk = spatial(i), spatial(k)
                y[wi, wk] = t[3 - wk]
""",
    "lanes add to one element": """
def f(x: Buffer[(16,), f32], y: InOut[(1,), f32]):
    for i in vectorized(16):
        with block("b"):
            vi = reduce(i)
            y[0] += x[vi]
""",
    "the inner loop of a polynomial product": """
def f(x: Buffer[(n, n), f32], y: InOut[(2 * n,), f32]):
    for i in range(n):
        for j in parallel(n):
            with block("b"):
                vi, vj = spatial(i), spatial(j)
                y[vi + vj] = x[vi, vj]
""",
    "a loaded column of the own row": """
def f(x: Buffer[(n,), f32], p: Buffer[(n,), i32], y: InOut[(n, 8), f32]):
    for i in parallel(n):
        with block("b"):
            vi = spatial(i)
            with checked(p[vi], 0, 8) as k:
                y[vi, k] = x[vi]
""",
    "a loaded offset in the own tile": """
def f(x: Buffer[(n,), f32], p: Buffer[(n,), i32], y: InOut[(8 * n,), f32]):
    for i in parallel(n):
        with block("b"):
            vi = spatial(i)
            with checked(p[vi], 0, 8) as k:
                y[8 * vi + k] = x[vi]
""",
    "threads exchange elements of shared memory in two loops": """
def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
    t = alloc((32,), f32, scope="shared")
    for i in thread(32, "threadIdx.x"):
        with block("a"):
            vi = spatial(i)
            t[vi] = x[vi]
    for j in thread(32, "threadIdx.x"):
        with block("b"):
            vj = spatial(j)
            y[vj] = t[31 - vj]
""",
    "a temporary of the loop around": """
def f(x: Buffer[(n, 4), f32], y: Out[(n, 4), f32]):
    for i in range(n):
        t = alloc((1,), f32)
        for j in parallel(4):
            with block("a"):
                vi, vj = spatial(i), spatial(j)
                t[0] = x[vi, vj]
            with block("b"):
                wi, wj = spatial(i), spatial(j)
                y[wi, wj] = t[0] * t[0]
""",
    "neighbors are exchanged": """
def f(y: InOut[(n,), f32]):
    for i in parallel(n // 2):
        for j in range(2):
            with block("a"):
                vi, vj = spatial(n // 2, i), spatial(2, j)
                y[2 * vi + 1 - vj] = y[2 * vi + vj] + 1.0
""",
    "interleaved columns": """
def f(m: Int, x: Buffer[(n,), f32], y: InOut[(n * m,), f32]):
    for i in parallel(n):
        for j in range(m):
            with block("a"):
                vi, vj = spatial(i), spatial(j)
                y[vj * n + vi] = x[vi]
""",
    "threads exchange elements of global memory in two loops": """
def f(x: Buffer[(64,), f32], y: InOut[(64,), f32]):
    t = alloc((64,), f32)
    for b in thread(64, "threadIdx.x"):
        with block("a"):
            vb = spatial(b)
            t[vb] = x[vb]
    for c in thread(64, "threadIdx.x"):
        with block("c"):
            wb = spatial(c)
            y[wb] = t[63 - wb]
""",
    "two stores of a lane to its own elements": """
def f(x: Buffer[(64,), f32], y: InOut[(128,), f32]):
    for b in vectorized(64):
        with block("a"):
            vb = spatial(b)
            y[2 * vb] = x[vb]
            y[2 * vb + 1] = y[2 * vb] * 2.0
""",
    "an accumulator per row": """
def f(x: Buffer[(16, 16), f32], y: InOut[(16, 16), f32]):
    t = alloc((16,), f32)
    for i in parallel(16):
        for j in range(16):
            if j == 0:
                with block("z"):
                    vz = spatial(16, i)
                    t[vz] = 0.0
            with block("a"):
                vi, vj = spatial(16, i), ordered(16, j)
                t[vi] = t[vi] + x[vi, vj]
                y[vi, vj] = t[vi]
""",
    "an accumulator that every row sets": """
def f(x: Buffer[(16, 16), f32], y: InOut[(16, 16), f32]):
    t = alloc((), f32)
    for i in parallel(16):
        with block("z"):
            vz = spatial(16, i)
            t[()] = x[vz, 0]
        for j in range(16):
            with block("a"):
                vi, vj = spatial(16, i), ordered(16, j)
                t[()] = t[()] + x[vi, vj]
                y[vi, vj] = t[()]
""",
    "a loaded row is read": """
def f(p: Buffer[(16,), i32], x: Buffer[(16, 16), f32], y: InOut[(16, 16), f32]):
    for i in parallel(16):
        with checked(p[i], 0, 16) as r:
            for j in range(16):
                with block("a"):
                    vi, vj, vr = spatial(16, i), spatial(16, j), spatial(16, r)
                    y[vi, vj] = x[vr, vj]
""",
    "columns of a loaded row": """
def f(p: Buffer[(16,), i32], x: Buffer[(16, 16), f32], y: InOut[(16, 16), f32]):
    for i in range(16):
        with checked(p[i], 0, 16) as r:
            for j in parallel(16):
                with block("a"):
                    vi, vj, vr = spatial(16, i), spatial(16, j), spatial(16, r)
                    y[vr, vj] = x[vi, vj]
""",
    "each iteration changes its own index": """
def f(p: InOut[(16,), i32], y: InOut[(16,), f32]):
    for i in parallel(16):
        with checked(p[i], 0, 16) as r:
            with block("a"):
                vi, vr = spatial(16, i), spatial(16, r)
                y[vi] = 1.0
        with block("b"):
            wi = spatial(16, i)
            p[wi] = 3
""",
    "transposed blocks on the diagonal": """
def f(x: Buffer[(64,), f32], y: InOut[(64, 64), f32]):
    for i in parallel(8):
        for j in range(8):
            for k in range(8):
                with block("a"):
                    vi, vj, vk = spatial(i), spatial(j), spatial(k)
                    y[8 * vi + vj, 8 * vi + vk] = y[8 * vi + vk, 8 * vi + vj] + x[vj]
""",
    "branches that write different halves": """
def f(x: Buffer[(64,), f32], y: InOut[(64,), f32]):
    for i in parallel(64):
        if i < 32:
            with block("a"):
                vi = spatial(64, i)
                y[vi] = x[vi]
        else:
            with block("b"):
                wi = spatial(64, i)
                y[wi] = x[wi] * 2.0
""",
    "the other branch never writes": """
def f(x: Buffer[(64,), f32], y: InOut[(64,), f32]):
    for i in parallel(64):
        if i < 32:
            with block("a"):
                vi = spatial(64, i)
                y[vi] = y[vi + 32]
        else:
            with block("b"):
                wi = spatial(64, i)
                guard(i < 0)
                y[wi] = 2.0
""",
}
