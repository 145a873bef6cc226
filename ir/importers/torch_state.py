"""State of exported programs: the buffers, parameters and inputs that a program changes."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import TilewrightError
from ..dtype import DType
from ..graph.nodes import TensorInfo, Value
from ..module import Constant
from ..symbolic import as_expr
from .torch_constants import tensor_array, torch_dtype
from .torch_context import TorchContext

_MUTATIONS = ("BUFFER_MUTATION", "PARAMETER_MUTATION")
_INPUT_MUTATION = "USER_INPUT_MUTATION"


class UnsupportedInputError(TilewrightError):
    """An exported program whose inputs, outputs, or side effects cannot be imported."""

    title = "Unsupported exported program"


@dataclass(frozen=True, slots=True)
class Changes:
    """The changed tensors of a functional program.

    Parameters
    ----------
    outputs : tuple of str
        Per output of the program: the placeholder of the buffer, parameter or input whose last
        value it is; empty for a result.
    """

    outputs: tuple[str, ...]

    def __contains__(self, placeholder: str) -> bool:
        """Return whether a placeholder is a tensor that the program changes."""
        return placeholder in self.outputs


def read_changes(program: Any) -> Changes:
    """Return the changed tensors of a functional program.

    Raises
    ------
    UnsupportedInputError
        If the program has another side effect, or changes a tensor that shares memory with another
        one.
    """
    signature = program.graph_signature
    known = {"USER_OUTPUT", *_MUTATIONS, _INPUT_MUTATION}
    others = [s for s in signature.output_specs if s.kind.name not in known]
    if others:
        names = ", ".join(f"{s.target} ({s.kind.name.lower()})" for s in others)
        raise UnsupportedInputError(
            f"the exported program has side effects that are not supported: {names}",
            hint="only buffers, parameters and inputs may be changed",
        )
    placeholders = {s.target: s.arg.name for s in signature.input_specs if s.target}
    changed = [s.target for s in signature.output_specs if s.kind.name in _MUTATIONS]
    _reject_shared(program, frozenset(changed))
    return Changes(tuple(_changed_by(s, placeholders) for s in signature.output_specs))


def _changed_by(spec: Any, placeholders: Mapping[str, str]) -> str:
    """Return the placeholder whose last value an output is, or an empty string for a result."""
    if spec.kind.name == "USER_OUTPUT":
        return ""
    return str(spec.target) if spec.kind.name == _INPUT_MUTATION else placeholders[spec.target]


def held_tensor(program: Any, name: str) -> Any:
    """Return a parameter, buffer or constant of a program."""
    held = program.constants
    return held[name] if name in held else program.state_dict[name]


def add_state(context: TorchContext, name: str, tensor: Any) -> Value:
    """Add a state parameter; its initial value is the value of the tensor at the import."""
    sizes, dtype = tuple(int(d) for d in tensor.shape), torch_dtype(tensor.dtype)
    info = TensorInfo(tuple(as_expr(d) for d in sizes), dtype)
    array = tensor_array(tensor).copy()
    builder = context.builder
    if not _has_bits(array):
        return builder.param(name, info, "state")
    context.constants.setdefault(name, _constant(sizes, dtype, array))
    return builder.param(name, info, "state", initial=builder.constant(name, info))


def _has_bits(array: Any) -> bool:
    """Return whether an element has a nonzero bit; a negative zero has one."""
    return bool(np.ascontiguousarray(array).reshape(-1).view(np.uint8).any())


def _constant(sizes: tuple[int, ...], dtype: DType, array: Any) -> Constant:
    return Constant(sizes, dtype, lambda: array, source="torch.export")


def without_unused_names(program: Any) -> Any:
    """Return a program whose unused tensors have memory of their own.

    A module with two names has every tensor under both names, of which the program uses one.
    PyTorch cannot make a program functional that changes a tensor with two names.
    """
    if not any(_changed_inputs(program)):
        return program
    memory = {_address(program, spec) for spec in _specs(program, used=True)} - {0}
    unused = [s for s in _specs(program, used=False) if _address(program, s) in memory]
    if not unused:
        return program
    copies = {str(s.target): _unread(held_tensor(program, s.target)) for s in unused}
    return type(program)(
        program.graph_module,
        copy.deepcopy(program.graph),
        program.graph_signature,
        {name: copies.get(name, tensor) for name, tensor in program.state_dict.items()},
        program.range_constraints,
        program.module_call_graph,
        program.example_inputs,
        {name: copies.get(name, tensor) for name, tensor in program.constants.items()},
        verifiers=program.verifiers,
    )


def _unread(tensor: Any) -> Any:
    """Return a tensor of the same type with undefined elements."""
    made = tensor.detach().new_empty(tensor.shape)
    is_parameter = type(tensor).__name__ == "Parameter"
    return type(tensor)(made, tensor.requires_grad) if is_parameter else made


def _address(program: Any, spec: Any) -> int:
    """Return the address of a parameter, buffer or constant; 0 if it has no elements."""
    tensor = held_tensor(program, spec.target)
    return tensor.data_ptr() if hasattr(tensor, "data_ptr") and tensor.numel() else 0


def _specs(program: Any, *, used: bool) -> Iterator[Any]:
    """Yield the parameters, buffers and constants of a program that are used, or are not."""
    names = {n.name for n in program.graph.nodes if n.op == "placeholder" and n.users}
    for spec in program.graph_signature.input_specs:
        if spec.target and (spec.arg.name in names) == used:
            yield spec


def explain_failure(program: Any) -> None:
    """Report the known reasons why PyTorch cannot make a program functional.

    Raises
    ------
    UnsupportedInputError
        If the program changes a tensor that is not registered as a buffer, or that shares memory
        with another one.
    """
    kinds = {s.arg.name: s for s in program.graph_signature.input_specs}
    changed = [kinds[n.name] for n in _changed_inputs(program) if n.name in kinds]
    hidden = [str(s.target) for s in changed if s.kind.name == "CONSTANT_TENSOR"]
    if hidden:
        raise UnsupportedInputError(
            "the exported program changes tensors that are not buffers of the model: "
            f"{', '.join(hidden)}",
            hint="register them as buffers of the module; if they are, export with "
            "torch.export.export(..., strict=True)",
        )
    _reject_shared(program, frozenset(str(s.target) for s in changed if s.target))


def _changed_inputs(program: Any) -> Iterator[Any]:
    """Yield the placeholders that operators change directly or through a view, each once."""
    seen: set[Any] = set()
    for node in program.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or schema is None or not schema.is_mutable:
            continue
        for operand, declared in zip(node.args, schema.arguments, strict=False):
            if declared.alias_info is not None and declared.alias_info.is_write:
                source = _viewed(operand)
                if getattr(source, "op", "") == "placeholder" and source not in seen:
                    seen.add(source)
                    yield source


def _viewed(node: Any) -> Any:
    """Return the tensor that a node is a view of, or the node itself."""
    while getattr(node, "op", "") == "call_function" and node.args:
        returns: Sequence[Any] = getattr(getattr(node.target, "_schema", None), "returns", ())
        if not returns or returns[0].alias_info is None:
            return node
        node = node.args[0]
    return node


def _reject_shared(program: Any, changed: frozenset[str]) -> None:
    """Reject a changed tensor whose memory other tensors of the program share."""
    if not changed:
        return
    spans = dict(_spans(program))
    for name in sorted(changed & spans.keys()):
        for other, span in spans.items():
            first, last = max(span[0], spans[name][0]), min(span[1], spans[name][1])
            if other != name and first < last:
                raise UnsupportedInputError(
                    f"the exported program changes tensor {name!r}, which shares memory with "
                    f"{other!r}",
                    hint="register one buffer, and compute the other one from it",
                )


def _spans(program: Any) -> Mapping[str, tuple[int, int]]:
    """Return the range of addresses of every parameter, buffer and constant that is used."""
    found: dict[str, tuple[int, int]] = {}
    for spec in _specs(program, used=True):
        tensor = held_tensor(program, spec.target)
        if not hasattr(tensor, "untyped_storage") or not tensor.numel():
            continue
        reach = sum((d - 1) * s for d, s in zip(tensor.shape, tensor.stride(), strict=True)) + 1
        start = tensor.data_ptr()
        found[str(spec.target)] = (start, start + reach * tensor.element_size())
    return found
