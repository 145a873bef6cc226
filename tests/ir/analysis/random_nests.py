"""Random nests of loops, branches and predicates around one block, and their iterations."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

from tilewright.ir.analysis import enclosing, tree_of
from tilewright.ir.script import parse
from tilewright.ir.symbolic import evaluate

HEADER = 'n, m = symbols("n, m", lower=0)\n\n@prim_func(scheduled=True)\n'
SIZES = ({"n": 0, "m": 3}, {"n": 1, "m": 1}, {"n": 5, "m": 2}, {"n": 8, "m": 4})


def draw(rng: random.Random) -> str:
    """Draw a nest; its bindings may be outside of their extents."""
    loops, lines, depth, sizes = list[str](), list[str](), 0, dict[str, str]()
    regular = rng.random() < 0.5
    for name in "abc"[: rng.randint(1, 3)]:
        extents = ["4", "n", "m", "3", "n - 2", "2"]
        extents += [] if regular else [f"{x} + 1" for x in loops]
        sizes[name] = rng.choice(extents)
        lines.append("    " * depth + f"for {name} in range({sizes[name]}):")
        loops.append(name)
        depth += 1
        if rng.random() < (0.05 if regular else 0.25):
            lines.append("    " * depth + f"if {_claim(rng, loops)}:")
            depth += 1
            if rng.random() < 0.3:
                lines += ["    " * depth + "y[0] = 0.0", "    " * (depth - 1) + "else:"]
    bindings = [_binding(rng, loops) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.3 and len(loops) > 1:
        flat = f"{loops[0]} * 4 + {loops[1]}"
        bindings[:2] = [f"({flat}) // 6", f"({flat}) % 6"]
    pairs = [(b, rng.choice(["4", "n", "m", "12", "n * 4", "6"])) for b in bindings]
    if regular:
        pairs = _regular(rng, sizes)
    bindings, extents = zip(*pairs, strict=True)
    names = [f"v{k}" for k in range(len(bindings))]
    head = ", ".join(f"spatial({e}, {b})" for e, b in zip(extents, bindings, strict=True))
    lines.append("    " * depth + 'with block("b"):')
    lines.append("    " * depth + f"    {', '.join(names)} = {head}")
    guards = [f"{b} < {e}" for b, e in zip(bindings, extents, strict=True)]
    guards += [f"{b} >= 0" for b in bindings if "-" in b]
    if rng.random() < 0.2:
        guards.append(_claim(rng, loops))
    lines.append("    " * depth + f"    guard({' and '.join(guards)})")
    lines.append("    " * depth + "    y[0] = x[0]")
    body = "\n".join(f"    {line}" for line in lines)
    params = "w: Buffer[(n, m), f32], x: Buffer[(1,), f32], y: InOut[(1,), f32]"
    return f"{HEADER}def f({params}):\n{body}\n"


def _regular(rng: random.Random, sizes: dict[str, str]) -> list[tuple[str, str]]:
    """Draw bindings whose values cover their extents, or nearly."""
    left, found = list(sizes), list[tuple[str, str]]()
    rng.shuffle(left)
    while left:
        a = left.pop()
        size = sizes[a]
        kind = rng.random()
        if kind < 0.3 and left:
            b = left.pop()
            flat, inner = f"{a} * ({sizes[b]}) + {b}", sizes[b]
            found.append((flat, rng.choice([f"({size}) * ({inner})", "7"])))
        elif kind < 0.6 and size.isdigit():
            found += [(f"{a} // 2", f"ceildiv({size}, 2)"), (f"{a} % 2", "2")]
        elif kind < 0.9:
            found.append((rng.choice([a, f"({size}) - 1 - {a}"]), size))
    return found or [("0", "1")]


def _claim(rng: random.Random, loops: list[str]) -> str:
    a, b = rng.choice(loops), rng.choice([*loops, "n", "2", "1"])
    return rng.choice([f"{a} < {b}", f"{a} <= {b}", f"{a} % 2 < 1", f"{a} >= 1"])


def _binding(rng: random.Random, loops: list[str]) -> str:
    a, b = rng.choice(loops), rng.choice(loops)
    return rng.choice(
        [a, a, a, f"{a} * 3 + {b}", f"{a} * m + {b}", f"{a} + {b}", f"{a} // 2", f"{a} % 2",
         f"3 - {a}", f"{a} * 2", "0", f"{a} + 1", f"{a} - {b}", f"{a} * 4 + {b}"]
    )  # fmt: skip


def runs(text: str, sizes: dict[str, int]) -> Counter[tuple[int, ...]]:
    """Return how often a block runs each iteration."""
    tree = tree_of(parse(text).prims[0])
    (block,) = [b for b in tree.outermost_blocks() if b.name == "b"]
    found = enclosing(tree, block)
    symbols = {s: sizes[s.name] for s in tree.symbols()}
    counted: Counter[tuple[int, ...]] = Counter()

    def visit(loops: tuple, env: dict) -> None:
        if loops:
            for value in range(evaluate(loops[0].extent, env)):
                visit(loops[1:], env | {loops[0].var: value})
        elif all(evaluate(g.condition, env) for g in found.guards):
            counted[tuple(evaluate(v.binding, env) for v in found.iters)] += 1

    visit(found.loops, symbols)
    return counted


def box(block, symbols: dict) -> product:
    """Return all iterations of the domain of a block."""
    return product(*(range(evaluate(v.extent, symbols)) for v in block.iters))
