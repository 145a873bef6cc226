"""Random programs whose loops and branches allocate temporaries, which share scratch memory."""

from __future__ import annotations

import random

SIZES = ("n", "m", "n + m", "2 * n", "n * m")
HEAD = """n, m = symbols("n m", lower=1)

@prim_func(scheduled=True)
def f(x: Buffer[(n,), f32], y: InOut[(6, m), f32]):
"""


class ScopedTemporaries:
    """A generator of programs; ``live`` are the temporaries in scope, which are filled."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.names = 0
        self.left = 0

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def add(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def nest(self, depth: int, size: str, statement: str) -> None:
        """Add a loop whose index replaces ``#`` in a statement."""
        i, kind = self.name(), self.random.choice(["range", "range", "vectorized"])
        self.add(depth, f"for {i} in {kind}({size}):")
        self.add(depth + 1, statement.replace("#", i))

    def filled(self, depth: int, live: list[tuple[str, str]]) -> tuple[str, str]:
        """Allocate a temporary and write all of its elements."""
        t, size = self.name(), self.random.choice(SIZES)
        scope = self.random.choice(["", ', scope="local"'])
        self.add(depth, f"{t} = alloc(({size},), f32{scope})")
        value = "x[# % n] * 2.0"
        if live and self.random.random() < 0.6:
            other, count = self.random.choice(live)
            value = f"{other}[# % ({count})] + 3.0"
        self.nest(depth, size, f"{t}[#] = {value}")
        return t, size

    def scope(self, depth: int, live: list[tuple[str, str]], row: str) -> None:
        for _ in range(self.random.randint(1, 3)):
            choice = self.random.random()
            self.left -= 1
            if choice < 0.5:
                live = [*live, self.filled(depth, live)]
            elif self.left > 0:
                kind = self.random.choice(["range(3)", "range(m)", "unrolled(2)", "branch"])
                loop = f"for {self.name()} in {kind}:"
                self.add(depth, f"if {row} % 2 == 0:" if kind == "branch" else loop)
                self.scope(depth + 1, live, row)
            if len(live) > 1 and self.random.random() < 0.5:
                (a, size), (b, count) = self.random.sample(live, 2)
                self.nest(depth, size, f"{a}[#] = {a}[#] * 0.5 + {b}[(# * 3 + 1) % ({count})]")
        value = "1.0"
        if live:
            t, size = self.random.choice(live)
            value = f"{t}[(# * 7 + 3) % ({size})]"
        self.nest(depth, "m", f"y[{row}, #] = y[{row}, #] * 0.5 + {value}")

    def program(self) -> str:
        for _ in range(self.random.randint(1, 2)):
            row, live = self.name(), list[tuple[str, str]]()
            parallel = self.random.random() < 0.5
            if not parallel:
                live = [self.filled(1, live)]
            self.add(1, f"for {row} in {'parallel' if parallel else 'range'}(6):")
            self.left = 9
            self.scope(2, live, row)
        return HEAD + "\n".join(self.lines) + "\n"
