"""Random graph programs as text, with the meaning of their inputs.

The arithmetic of most values is exact on the data of `inputs`, so that results compare bit for bit;
values that round are listed by name.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tilewright.ir.graph.nodes import TensorInfo, Value
from tilewright.ir.script import parse

from tests.fuzz.program import Indices

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tilewright.ir.graph.nodes import GraphFunc
    from tilewright.ir.module import Constant, Module


@dataclass(frozen=True)
class GraphProgram:
    """The text of a module with a function ``main``, and the meaning of its inputs.

    Parameters
    ----------
    family : str
        The family that made it.
    text : str
        The program; it parses to a module, whose constants `module` fills.
    rounded : tuple of str
        The values of ``main`` that depend on rounding.
    indices : Mapping of str to Indices
        The inputs that are used as indices.
    defined : Mapping of str to str
        The symbols that a ``match_cast`` binds, as terms of the others.
    unknown : Mapping of str to str
        The shapes of inputs that have no shape in the program.
    work : tuple of str
        Numbers of elements that the operators compute, terms of the symbols.
    measured : tuple of str
        The symbols whose values depend on the data; those of `defined` are upper bounds.
    """

    family: str
    text: str
    rounded: tuple[str, ...] = ()
    indices: Mapping[str, Indices] = field(default_factory=dict)
    defined: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)
    work: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()

    @cached_property
    def module(self) -> Module:
        """The parsed module with the values of its constants."""
        described = parse(self.text).constants
        return parse(self.text, constants={k: values(k, c) for k, c in described.items()})

    @property
    def function(self) -> GraphFunc:
        """The parsed function ``main``."""
        return self.module.graph()

    @cached_property
    def access(self) -> tuple[str, ...]:
        """The access mode of each parameter of ``main``."""
        return tuple(p.access for p in self.function.params)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters of ``main``."""
        return tuple(p.value.name for p in self.function.params)

    @cached_property
    def symbols_of_states(self) -> set[str]:
        """The names of the symbols of the shapes of states."""
        infos = (p.value.info for p in self.function.params if p.access == "state")
        dims = (d for i in infos if isinstance(i, TensorInfo) for d in i.shape or ())
        return {v.name for d in dims for v in d.free}

    def written(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the arrays of the parameters that ``main`` may write."""
        return [x for x, mode in zip(inputs, self.access, strict=True) if mode != "in"]

    def named(self, inputs: Sequence[np.ndarray], mode: str) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the names and the arrays of the parameters of an access mode."""
        for name, own, array in zip(self.names, self.access, inputs, strict=True):
            if own == mode:
                yield name, array

    def with_states(
        self, inputs: Sequence[np.ndarray], states: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Return inputs with the given arrays of the states."""
        left = iter(states)
        pairs = zip(inputs, self.access, strict=True)
        return [next(left).copy() if mode == "state" else x for x, mode in pairs]

    @property
    def exact(self) -> tuple[bool, ...]:
        """Whether each result, and each parameter that is written, compares bit for bit."""
        results = self.function.results
        written = (True for mode in self.access if mode != "in")
        return (
            *(not isinstance(r, Value) or r.name not in self.rounded for r in results),
            *written,
        )

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> GraphProgram:
        """Return the program of JSON data."""
        made = dict(data)
        made["indices"] = {k: Indices(**v) for k, v in made["indices"].items()}  # type: ignore[attr-defined]
        for name in ("rounded", "work", "measured"):
            made[name] = tuple(made.get(name, ()))  # type: ignore[arg-type]
        return cls(**made)  # type: ignore[arg-type]

    def to_data(self) -> dict[str, object]:
        """Return the program as JSON data."""
        names = self.__dataclass_fields__
        data = {k: v for k, v in vars(self).items() if k in names}
        return {**data, "indices": {k: vars(v) for k, v in self.indices.items()}}


def values(key: str, constant: Constant) -> np.ndarray:
    """Return the values of a constant, which depend on its key, shape and dtype only."""
    rng = np.random.default_rng(zlib.crc32(key.encode()))
    kind, shape = constant.dtype.numpy, constant.shape
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(kind)
    low = -1 if constant.dtype.is_float or np.issubdtype(kind, np.signedinteger) else 0
    return rng.integers(low, 3 if kind.itemsize > 2 else 2, shape).astype(kind)
