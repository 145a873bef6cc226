"""Which constants a compilation looks into: their content determines what it makes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from ..ir.module import Array, Constant, Module


class Reads:
    """A module that notes whose content is asked for.

    Most weights are only referred to: compiled code gets them when it is loaded. Where a step
    computes with one, as constant folding does, another content makes another program.

    Parameters
    ----------
    module : Module
        What is compiled.

    Examples
    --------
    >>> from ..ir.dtype import f32
    >>> weight = Constant((2,), f32, lambda: np.zeros(2, np.float32))
    >>> reads = Reads(Module().with_constants({"weight": weight, "bias": weight}))
    >>> _ = reads.module.constants["bias"].load()
    >>> reads.names
    {'bias'}
    """

    def __init__(self, module: Module) -> None:
        """Watch every constant."""
        self.names: set[str] = set()
        watched = {k: replace(c, load=self._noting(k, c)) for k, c in module.constants.items()}
        self.module = module.with_constants(watched) if watched else module

    def _noting(self, name: str, constant: Constant) -> Callable[[], Array]:
        def load() -> Array:
            self.names.add(name)
            return constant.load()

        return load


def content(module: Module, names: Iterable[str]) -> bytes:
    """Digest dtype, shape and elements of some constants of a module."""
    digest = hashlib.sha256()
    for name in sorted(names):
        array = np.ascontiguousarray(module.constants[name].load())
        digest.update(f"{name!r} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.digest()
