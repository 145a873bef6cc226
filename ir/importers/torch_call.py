"""The calling convention of PyTorch modules: nested arguments, named arguments, nested results.

An exported program has a flat list of tensors as inputs and outputs. A `TorchCall` converts the
arguments of a call of the module to that list, and the list of results to the structure that the
module returns.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from ...errors import TilewrightError
from ..module import CALL_ATTRIBUTE
from .torch_inputs import input_names, leaf_paths, path_text

Fixed: TypeAlias = "bool | int | float | str | None"
"""An argument or result other than a tensor; the program is valid for its value at the export."""

_FIXED: Final = (bool, int, float, str, type(None))


class ModuleCallError(TilewrightError):
    """Arguments that a compiled PyTorch module does not take, or results that it cannot return."""

    title = "Invalid call of a PyTorch module"


@dataclass(frozen=True, slots=True)
class Input:
    """One leaf of the arguments: a parameter of the program, or a fixed value.

    Parameters
    ----------
    path : str
        The leaf as an expression, such as ``cache[0]``.
    param : str
        The name of the parameter; empty for a fixed value.
    value : bool, int, float, str or None
        The fixed value.
    written : bool
        Whether the program writes the tensor.
    """

    path: str
    param: str = ""
    value: Fixed = None
    written: bool = False


@dataclass(frozen=True, slots=True)
class TorchCall:
    """The calling convention of one module.

    Parameters
    ----------
    names : tuple of str
        The parameters of ``forward`` by position; empty if it takes ``*args``.
    defaults : Mapping of str to bool, int, float, str or None
        The defaults of parameters without argument at the export.
    given : Any
        The structure of the arguments.
    inputs : tuple of Input
        The leaves of the arguments.
    returned : Any
        The structure of the result.
    outputs : tuple of int or str
        The leaves of the result: the position of a result of the program, or a value as JSON.
    """

    names: tuple[str, ...]
    defaults: Mapping[str, Fixed]
    given: Any
    inputs: tuple[Input, ...]
    returned: Any
    outputs: tuple[int | str, ...]

    @property
    def params(self) -> tuple[str, ...]:
        """The names of the program's parameters, in order."""
        return tuple(leaf.param for leaf in self.inputs if leaf.param)

    def signature(self) -> inspect.Signature:
        """Return the parameters of a call by name; any if ``forward`` takes ``*args``."""
        kinds = inspect.Parameter
        if not self.names:
            return inspect.Signature([
                kinds("args", kinds.VAR_POSITIONAL), kinds("kwargs", kinds.VAR_KEYWORD),
            ])  # fmt: skip
        declared: list[str] = list(self.given.child(1).context)
        fixed = {leaf.path: leaf.value for leaf in self.inputs if not leaf.param}
        defaults = {**self.defaults, **fixed}
        optional = False
        params: list[inspect.Parameter] = []
        for name in (*self.names, *(n for n in declared if n not in self.names)):
            optional = optional or name in defaults or name not in declared
            kind = kinds.POSITIONAL_OR_KEYWORD if name in self.names else kinds.KEYWORD_ONLY
            default = defaults.get(name) if optional else kinds.empty
            params.append(kinds(name, kind, default=default))
        return inspect.Signature(params)

    # ------------------------------------------------------------ text

    def text(self) -> str:
        """Return the convention as JSON.

        Raises
        ------
        ModuleCallError
            If a class in the arguments or the result has no serialized name.
        """
        return json.dumps({
            "names": self.names,
            "defaults": dict(self.defaults),
            "given": _dumped(self.given, "arguments"),
            "inputs": [[x.path, x.param, x.value, x.written] for x in self.inputs],
            "returned": _dumped(self.returned, "result"),
            "outputs": self.outputs,
        })  # fmt: skip

    @classmethod
    def from_text(cls, text: str) -> TorchCall:
        """Return a convention from JSON.

        Raises
        ------
        ModuleCallError
            If the text is damaged, or a class is not registered in this process.
        """
        from torch.utils import _pytree

        try:
            held = json.loads(text)
            return cls(
                tuple(held["names"]),
                held["defaults"],
                _pytree.treespec_loads(held["given"]),
                tuple(Input(*leaf) for leaf in held["inputs"]),
                _pytree.treespec_loads(held["returned"]),
                tuple(held["outputs"]),
            )
        except (ValueError, TypeError, KeyError, NotImplementedError) as error:
            raise ModuleCallError(
                f"cannot read the calling convention of the module: {error}",
                where=f"attribute {CALL_ATTRIBUTE!r} of the module",
                hint="import the library that defines the classes of the arguments and the result",
            ) from error

    # ------------------------------------------------------------ calls

    def arguments(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """Return the tensors of a call in the order of the program's parameters.

        Raises
        ------
        ModuleCallError
            If the arguments do not have the structure of those at the export, or a fixed value
            differs.
        """
        from torch.utils import _pytree

        structure = self._structured(args, named)
        leaves, spec = _pytree.tree_flatten(structure)
        if spec != self.given:
            raise _other_structure(structure, self.inputs)
        return [
            _tensor(leaf, declared)
            for leaf, declared in zip(leaves, self.inputs, strict=True)
            if declared.param or _is_fixed(leaf, declared)
        ]

    def _structured(self, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Return the arguments of a call as at the export: by name if all parameters have names."""
        if not self.names:
            return tuple(args), dict(named)
        if len(args) > len(self.names):
            raise ModuleCallError(
                f"expected at most {len(self.names)} positional arguments, got {len(args)}",
                hint=f"the parameters are {', '.join(self.names)}",
            )
        found = dict(zip(self.names, args, strict=False))
        twice = [name for name in named if name in found]
        if twice:
            raise ModuleCallError(f"argument {twice[0]!r} was passed by position and by name")
        found |= named
        expected = {leaf.path: leaf for leaf in self.inputs}
        declared: tuple[str, ...] = tuple(self.given.child(1).context)
        for name in [n for n in found if n not in declared]:
            if name in self.defaults and _same(found[name], self.defaults[name]):
                del found[name]
                continue
            default = f" but its default {self.defaults[name]!r}" if name in self.defaults else ""
            raise ModuleCallError(
                f"argument {name!r} had no value at the export{default}",
                hint=f"pass it to from_torch; its arguments were {', '.join(declared)}",
            )
        for name in declared:
            leaf = expected.get(name)
            if name not in found and leaf is not None and not leaf.param:
                found[name] = leaf.value
        missing = [name for name in declared if name not in found]
        if missing:
            raise ModuleCallError(f"missing argument: {', '.join(missing)}")
        return (), {name: found[name] for name in declared}

    def result(self, found: Any) -> Any:
        """Return the results of the program, one array or a tuple, in the module's structure."""
        from torch.utils import _pytree

        made = tensors(found)
        leaves = [made[x] if isinstance(x, int) else json.loads(x) for x in self.outputs]
        return _pytree.tree_unflatten(leaves, self.returned)


def call_of(program: Any, names: Sequence[str], defaults: Mapping[str, Fixed]) -> TorchCall:
    """Return the calling convention of an exported program.

    Parameters
    ----------
    program : torch.export.ExportedProgram
        The program.
    names : sequence of str
        The parameters of ``forward``; empty if it takes ``*args``.
    defaults : Mapping of str to bool, int, float, str or None
        The defaults of the parameters that the export had no argument for.
    """
    specs = [s for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    written = {
        s.target
        for s in program.graph_signature.output_specs
        if s.kind.name == "USER_INPUT_MUTATION"
    }
    params = input_names(program)
    inputs = tuple(
        _input(spec.arg, path, params, written)
        for spec, path in zip(specs, _paths(program.call_spec.in_spec), strict=True)
    )
    outputs: list[int | str] = []
    count = 0
    for spec in program.graph_signature.output_specs:
        if spec.kind.name != "USER_OUTPUT":
            continue
        if type(spec.arg).__name__ == "ConstantArgument":
            outputs.append(json.dumps(spec.arg.value))
        else:
            outputs.append(count)
            count += 1
    return TorchCall(
        tuple(names), defaults, program.call_spec.in_spec, inputs,
        program.call_spec.out_spec, tuple(outputs),
    )  # fmt: skip


def _input(argument: Any, path: str, params: Mapping[str, str], written: set[Any]) -> Input:
    if type(argument).__name__ == "ConstantArgument":
        return Input(path, value=argument.value)
    return Input(path, params[argument.name], written=argument.name in written)


def _paths(spec: Any) -> list[str]:
    """Return the leaves of the arguments of a call as expressions, such as ``cache[0]``."""
    return [_argument_text(path) for path in leaf_paths(spec)]


def _argument_text(path: tuple[Any, ...]) -> str:
    outer, inner, *rest = path
    name = str(inner.key) if outer.idx == 1 else f"args[{inner.idx}]"
    return f"{name}{path_text(tuple(rest))}"


def _dumped(spec: Any, owner: str) -> str:
    from torch.utils import _pytree

    try:
        return _pytree.treespec_dumps(spec)
    except (NotImplementedError, TypeError) as error:
        reason = next(iter(str(error).splitlines()), "")
        raise ModuleCallError(
            f"the structure of the {owner} has no text: {reason}",
            hint="register the class by torch.utils._pytree.register_pytree_node with a "
            "serialized_type_name, or return tensors, tuples, lists and dicts",
        ) from error


def _other_structure(structure: Any, inputs: Sequence[Input]) -> ModuleCallError:
    """Return the error about arguments with other leaves than at the export."""
    from torch.utils import _pytree

    pairs: Any = _pytree.tree_flatten_with_path(structure)[0]
    found = [_argument_text(path) if len(path) > 1 else "" for path, _ in pairs]
    expected = [leaf.path for leaf in inputs]
    parts = [
        f"{text} {', '.join(names)}"
        for text, names in (
            ("missing:", [n for n in expected if n not in found]),
            ("unexpected:", [n for n in found if n not in expected]),
        )
        if names
    ]
    reason = "; ".join(parts) or "other containers than at the export"
    return ModuleCallError(
        f"the arguments have another structure than at the export: {reason}",
        hint=f"the tensors and values at the export were {', '.join(expected)}",
    )


def _same(value: Any, expected: Fixed) -> bool:
    """Return whether a value is the fixed value; True is not 1."""
    return type(value) is type(expected) and value == expected


def is_fixed_value(value: object) -> bool:
    """Return whether a value can be fixed by an export."""
    return isinstance(value, _FIXED)


def _is_fixed(value: Any, declared: Input) -> bool:
    """Check a fixed value; return that it is no operand of the program."""
    if not _same(value, declared.value):
        raise ModuleCallError(
            f"{declared.path} is {_shown(value)}; the module was exported with {declared.value!r}",
            hint="pass the value to from_torch; each value needs a program of its own",
        )
    return False


def _shown(value: Any) -> str:
    return repr(value) if is_fixed_value(value) else f"a {type(value).__name__}"


def _tensor(value: Any, declared: Input) -> Any:
    """Return a tensor as native code reads it; a copy if it is not compact and only read."""
    import torch

    if not isinstance(value, torch.Tensor):
        if isinstance(value, np.ndarray):
            return value  # pyright: ignore[reportUnknownVariableType]
        raise ModuleCallError(
            f"{declared.path} is {_shown(value)}; it was a tensor at the export",
            hint="pass a tensor",
        )
    return readable(value, written=declared.written)


def readable(tensor: Any, *, written: bool = False) -> Any:
    """Return a tensor that native code can read; a copy if it is not compact and only read."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    if not written:
        plain = plain.contiguous()
    views = _views()
    kind = views.get(plain.dtype)
    return plain if kind is None else plain.view(kind[0]).numpy().view(kind[1])


def tensors(found: Any) -> list[Any]:
    """Return the results of an executable, one array or a tuple, as tensors of the same memory."""
    return [to_tensor(x) for x in cast("Iterable[Any]", found)] if isinstance(found, tuple) else [
        to_tensor(found)
    ]  # fmt: skip


def to_tensor(array: NDArray[Any]) -> Any:
    """Return an array as a tensor that shares its memory."""
    import torch

    from_numpy: Callable[[Any], Any] = cast("Any", torch).from_numpy
    plain = np.asarray(array)
    for kind, (bits, own) in _views().items():
        if plain.dtype == own:
            return from_numpy(plain.view(_NUMPY[bits.itemsize])).view(kind)
    return from_numpy(plain)


_NUMPY: Final = {1: np.dtype(np.uint8), 2: np.dtype(np.int16)}


def _views() -> Mapping[Any, tuple[Any, np.dtype[Any]]]:
    """Return the dtypes that NumPy lacks, with integers of their size and dtypes of ml_dtypes."""
    global _known_views  # noqa: PLW0603 -- made once, on the first call, since it imports torch
    if _known_views is None:
        import ml_dtypes
        import torch

        _known_views = {
            torch.bfloat16: (torch.int16, np.dtype(ml_dtypes.bfloat16)),
            torch.float8_e4m3fn: (torch.uint8, np.dtype(ml_dtypes.float8_e4m3fn)),
            torch.float8_e5m2: (torch.uint8, np.dtype(ml_dtypes.float8_e5m2)),
        }
    return _known_views


_known_views: Mapping[Any, tuple[Any, np.dtype[Any]]] | None = None
