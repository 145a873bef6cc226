"""Reference semantics of symbolic terms: NumPy for terms, NumPy and z3 for the text of rules.

Nothing here uses the simplifier: text is walked with `ast`, terms by their fields.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from itertools import pairwise
from random import Random

import numpy as np
import z3

from tilewright.ir.symbolic import (
    Add,
    And,
    Bool,
    BoolConst,
    Const,
    Eq,
    Expr,
    FloorDiv,
    Le,
    Lt,
    Max,
    Min,
    Mod,
    Mul,
    Ne,
    Or,
    Select,
    Var,
    all_of,
    any_of,
    ceildiv,
    eq,
    maximum,
    minimum,
    negate,
    select,
    var,
)

Array = np.ndarray
Values = Mapping[Var, Array]


def safe(d: Array) -> Array:
    """Replace zeros of a divisor; the caller masks these elements."""
    return np.where(d == 0, 1, d)


def value_of(e: Expr | Bool, values: Values) -> Array:
    """Evaluate a term for many assignments (undefined where a divisor is zero)."""
    sub = lambda child: value_of(child, values)  # noqa: E731
    match e:
        case Var():
            return values[e]
        case Const(value) | BoolConst(value):
            return np.full(len(next(iter(values.values()))), value)
        case Add(terms, constant):
            return sum((c * sub(t) for t, c in terms), np.int64(constant))
        case Mul(factors):
            return np.prod([sub(f) for f in factors], axis=0)
        case FloorDiv(a, d):
            return sub(a) // safe(sub(d))
        case Mod(a, d):
            return sub(a) % safe(sub(d))
        case Min(args):
            return np.minimum.reduce([sub(a) for a in args])
        case Max(args):
            return np.maximum.reduce([sub(a) for a in args])
        case Select(p, a, b):
            return np.where(sub(p), sub(a), sub(b))
        case Eq():
            return sub(e.left) == sub(e.right)
        case Ne():
            return sub(e.left) != sub(e.right)
        case Le():
            return sub(e.left) <= sub(e.right)
        case Lt():
            return sub(e.left) < sub(e.right)
        case And(args):
            return np.logical_and.reduce([sub(a) for a in args])
        case Or(args):
            return np.logical_or.reduce([sub(a) for a in args])
        case _:
            raise TypeError(type(e).__name__)


class Sampler:
    """Random terms built by the public operators, with their values without simplification.

    ``defined`` collects where no divisor was zero; ``large`` becomes true where int64 might not
    hold an intermediate result.
    """

    def __init__(self, seed: int, count: int = 48) -> None:
        self.random = Random(seed)
        self.symbols = (
            var("x"),
            var("n", lower=0),
            var("m", lower=1),
            var("i", lower=0, upper=7),
            var("j", lower=-3, upper=4),
            var("k", lower=0, multiple_of=4),
            var("p", lower=1, upper=16),
        )
        draw = np.random.default_rng(seed)
        ranges = ((-25, 26), (0, 30), (1, 20), (0, 8), (-3, 5), (0, 10), (1, 17))
        self.values: dict[Var, Array] = {
            v: draw.integers(low, high, count) * v.multiple_of
            for v, (low, high) in zip(self.symbols, ranges, strict=True)
        }
        self.count = count
        self.restart()

    def restart(self) -> None:
        self.defined = np.ones(self.count, dtype=bool)
        self.large = False

    def integer(self, depth: int) -> tuple[Expr, Array]:
        """Return a random integer term and its values."""
        if depth == 0 or self.random.random() < 0.1:
            return self.leaf()
        kind = self.random.choice("++--***////%%%%mMscu")
        if kind == "s":
            p, condition = self.condition(depth - 1)
            (a, x), (b, y) = self.integer(depth - 1), self.integer(depth - 1)
            return select(p, a, b), np.where(condition, x, y)
        (a, x), (b, y) = self.integer(depth - 1), self.integer(depth - 1)
        if kind in "/%cu" and (self.random.random() < 0.6 or kind == "u"):
            d = self.random.choice((1, 2, 3, 4, 6, 8, 12, 16, -1, -2, -4, 5))
            b, y = Const(d), np.full(self.count, d)
        return self.combine(kind, a, x, b, y)

    def leaf(self) -> tuple[Expr, Array]:
        if self.random.random() < 0.25:
            c = self.random.choice((0, 1, 2, 3, 4, 7, 8, 16, -1, -2, -8))
            return Const(c), np.full(self.count, c)
        v = self.random.choice(self.symbols)
        return v, self.values[v]

    def combine(self, kind: str, a: Expr, x: Array, b: Expr, y: Array) -> tuple[Expr, Array]:
        match kind:
            case "+":
                result = a + b, x + y
            case "-":
                result = a - b, x - y
            case "*":
                result = a * b, x * y
            case "m":
                result = minimum(a, b), np.minimum(x, y)
            case "M":
                result = maximum(a, b), np.maximum(x, y)
            case _:
                self.defined &= y != 0
                result = self.divide(kind, a, x, b, y)
        self.large |= bool(np.abs(result[1].astype(float)).max() > 2.0**40)
        return result

    def divide(self, kind: str, a: Expr, x: Array, b: Expr, y: Array) -> tuple[Expr, Array]:
        d = safe(y)
        match kind:
            case "/":
                return a // b, x // d
            case "%":
                return a % b, x % d
            case "c":
                return ceildiv(a, b), -(-x // d)
            case _:
                return (a // b) * b + a % b, x

    def condition(self, depth: int) -> tuple[Bool, Array]:
        """Return a random condition and its values."""
        kind = self.random.choice("<>=!&|~" if depth > 0 else "<>=!")
        if kind in "&|":
            (p, x), (q, y) = self.condition(depth - 1), self.condition(depth - 1)
            return (all_of(p, q), x & y) if kind == "&" else (any_of(p, q), x | y)
        if kind == "~":
            p, x = self.condition(depth - 1)
            return negate(p), ~x
        (a, x), (b, y) = self.integer(max(depth - 1, 0)), self.integer(max(depth - 1, 0))
        match kind:
            case "<":
                return a < b, x < y
            case ">":
                return a >= b, x >= y
            case "=":
                return eq(a, b), x == y
            case _:
                return negate(eq(a, b)), x != y


NAMES_OF_FUNCTIONS = {"min", "max"}


def symbols_of(*texts: str) -> list[str]:
    """Return the free names of expressions, sorted."""
    nodes = [node for text in texts for node in ast.walk(ast.parse(text, mode="eval"))]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return sorted(names - NAMES_OF_FUNCTIONS)


class Numbers:
    """Evaluation of text over NumPy arrays; ``defined`` is false where a divisor is zero."""

    def __init__(self, values: Mapping[str, Array]) -> None:
        self.values = values
        self.count = len(next(iter(values.values()))) if values else 1
        self.defined = np.ones(self.count, dtype=bool)

    def __call__(self, text: str) -> Array:
        return np.broadcast_to(self.read(ast.parse(text, mode="eval").body), (self.count,))

    def read(self, node: ast.expr) -> Array:
        match node:
            case ast.Constant(value=value):
                return np.asarray(value)
            case ast.Name(id=name):
                return self.values[name]
            case ast.UnaryOp(op=ast.USub(), operand=a):
                return -self.read(a)
            case ast.UnaryOp(op=ast.Not(), operand=a):
                return ~self.read(a)
            case ast.BinOp(left=a, op=op, right=b):
                return self.operate(op, self.read(a), self.read(b))
            case ast.Compare(left=first, ops=ops, comparators=rest):
                sides = [self.read(side) for side in (first, *rest)]
                parts = [
                    COMPARE[type(o)](a, b) for o, a, b in zip(ops, sides, sides[1:], strict=False)
                ]
                return np.logical_and.reduce(parts)
            case ast.BoolOp(op=op, values=values):
                join = np.logical_and if isinstance(op, ast.And) else np.logical_or
                return join.reduce([np.broadcast_to(self.read(v), (self.count,)) for v in values])
            case ast.IfExp(test=p, body=a, orelse=b):
                return np.where(self.read(p), self.read(a), self.read(b))
            case ast.Call(func=ast.Name(id=name), args=args):
                function = np.minimum if name == "min" else np.maximum
                return function(*[self.read(a) for a in args])
            case _:
                raise TypeError(ast.dump(node))

    def operate(self, op: ast.operator, a: Array, b: Array) -> Array:
        match op:
            case ast.Add():
                return a + b
            case ast.Sub():
                return a - b
            case ast.Mult():
                return a * b
            case _:
                self.defined = self.defined & (b != 0)
                return a // safe(b) if isinstance(op, ast.FloorDiv) else a % safe(b)


COMPARE: dict[type[ast.cmpop], Callable] = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
}


def compared(ops: list[ast.cmpop], sides: list) -> list:
    """Return the comparisons of a chain."""
    return [COMPARE[type(op)](a, b) for op, (a, b) in zip(ops, pairwise(sides), strict=True)]


class Formulas:
    """Conversion of text to z3 formulas; ``side`` requires nonzero divisors."""

    def __init__(self, constants: Mapping[str, int] | None = None) -> None:
        self.constants = dict(constants or {})
        self.side: list[z3.BoolRef] = []

    def __call__(self, text: str) -> z3.ExprRef:
        return self.read(ast.parse(text, mode="eval").body)

    def read(self, node: ast.expr) -> z3.ExprRef:
        match node:
            case ast.Constant(value=bool(value)):
                return z3.BoolVal(value)
            case ast.Constant(value=value):
                return z3.IntVal(value)
            case ast.Name(id=name):
                known = self.constants.get(name)
                return z3.Int(name) if known is None else z3.IntVal(known)
            case ast.UnaryOp(op=ast.USub(), operand=a):
                return -self.read(a)
            case ast.UnaryOp(op=ast.Not(), operand=a):
                return z3.Not(self.read(a))
            case ast.BinOp(left=a, op=op, right=b):
                return self.operate(op, self.read(a), self.read(b))
            case ast.Compare(left=first, ops=ops, comparators=rest):
                sides = [self.read(side) for side in (first, *rest)]
                return z3.And(
                    *[
                        COMPARE[type(o)](a, b)
                        for o, a, b in zip(ops, sides, sides[1:], strict=False)
                    ]
                )
            case ast.BoolOp(op=op, values=values):
                join = z3.And if isinstance(op, ast.And) else z3.Or
                return join(*[self.read(v) for v in values])
            case ast.IfExp(test=p, body=a, orelse=b):
                return z3.If(self.read(p), self.read(a), self.read(b))
            case ast.Call(func=ast.Name(id=name), args=[a, b]):
                x, y = self.read(a), self.read(b)
                return z3.If(x <= y, x, y) if name == "min" else z3.If(x <= y, y, x)
            case _:
                raise TypeError(ast.dump(node))

    def operate(self, op: ast.operator, a: z3.ArithRef, b: z3.ArithRef) -> z3.ArithRef:
        match op:
            case ast.Add():
                return a + b
            case ast.Sub():
                return a - b
            case ast.Mult():
                return a * b
            case _:
                self.side.append(b != 0)
                return (
                    floor_division(a, b) if isinstance(op, ast.FloorDiv) else floor_remainder(a, b)
                )


def floor_division(a: z3.ArithRef, b: z3.ArithRef) -> z3.ArithRef:
    if z3.is_int_value(b):
        return a / b if b.as_long() > 0 else (-a) / z3.IntVal(-b.as_long() or 1)
    return z3.If(b > 0, a / b, (-a) / (-b))


def floor_remainder(a: z3.ArithRef, b: z3.ArithRef) -> z3.ArithRef:
    if z3.is_int_value(b):
        return a % b if b.as_long() > 0 else -((-a) % z3.IntVal(-b.as_long() or 1))
    return z3.If(b > 0, a % b, -((-a) % (-b)))
