"""Import of PyTorch modules: export and import in one call."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast

from ...calls import checked_call
from ...errors import TilewrightError
from ...progress import ProgressOption
from ..module import CALL_ATTRIBUTE, Module
from .torch_call import Fixed, call_of, is_fixed_value
from .torch_program import from_exported_program
from .torch_recurrent import recurrent_layers_as_scans
from .torch_scans import scans_as_operators

Dynamic: TypeAlias = "Mapping[str, Any] | Literal['auto'] | None"
"""The dynamic dimensions of the arguments, by parameter name."""

_ATTEMPTS = 4
"""The most exports with dimensions that PyTorch corrected."""


class TorchExportError(TilewrightError):
    """A module that PyTorch cannot export."""

    title = "Failed export by PyTorch"


@checked_call
def from_torch(
    module: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic: Dynamic = None,
    state: Mapping[str, str] | None = None,
    strict: bool = False,
    allow_unsupported: bool = False,
    progress: ProgressOption = None,
) -> Module:
    """Export a PyTorch module for example arguments, and import the program.

    The executable of the result is called like the module: with the same nested and named
    arguments, and it returns tensors in the structure of the module's result. Arguments other
    than tensors keep their values of the export.

    Parameters
    ----------
    module : torch.nn.Module or callable
        The module, or a function of tensors. Dropout and batch normalization depend on its mode,
        so call ``eval()`` before.
    args : sequence
        Example arguments by position. Sizes that are dynamic must be at least 2 in the example.
    kwargs : Mapping of str to Any, optional
        Example arguments by name.
    dynamic : Mapping or 'auto', optional
        Dynamic dimensions by the name of the parameter: a mapping of axis to name, such as
        ``{"x": {0: "batch"}}``. Dimensions with one name are equal. ``torch.export.Dim`` objects
        are possible in place of names, and nested arguments have nested mappings. ``'auto'``
        makes each dimension dynamic that the module does not fix. By default all are static.
    state : Mapping of str to str, optional
        Inputs that become states, as in `from_exported_program`. The executable then takes the
        remaining tensors as flat arguments and returns arrays.
    strict : bool
        Whether PyTorch exports by its analysis of bytecode, which finds more Python errors.
    allow_unsupported : bool
        Whether unsupported operators become calls of library functions.
    progress : bool or callable, optional
        Whether to show a progress bar, or a function of a fraction and a message.

    Returns
    -------
    Module
        The module.

    Raises
    ------
    TorchExportError
        If PyTorch fails, or a dynamic dimension does not exist or is constant in the module.
    UnsupportedOperatorsError
        If the program uses unsupported operators.

    Examples
    --------
    >>> import torch
    >>> from tilewright.codegen import compile
    >>> class Scale(torch.nn.Module):
    ...     def forward(self, x, *, factor):
    ...         return {"scaled": x * factor, "total": x.sum()}
    >>> imported = from_torch(
    ...     Scale(), (torch.ones(2, 3),), {"factor": torch.ones(3)}, dynamic={"x": {0: "batch"}}
    ... )
    >>> exe = compile(imported)
    >>> exe(torch.ones(5, 3), factor=torch.full((3,), 2.0))["total"]
    tensor(15.)
    """
    import torch

    _register_caches()
    owner = _as_module(module)
    example = _example(owner, args, kwargs or {})
    shapes = _dynamic_shapes(dynamic, example.arguments, by_name=bool(example.names))
    with torch.no_grad():
        program = _exported(owner, example, shapes, strict=strict)
    imported = from_exported_program(
        program, state=state, allow_unsupported=allow_unsupported, progress=progress
    )
    if state:
        return imported
    convention = call_of(program, example.names, example.defaults)
    attributes = {**imported.attributes, CALL_ATTRIBUTE: convention.text()}
    return replace(imported, attributes=MappingProxyType(attributes))


def _as_module(module: Any) -> Any:
    """Return a module whose ``forward`` is the function, or the module itself."""
    import torch

    if isinstance(module, torch.nn.Module):
        return module
    if not callable(module) or isinstance(module, type):
        kind = "a class" if isinstance(module, type) else type(module).__name__
        raise TorchExportError(
            f"expected a torch.nn.Module or a function, got {kind}",
            where="argument 'module' of from_torch",
            hint="pass an instance, such as Model().eval()",
        )
    owner = torch.nn.Module()
    owner.forward = module
    return owner


def _register_caches() -> None:
    """Make the key-value cache of ``transformers`` a structure of tensors for PyTorch."""
    if "transformers" not in sys.modules:
        return
    try:
        from transformers.integrations import executorch
    except ImportError:  # a version without it; the export reports a cache among the results
        return
    executorch.register_dynamic_cache_export_support()


@dataclass(frozen=True, slots=True)
class _Example:
    """The example arguments of an export.

    All arguments are passed by name, so that a call may pass them by position or by name, except
    if ``forward`` takes ``*args`` or parameters by position only.

    Parameters
    ----------
    names : tuple of str
        The parameters of ``forward`` by position; empty if the arguments are not passed by name.
    args : tuple
        The arguments by position.
    named : dict of str to Any
        The arguments by name.
    defaults : dict of str to bool, int, float, str or None
        The defaults of the other parameters.
    arguments : dict of str to Any
        All arguments by parameter; those of ``*args`` are one tuple.
    """

    names: tuple[str, ...]
    args: tuple[Any, ...]
    named: dict[str, Any]
    defaults: dict[str, Fixed]
    arguments: dict[str, Any]


def _example(owner: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Example:
    if isinstance(cast("object", args), str | bytes | Mapping) or hasattr(args, "shape"):
        raise TorchExportError(
            f"expected a tuple of arguments, got a {type(args).__name__}",
            where="argument 'args' of from_torch",
            hint="pass (x,) for one argument x",
        )
    signature = inspect.signature(owner.forward)
    kinds = inspect.Parameter
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TorchExportError(
            f"forward{signature} cannot be called: {error}",
            where="arguments 'args' and 'kwargs' of from_torch",
        ) from error
    params = signature.parameters.values()
    arguments: dict[str, Any] = {}
    for param in params:
        if param.name in bound.arguments:
            value = bound.arguments[param.name]
            arguments |= value if param.kind is kinds.VAR_KEYWORD else {param.name: value}
    if any(p.kind in (kinds.VAR_POSITIONAL, kinds.POSITIONAL_ONLY) for p in params):
        return _Example((), tuple(args), dict(kwargs), {}, arguments)
    names = tuple(p.name for p in params if p.kind is kinds.POSITIONAL_OR_KEYWORD)
    defaults = {
        p.name: p.default for p in params if p.name not in arguments and is_fixed_value(p.default)
    }
    return _Example(names, (), arguments, defaults, arguments)


# ---------------------------------------------------------------- dynamic dimensions


def _dynamic_shapes(dynamic: Dynamic, arguments: Mapping[str, Any], *, by_name: bool) -> Any:
    """Return the dynamic dimensions in the form of ``torch.export.export``."""
    import torch

    if dynamic is None:
        return None
    given: Mapping[str, Any] = {}
    if dynamic == "auto":
        sizes = _Sizes(everywhere=torch.export.Dim.AUTO)
    elif isinstance(cast("object", dynamic), Mapping):
        sizes, given = _Sizes(), dynamic
    else:
        raise _invalid(f"expected a mapping of argument names, got {dynamic!r}")
    unknown = [name for name in given if name not in arguments]
    if unknown:
        raise _invalid(f"no argument {unknown[0]!r}; the arguments are {', '.join(arguments)}")
    found = {name: sizes.of(value, given.get(name), name) for name, value in arguments.items()}
    return found if by_name else tuple(found.values())


class _Sizes:
    """The dimensions of an export by name."""

    def __init__(self, *, everywhere: Any = None) -> None:
        """Create dimensions without names; ``everywhere`` is that of axes without a name."""
        self.dims: dict[str, Any] = {}
        self.everywhere = everywhere

    def of(self, value: Any, given: Any, path: str) -> Any:
        """Return the dynamic dimensions of an argument, nested like the argument."""
        import torch

        if isinstance(value, torch.Tensor):
            return self._of_tensor(value, given, path)
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, Any]", value)
            return {k: self.of(v, _at(given, k), f"{path}[{k!r}]") for k, v in items.items()}
        if isinstance(value, list | tuple):
            items = cast("Sequence[Any]", value)
            made = [self.of(v, _at(given, k), f"{path}[{k}]") for k, v in enumerate(items)]
            return _sequence(value, made)
        if given is None and self.everywhere is None:
            return None
        return self._of_class(value, given, path)

    def _of_class(self, value: Any, given: Any, path: str) -> Any:
        """Return the dimensions of the tensors of a registered class, in their order."""
        from torch.utils import _pytree

        leaves, spec = _pytree.tree_flatten(value)
        if spec.is_leaf():
            if given is not None:
                raise _invalid(f"{path} is a {type(value).__name__}, not a tensor")
            return None
        return [self.of(leaf, _at(given, k), f"{path}[{k}]") for k, leaf in enumerate(leaves)]

    def _of_tensor(self, value: Any, given: Any, path: str) -> Any:
        if given is None:
            return dict.fromkeys(range(value.ndim), self.everywhere) if self.everywhere else None
        if isinstance(given, Mapping):
            axes = dict(cast("Mapping[Any, Any]", given))
        elif isinstance(given, list | tuple):
            axes = dict(enumerate(cast("Sequence[Any]", given)))
        else:
            raise _invalid(f"expected a mapping of axes for {path}, got {given!r}")
        made: dict[int, Any] = {}
        for axis, name in axes.items():
            if not isinstance(axis, int) or not -value.ndim <= axis < value.ndim:
                shape = tuple(value.shape)
                raise _invalid(f"{path} has no axis {axis!r}: the example has the shape {shape}")
            place = axis % value.ndim
            if name is not None:
                made[place] = self._dim(name, f"axis {axis} of {path}")
            if isinstance(name, str) and value.shape[place] < 2:
                raise _invalid(
                    f"axis {axis} of {path}, {name!r}, has the size {value.shape[place]} in the "
                    "example; PyTorch treats the sizes 0 and 1 as constants",
                    "use an example with a size of at least 2; the program runs for 0 and 1 too",
                )
        return made

    def _dim(self, name: Any, where: str) -> Any:
        import torch

        if not isinstance(name, str):
            return name
        if not name.isidentifier():
            raise _invalid(f"{name!r}, the name of {where}, is not an identifier")
        return self.dims.setdefault(name, torch.export.Dim(name))


def _sequence(like: Any, items: list[Any]) -> Any:
    """Return items as a list, tuple, or named tuple."""
    if isinstance(like, list):
        return items
    return type(like)(*items) if hasattr(like, "_fields") else tuple(items)


def _at(given: Any, key: Any) -> Any:
    """Return the dimensions of an element of a nested argument."""
    if isinstance(given, Mapping):
        return cast("Mapping[Any, Any]", given).get(key)
    if isinstance(given, list | tuple):
        items = cast("Sequence[Any]", given)
        return items[key] if isinstance(key, int) and key < len(items) else None
    return None


def _invalid(reason: str, hint: str = "") -> TorchExportError:
    return TorchExportError(
        reason,
        where="argument 'dynamic' of from_torch",
        hint=hint or 'such as dynamic={"x": {0: "batch"}} for axis 0 of argument x',
    )


# ---------------------------------------------------------------- export


def _exported(owner: Any, example: _Example, shapes: Any, *, strict: bool) -> Any:
    """Export a module; dimensions that PyTorch finds to depend on each other are corrected."""
    import torch

    for _ in range(_ATTEMPTS):
        try:
            with recurrent_layers_as_scans(), scans_as_operators():
                return torch.export.export(
                    owner, example.args, example.named, dynamic_shapes=shapes, strict=strict
                )
        except Exception as error:  # PyTorch has no common class of errors
            refined = _refined(error, shapes)
            if refined is None:
                raise _failure(error) from error
            shapes = refined
    raise TorchExportError(
        f"PyTorch corrected the dynamic dimensions {_ATTEMPTS} times without success",
        hint="pass dynamic='auto'",
    )


def _refined(error: Exception, shapes: Any) -> Any:
    """Return dimensions with the ranges and relations that PyTorch suggests, or None.

    Raises
    ------
    TorchExportError
        If a dimension is constant in the module.
    """
    from torch.export.dynamic_shapes import refine_dynamic_shapes_from_suggested_fixes

    text = str(error)
    if shapes is None or "Suggested fixes:" not in text:
        return None
    fixes = list(_fixes(text))
    constant = [(name, value) for name, value in fixes if value.lstrip("-").isdigit()]
    if constant:
        listed = ", ".join(f"{name} = {value}" for name, value in constant)
        raise TorchExportError(
            f"the module runs for one size only of these dynamic dimensions: {listed}",
            where="argument 'dynamic' of from_torch",
            hint="omit these dimensions, or change the code of the module that fixes them",
        ) from error
    only = "Suggested fixes:\n" + "\n".join(f"  {name} = {value}" for name, value in fixes)
    with contextlib.suppress(Exception):  # of suggestions that PyTorch cannot read itself
        return refine_dynamic_shapes_from_suggested_fixes(only, shapes)
    return None


def _fixes(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the suggestions of PyTorch."""
    for line in text.split("Suggested fixes:")[1].strip().splitlines():
        name, equals, value = line.strip().partition(" = ")
        if not equals:  # the end of the list
            return
        yield name, value


def _failure(error: Exception) -> TorchExportError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = lines[0] if lines else "no message"
    return TorchExportError(
        f"{type(error).__name__}: {reason}",
        hint="check that the module runs on the example; torch.export.export(module, args, kwargs) "
        "shows PyTorch's report",
    )
