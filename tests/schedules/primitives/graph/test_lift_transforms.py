"""The ``lift_transforms`` primitive."""

from __future__ import annotations

from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.schedules.handles import FunctionRef
from tilewright.schedules.primitives.graph.lift_transforms import LiftTransforms

from tests.schedules.helpers import rejected

GROUP_AT_LOAD = """
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n,), f32]):
    a = full((4,), -1.0, dtype="f32")
    b = multiply(a, a)
    c = floor(b)
    return c, x
"""


def test_a_function_that_runs_at_load_time_has_no_prepared_constants() -> None:
    """The prepared constants of a group that computes prepared constants have no time to run."""
    sch = Schedule(parse(GROUP_AT_LOAD))
    sch.legalize()
    sch.lift_transforms()
    sch.fuse_ops("prepare")
    group = next(g.name for g in sch.module.graphs if g.name not in ("main", "prepare"))
    rejected(
        sch,
        LiftTransforms(FunctionRef(group)),
        LiftTransforms.Requires.NOT_AT_LOAD,
        f"'prepare' calls '{group}' at load time",
    )
