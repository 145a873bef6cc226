"""Random calls of operators; each function adds a few bindings, or none if no value fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir.symbolic import as_expr, const_value, product

from tests.fuzz.graphs.maker import EXACT, FLOATS, NARROW, UNSIGNED, WHOLE, largest, least
from tests.fuzz.program import Indices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tilewright.ir.symbolic import Expr

    from tests.fuzz.graphs.maker import GraphMaker, Tensor

    Draw = Callable[[GraphMaker], object]

EXACT_UNARY = ("negative", "abs", "relu", "relu", "negative")
WHOLE_UNARY = ("floor", "ceil", "round", "trunc", "sign")
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
ROUNDING_UNARY = (
    "tanh", "sigmoid", "gelu", "silu", "erf", "erfc", "atan", "asinh", "exp2", "sin", "cos",
)  # fmt: skip


def some(m: GraphMaker, fits: Callable[[Tensor], bool] = lambda _: True) -> Tensor | None:
    """Pick a value, or a new input."""
    found = m.pick(fits)
    if found is None or m.chance(0.1):
        made = m.param(m.shape(1, 2, 2, 3), m.dtype())
        if made is not None and fits(made):
            return made
    return found


def number(t: Tensor) -> bool:
    """Return whether a value has numbers."""
    return t.dtype != "bool"


def unary(m: GraphMaker) -> object:
    """Add an element-wise operator of one operand."""
    x = some(m, number)
    if x is None:
        return None
    if x.is_float and m.rounding and m.chance(0.5):
        return rounding_unary(m, x)
    if x.is_float and x.exact and m.chance(0.2):
        return m.emit(m.rng.choice(WHOLE_UNARY), x)
    if x.dtype in UNSIGNED:
        return m.emit("relu", x)
    return m.emit(m.rng.choice(EXACT_UNARY), x)


def rounding_unary(m: GraphMaker, x: Tensor) -> object:
    """Add an element-wise operator that rounds."""
    choice = m.rng.randrange(4)
    if choice == 0:
        low = m.emit("minimum", x, 3.0)
        return low and m.emit("exp", low, bound=25.0, rounds=True)
    if choice == 1:
        positive = m.emit("abs", x)
        above = positive and m.emit("add", positive, 1.0, bound=x.bound + 1)
        op = m.rng.choice(["sqrt", "rsqrt", "log"])
        return above and m.emit(op, above, rounds=True)
    op = m.rng.choice(ROUNDING_UNARY if x.bound <= 1000 else ROUNDING_UNARY[:-2])
    return m.emit(op, x, rounds=True)


def binary(m: GraphMaker) -> object:
    """Add an element-wise operator of two operands, sometimes of the same one twice."""
    x = some(m, number)
    if x is None:
        return None
    y = x if m.chance(0.1) else m.like(x)
    other = abs(y) if isinstance(y, int | float) else y.bound  # type: ignore[union-attr]
    op = m.rng.choice(["add", "add", "subtract", "multiply", "maximum", "minimum"])
    if m.rounding and x.is_float and m.chance(0.15):
        away = m.emit("abs", x)
        away = away and m.emit("add", away, 1.0, bound=x.bound + 1)
        return away and m.emit("divide", y, away, bound=other, rounds=True)
    bound = {"add": x.bound + other, "subtract": x.bound + other, "multiply": x.bound * other}
    pair = (y, x) if m.chance(0.3) else (x, y)
    return m.emit(op, *pair, bound=bound.get(op, max(x.bound, other)))


def integers(m: GraphMaker) -> object:
    """Add an operator on integers: bits, or floor division."""
    x = some(m, lambda t: t.dtype in WHOLE and t.dtype != "bool")
    if x is None:
        return None
    if m.chance(0.2):
        return m.emit("bitwise_not", x)
    if m.chance(0.15):
        return m.emit(m.rng.choice(["popcount", "clz", "ctz"]), x, bound=64)
    op = m.rng.choice(["bitwise_and", "bitwise_or", "bitwise_xor", "floor_divide", "mod"])
    divisors = [k for k in (2, 3, 5) if k < WHOLE[x.dtype]] or [1]
    y = m.rng.choice(divisors) if op in ("floor_divide", "mod") else m.like(x)
    bound = min(x.bound, 5) if op == "mod" else WHOLE[x.dtype]
    return m.emit(op, x, y, bound=bound)


def compare(m: GraphMaker) -> object:
    """Add a comparison, or an operator on truth values."""
    flags = m.pick(lambda t: t.dtype == "bool")
    if flags is not None and m.chance(0.4):
        if m.chance(0.3):
            return m.emit("logical_not", flags)
        return m.emit(m.rng.choice(["logical_and", "logical_or", "logical_xor"]), flags, flags
                      if m.chance(0.2) else m.like(flags))  # fmt: skip
    x = some(m, lambda t: number(t) and t.exact)
    if x is None:
        return None
    y = m.like(x)
    if getattr(y, "exact", True):
        return m.emit(m.rng.choice(COMPARISONS), x, y, bound=1)
    return None


def where(m: GraphMaker) -> object:
    """Add a selection by a mask: a value, an input, or a comparison."""
    x = some(m, number)
    if x is None:
        return None
    mask = m.pick(lambda t: t.dtype == "bool" and t.shape == x.shape)
    if mask is None and x.exact and m.chance(0.6):
        mask = m.emit(m.rng.choice(COMPARISONS), x, 1.0 if x.is_float else 1, bound=1)
    mask = mask or m.param(m.narrowed(x.shape), "bool")
    if mask is None:
        return None
    y = m.like(x)
    other = abs(y) if isinstance(y, int | float) else y.bound  # type: ignore[union-attr]
    pair = (y, x) if m.chance(0.3) else (x, y)
    return m.emit("where", mask, *pair, bound=max(x.bound, other))


def cast(m: GraphMaker) -> object:
    """Add a conversion to another dtype that represents the values."""
    x = some(m)
    if x is None:
        return None
    whole = [t for t, most in WHOLE.items() if x.bound < most and t not in (*UNSIGNED, "bool")]
    fitting = [t for t, most in EXACT.items() if x.bound <= most]
    options = fitting if not x.exact else [*whole, *fitting]
    if x.exact and m.chance(0.25):
        narrow = m.rng.choice(NARROW)
        return m.emit("cast", x, dtype=narrow, bound=min(x.bound, WHOLE.get(narrow, x.bound)))
    dtype = m.rng.choice([t for t in options if t != x.dtype] or ["f64"])
    return m.emit("cast", x, dtype=dtype, bound=max(x.bound, 1))


# ------------------------------------------------------------------ products and reductions


def matmul(m: GraphMaker) -> object:
    """Add a product with a weight, with a transposed weight and a bias, or with a value."""
    x = some(m, lambda t: number(t) and t.rank >= 2 and t.bound <= 1000 and t.dtype not in UNSIGNED)
    if x is None:
        return None
    inner = x.shape[-1]
    columns = as_expr(m.rng.choice([1, 3, 4, 8, 16])) if m.chance(0.7) else m.dim()
    constant = all(const_value(d) is not None for d in (inner, columns))
    turned = m.chance(0.4)
    shape = (columns, inner) if turned else (inner, columns)
    w = m.pick(lambda t: t.shape == shape and t.dtype == x.dtype) if m.chance(0.3) else None
    w = w or (m.constant(shape, x.dtype) if constant else m.param(shape, x.dtype))
    if w is None:
        return None
    if turned:
        w = m.emit("permute_dims", w, axes=(1, 0))
    m.work.append(product((*x.shape, columns)))
    made = w and m.emit("matmul", x, w, bound=max(1, x.bound * w.bound * largest(inner)))
    if made and m.chance(0.4) and constant:
        bias = m.constant((columns,), x.dtype)
        made = m.emit("add", made, bias, bound=made.bound + bias.bound)
    if made and m.chance(0.2):
        made = m.emit("relu", made)
    return made


def batched(m: GraphMaker) -> object:
    """Add a product of two values, transposed to fit, as in attention."""
    x = some(m, lambda t: number(t) and t.rank >= 2 and t.bound <= 100 and t.dtype not in UNSIGNED)
    if x is None:
        return None
    axes = (*range(x.rank - 2), x.rank - 1, x.rank - 2)
    turned = m.emit("permute_dims", x, axes=axes)
    m.work.append(product((*x.shape, x.shape[-2])))
    return turned and m.emit("matmul", x, turned, bound=x.bound**2 * largest(x.shape[-1]))


def transformed(m: GraphMaker) -> object:
    """Add operators on weights alone, and combine the result with a value."""
    x = some(m, lambda t: number(t) and t.rank > 0 and t.bound <= 1000 and t.dtype not in UNSIGNED)
    if x is None or (last := const_value(x.shape[-1])) is None:
        return None
    rows = m.rng.choice([1, 2, 3, 4])
    made = m.constant((as_expr(rows), as_expr(last)), x.dtype)
    if m.chance(0.5):
        turned = m.constant((as_expr(last), as_expr(rows)), x.dtype)
        made = m.emit("permute_dims", turned, axes=(1, 0))
    choice = m.rng.randrange(4)
    if made and choice == 0:
        made = m.emit("multiply", made, 2.0 if x.is_float else 2, bound=2 * made.bound)
    elif made and choice == 1:
        made = m.emit("add", made, m.constant(made.shape, x.dtype), bound=2 * made.bound)
    elif made and choice == 2:
        made = m.emit("negative", made)
    if made and m.chance(0.5):
        made = m.emit("sum", made, axes=(0,), bound=rows * made.bound)
        return made and m.emit("add", x, made, bound=x.bound + made.bound)
    if made and x.rank >= 2:
        turned = m.emit("permute_dims", made, axes=(1, 0))
        bound = x.bound * made.bound * largest(x.shape[-1])
        return turned and m.emit("matmul", x, turned, bound=max(1, bound))
    return made


def reduction(m: GraphMaker) -> object:
    """Add a reduction over some axes."""
    x = some(m, lambda t: t.rank > 0)
    if x is None:
        return None
    count = m.rng.randint(1, min(2, x.rank)) if m.chance(0.8) else x.rank
    axes = tuple(sorted(m.rng.sample(range(x.rank), count)))
    keep = m.chance(0.4)
    if x.dtype == "bool":
        return m.emit(m.rng.choice(["any", "all"]), x, axes=axes, keepdims=keep, bound=1)
    terms = max(1, largest(product(x.shape[a] for a in axes)))
    nonempty = all(least(x.shape[a]) > 0 for a in axes)
    if m.rounding and x.is_float and nonempty and m.chance(0.2):
        return m.emit("mean", x, axes=axes, keepdims=keep, rounds=True)
    if nonempty and m.chance(0.4):
        return m.emit(m.rng.choice(["max", "min"]), x, axes=axes, keepdims=keep)
    return m.emit("sum", x, axes=axes, keepdims=keep, bound=x.bound * terms)


def spread(m: GraphMaker) -> object:
    """Add a variance, the logarithm of a sum of exponentials, or a quantization of rows."""
    x = some(m, lambda t: t.is_float and t.rank > 0 and least(t.shape[-1]) > 0 and t.bound < 50)
    if x is None or not m.rounding:
        return None
    axes = (x.rank - 1,)
    choice = m.rng.randrange(3)
    if choice == 0:
        mean = m.emit("mean", x, axes=axes, keepdims=True, rounds=True)
        away = mean and m.emit("subtract", x, mean, bound=2 * x.bound, rounds=True)
        square = away and m.emit("multiply", away, away, bound=4 * x.bound**2, rounds=True)
        return square and m.emit("mean", square, axes=axes, rounds=True)
    top = m.emit("max", x, axes=axes, keepdims=True)
    if choice == 1:
        away = top and m.emit("subtract", x, top, bound=2 * x.bound, rounds=True)
        power = away and m.emit("exp", away, bound=1.0, rounds=True)
        most = largest(x.shape[-1])
        total = power and m.emit("sum", power, axes=axes, keepdims=True, bound=most, rounds=True)
        logarithm = total and m.emit("log", total, bound=20.0, rounds=True)
        return logarithm and m.emit("add", top, logarithm, bound=x.bound + 20, rounds=True)
    if not x.exact:
        return None
    dtype = m.rng.choice(["i8", "u8", "i4", "u4"])
    made = m.emit("quantize_linear", x, 0.5, dtype=dtype, bound=WHOLE[dtype])
    return made and m.emit("dequantize_linear", made, 0.5, bound=WHOLE[dtype])


def positions(m: GraphMaker) -> object:
    """Add ``argmax`` or ``argmin``, or a running sum."""
    x = some(m, lambda t: number(t) and t.rank > 0 and t.exact)
    if x is None:
        return None
    axis = m.rng.randrange(x.rank)
    if least(x.shape[axis]) == 0 or m.chance(0.4):
        return m.emit("cumsum", x, axis=axis, bound=x.bound * max(1, largest(x.shape[axis])))
    op = m.rng.choice(["argmax", "argmin"])
    return m.emit(op, x, axis=axis, keepdims=m.chance(0.4), bound=largest(x.shape[axis]))


def running(m: GraphMaker) -> object:
    """Add a running sum, maximum or minimum, mostly of one long row."""
    if m.chance(0.6):
        m.param((m.symbol("n"),), m.rng.choice(["f32", "i32", "f64"]))
    x = some(m, lambda t: number(t) and t.rank > 0 and t.exact and t.dtype not in NARROW)
    if x is None:
        return None
    axis = x.rank - 1 if m.chance(0.7) else m.rng.randrange(x.rank)
    op = m.rng.choice(["cumsum", "cumsum", "cummax", "cummin"])
    terms = max(1, largest(x.shape[axis])) if op == "cumsum" else 1
    return m.emit(op, x, axis=axis, bound=x.bound * terms)


def product_of_input(m: GraphMaker) -> object:
    """Add a product of two matrices that are inputs, which libraries and instructions compute."""
    inner = m.rng.choice([m.symbol("n"), as_expr(4), as_expr(16)])
    dtype = m.rng.choice(["f32", "f32", "f64"])
    x = m.param((m.dim(), inner), dtype)
    w = x and m.param((inner, m.dim()), dtype)
    if x is None or w is None:
        return None
    m.work.append(product((*x.shape, w.shape[1])))
    return m.emit("matmul", x, w, bound=max(1, x.bound * w.bound * largest(inner)))


def norm(m: GraphMaker) -> object:
    """Add a softmax or a normalization of rows."""
    if not m.rounding:
        return None
    x = some(m, lambda t: t.is_float and t.rank > 0 and least(t.shape[-1]) > 0 and t.bound < 1e3)
    if x is None:
        return None
    choice = m.rng.randrange(4)
    if choice == 0:
        axis = m.rng.choice([-1, *[a for a in range(x.rank) if least(x.shape[a]) > 0]])
        return m.emit("softmax", x, axis=axis, bound=1.0, rounds=True)
    if choice == 1:
        return m.emit("log_softmax", x, bound=2 * x.bound + 10, rounds=True)
    weight = [m.constant(x.shape[-1:], x.dtype)] if const_value(x.shape[-1]) is not None else []
    op = "rms_norm" if choice == 2 else "layer_norm"
    epsilon = m.rng.choice([1.0, 0.5])
    return m.emit(op, x, *weight, epsilon=epsilon, bound=300.0, rounds=True)


# ------------------------------------------------------------------ movement and views


def reshape(m: GraphMaker) -> object:
    """Add a reshape: merge two dimensions, split a constant one, or add and remove ones."""
    x = some(m, lambda t: t.rank > 0)
    if x is None:
        return None
    shape = list(x.shape)
    axis = m.rng.randrange(x.rank)
    choice = m.rng.randrange(4)
    size = const_value(shape[axis])
    if choice == 0 and axis + 1 < x.rank:
        shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
    elif choice == 1 and size and size % 2 == 0:
        shape[axis : axis + 1] = [as_expr(size // 2), as_expr(2)]
    elif choice == 2:
        shape.insert(axis, as_expr(1))
    else:
        shape = [product(shape)]
    if len(shape) > 4:
        return None
    return m.emit("reshape", x, tuple(shape))


def ones(m: GraphMaker) -> object:
    """Add ``expand_dims`` or ``squeeze``."""
    x = some(m, lambda t: t.rank < 4)
    if x is None:
        return None
    units = [k for k, d in enumerate(x.shape) if const_value(d) == 1]
    if units and m.chance(0.6):
        return m.emit("squeeze", x, axes=(m.rng.choice(units),))
    return m.emit("expand_dims", x, axes=(m.rng.randint(0, x.rank),))


def transpose(m: GraphMaker) -> object:
    """Add a permutation of the dimensions."""
    x = some(m, lambda t: t.rank > 1)
    if x is None:
        return None
    return m.emit("permute_dims", x, axes=tuple(m.rng.sample(range(x.rank), x.rank)))


def flipped(m: GraphMaker) -> object:
    """Add a reversal of the order of elements."""
    x = some(m, lambda t: t.rank > 0)
    if x is None:
        return None
    return m.emit("flip", x, axes=tuple(m.rng.sample(range(x.rank), m.rng.randint(1, x.rank))))


def broadcast(m: GraphMaker) -> object:
    """Add ``broadcast_to`` a larger shape."""
    x = some(m, lambda t: t.rank < 4)
    if x is None:
        return None
    shape = [m.dim() if const_value(d) == 1 else d for d in x.shape]
    if len(shape) < 3 and m.chance(0.6):
        shape.insert(0, m.dim())
    return m.emit("broadcast_to", x, tuple(shape))


def concat(m: GraphMaker) -> object:
    """Add a concatenation, sometimes of a value with itself."""
    x = some(m, lambda t: t.rank > 0)
    if x is None:
        return None
    axis = m.rng.randrange(x.rank)

    def fits(t: Tensor) -> bool:
        sides = zip(t.shape, x.shape, strict=False)
        beside = all(a is b for k, (a, b) in enumerate(sides) if k != axis)
        return t.dtype == x.dtype and t.rank == x.rank and beside

    others = [m.pick(fits) or x for _ in range(m.rng.randint(1, 2))]
    parts = [x, *others]
    m.rng.shuffle(parts)
    return m.emit("concat", *parts, axis=axis)


def cut(m: GraphMaker) -> object:
    """Add a slice, or a split into several values."""
    x = some(m, lambda t: t.rank > 0)
    if x is None:
        return None
    axis = m.rng.randrange(x.rank)
    size, low = x.shape[axis], least(x.shape[axis])
    if const_value(size) is not None and low >= 2 and m.chance(0.4):
        first = m.rng.randint(0, low)
        return m.emit_tuple("split", x, (as_expr(first), size - first), axis=axis)
    begin = m.rng.randint(0, min(low, 2))
    end = size if m.chance(0.6) else as_expr(m.rng.randint(begin, max(begin, low)))
    step = m.rng.choice([1, 1, 2, 3])
    return m.emit("strided_slice", x, (as_expr(begin),), (end,), axes=(axis,), steps=(step,))


def triangle(m: GraphMaker) -> object:
    """Add ``tril`` or ``triu``."""
    x = some(m, lambda t: number(t) and t.rank > 1)
    return x and m.emit(m.rng.choice(["tril", "triu"]), x, k=m.rng.choice([0, 0, 1, -1, 2]))


def created(m: GraphMaker) -> object:
    """Add a value without operands: a range, a constant value, a mask, or a shape."""
    choice = m.rng.randrange(4)
    shape = m.shape(0, 1, 2)
    if choice == 0:
        stop = m.dim()
        dtype = m.rng.choice(["i64", "i32", "f32"])
        return m.emit("arange", (as_expr(0), stop, as_expr(1)), dtype=dtype, bound=largest(stop))
    if choice == 1:
        dtype = m.dtype()
        value = float(m.rng.randint(-2, 2)) if dtype in FLOATS else m.rng.randint(0, 3)
        return m.emit("full", shape, value, dtype=dtype)
    if choice == 2 and len(shape) == 2:
        return m.emit("causal_mask", (*shape, as_expr(0)), bound=1)
    return m.emit("shape_to_tensor", shape, bound=max([1, *map(largest, shape)]))


# ------------------------------------------------------------------ indexing


def index_source(
    m: GraphMaker, extent: Expr, shape: tuple[Expr, ...], order: str = "any"
) -> Tensor | None:
    """Return indices below an extent: computed ones, or an input."""
    if order == "any":
        found = m.pick(
            lambda t: t.dtype in ("i32", "i64") and t.rank == len(shape) and t.exact
            and all(a is b for a, b in zip(t.shape, shape, strict=True))
        )  # fmt: skip
        size = const_value(extent)
        if found is not None and size and m.chance(0.5):
            return m.emit("mod", found, size, bound=size)
    values = Indices("0", str(extent), order)  # type: ignore[arg-type]
    return m.param(shape, m.rng.choice(["i64", "i32"]), indices=values)


def gather(m: GraphMaker) -> object:
    """Add ``take``, ``gather_elements`` or ``index``."""
    x = some(m, lambda t: t.rank > 0)
    if x is None:
        return None
    axis = m.rng.randrange(x.rank)
    if least(x.shape[axis]) == 0:
        return None
    choice = m.rng.randrange(3)
    if choice == 0:
        indices = index_source(m, x.shape[axis], m.shape(0, 1, 1))
        return indices and m.emit("take", x, indices, axis=axis, bound=x.bound)
    if choice == 1 and x.rank <= 2:
        shape = list(x.shape)
        shape[axis] = m.dim()
        indices = index_source(m, x.shape[axis], tuple(shape))
        return indices and m.emit("gather_elements", x, indices, axis=axis, bound=x.bound)
    if least(x.shape[0]) == 0:
        return None
    indices = index_source(m, x.shape[0], m.shape(1))
    return indices and m.emit("index", x, indices, bound=x.bound)


def scatter(m: GraphMaker) -> object:
    """Add an update of some slices, at distinct or repeated indices."""
    x = some(m, lambda t: t.rank in (1, 2) and least(t.shape[0]) > 0)
    if x is None:
        return None
    count = m.dim()
    shape = (count, *x.shape[1:])
    updates = m.pick(lambda t: t.key == (shape, x.dtype)) or m.param(shape, x.dtype)
    if updates is None:
        return None
    bound = max(x.bound, updates.bound)
    if m.chance(0.4):
        size = x.shape[0] + count
        wide = m.emit("full", (size, *x.shape[1:]), _zero(x.dtype), dtype=x.dtype)
        return wide and m.emit("update_slice", wide, x, (count,) + (as_expr(0),) * (x.rank - 1),
                               bound=bound)  # fmt: skip
    adds = x.dtype != "bool" and m.chance(0.4)
    bound = x.bound + updates.bound * max(1, largest(count)) if adds else bound
    if m.chance(0.5):
        indices = index_source(m, x.shape[0], (count,))
        op = "index_add" if adds else "index_copy"
        return indices and m.emit(op, x, indices, updates, axis=0, bound=bound)
    indices = index_source(m, x.shape[0], shape) if x.rank == 1 else None
    op = "scatter_add" if adds else "scatter_elements"
    return indices and m.emit(op, x, indices, updates, axis=0, bound=bound)


def _zero(dtype: str) -> float | int | bool:
    return False if dtype == "bool" else 0.0 if dtype in FLOATS else 0


ELEMENTWISE: Mapping[Draw, int] = {unary: 4, binary: 6, compare: 1, where: 2, cast: 2, integers: 1}
DENSE: Mapping[Draw, int] = {
    matmul: 4, batched: 1, reduction: 3, norm: 2, transformed: 2, spread: 1,
}  # fmt: skip
MOVEMENT: Mapping[Draw, int] = {
    reshape: 3, ones: 1, transpose: 2, flipped: 1, broadcast: 1, concat: 2, cut: 2, triangle: 1,
}  # fmt: skip
INDEXING: Mapping[Draw, int] = {gather: 3, scatter: 2, positions: 1, created: 1}
ALL: Mapping[Draw, int] = {**ELEMENTWISE, **DENSE, **MOVEMENT, **INDEXING}
