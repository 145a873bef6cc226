"""Constants whose content a compilation reads, so that its result depends on them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from ..ir.module import Array, Constant, Module


class ConstantDependencies:
    """A copy of a module that records the constants whose content is loaded.

    The compiled code refers to most weights by name only. If a step computes with a constant, as
    constant folding does, the program depends on its content.

    Parameters
    ----------
    module : Module
        The module to compile.

    Attributes
    ----------
    module : Module
        The copy, whose constants record that they are loaded.
    names : set of str
        The names of the constants that were loaded.

    Examples
    --------
    >>> from ..ir.dtype import f32
    >>> weight = Constant((2,), f32, lambda: np.zeros(2, np.float32))
    >>> module = Module().with_constants({"weight": weight, "bias": weight})
    >>> dependencies = ConstantDependencies(module)
    >>> _ = dependencies.module.constants["bias"].load()
    >>> dependencies.names
    {'bias'}
    """

    def __init__(self, module: Module) -> None:
        """Copy the module with constants that record that they are loaded."""
        self.names: set[str] = set()
        recording = {k: replace(c, load=self._recording(k, c)) for k, c in module.constants.items()}
        self.module = module.with_constants(recording) if recording else module

    def _recording(self, name: str, constant: Constant) -> Callable[[], Array]:
        def load() -> Array:
            self.names.add(name)
            return constant.load()

        return load


def content_digest(module: Module, names: Iterable[str]) -> bytes:
    """Return the digest of dtype, shape and elements of the named constants of a module."""
    digest = hashlib.sha256()
    for name in sorted(names):
        array = np.ascontiguousarray(module.constants[name].load())
        digest.update(f"{name!r} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.digest()
