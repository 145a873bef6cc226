"""Graph functions with loops of all forms, and calls of them, for tests on all targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from tilewright.ir.interpreter import run_graph
from tilewright.ir.module import Module

Arrays: TypeAlias = "tuple[np.ndarray, ...]"
Calls: TypeAlias = "list[tuple[str, Arrays, list[np.ndarray]]]"
"""The names of functions with arguments and results."""

TEXT = """
n, m, t, u, v, w, j, k = symbols("n m t u v w j k", lower=0)

@prim_func
def put(c: InOut[(n, 4), f32], x: Buffer[(4,), f32], at: Int):
    for a in range(4):
        with block("c"):
            va = spatial(a)
            if at < n:
                c[at, va] = c[at, va] + x[va]

@graph_func
def counted(x: Tensor[(n, 4), f32]):
    @loop(k, count=3)
    def y(c: Tensor[(n, 4), f32] = x):
        d = add(c, x)
        return d
    return y

@graph_func
def scanned(x: Tensor[(n, 4), f32], h0: Tensor[(4,), f32]):
    @loop(k, count=n)
    def y(h: Tensor[(4,), f32] = h0, e: Tensor[(4,), f32] = each(x)):
        a = add(h, e)
        b = relu(a)
        return a, b, e
    last = y[0]
    sums = y[1]
    same = y[2]
    return last, sums, same

@graph_func
def swapped(x: Tensor[(n, 4), f32], z: Tensor[(n, 4), f32], count: Tensor[(), i64]):
    one = full((), 1, dtype="i64")
    zero = full((), 0, dtype="i64")
    @loop(k)
    def y(
        i: Tensor[(), i64] = zero, a: Tensor[(n, 4), f32] = x, b: Tensor[(n, 4), f32] = z
    ) -> Tuple[Tensor[(), i64], Tensor[(n, 4), f32], Tensor[(n, 4), f32]]:
        more = less(i, count)
        while more:
            i2 = add(i, one)
            return i2, b, a
    a2 = y[1]
    b2 = y[2]
    return a2, b2

@graph_func
def grown(x: Tensor[(n, 4), f32], rows: Tensor[(), i64]):
    zero = full((), 0, dtype="i64")
    @loop(k)
    def y(
        i: Tensor[(), i64] = zero, c: Tensor[(t, 4), f32] = x
    ) -> Tuple[Tensor[(), i64], Tensor[(u, 4), f32], Tensor[(v, 4), f32]]:
        more = less(i, rows)
        while more:
            s = sum(c, axes=(0,))
            h = multiply(s, 0.5)
            r = reshape(h, (1, 4))
            d = concat(c, r, axis=0)
            i2 = add(i, 1)
            return i2, d, s
    cache = y[1]
    sums = y[2]
    return cache, sums

@graph_func
def nested(x: Tensor[(n, 4), f32], limit: Tensor[(), i64]):
    zero = full((), 0, dtype="i64")
    @loop(k, count=n)
    def y(
        c: Tensor[(t, 4), f32] = x, e: Tensor[(4,), f32] = each(x)
    ) -> Tuple[Tensor[(w, 4), f32], Tensor[(n, 4), f32]]:
        row = reshape(e, (1, 4))
        @loop(j, count=4)
        def inner(
            i: Tensor[(), i64] = zero, d: Tensor[(u, 4), f32] = row
        ) -> Tuple[Tensor[(), i64], Tensor[(v, 4), f32], Tensor[(m,), i64]]:
            more = less(i, limit)
            while more:
                longer = concat(d, row, axis=0)
                i2 = add(i, 1)
                return i2, longer, i2
        trips = inner[2]
        rows = inner[1]
        larger = concat(c, rows, axis=0)
        total = sum(rows, axes=(0,))
        number = sum(trips, axes=(0,))
        real = cast(number, dtype="f32")
        both = add(total, real)
        return larger, both
    a = y[0]
    b = y[1]
    return a, b

@graph_func
def chosen(x: Tensor[(n, 4), f32], first: Tensor[(), bool]):
    if first:
        @loop(k, count=2)
        def p(c: Tensor[(n, 4), f32] = x):
            d = multiply(c, 2.0)
            return d
        y: Tensor[(n, 4), f32] = p
    else:
        @loop(j, count=n)
        def q(g: Tensor[(n, 4), f32] = x, e: Tensor[(4,), f32] = each(x)):
            s = sum(e, axes=(0,))
            zero = full((), 0.0, dtype="f32")
            big = greater(s, zero)
            if big:
                up = add(g, 1.0)
                f: Tensor[(n, 4), f32] = up
            else:
                down = subtract(g, 1.0)
                f: Tensor[(n, 4), f32] = down
            return f
        y: Tensor[(n, 4), f32] = q
    return y

