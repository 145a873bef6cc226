"""Programs with state, for tests of planning, execution and steps."""

from __future__ import annotations

KERNELS = """\
@prim_func
def add1(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for i in range(8):
        with block("a"):
            vi = spatial(i)
            y[vi] = x[vi] + 1.0

@prim_func
def mul2(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for i in range(8):
        with block("m"):
            vi = spatial(i)
            y[vi] = x[vi] * 2.0

@prim_func
def update(c: InOut[(8,), f32], new: Buffer[(8,), f32]):
    for i in range(8):
        with block("u"):
            vi = spatial(i)
            c[vi] = new[vi]

@prim_func
def accumulate(c: InOut[(8,), f32], new: Buffer[(8,), f32], old: Out[(8,), f32]):
    for i in range(8):
        with block("old"):
            vi = spatial(i)
            old[vi] = c[vi]
    for j in range(8):
        with block("c"):
            vj = spatial(j)
            c[vj] = c[vj] + new[vj]

@prim_func
def both(a: InOut[(8,), f32], b: InOut[(8,), f32]):
    for i in range(8):
        with block("first"):
            vi = spatial(i)
            a[vi] = a[vi] + b[vi]
    for j in range(8):
        with block("second"):
            vj = spatial(j)
            b[vj] = b[vj] * 2.0

"""

UNORDERED = (
    KERNELS
    + """
@graph_func
def main(cache: State[Tensor[(8,), f32]], new: Tensor[(8,), f32]):
    t: Tensor[(8,), f32] = call_tir(add1, cache)
    d: Tuple[()] = call_tir(update, cache, new)
    y: Tensor[(8,), f32] = call_tir(mul2, t)
    return y
"""
)
"""A program that reads a state before a call that writes it, without an order between the two."""

ORDERED = (
    KERNELS
    + """
@graph_func
def main(cache: State[Tensor[(8,), f32]], new: Tensor[(8,), f32]):
    t: Tensor[(8,), f32] = call_tir(add1, cache)
    c2: Tensor[(8,), f32] = call_tir(update, cache, new, updates=(0,))
    y: Tensor[(8,), f32] = call_tir(mul2, t)
    return y, updates(cache=c2)
"""
)


def program(params: str, body: str) -> str:
    """Return the kernels and a function ``main``."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return f"{KERNELS}\n@graph_func\ndef main({params}):\n{lines}\n"


def looped(params: str, body: str) -> str:
    """Return the kernels and a function ``main`` with loops, whose index is ``k``."""
    return program(params, body).replace("@graph_func", 'k = symbols("k", lower=0)\n\n@graph_func')


A = "a: State[Tensor[(8,), f32]]"
B = "b: State[Tensor[(8,), f32]]"
X = "x: Tensor[(8,), f32]"
FLAG = "flag: Tensor[(), bool]"
NEW = "Tensor[(8,), f32]"

PROGRAMS: dict[str, str] = {
    "in place": program(
        f"{A}, {X}",
        """
a2 = call_tir(update, a, x, updates=(0,))
y: Tensor[(8,), f32] = call_tir(add1, a2)
return y, updates(a=a2)
""",
    ),
    "the old value is used later": program(
        f"{A}, {X}",
        """
a2 = call_tir(update, a, x, updates=(0,))
y: Tensor[(8,), f32] = call_tir(add1, a)
return y, updates(a=a2)
""",
    ),
    "the old value is a result": program(
        f"{A}, {X}",
        """
a2 = call_tir(update, a, x, updates=(0,))
return a, a2, updates(a=a2)
""",
    ),
    "a view of the old value is used later": program(
        f"{A}, {X}",
        """
v: Tensor[(2, 4), f32] = reshape(a, (2, 4))
a2 = call_tir(update, a, x, updates=(0,))
w: Tensor[(8,), f32] = reshape(v, (8,))
y: Tensor[(8,), f32] = call_tir(add1, w)
return y, updates(a=a2)
""",
    ),
    "the operand is also another operand": program(
        f"{A}",
        """
a2 = call_tir(update, a, a, updates=(0,))
return a2, updates(a=a2)
""",
    ),
    "two updates of one value by one call": program(
        f"{A}, {B}",
        """
t: Tuple[Tensor[(8,), f32], Tensor[(8,), f32]] = call_tir(both, a, a, updates=(0, 1))
p = t[0]
q = t[1]
return p, q, updates(a=q, b=p)
""",
    ),
    "outputs and updates": program(
        f"{A}, {X}",
        """
t: Tuple[Tensor[(8,), f32], Tensor[(8,), f32]] = call_tir(accumulate, a, x, updates=(0,))
old = t[0]
new = t[1]
y: Tensor[(8,), f32] = call_tir(mul2, old)
return y, updates(a=new)
""",
    ),
    "the state keeps its value": program(
        f"{A}, {X}",
        """
a2 = call_tir(update, a, x, updates=(0,))
y: Tensor[(8,), f32] = call_tir(add1, a2)
return y
""",
    ),
    "an input is updated": program(
        f"{A}, {X}",
        """
x2 = call_tir(update, x, a, updates=(0,))
return x2, updates(a=x2)
""",
    ),
    "an intermediate is updated twice": program(
        f"{A}, {X}",
        """
t: Tensor[(8,), f32] = call_tir(add1, x)
u = call_tir(update, t, a, updates=(0,))
s: Tuple[Tensor[(8,), f32], Tensor[(8,), f32]] = call_tir(accumulate, u, x, updates=(0,))
last = s[1]
return last, updates(a=last)
""",
    ),
    "states are exchanged": program(f"{A}, {B}", "return updates(a=b, b=a)"),
    "states are exchanged and returned": program(f"{A}, {B}", "return a, b, updates(a=b, b=a)"),
    "three states are rotated": program(
        f"{A}, {B}, c: State[Tensor[(8,), f32]], {X}",
        """
