"""Export of associative scans and of selective state spaces for any length.

PyTorch exports ``associative_scan(..., combine_mode="generic")`` as compositions of slices, and
the models of ``transformers`` with selective state spaces, such as Mamba, as one copy of the
recurrence per step of the example. Both fix the length. Within :func:`scans_as_operators` they are
exported as one operator per scan.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator
from importlib import import_module
from typing import Any

_SCAN = "mamba_selective_scan"
"""The function of ``transformers`` that has an associative scan beside the loop over steps."""
_EXPORTING = "is_torchdynamo_exporting"
"""The function by which it selects the loop, because ONNX has no operator of such scans."""


@contextlib.contextmanager
def scans_as_operators() -> Generator[None]:
    """Export associative scans of every mode as one operator within this context."""
    scans = import_module("torch._higher_order_ops.associative_scan")
    before: list[tuple[Any, str, Any]] = [(scans, "associative_scan", scans.associative_scan)]
    before += [(m, _EXPORTING, getattr(m, _EXPORTING)) for m in _selective_modules()]
    try:
        setattr(*before[0][:2], scan_operator)
        for module, name, _ in before[1:]:
            setattr(module, name, lambda: False)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def _selective_modules() -> list[Any]:
    """Return the loaded modules of ``transformers`` that select between scan and loop."""
    return [
        module
        for name, module in sorted(sys.modules.items())
        if name.startswith("transformers.models.")
        and _SCAN in vars(module)
        and _EXPORTING in vars(module)
    ]


def scan_operator(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,  # noqa: FBT001, FBT002  # the arguments of PyTorch
    combine_mode: str = "pointwise",
) -> Any:
    """Return the inclusive scan of nested tensors, with the arguments of PyTorch.

    The operator has no mode: the importer finds whether the operation is element-wise.
    """
    from torch._higher_order_ops.associative_scan import associative_scan_op
    from torch.utils import _pytree as pytree

    del combine_mode
    leaves, spec = pytree.tree_flatten(xs)
    axis = dim % leaves[0].ndim

    def combine(*values: Any) -> list[Any]:
        parts = values[: len(leaves)], values[len(leaves) :]
        return pytree.tree_leaves(combine_fn(*(pytree.tree_unflatten(p, spec) for p in parts)))

    moved = [x.movedim(axis, 0) for x in leaves]
    moved = [x.flip(0) for x in moved] if reverse else moved
    run: Any = associative_scan_op
    made = [*run(combine, moved, ())]
    made = [x.flip(0) for x in made] if reverse else made
    return pytree.tree_unflatten([x.movedim(0, axis) for x in made], spec)
