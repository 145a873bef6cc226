"""Kernels of target ``simt`` in artifacts: scheduled programs with the steps that created them.

Programs are serialized as text, and parsed and lowered again when they are loaded. The text
preserves names but not uids, so steps are stored by the names of the loops and blocks they created.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ...ir.analysis import tree_of
from ...ir.identity import STEP_STRIDE
from ...ir.loop.nodes import PrimFunc
from ...ir.script import parse, to_text
from ...schedules.handles import FunctionRef
from ...schedules.python_text import step_lines
from ...schedules.state import State
from ...target.target import Target
from ..lower.pipeline import LoweredKernel, lower_kernel


@dataclass(frozen=True, slots=True, eq=False)
class SimtProgram:
    """One kernel of target ``simt``.

    Parameters
    ----------
    source : PrimFunc
        The scheduled function.
    lowered : LoweredKernel
        The lowered kernel, which is emulated.
    symbols : tuple of str
        Integer parameters, in the order in which the host flow passes them.
    steps : Mapping of str to str
        The schedule steps that created loops and blocks, by name.
    debug : bool
        Whether the kernel was lowered with debug checks.
    """

    source: PrimFunc
    lowered: LoweredKernel
    symbols: tuple[str, ...]
    steps: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    debug: bool = False

    def to_bytes(self) -> bytes:
        """Serialize text, symbols and steps as JSON."""
        content: dict[str, Any] = {
            "text": to_text(self.source, provenance=True),
            "symbols": list(self.symbols),
            "steps": dict(self.steps),
            "debug": self.debug,
        }
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes, target: Target) -> SimtProgram:
        """Deserialize a program, and lower it for a target."""
        content = json.loads(data)
        source = next(iter(parse(content["text"]).prims))
        debug = bool(content["debug"])
        lowered = lower_kernel(source, target, debug=debug)
        steps = MappingProxyType(dict(content["steps"]))
        return cls(source, lowered, tuple(content["symbols"]), steps, debug)


def step_texts(states: Iterable[State]) -> Mapping[int, str]:
    """Return steps as text by uid.

    The first uid of a step is the key for all nodes that the step created. Older nodes that are
    operands of a step have the last such step under their own uid.
    """
    texts: dict[int, str] = {}
    for state in states:
        lines = step_lines(state.trace)
        for position, (step, line) in enumerate(zip(state.trace.steps, lines, strict=True)):
            if step.op.startswith("get_"):
                continue
            text = f"step {position}: {line}"
            texts[(state.first + position) * STEP_STRIDE] = text
            for ref in state.operands(step):
                if not isinstance(ref, FunctionRef):
                    texts[ref.uid] = text
    return texts


def steps_of(function: PrimFunc, texts: Mapping[int, str]) -> Mapping[str, str]:
    """Return the step that created each loop and block, or last had it as operand, by name."""
    tree = tree_of(function)
    named = [(uid, loop.var.name) for uid, loop in tree.loops.items()]
    named += [(uid, block.name) for uid, block in tree.blocks.items()]
    steps = {
        name: texts.get(uid // STEP_STRIDE * STEP_STRIDE) or texts.get(uid, "")
        for uid, name in named
    }
    return MappingProxyType({name: text for name, text in sorted(steps.items()) if text})
