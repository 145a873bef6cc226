"""Random programs of a producer and a consumer below odd loops and branches, and random steps."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.schedules import Schedule

SIZE = "n + m + 16"
STEPS = (
    "compute_at", "reverse_compute_at", "compute_inline", "reverse_compute_inline", "cache_read",
    "cache_write", "rfactor", "decompose_reduction", "fuse", "reorder", "split", "parallel",
    "vectorize", "loop_partition", "blockize",
)  # fmt: skip


class _Lines:
    """Indented lines; every loop and branch contains the lines after it."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.lines, self.depth = rng, list[str](), 1

    def add(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)
        self.depth += text.endswith(":")

    def maybe(self, chance: float, *texts: str) -> None:
        if self.rng.random() < chance:
            self.add(self.rng.choice(texts))


def program(rng: random.Random) -> str:
    """Draw a program: triangles, bands, repeated and empty loops, branches, predicates."""
    out, reduces = _Lines(rng), rng.random() < 0.6
    first, inner = (
        rng.choice(["n", "5", "n - 1", "6"]),
        rng.choice(["m", "4", "i + 1", "m - 2", "7"]),
    )
    out.add(f"for i in range({first}):")
    out.maybe(0.35, "if i < 3:", "if i % 2 < 1:", "if i >= 1:")
    out.maybe(0.12, "for r in range(2):", "for r in range(m):", "for r in range(n - 2):")
    out.add(f"for k in range({inner}):")
    out.maybe(0.12, "for s in range(2):", "for s in range(m):", "for s in range(1):")
    out.maybe(0.2, "if k < 3:", "if k % 2 < 1:", "if k >= 1:", "if k <= i:")
    place = rng.choice(["i", "i", "i + k", "i // 2"] if reduces else ["i", "i", "i", "i"])
    out.add('with block("a"):')
    kind = "reduce" if reduces else "spatial"
    out.add(f"vi, vk = spatial({SIZE}, {place}), {kind}({SIZE}, k)")
    out.maybe(0.2, "guard(k % 2 < 1)", "guard(k != i)", "guard(i < 4)")
    if reduces:
        out.add("with init(): t[vi] = 1.0")
        out.add(rng.choice(["t[vi] += x[vi, vk]", "t[vi] = max(t[vi], x[vi, vk])"]))
    else:
        out.add("t[vi, vk] = x[vi, vk] * 2.0")
    out.depth = 1
    out.add(f"for p in range({rng.choice([first, first, '3', 'n - 1'])}):")
    out.maybe(0.3, "if p < 3:", "if p % 2 < 1:", "if p >= 1:")
    out.add(f"for q in range({rng.choice(['2', '3', 'p + 1', 'm', inner.replace('i', 'p')])}):")
    out.add('with block("b"):')
    out.add(f"vp, vq = spatial({SIZE}, p), spatial({SIZE}, q)")
    out.add(f"y[vp, vq] = x[vp, vq] + t[{'vp' if reduces else 'vp, vq'}]")
    square = f"({SIZE}, {SIZE})"
    return (
        'n, m = symbols("n, m", lower=1)\n@prim_func(scheduled=True)\n'
        f"def f(n: Int, m: Int, x: Buffer[{square}, f32], y: InOut[{square}, f32]):\n"
        f"    t = alloc({f'({SIZE},)' if reduces else square}, f32)\n" + "\n".join(out.lines) + "\n"
    )


def step(rng: random.Random, sch: Schedule) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """Draw a step on the function ``f``, which need not be legal."""
    tree = sch.state.tree("f")
    nested = len(tree.outermost_blocks()) < len(tree.blocks)
    op, nest = rng.choice(STEPS[: -1 if nested else None]), [rng.choice([*tree.loops.values()])]
    block, loop = rng.choice(list(tree.blocks.values())).name, nest[0].var.name
    buffer = rng.choice([b.name for b in tree.buffers.values()])
    match op:
        case "compute_at" | "reverse_compute_at" | "rfactor" | "decompose_reduction":
            return op, (block, loop), {}
        case "compute_inline" | "reverse_compute_inline":
            return op, (block,), {}
        case "cache_read" | "cache_write":
            return op, (block, buffer, "local"), {}
        case "fuse" | "reorder":
            while nest[-1].body in tree.loops.values() and rng.random() < 0.7:
                nest.append(nest[-1].body)
            names = [x.var.name for x in nest]
            return op, tuple(names if op == "fuse" else rng.sample(names, len(names))), {}
        case "split":
            tail = rng.choice(["predicate", "predicate", "epilogue"])
            return op, (loop,), {"factors": (None, rng.choice([2, 3, 4])), "tail": tail}
        case "loop_partition":
            return op, (loop, rng.choice([0, 1, 2])), {}
        case _:
            return op, (loop,), {}
