"""Provenance from statements of thread IR to operations of the imported model."""

import pytest

import tilewright as tw
from tilewright.codegen.lower.pipeline import lower_kernel
from tilewright.ir.graph.nodes import LaunchKernel
from tilewright.ir.loop.nodes import Block, For, Store
from tilewright.ir.loop.visit import walk
from tilewright.ir.thread.nodes import Store as ThreadStore
from tilewright.ir.thread.visit import walk as walk_thread
from tilewright.schedules.rules import with_default_schedule
from tilewright.target.target import Target

from tests.ir.importers.models import exported_bert

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def imported():
    return tw.from_exported_program(exported_bert("eager"))


@pytest.fixture(scope="module")
def scheduled(imported):
    return with_default_schedule(imported)


@pytest.fixture(scope="module")
def operations(imported):
    return {o for b in imported.graph().bindings for o in (*b.origins, b.value.name)}


def test_every_statement_has_an_origin(scheduled, operations):
    for kernel in scheduled.prims:
        for statement in walk(kernel.body):
            if isinstance(statement, For | Block | Store):
                assert statement.origins, (kernel.name, statement)
                assert statement.origins <= operations


def test_every_launch_has_an_origin(scheduled, operations):
    for graph in scheduled.graphs:
        launches = [b for b in graph.bindings if isinstance(b.right, LaunchKernel)]
        assert launches
        assert all(b.origins and b.origins <= operations for b in launches)


def test_a_shared_kernel_names_all_layers(scheduled):
    """Both layers of the model run the same kernels, whose origins are those of both layers."""
    layers = ("encoder.layer.0.attention.self.query", "encoder.layer.1.attention.self.query")
    shared = [k for k in scheduled.prims if k.origins.issuperset(layers)]
    assert shared


def test_the_kernel_of_attention_names_the_operators_it_replaces(scheduled):
    named = {origin.rstrip("_0123456789") for origin in scheduled.functions["attention"].origins}
    assert {"matmul", "add", "softmax"} <= named


def test_stores_of_thread_ir_keep_the_origins(scheduled, operations):
    kernel = scheduled.functions["attention_rows"]
    function = lower_kernel(kernel, Target("cpu", features=("avx2",))).function
    stores = [s for s in walk_thread(function.body) if isinstance(s, ThreadStore)]
    named = [s for s in stores if s.source.origins]
    assert named
    assert all(s.source.origins <= operations for s in named)
