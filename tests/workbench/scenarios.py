"""Sessions worth recording: together they make every section of an update, and every request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tilewright as tw
from tilewright.schedules.rules.default import lower_graph
from tilewright.workbench.demo import export_minilm, load_minilm

from tests.workbench.conftest import MATMUL, NETWORK
from tests.workbench.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.workbench.conftest import Client

    Connect = Callable[..., Client]

NONSENSE = (
    *("", "abc", "-1", "1e9", "(8,", "None", "(0, 0)", "9" * 40, "(" * 3000, "9**9**9"),
    "__import__('os').system('true')",
)
"""What a person, or a cat, may type where a value is asked for."""

RACE = """
@prim_func
def lost(x: Buffer[(64,), f32], y: Out[(1,), f32]):
    for t in thread(64, "threadIdx.x"):
        with block("store"):
            vt = spatial(t)
            y[vt // 64] = x[vt]
"""

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
    """Every selection and form of one kernel; running, lowering, saving; what goes wrong."""
    page = Recording("matmul", connect(MATMUL))
    page.select_everything("matmul")
    page.send("select", kind="", function="", uid=0)
    page.select("loop", "j", "matmul")
    page.check_every_form()
    page.fill_wrongly("split", NONSENSE)
    page.apply("split", factors="(None, 8)")
    page.apply("vectorize")
    page.select("loop", "i", "matmul")
    page.mend("vectorize")
    page.select_everything("matmul")
    page.travel("undo")
    page.travel("redo")
    page.travel("undo")
    page.apply("specialise")
    page.send("sample", symbol="n", value=7)
    page.send("sample", symbol="n", value=-7)
    page.send("open", function="nothing")
    page.send("save", format="python")
    page.send("save", format="json")
    unknown = '{"op": "no_such_step", "args": {}}'
    document = page.client.session.shown.document
    assert document is not None
    page.send("load", text=document.text + unknown)
    page.send("load", text="{")
    page.send("load", text=document.text)
    page.run("run", what="compile", function="")
    page.send("condition", caches="cold", threads=1, pin=True, budget=0.2)
    page.run("run", what="time", function="")
    page.send("condition", caches="hot", threads=0, pin=False, budget=0)
    page.run("run", what="time", function="matmul")
    page.run("lower", kind="llvm")
    page.run("lower", kind="assembly")
    page.send("run", what="time", function="")
    page.send("run", what="time", function="")
    page.send("cancel", job=page.client.session.jobs.view()[-1].key)
    page.client.session.jobs.wait()
    page.send("dismiss", key=page.client.session.shown.reports[0].key)
    page.travel("jump", page.client.session.schedule.history[0].id)
    page.send("hello", version=1)
    return page


def network(connect: Connect) -> Recording:
    """A graph: its bindings and parameters, the steps of the graph level, its timing."""
    page = Recording("network", connect(NETWORK))
    graph = page.client.session.state.module.graph()
    for value in (*(p.value for p in graph.params), *(b.value for b in graph.bindings)):
        page.send("select", kind="binding", function="main", uid=value.uid)
        page.check_every_form()
    page.send("select", kind="function", function="main", uid=0)
    page.check_every_form()
    page.run("run", what="time", function="")
    page.run("run", what="compile", function="")
    page.select_everything("twice")
    return page


def tensorize(connect: Connect) -> Recording:
    """An instruction that does not fit, its fix, and the one that does."""
    target = tw.Target("cpu", features=("avx2",))
    page = Recording("tensorize", connect(tw.Schedule(tw.parse(PRODUCT), target)))
    page.select("loop", "i", "product")
    page.check_every_form()
    page.mend("tensorize")
    page.select("loop", "i_1", "product")
    page.check_every_form()
    page.apply("tensorize")
    page.select_everything("product")
    return page


def race(connect: Connect) -> Recording:
    """A kernel for a GPU whose threads write one element, as the emulator tells it."""
    target = tw.Target("simt")
    page = Recording("race", connect(tw.Schedule(tw.parse(RACE), target), target))
    page.select_everything("lost")
    page.run("run", what="compile", function="")
    assert [report.title for report in page.client.session.shown.reports] == ["Data race"]
    return page


def minilm(connect: Connect) -> Recording:
    """The model of the quickstart, before its kernels are made and after."""
    mod = tw.from_exported_program(export_minilm(load_minilm()))
    page = Recording("minilm", connect(tw.Schedule(mod, tw.Target("cpu"))))
    for binding in page.client.session.state.module.graph().bindings[:40:8]:
        page.send("select", kind="binding", function="main", uid=binding.value.uid)
    lower_graph(page.client.session.schedule, "main")
    page.client.session.refresh()
    for binding in page.client.session.state.module.graph().bindings[::9]:
        page.send("select", kind="binding", function="main", uid=binding.value.uid)
    page.select_everything("fused_matmul_add_gelu")
    page.send("hello", version=1)
    return page


ALL = (matmul, network, tensorize, race, minilm)
