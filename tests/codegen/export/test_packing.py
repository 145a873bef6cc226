"""The plan by which weights are packed: constants that the code depends on, and views."""

from __future__ import annotations

import numpy as np

import tilewright as tw
from tilewright.codegen.compiler import BuildOptions
from tilewright.codegen.export.packing import compile_recorded, read_plan, view_source, write_plan
from tilewright.ir.dtype import f32
from tilewright.ir.module import Constant
from tilewright.ir.script import parse
from tilewright.target.host import with_level
from tilewright.target.target import Target

from tests.codegen.export.test_pack import FOLDED, folded
from tests.codegen.export.test_replaceable import program


def test_views_have_the_name_of_their_source():
    known = {"a", "b@c"}
    assert view_source("a@3x4", known) == "a"
    assert view_source("a@3x4@12", known) == "a"
    assert view_source("b@c@2", known) == "b@c"
    assert view_source("a@3", {*known, "a@3"}) == "a@3"
    assert view_source("folded.0@3", known) == "folded.0@3"


def test_only_constants_that_the_compilation_reads_are_recorded():
    arrays = folded(3)
    loads: list[str] = []

    def load(name: str) -> np.ndarray:
        loads.append(name)
        return arrays[name]

    constants = {k: Constant(a.shape, f32, lambda k=k: load(k)) for k, a in arrays.items()}
    module = parse(FOLDED, constants=constants)
    target, progress = with_level(Target("cpu")), []
    options = BuildOptions(progress=lambda fraction, message: progress.append(fraction))
    _, read = compile_recorded(module, target, options)
    assert read == {"gain"}
    assert "bias" in loads  # its view is stored in the cache
    assert progress
    assert compile_recorded(module, target, options)[1] == {"gain"}


def test_a_plan_has_an_exact_round_trip(tmp_path):
    made = tw.export(program(0), tmp_path / "made", name="packed", weights="replaceable")
    path = made.directory / "packed.packing"
    plan = read_plan(path)
    write_plan(tmp_path / "again", plan)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    assert str(plan.sources["weight"]) == "f32 [300, 256]"
    assert plan.packed
    assert not plan.fixed