@graph_func
def written(rows: Tensor[(m, 4), f32], cache: State[Tensor[(n, 4), f32]]):
    @loop(k, count=m)
    def y(c: Tensor[(n, 4), f32] = cache, e: Tensor[(4,), f32] = each(rows)):
        d = call_tir(put, c, e, scalars=(k,), updates=(0,))
        s = sum(d, axes=(0,))
        return d, s
    last = y[0]
    sums = y[1]
    return sums, updates(cache=last)
"""

STATES = {"written": "cache"}
"""The states of functions."""


def calls() -> Iterator[tuple[str, Arrays]]:
    """Yield the names of the functions with arguments."""
    rng = np.random.default_rng(5)

    def ints(*shape: int) -> np.ndarray:
        return rng.integers(-4, 5, shape).astype(np.float32)

    for n in (0, 1, 3):
        x = ints(n, 4)
        yield "counted", (x,)
        yield "scanned", (x, ints(4))
        for number in (-1, 0, 1, 4):
            yield "swapped", (x, ints(n, 4), np.array(number))
            yield "grown", (x, np.array(number))
            yield "nested", (x, np.array(number))
        for flag in (True, False):
            yield "chosen", (x, np.array(flag))
    for m in (0, 2, 5):
        yield "written", (ints(m, 4),)


def expected_calls(
    module: Module,
) -> Iterator[tuple[str, Arrays, list[np.ndarray]]]:
    """Yield the calls with their results, and the state, if there is one, as the last result."""
    cache = np.zeros((3, 4), np.float32)
    for name, arguments in calls():
        own = (cache,) if name in STATES else ()
        found = run_graph(module, (*arguments, *own), function=name)
        yield name, arguments, [*found, *(a.copy() for a in own)]


def c_program(wanted: Calls) -> str:
    """Return a C program of the calls, which reads all arguments and writes all results."""
    lines: list[str] = []
    for name, arguments, results in wanted:
        words: list[str] = []
        lines.append("  {")
        for k, a in enumerate(arguments):
            dims = ", ".join(map(str, a.shape)) or "0"
            code, bits = CODES[a.dtype.kind], 8 * a.itemsize
            lines.append(f"    int64_t shape{k}[] = {{{dims}}};")
            lines.append(
                f"    tw_tensor x{k} = tw_describe(take({a.nbytes}), shape{k}, {a.ndim}, "
                f"{code}, {bits});"
            )
            words.append(f"&x{k}")
        count = len(results) - (name in STATES)
        lines += [f"    tw_result *y{k};" for k in range(count)]
        words += ["state"] * (name in STATES) + [f"&y{k}" for k in range(count)]
        lines.append(f"    check(loops_{name}(model, {', '.join(words)}, &error));")
        lines += [f"    put(&y{k}->tensor); tw_release(y{k});" for k in range(count)]
        if name in STATES:
            lines.append(f'    put(loops_state_tensor(state, "{STATES[name]}"));')
        lines.append("  }")
    return PROGRAM.replace("CALLS", "\n".join(lines))


CODES = {"f": 2, "i": 0, "b": 6}
"""The codes of DLPack by kinds of NumPy."""

PROGRAM = r"""
#define TILEWRIGHT_STDIO
#include "loops.h"

static tw_error error;
static FILE *from, *to;
static int64_t live;

static void check(int32_t code) {
  if (!code) return;
  fprintf(stderr, "%d %d %s\n", error.code, error.parameter, error.message);
  exit(1);
}

static void *take(size_t bytes) {
  void *data = aligned_alloc(64, (bytes + 127) / 64 * 64);
  if (!data || fread(data, 1, bytes, from) != bytes) exit(3);
  return data; /* freed at exit */
}

static void put(const tw_tensor *t) {
  int64_t count = t->dtype_bits / 8, rank = t->ndim;
  fwrite(&rank, 8, 1, to);
  fwrite(t->shape, 8, rank, to);
  for (int64_t k = 0; k < rank; k++) count *= t->shape[k];
  fwrite(t->data, 1, count, to);
}

static void *counted(void *context, int64_t bytes, int64_t alignment) {
  live++;
  return tw_stdlib_alloc(context, bytes, alignment);
}

static void released(void *context, void *memory) {
  live -= memory != 0;
  tw_stdlib_free(context, memory);
}

int main(int count, char **arguments) {
  loops_model *model;
  loops_state *state;
  int64_t bytes;
  tw_runtime runtime = tw_stdlib_runtime();
  runtime.alloc = counted;
  runtime.free = released;
  if (count != 4) return 2;
  from = fopen(arguments[2], "rb");
  to = fopen(arguments[3], "wb");
  void *weights = tw_read_file(arguments[1], &bytes);
  check(loops_open(&runtime, weights, bytes, &model, &error));
  check(loops_state_create(model, 3, &state, &error));
CALLS
  loops_state_destroy(state);
  loops_close(model);
  free(weights);
  printf("%d\n", (int)live);
  return fclose(to);
}
"""
