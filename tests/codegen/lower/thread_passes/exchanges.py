"""Programs whose threads exchange values through shared memory, for the tests of barriers."""

from __future__ import annotations

HEAD = """
n = symbols("n", lower=1)

@prim_func(scheduled=True)
def f(x: Buffer[(n, 64), f32], y: Out[(n, 64), f32]):
    s = alloc(({size}), f32, scope="shared")
    for b in thread(1, "blockIdx.x"):
"""


def shared(size: str, body: str) -> str:
    """Return a program with a buffer in shared memory."""
    return HEAD.format(size=size) + body.lstrip("\n")


PROGRAMS = {
    "an element that another thread reads in the same iteration": (
        2,
        shared(
            "64,",
            """

        for k in range(n):
            for t in thread(64, "threadIdx.x"):
                with block("w"):
                    vk, vt = spatial(n, k), spatial(64, t)
                    s[vt] = x[vk, vt]
            for u in thread(64, "threadIdx.x"):
                with block("r"):
                    vk, vt = spatial(n, k), spatial(64, u)
                    y[vk, vt] = s[63 - vt]
""",
        ),
    ),
    "an element that another thread read in the previous iteration": (
        3,
        shared(
            "64,",
            """

        for t0 in thread(64, "threadIdx.x"):
            with block("first"):
                vt = spatial(64, t0)
                s[vt] = 0.0
        for k in range(n):
            for u in thread(64, "threadIdx.x"):
                with block("r"):
                    vk, vt = ordered(n, k), spatial(64, u)
                    y[vk, vt] = s[63 - vt]
            for t in thread(64, "threadIdx.x"):
                with block("w"):
                    vk, vt = ordered(n, k), spatial(64, t)
                    s[vt] = x[vk, vt]
""",
        ),
    ),
    "two buffers in turn": (
        2,
        shared(
            "2, 64",
            """

        for k in range(n):
            for t in thread(64, "threadIdx.x"):
                with block("w"):
                    vk, vt = spatial(n, k), spatial(64, t)
                    s[vk % 2, vt] = x[vk, vt]
            for u in thread(64, "threadIdx.x"):
                with block("r"):
                    vk, vt = spatial(n, k), spatial(64, u)
                    y[vk, vt] = s[vk % 2, 63 - vt]
""",
        ),
    ),
    "the buffer of the previous iteration": (
        2,
        shared(
            "2, 64",
            """

        for t0 in thread(64, "threadIdx.x"):
            with block("first"):
                vt = spatial(64, t0)
                s[1, vt] = 0.0
        for k in range(n):
            for t in thread(64, "threadIdx.x"):
                with block("w"):
                    vk, vt = ordered(n, k), spatial(64, t)
                    s[vk % 2, vt] = x[vk, vt]
            for u in thread(64, "threadIdx.x"):
                with block("r"):
                    vk, vt = ordered(n, k), spatial(64, u)
                    y[vk, vt] = s[(vk + 1) % 2, 63 - vt]
""",
        ),
    ),
    "a guard on the thread index": (
        2,
        shared(
            "64,",
            """

        for k in range(n):
            for t in thread(64, "threadIdx.x"):
                with block("w"):
                    vk, vt = spatial(n, k), spatial(64, t)
                    guard(t < 32)
                    s[vt] = x[vk, vt]
            for u in thread(64, "threadIdx.x"):
                with block("r"):
                    vk, vt = spatial(n, k), spatial(64, u)
                    y[vk, vt] = s[vt % 32]
""",
        ),
    ),
    "two stores in one block": (
        2,
        shared(
            "128,",
            """

        for k in range(n):
            for t in thread(64, "threadIdx.x"):
                with block("w"):
                    vk, vt = spatial(n, k), spatial(64, t)
                    s[vt] = x[vk, vt]
                    s[vt + 64] = x[vk, vt] * 2.0
            for u in thread(64, "threadIdx.x"):
                with block("r"):
                    vk, vt = spatial(n, k), spatial(64, u)
                    y[vk, vt] = s[127 - vt] + s[vt]
""",
        ),
    ),
    "a register and a global element outside of the thread loops": (
        2,
        """
n = symbols("n", lower=1)

@prim_func
def f(x: Buffer[(n,), f32], r: InOut[(3,), f32], y: Out[(n, 64), f32]):
    c = alloc((1,), f32, scope="local")
    for i in range(n):
        with block("step"):
            vi = ordered(i)
            c[0] = r[vi % 3]
            r[vi % 3] = x[vi]
        for t in thread(64, "threadIdx.x"):
            with block("y"):
                ui, ut = spatial(n, i), spatial(64, t)
                y[ui, ut] = c[0]
""",
    ),
    "stores that overlap": (
        3,
        shared(
            "65,",
            """

        for k in range(n):
            for t in thread(64, "threadIdx.x"):
                with block("w"):
                    vk, vt = spatial(n, k), spatial(64, t)
                    s[vt] = x[vk, vt]
            for t2 in thread(64, "threadIdx.x"):
                with block("w2"):
                    vk, vt = spatial(n, k), spatial(64, t2)
                    s[vt + 1] = x[vk, vt] * 2.0
            for u in thread(64, "threadIdx.x"):
                with block("r"):
                    vk, vt = spatial(n, k), spatial(64, u)
                    y[vk, vt] = s[vt] + s[vt + 1]
""",
        ),
    ),
    "a loop with a dependent extent": (
        2,
        shared(
            "64,",
            """

        for k in range(n):
            for t in thread(64, "threadIdx.x"):
                with block("z"):
                    vk, vt = spatial(n, k), spatial(64, t)
                    y[vk, vt] = 0.0
            for j in range(k + 1):
                for t1 in thread(64, "threadIdx.x"):
                    with block("w"):
                        vk, vj, vt = ordered(n, k), ordered(n, j), spatial(64, t1)
                        s[vt] = x[vj, vt]
                for u in thread(64, "threadIdx.x"):
                    with block("r"):
                        vk, vj, vt = ordered(n, k), ordered(n, j), spatial(64, u)
                        y[vk, vt] = y[vk, vt] + s[63 - vt]
""",
        ),
    ),
    "virtual threads": (
        2,
        shared(
            "64,",
            """

        for v in thread(2, "vthread"):
            for k in range(n):
                for t in thread(32, "threadIdx.x"):
                    with block("w"):
                        vv, vk, vt = spatial(2, v), spatial(n, k), spatial(32, t)
                        s[vv * 32 + vt] = x[vk, vv * 32 + vt]
                for u in thread(32, "threadIdx.x"):
                    with block("r"):
                        vv, vk, vt = spatial(2, v), spatial(n, k), spatial(32, u)
                        y[vk, vv * 32 + vt] = s[vv * 32 + 31 - vt]
""",
        ),
    ),
}
"""The number of barriers and the program, by the name of the exchange."""
