"""A kernel of target ``simt`` in an artefact: the scheduled program, and where its nodes are from.

What is stored is text; loading parses and lowers it again. Names are exact in the text, uids are
not, so the steps are kept by the names of the loops and blocks they made.
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
from ...ir.target import Target
from ...schedules.refs import FunctionRef
from ...schedules.state import State
from ...schedules.text import to_python
from ..lower.pipeline import KernelArtifact, lower_kernel


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """One kernel to be executed.

    Parameters
    ----------
    source : PrimFunc
        The scheduled function.
    lowered : KernelArtifact
        What is executed.
    symbols : tuple of str
        The integer parameters, in the order that the host flow hands them over.
    steps : Mapping of str to str
        The schedule step that made a loop or block, by its name.
    debug : bool
        Whether it was lowered for debugging.
    """

    source: PrimFunc
    lowered: KernelArtifact
    symbols: tuple[str, ...]
    steps: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    debug: bool = False

    def to_bytes(self) -> bytes:
        """Store: the program's text, its symbols and its steps, as JSON."""
        content: dict[str, Any] = {
            "text": to_text(self.source, provenance=True),
            "symbols": list(self.symbols),
            "steps": dict(self.steps),
            "debug": self.debug,
        }
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes, target: Target) -> Program:
        """Read a stored program, and lower it for a target."""
        content = json.loads(data)
        source = next(iter(parse(content["text"]).prims))
        debug = bool(content["debug"])
        lowered = lower_kernel(source, target, debug=debug)
        steps = MappingProxyType(dict(content["steps"]))
        return cls(source, lowered, tuple(content["symbols"]), steps, debug)


def step_texts(states: Iterable[State]) -> Mapping[int, str]:
    """Write steps by the uids they say something about.

    A uid tells the ordinal of the step that minted it, and stands for it here as the first number
    of that step. Nodes that are older are told by the last step that was handed them.
    """
    texts: dict[int, str] = {}
    for state in states:
        lines = to_python(state.trace).splitlines()
        for position, (step, line) in enumerate(zip(state.trace.steps, lines, strict=True)):
            if step.op.startswith("get_"):
                continue
            text = f"step {position}: {line}"
            texts[(state.first + position) * STEP_STRIDE] = text
            for operand in step.operands():
                ref = state.results[operand.step][operand.index]
                if not isinstance(ref, FunctionRef):
                    texts[ref.uid] = text
    return texts


def steps_of(function: PrimFunc, texts: Mapping[int, str]) -> Mapping[str, str]:
    """Tell which step made each loop and block of a function, or touched it last, by name."""
    tree = tree_of(function)
    named = [(uid, loop.var.name) for uid, loop in tree.loops.items()]
    named += [(uid, block.name) for uid, block in tree.blocks.items()]
    made = {
        name: texts.get(uid // STEP_STRIDE * STEP_STRIDE) or texts.get(uid, "")
        for uid, name in named
    }
    return MappingProxyType({name: text for name, text in sorted(made.items()) if text})
