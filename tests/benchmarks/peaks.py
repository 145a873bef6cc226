"""Peak rates of tensor instructions on this machine, measured on registers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.codegen.sandbox.peak_loops import Instruction


def instructions() -> dict[str, tuple[Instruction, ...]]:
    """Return the instructions of each kind of product, the fastest first."""
    from tilewright.codegen.sandbox import peak_loops

    return peak_loops.instructions()


def fastest(kind: str) -> Instruction | None:
    """Return the fastest instruction of a kind that this machine has, if there is one."""
    from tilewright.target.host import host_features

    have = host_features()
    return next((i for i in instructions()[kind] if have.issuperset(i.needs)), None)


def missing(kind: str) -> list[str]:
    """Return the names of the instructions of a kind that this machine lacks."""
    from tilewright.target.host import host_features

    have = host_features()
    return [
        f"{i.name} ({', '.join(need for need in i.needs if need not in have)})"
        for i in instructions()[kind]
        if not have.issuperset(i.needs)
    ]


def peak_operations(instruction: Instruction) -> float:
    """Return the operations per second that an instruction reaches on one core."""
    from tilewright.codegen.sandbox.peak_rates import operation_rate
    from tilewright.target.host import with_level
    from tilewright.target.target import Target

    return operation_rate(instruction, with_level(Target("cpu", threads=1)))
