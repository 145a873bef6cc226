"""Import handlers of the recurrent operators of ONNX: RNN, GRU, LSTM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ..dtype import f32, f64, i64
from ..symbolic import Expr
from .control_flow import Iteration, LoopForm, emit_loop
from .formulas import Formula, stacked
from .onnx_context import OnnxContext, onnx_op
from .onnx_scatter import reversed_sequences
from .onnx_schema import malformed
from .tensors import Imported

_Activation = Callable[[Formula], Formula]

_DEFAULTS: Final = {
    "RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh"),
}  # fmt: skip
_PARAMETERS: Final[dict[str, tuple[float, float]]] = {
    "affine": (1.0, 0.0), "leakyrelu": (0.01, 0.0), "thresholdedrelu": (1.0, 0.0),
    "scaledtanh": (1.0, 1.0), "hardsigmoid": (0.2, 0.5), "elu": (1.0, 0.0),
}  # fmt: skip
"""The default alpha and beta of the activations that have them."""


def _activation(c: OnnxContext, name: str, alpha: float, beta: float) -> _Activation:
    match name:
        case "sigmoid" | "tanh" | "relu":
            return lambda x: x.apply(name)
        case "affine":
            return lambda x: x * alpha + beta
        case "leakyrelu":
            return lambda x: (x < 0.0).choose(x * alpha, x, x.dtype)
        case "thresholdedrelu":
            return lambda x: (x < alpha).choose(0.0, x, x.dtype)
        case "scaledtanh":
            return lambda x: (x * beta).apply("tanh") * alpha
        case "hardsigmoid":
            return lambda x: (x * alpha + beta).clip(0.0, 1.0)
        case "elu":
            return lambda x: (x < 0.0).choose(x.apply("expm1") * alpha, x, x.dtype)
        case "softsign":
            return lambda x: x / (x.apply("abs") + 1.0)
        case "softplus":
            return lambda x: x.apply("relu") + (-x.apply("abs")).apply("exp").apply("log1p")
        case _:
            raise malformed(c.node, f"activation {name!r} is unknown")


def _activations(c: OnnxContext, directions: int) -> list[list[_Activation]]:
    """Return the activations of each direction."""
    defaults = _DEFAULTS[c.node.op_type]
    names = c.attributes.get("activations") or list(defaults) * directions
    count = len(defaults)
    if len(names) != count * directions:
        text = f"expected {count * directions} activations, got {len(names)}"
        raise malformed(c.node, text)
    alphas = list(c.attributes.get("activation_alpha") or [])
    betas = list(c.attributes.get("activation_beta") or [])
    found: list[_Activation] = []
    for k, name in enumerate(names):
        alpha, beta = _PARAMETERS.get(name.lower(), (0.0, 0.0))
        alpha = float(alphas[k]) if k < len(alphas) else alpha
        beta = float(betas[k]) if k < len(betas) else beta
        found.append(_activation(c, name.lower(), alpha, beta))
    return [found[k * count : (k + 1) * count] for k in range(directions)]


@dataclass(frozen=True, slots=True)
class _Cell:
    """The operands of one direction, in the dtype of the computation.

    Parameters
    ----------
    weight, recurrent : Formula
        ``(gates * hidden, input)`` and ``(gates * hidden, hidden)``.
    bias : tuple of Formula
        Of the input and of the hidden state, ``(gates * hidden,)``.
    peephole : Formula, optional
        ``(3 * hidden,)``.
    functions : list
        The activations.
    """

    weight: Formula
    recurrent: Formula
    bias: tuple[Formula, Formula]
    peephole: Formula | None
    functions: list[_Activation]
    clip: float | None
    hidden: Expr

    def bounded(self, x: Formula) -> Formula:
        """Limit the input of activations."""
        return x if self.clip is None else x.clip(-self.clip, self.clip)

    def gate(self, x: Formula, number: int) -> Formula:
        """Return one of the vectors that are next to each other in the last dimension."""
        last = x.rank - 1
        return x.cut(last, self.hidden * number, self.hidden * (number + 1))


def _rnn_step(cell: _Cell, x: Formula, h: Formula) -> list[Formula]:
    total = x + h @ cell.recurrent.permute(1, 0) + cell.bias[1]
    return [cell.functions[0](cell.bounded(total))]


def _gru_step(c: OnnxContext, cell: _Cell, x: Formula, h: Formula) -> list[Formula]:
    rows = cell.recurrent.cut(0, 0, cell.hidden * 2)
    last = cell.recurrent.cut(0, cell.hidden * 2, cell.hidden * 3)
    own = cell.gate(cell.bias[1], 2)
    sums = h @ rows.permute(1, 0)
    f, g = cell.functions
    update, reset = (
        f(cell.bounded(cell.gate(x, k) + cell.gate(sums, k) + cell.gate(cell.bias[1], k)))
        for k in range(2)
    )
    if c.integer("linear_before_reset", 0):
        inner = reset * (h @ last.permute(1, 0) + own)
    else:
        inner = (reset * h) @ last.permute(1, 0) + own
    candidate = g(cell.bounded(cell.gate(x, 2) + inner))
    return [(1.0 - update) * candidate + update * h]


def _lstm_step(
    c: OnnxContext, cell: _Cell, x: Formula, h: Formula, memory: Formula
) -> list[Formula]:
    total = x + h @ cell.recurrent.permute(1, 0) + cell.bias[1]
    i, o, f, g = (cell.gate(total, k) for k in range(4))
    activate, candidate, output = cell.functions
    peephole = cell.peephole
    if peephole is not None:
        i, f = i + cell.gate(peephole, 0) * memory, f + cell.gate(peephole, 2) * memory
    i = activate(cell.bounded(i))
    f = 1.0 - i if c.integer("input_forget", 0) else activate(cell.bounded(f))
    following = f * memory + i * candidate(cell.bounded(g))
    if peephole is not None:
        o = o + cell.gate(peephole, 1) * following
    return [activate(cell.bounded(o)) * output(following), following]


@onnx_op("RNN", "GRU", "LSTM")
def recurrent(c: OnnxContext) -> list[Imported]:
    """Import a recurrent layer of one or two directions as loops over its steps."""
    kind = c.node.op_type
    source = c.input(0)
    wide = f64 if source.dtype is f64 else f32
    batch_first = bool(c.integer("layout", 0))

    def operand(position: int) -> Formula | None:
        x = c.optional(position)
        return None if x is None else Formula(c, x).to(wide)

    x, weights, rows = (Formula(c, c.input(k)).to(wide) for k in range(3))
    if batch_first:
        x = x.permute(1, 0, 2)
    bias, peephole = operand(3), operand(7) if kind == "LSTM" else None
    lengths = None if c.optional(4) is None else Formula(c, c.input(4)).to(i64)
    direction = str(c.attributes.get("direction", "forward"))
    count = 2 if direction == "bidirectional" else 1
    functions = _activations(c, count)
    starts = [operand(5), operand(6) if kind == "LSTM" else None][: 2 if kind == "LSTM" else 1]
    outputs: list[Formula] = []
    finals: list[list[Formula]] = []
    for k in range(count):
        hidden = rows.shape[2]
        gates = rows.shape[1]
        zero = Formula(c, c.uniform(0.0, (gates,), wide))
        both = (
            (zero, zero)
            if bias is None
            else (bias.at(0, k).cut(0, 0, gates), bias.at(0, k).cut(0, gates, gates * 2))
        )
        cell = _Cell(
            weights.at(0, k), rows.at(0, k), both,
            None if peephole is None else peephole.at(0, k), functions[k],
            None if "clip" not in c.attributes else float(c.attributes["clip"]), hidden,
        )  # fmt: skip
        shape = (x.shape[1], hidden)
        first = [
            Formula(c, c.uniform(0.0, shape, wide))
            if s is None
            else (s.at(1, k) if batch_first else s.at(0, k))
            for s in starts
        ]
        back = direction == "reverse" or k == 1
        steps, last = _direction(c, cell, x, first, lengths, backward=back)
        outputs.append(steps)
        finals.append(last)
    return _results(c, outputs, finals, batch_first=batch_first)


def _direction(  # a layer, and its operands
    c: OnnxContext, cell: _Cell, x: Formula, first: Sequence[Formula], lengths: Formula | None,
    *, backward: bool,
) -> tuple[Formula, list[Formula]]:  # fmt: skip
    """Return the outputs of all steps, and the last states."""
    if backward:
        x = _reversed(c, x, lengths)
    given = x @ cell.weight.permute(1, 0).unsqueeze(0) + cell.bias[0]

    def step(now: Iteration) -> tuple[list[Imported], list[Imported]]:
        own, held = Formula(c, now.elements[0]), [Formula(c, v) for v in now.carried]
        match c.node.op_type:
            case "RNN":
                made = _rnn_step(cell, own, held[0])
            case "GRU":
                made = _gru_step(c, cell, own, held[0])
            case _:
                made = _lstm_step(c, cell, own, held[0], held[1])
        if lengths is None:
            return [m.x for m in made], [made[0].x]
        index = Formula(c, c.apply("shape_to_tensor", (now.index,))).reshape()
        within = (index < lengths).unsqueeze(1)
        kept = [within.choose(m, h, m.dtype) for m, h in zip(made, held, strict=True)]
        return [k.x for k in kept], [within.choose(made[0], 0.0, made[0].dtype).x]

    form = LoopForm([f.x for f in first], step, count=x.shape[0], elements=[given.x])
    *last, steps = (Formula(c, v) for v in emit_loop(c, form))
    return (_reversed(c, steps, lengths) if backward else steps), last


def _reversed(c: OnnxContext, x: Formula, lengths: Formula | None) -> Formula:
    """Reverse the steps of each sequence."""
    if lengths is not None:
        return reversed_sequences(x, lengths, 1, 0)
    return Formula(c, c.apply("flip", c.plain(x.x), axes=(0,)))


def _results(
    c: OnnxContext, outputs: list[Formula], finals: list[list[Formula]], *, batch_first: bool
) -> list[Imported]:
    dtype = c.input(0).dtype
    every = stacked(outputs, 1)
    last = [stacked([f[k] for f in finals], 0) for k in range(len(finals[0]))]
    if batch_first:
        every = every.permute(2, 0, 1, 3)
        last = [v.permute(1, 0, 2) for v in last]
    return [v.to(dtype).x for v in (every, *last)]