a2 = call_tir(update, a, x, updates=(0,))
return updates(a=b, b=c, c=a2)
""",
    ),
    "one value is the last value of two states": program(
        f"{A}, {B}, {X}",
        """
a2 = call_tir(update, a, x, updates=(0,))
return a2, updates(a=a2, b=a2)
""",
    ),
    "an update in one branch": program(
        f"{A}, {X}, {FLAG}",
        """
if flag:
    u = call_tir(update, a, x, updates=(0,))
    v: Tensor[(8,), f32] = u
else:
    v = a
y: Tensor[(8,), f32] = call_tir(mul2, v)
return y, updates(a=v)
""",
    ),
    "updates in both branches": program(
        f"{A}, {B}, {X}, {FLAG}",
        """
if flag:
    u = call_tir(update, a, x, updates=(0,))
    v: Tuple[Tensor[(8,), f32], Tensor[(8,), f32]] = (u, b)
else:
    w = call_tir(update, b, a, updates=(0,))
    v = (w, a)
first = v[0]
second = v[1]
return first, updates(a=second, b=first)
""",
    ),
    "a value in the memory of either branch": program(
        f"{A}, {X}, {FLAG}",
        """
t: Tensor[(8,), f32] = call_tir(add1, x)
if flag:
    v: Tensor[(8,), f32] = a
else:
    v = t
w = call_tir(update, v, x, updates=(0,))
y: Tensor[(8,), f32] = call_tir(mul2, w)
return y, updates(a=w)
""",
    ),
    "nested branches": program(
        f"{A}, {B}, {X}, {FLAG}",
        """
if flag:
    u = call_tir(update, a, x, updates=(0,))
    if flag:
        p: Tensor[(8,), f32] = call_tir(mul2, u)
        q: Tensor[(8,), f32] = p
    else:
        q = u
    v: Tuple[Tensor[(8,), f32], Tensor[(8,), f32]] = (q, b)
else:
    r = call_tir(update, b, a, updates=(0,))
    v = (a, r)
first = v[0]
second = v[1]
s = call_tir(update, second, first, updates=(0,))
return first, updates(a=first, b=s)
""",
    ),
    "a use after the branches": program(
        f"{A}, {X}, {FLAG}",
        """
if flag:
    u = call_tir(update, a, x, updates=(0,))
    v: Tensor[(8,), f32] = u
else:
    v = x
y: Tensor[(8,), f32] = call_tir(mul2, a)
return y, updates(a=v)
""",
    ),
    "a tuple holds the old value": program(
        f"{A}, {X}",
        """
pair: Tuple[Tensor[(8,), f32], Tensor[(8,), f32]] = (a, x)
a2 = call_tir(update, a, x, updates=(0,))
old = pair[0]
y: Tensor[(8,), f32] = call_tir(add1, old)
return y, updates(a=a2)
""",
    ),
    "an inout parameter is the result": program(
        f"z: InOut[Tensor[(8,), f32]], {X}",
        """
z2 = call_tir(update, z, x, updates=(0,))
return z2, updates(z=z2)
""",
    ),
    "an inout parameter and its old value": program(
        f"z: InOut[Tensor[(8,), f32]], {X}",
        """
t: Tensor[(8,), f32] = call_tir(add1, x)
return z, updates(z=t)
""",
    ),
    "an out parameter": program(
        f"{A}, o: Out[Tensor[(8,), f32]]",
        """
t: Tensor[(8,), f32] = call_tir(add1, a)
return updates(o=a, a=t)
""",
    ),
    "a carried value starts in a stacked input": looped(
        f"{A}, {X}",
        """
@loop(k, count=8)
def y(c: Tensor[(8,), f32] = a, e: Tensor[(), f32] = each(a)):
    c2 = call_tir(update, c, x, updates=(0,))
    return c2, e
last = y[0]
old = y[1]
return old, updates(a=last)
""",
    ),
    "a carried value starts where a view is a stacked input": looped(
        f"{A}, {B}, {X}",
        """
v = reshape(a, (2, 4))
@loop(k, count=2)
def y(c: Tensor[(8,), f32] = a, d: Tensor[(8,), f32] = b, e: Tensor[(4,), f32] = each(v)):
    c2 = call_tir(update, c, x, updates=(0,))
    d2 = call_tir(update, d, c, updates=(0,))
    return c2, d2, e
last = y[0]
other = y[1]
old = y[2]
return old, updates(a=last, b=other)
""",
    ),
    "a called function": KERNELS
    + """
@graph_func
def step(s: State[Tensor[(8,), f32]], x: Tensor[(8,), f32]):
    t: Tuple[Tensor[(8,), f32], Tensor[(8,), f32]] = call_tir(accumulate, s, x, updates=(0,))
    old = t[0]
    new = t[1]
    return old, updates(s=new)

@graph_func
def main(a: State[Tensor[(8,), f32]], x: Tensor[(8,), f32]):
    t: Tuple[Tensor[(8,), f32], Tensor[(8,), f32]] = call(step, a, x, updates=(0,))
    old = t[0]
    new = t[1]
    u: Tuple[Tensor[(8,), f32], Tensor[(8,), f32]] = call(step, new, old, updates=(0,))
    y = u[0]
    last = u[1]
    return y, updates(a=last)
""",
}
"""Programs by the property that they show; parameters have shape (8,), except conditions."""
