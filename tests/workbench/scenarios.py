"""Recorded sessions, which cover every section of an update and every request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tilewright as tw
from tilewright.workbench.demo import export_minilm, load_minilm
from tilewright.workbench.protocol import VERSION

from tests.workbench.conftest import MATMUL, NETWORK
from tests.workbench.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.workbench.conftest import Client

    Connect = Callable[..., Client]

INVALID_VALUES = (
    *("", "abc", "-1", "1e9", "(8,", "None", "(0, 0)", "9" * 40, "(" * 3000, "9**9**9"),
    "__import__('os').system('true')",
)
"""Invalid values of a form field."""

RACE = """
@prim_func
def lost(at: Buffer[(64,), i32], x: Buffer[(64,), f32], y: InOut[(64,), f32]):
    for t in thread(64, "threadIdx.x"):
        with block("store"):
            vt = spatial(t)
            with clamped(at[vt], 0, 2) as p:
                y[vt] = y[p] + x[vt]
"""
"""Threads read elements at indices from memory, which other threads write."""

PRODUCT = """
M = symbols("M", lower=1)

@prim_func
def product(A: Buffer[(M,), f32], B: Buffer[(16,), f32], C: InOut[(M, 16), f32]):
    for i in range(M):
        for j in range(16):
            with block("product"):
                vi, vj = spatial(i), spatial(j)
                C[vi, vj] += A[vi] * B[vj]
"""


def matmul(connect: Connect) -> Recording:
    """Select all parts of a kernel, check all forms, run, lower, save, and cause errors."""
    page = Recording("matmul", connect(MATMUL))
    page.select_everything("matmul")
    page.send("select", kind="", function="", uid=0)
    page.select("loop", "j", "matmul")
    page.check_every_form()
    page.check_invalid_values("split", INVALID_VALUES)
    page.preview("split", factors="(None, 8)")
    page.preview("split", factors="(2, 2)")
    page.preview("tile")
    page.apply("split", factors="(None, 8)")
    page.apply("vectorize")
    page.select("loop", "i", "matmul")
    page.apply_fix("vectorize")
    page.select_everything("matmul")
    page.navigate("undo")
    page.navigate("redo")
    page.navigate("undo")
    page.apply("specialize")
    page.select("loop", "i", "matmul")
    page.apply("tile", sizes="(4, 4)")
    page.edit_group("change", sizes="(2, 8)")
    page.edit_group("change", sizes="(2,")
    page.edit_group("ungroup")
    page.send("sample", function="matmul", symbol="n", value=7)
    page.send("sample", function="matmul", symbol="n", value=-7)
    page.send("open", function="missing")
    page.send("save", format="python")
    page.send("save", format="json")
    unknown = '{"op": "no_such_step", "args": {}}'
    document = page.client.session.view.saved
    assert document is not None
    page.send("load", text=document.text + unknown, notes={})
    for action, text in (("resume", ""), ("change", "sch.no_such_step()"), ("skip", "")):
        number = len(page.client.session.schedule.trace)
        page.send("edit_trace", action=action, index=number, text=text, head=page.head)
    page.send("edit_trace", action="discard", index=0, text="", head=page.head)
    page.send("load", text="{", notes={}, name="wrong.jsonl")
    page.send("load", text=document.text, notes={})
    page.run("run", action="compile", function="")
    for target in ("cpu riscv64", "simt sm_80", "cpu avx2", "vax"):
        page.run("set_target", target=target, head=page.head)
    page.send("set_measure_options", caches="cold", threads=1, pin=True, budget=0.2)
    page.run("run", action="measure", function="")
    page.send("set_measure_options", caches="hot", threads=0, pin=False, budget=0)
    page.run("run", action="measure", function="matmul")
    for key in ("m1", "m2", "unknown"):
        page.send("show_measurement", key=key)
    for stage in page.client.session.stages():
        page.run("lower", stage=stage.name)
    page.run("lower", stage="no_such_stage")
    page.send("run", action="measure", function="")
    page.send("run", action="measure", function="")
    page.send("cancel", job=page.client.session.jobs.view()[-1].key)
    page.client.session.jobs.wait()
    page.send("dismiss", key=page.client.session.document.problems[0].key)
    page.navigate("jump", page.client.session.schedule.history[0].id)
    page.send("hello", version=VERSION)
    return page


def network(connect: Connect) -> Recording:
    """Select the values of a graph, check its forms, count its costs, measure and compile it."""
    page = Recording("network", connect(NETWORK))
    graph = page.client.session.state.module.graph()
    for value in (*(p.value for p in graph.params), *(b.value for b in graph.bindings)):
        page.send("select", kind="binding", function="main", uid=value.uid)
        page.check_every_form()
    page.send("select", kind="function", function="main", uid=0)
    page.check_every_form()
    for kind in ("flops", "bytes", "memory"):
        page.run("count_costs", kind=kind)
    page.run("run", action="measure", function="")
    page.run("run", action="compile", function="")
    page.send("set_note", node=page.head, text="as imported")
    for action in ("add", "use"):
        page.send("edit_size_set", action=action, name="small")
    page.run("run", action="measure_sets", function="")
    page.send("edit_size_set", action="remove", name="small")
    page.select_everything("twice")
    for action in ("lower", "take"):
        page.run("use_rule", action=action, function="twice", head=page.head)
    for preview in (True, False):
        page.run("apply_to_similar", function="twice", preview=preview, head=page.head)
    page.run("use_rule", action="return", function="twice", head=page.head)
    return page


def tensorize(connect: Connect) -> Recording:
    """Tensorize: a mismatch, its fix, and a match."""
    target = tw.Target("cpu", features=("avx2",))
    page = Recording("tensorize", connect(tw.Schedule(tw.parse(PRODUCT), target)))
    page.select("loop", "i", "product")
    page.check_every_form()
    page.apply_fix("tensorize")
    page.select("loop", "i_1", "product")
    page.check_every_form()
    page.apply("tensorize")
    page.select_everything("product")
    return page


def race(connect: Connect) -> Recording:
    """Compile a GPU kernel with a race, which the emulator reports."""
    target = tw.Target("simt")
    page = Recording("race", connect(tw.Schedule(tw.parse(RACE), target), target))
    page.select_everything("lost")
    page.run("run", action="compile", function="")
    assert [problem.title for problem in page.client.session.document.problems] == ["Data race"]
    return page


def minilm(connect: Connect) -> Recording:
    """Select parts of the quickstart's model before and after lowering to kernels."""
    mod = tw.from_exported_program(export_minilm(load_minilm()))
    page = Recording("minilm", connect(tw.Schedule(mod, tw.Target("cpu"))))
    for binding in page.client.session.state.module.graph().bindings[:40:8]:
        page.send("select", kind="binding", function="main", uid=binding.value.uid)
    page.client.session.schedule.lower_graph("main")
    page.client.session.refresh()
    for binding in page.client.session.state.module.graph().bindings[::9]:
        page.send("select", kind="binding", function="main", uid=binding.value.uid)
    page.select_everything("fused_matmul_add_gelu")
    page.send("hello", version=VERSION)
    return page


ALL = (matmul, network, tensorize, race, minilm)
