"""From a line of the machine code's statement back to the operation of the imported model."""

import pytest

import tilewright as tw
from tilewright.codegen.lower.pipeline import lower_kernel
from tilewright.ir.graph.memory import Launch
from tilewright.ir.loop.nodes import Block, For, Store
from tilewright.ir.loop.visit import walk
from tilewright.ir.target import Target
from tilewright.ir.thread.nodes import Store as ThreadStore
from tilewright.ir.thread.visit import walk as walk_thread
from tilewright.schedules.rules import finished

from tests.ir.importers.models import exported_bert

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def imported():
    return tw.from_exported_program(exported_bert("eager"))


@pytest.fixture(scope="module")
def scheduled(imported):
    return finished(imported)


@pytest.fixture(scope="module")
def operations(imported):
    return {o for b in imported.graph().bindings for o in (*b.origins, b.value.name)}


def test_every_statement_knows_where_it_comes_from(scheduled, operations):
    for kernel in scheduled.prims:
        for statement in walk(kernel.body):
            if isinstance(statement, For | Block | Store):
                assert statement.origins, (kernel.name, statement)
                assert statement.origins <= operations


def test_every_launch_knows_where_it_comes_from(scheduled, operations):
    for graph in scheduled.graphs:
        launches = [b for b in graph.bindings if isinstance(b.right, Launch)]
        assert launches
        assert all(b.origins and b.origins <= operations for b in launches)


def test_layers_that_share_a_kernel_are_all_named(scheduled):
    """The two layers of the model run the same kernels, whose origins are those of both."""
    layers = ("encoder.layer.0.attention.self.query", "encoder.layer.1.attention.self.query")
    shared = [k for k in scheduled.prims if k.origins.issuperset(layers)]
    assert shared


def test_thread_level_stores_keep_the_origins(scheduled, operations):
    kernel = next(k for k in scheduled.prims if "softmax" in k.name)
    function = lower_kernel(kernel, Target("cpu", features=("avx2",))).function
    stores = [s for s in walk_thread(function.body) if isinstance(s, ThreadStore)]
    named = [s for s in stores if s.source.origins]
    assert named
    assert all(s.source.origins <= operations for s in named)
