"""Export of the recurrent layers of PyTorch as scans, so that the length stays dynamic.

PyTorch exports LSTM, GRU, and RNN layers as one copy of the cell per step of the example, which
fixes the length. Within :func:`recurrent_layers_as_scans` they are exported as one ``scan`` per
layer and direction.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias

_Cell: TypeAlias = "Callable[..., list[Any]]"
"""A step: from the states, the transformed input, the weight, the bias, and the projection of the
state to the states and the output."""


@contextlib.contextmanager
def recurrent_layers_as_scans() -> Generator[None]:
    """Export the recurrent layers of PyTorch as scans within this context."""
    rules = recurrent_rules()
    before = [(op, _composite(op), op.py_kernels[_composite(op)]) for op in rules]
    try:
        for op, key, _ in before:
            op.py_kernels[key] = rules[op]
        yield
    finally:
        for op, key, kernel in before:
            op.py_kernels[key] = kernel


def _composite(op: Any) -> Any:
    """Return the key of the definition of an operator that PyTorch exports by."""
    return next(k for k in op.py_kernels if getattr(k, "name", "") == "CompositeImplicitAutograd")


def recurrent_rules() -> dict[Any, Callable[..., tuple[Any, ...]]]:
    """Return the definitions of the recurrent layers by scans, by operator."""
    import torch

    aten = torch.ops.aten
    return {
        aten.lstm.input: _layers(_lstm),
        aten.gru.input: _layers(_gru),
        aten.rnn_tanh.input: _layers(_rnn(torch.tanh)),
        aten.rnn_relu.input: _layers(_rnn(torch.relu)),
    }


def _layers(cell: _Cell) -> Callable[..., tuple[Any, ...]]:
    """Return the operator of layers of a cell, with the arguments of PyTorch."""

    def run(  # noqa: PLR0917  # the order of PyTorch
        x: Any, hx: Any, params: Sequence[Any], has_biases: bool, num_layers: int,  # noqa: FBT001
        dropout: float, train: bool, bidirectional: bool, batch_first: bool,  # noqa: FBT001
    ) -> tuple[Any, ...]:  # fmt: skip
        import torch

        starts: tuple[Any, ...] = (hx,) if isinstance(hx, torch.Tensor) else tuple(hx)
        projected = len(starts) > 1 and starts[0].shape[2] != starts[1].shape[2]
        size = 2 + 2 * has_biases + projected
        x = x.transpose(0, 1) if batch_first else x
        finals = list[Any]()
        for layer in range(num_layers):
            outputs = list[Any]()
            for direction in range(1 + bidirectional):
                k = len(finals)
                own = list(params[size * k : size * (k + 1)])
                states = tuple(start[k] for start in starts)
                last, made = _scanned(
                    cell, x, states, own, has_biases=has_biases, backward=direction == 1
                )
                finals.append(last)
                outputs.append(made)
            x = torch.cat(outputs, -1) if bidirectional else outputs[0]
            if train and dropout and layer < num_layers - 1:
                x = torch.dropout(x, dropout, train)
        stacked = [torch.stack(parts) for parts in zip(*finals, strict=True)]
        return (x.transpose(0, 1) if batch_first else x, *stacked)

    return run


def _scanned(
    cell: _Cell, x: Any, states: Sequence[Any], params: Sequence[Any], *, has_biases: bool,
    backward: bool,
) -> tuple[list[Any], Any]:  # fmt: skip
    """Return the last states and the outputs of one direction of one layer."""
    import torch
    from torch._higher_order_ops.scan import scan_op

    weight, recurrent, *rest = params
    bias = rest.pop(0) if has_biases else None
    state_bias = rest.pop(0) if has_biases else torch.zeros_like(recurrent[:, 0])
    moved = torch.nn.functional.linear(x, weight, bias)
    run: Any = scan_op  # without the tracing of Python code that ``scan`` adds
    elements = moved.flip(0) if backward else moved
    *last, made = run(cell, list(states), [elements], (recurrent, state_bias, *rest))
    return last, made.flip(0) if backward else made


def _lstm(hidden: Any, memory: Any, moved: Any, *params: Any) -> list[Any]:
    """Return the states and the output; ``params`` has a weight, a bias, and maybe a projection."""
    import torch

    linear = torch.nn.functional.linear
    i, f, g, o = (moved + linear(hidden, *params[:2])).chunk(4, -1)
    memory = f.sigmoid() * memory + i.sigmoid() * g.tanh()
    hidden = o.sigmoid() * memory.tanh()
    hidden = linear(hidden, *params[2:]) if params[2:] else hidden
    return [hidden, memory, hidden.clone()]


def _gru(hidden: Any, moved: Any, weight: Any, bias: Any) -> list[Any]:
    import torch

    reset, update, new = torch.nn.functional.linear(hidden, weight, bias).chunk(3, -1)
    r, z, n = moved.chunk(3, -1)
    new = (n + (r + reset).sigmoid() * new).tanh()
    hidden = new + (z + update).sigmoid() * (hidden - new)
    return [hidden, hidden.clone()]


def _rnn(function: Callable[[Any], Any]) -> _Cell:
    import torch

    def step(hidden: Any, moved: Any, weight: Any, bias: Any) -> list[Any]:
        hidden = function(moved + torch.nn.functional.linear(hidden, weight, bias))
        return [hidden, hidden.clone()]

    return step
