"""The form of a row of the catalog: a factory, the inputs, and the sizes of the calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SIZES: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {
        "batch": (2, 1, 3, 4),
        "length": (6, 9, 1, 17),
        "target": (5, 3, 8, 1),
        "height": (2, 1, 3, 2),
        "width": (2, 3, 1, 4),
        "time": (3, 2, 5, 8),
    }
)
"""The sizes of the calls by dimension; the first ones are those of the export."""

CALLS: Final = 4

Values: TypeAlias = "dict[str, Any]"
"""The values of a configuration."""


@dataclass(frozen=True)
class Model:
    """One architecture with a small configuration.

    Parameters
    ----------
    name : str
        The name in the tables.
    family : str
        The group of the architecture.
    make : callable
        The function that builds the module.
    inputs : Mapping of str to str
        For each parameter of ``forward`` its elements and its dimensions, such as ``"i96 batch
        length"`` or ``"f batch 3 32*height 32*width"``. Elements: ``i96`` integers below 96, ``f``
        floats with the standard normal distribution, ``u`` floats in [0, 1), ``m`` a mask of ones
        with zeros at the ends of rows. Names are dynamic dimensions.
    sizes : Mapping of str to tuple of int
        The sizes of the calls by dimension that differ from :data:`SIZES`.
    needs : str
        The package that the module is from.
    limits : Mapping of str to int
        The largest sizes of dimensions that PyTorch cannot export without.
    """

    name: str
    family: str
    make: Callable[[], torch.nn.Module]
    inputs: Mapping[str, str]
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    needs: str = "torch"
    limits: Mapping[str, int] = field(default_factory=dict[str, int])

    def shapes(self, call: int) -> dict[str, int]:
        """Return the sizes of the dynamic dimensions in a call."""
        names = {name for spec in self.inputs.values() for _, name in _dims(spec) if name}
        known = {**SIZES, **self.sizes}
        return {name: known[name][call] for name in sorted(names)}

    def arguments(self, call: int) -> dict[str, torch.Tensor]:
        """Return the arguments of a call."""
        sizes = self.shapes(call)
        generator = torch.Generator().manual_seed(call)
        return {n: _tensor(spec, sizes, generator) for n, spec in self.inputs.items()}

    def dynamic(self) -> dict[str, dict[int, Any]]:
        """Return the dynamic dimensions of each argument."""
        known = {n: torch.export.Dim(n, max=self.limits.get(n)) for n in self.shapes(0)}
        return {
            argument: {
                axis: known[name] if factor == 1 else factor * known[name]
                for axis, (factor, name) in enumerate(_dims(spec))
                if name
            }
            for argument, spec in self.inputs.items()
        }


def _dims(spec: str) -> list[tuple[int, str]]:
    """Return the factor and the name of each dimension; a constant has no name."""
    found: list[tuple[int, str]] = []
    for word in spec.split()[1:]:
        factor, star, name = word.partition("*")
        if word.isdigit():
            found.append((int(word), ""))
        else:
            found.append((int(factor), name) if star else (1, word))
    return found


def _tensor(spec: str, sizes: Mapping[str, int], generator: torch.Generator) -> torch.Tensor:
    kind = spec.split(maxsplit=1)[0]
    shape = [factor * sizes[name] if name else factor for factor, name in _dims(spec)]
    if kind == "f":
        return torch.randn(shape, generator=generator, dtype=torch.float32)
    if kind == "u":
        return torch.rand(shape, generator=generator, dtype=torch.float32)
    if kind == "m":
        ends = torch.arange(shape[0]).clamp(max=shape[1] - 1)
        return (torch.arange(shape[1]) < shape[1] - ends[:, None]).long()
    return torch.randint(int(kind[1:]), shape, generator=generator)


def randomize(module: torch.nn.Module) -> torch.nn.Module:
    """Replace weights, so that each has an effect that can be seen in the results.

    Initial weights of many modules are zero, or so small that each attention is uniform. Matrices
    become normal with the inverse square root of their input size as the deviation, and vectors
    vary by a tenth, which keeps the ranges of those with a meaning, such as decay rates.
    """
    generator = torch.Generator().manual_seed(0)

    def normal(like: torch.Tensor, scale: float) -> torch.Tensor:
        return scale * torch.randn(like.shape, generator=generator)

    with torch.no_grad():
        for name, weight in module.named_parameters():
            if not weight.is_floating_point() or weight.numel() == 0:
                continue
            if weight.ndim >= 2 and not name.endswith("A_log"):
                weight.copy_(normal(weight, (weight.numel() / weight.shape[0]) ** -0.5))
            else:
                weight.add_(normal(weight, 0.1))
        for name, buffer in module.named_buffers():
            if name.endswith("running_var"):
                buffer.copy_(0.5 + torch.rand(buffer.shape, generator=generator))
            elif name.endswith("running_mean"):
                buffer.copy_(normal(buffer, 0.1))
    return module.eval()
