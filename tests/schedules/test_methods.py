"""Calls of steps as methods: signatures, separate handles, invalid arguments."""

from __future__ import annotations

import inspect

import pytest

from tilewright.nearest import UnknownAttributeError
from tilewright.schedules import Schedule, from_python, to_python
from tilewright.schedules.methods import variadic
from tilewright.schedules.problem import ParameterError, StepError
from tilewright.schedules.registry import STEPS
from tilewright.schedules.suggest_names import NotFoundError

from tests.schedules.helpers import MATMUL, schedule


def loops():
    sch = schedule(MATMUL)
    return sch, sch.get_loops(sch.get_block("mm"))


def test_only_steps_of_one_tuple_of_handles_accept_separate_handles():
    accepting = {verb for verb, step in STEPS.items() if variadic(step)}
    assert {"fuse", "reorder"} <= accepting
    assert accepting.isdisjoint({"split", "clone_function", "fuse_ops", "get_loops"})


@pytest.mark.parametrize("form", ["separate", "tuple", "list", "keyword", "names", "mixed"])
def test_separate_handles_are_the_same_step_as_a_tuple(form):
    sch, (i, j, _) = loops()
    match form:
        case "separate":
            sch.reorder(j, i)
        case "tuple":
            sch.reorder((j, i))
        case "list":
            sch.reorder([j, i])
        case "keyword":
            sch.reorder(loops=(j, i))
        case "names":
            sch.reorder("j", "i")
        case _:
            sch.reorder("j", i)
    assert to_python(sch.trace).splitlines()[-1] == "sch.reorder(loops=(j, i))"
    fused = sch.fuse(j, i)
    assert fused.name == "j_i"
    assert to_python(sch.trace).splitlines()[-1] == "j_i = sch.fuse(loops=(j, i))"


def test_one_separate_handle_violates_the_requirement_of_the_step():
    sch, (i, _, _) = loops()
    with pytest.raises(StepError, match="at least two different loops"):
        sch.fuse(i)


def test_a_tuple_followed_by_a_handle_is_rejected():
    sch, (i, j, k) = loops()
    with pytest.raises(ParameterError, match="reorder: too many positional arguments") as caught:
        sch.reorder((j, i), k)
    assert caught.value.hint == "usage: reorder(loops: tuple[LoopRef, ...]) or reorder(*loops)"


def test_documentation_shows_both_signatures():
    text = inspect.getdoc(Schedule.reorder) or ""
    assert text.startswith("reorder(loops)\nreorder(*loops)\n\nReorder loops of a perfect nest.")
    assert (inspect.getdoc(Schedule.split) or "").startswith("Split a loop into nested loops")


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (lambda s, i: s.split(i, factor=4),
         "split has no parameter 'factor'; did you mean 'factors'?",
         "usage: split(loop: LoopRef, factors: "),
        (lambda s, i: s.split(i), "split: missing a required argument: 'factors'", "usage: split("),
        (lambda s, i: s.vectorize(i, 8, 9), "vectorize: too many positional arguments", "usage: "),
        (lambda s, i: s.bind(i, thread_axis="threadIdx.x"), "bind has no parameter 'thread_axis'",
         "TVM's or Halide's 'thread_axis' is 'thread' here\n  usage: bind("),
        (lambda s, i: s.compute_at("mm", i, preserve_unit_loops=True),
         "compute_at has no parameter 'preserve_unit_loops'",
         "moved blocks get no loops of one iteration"),
        (lambda s, i: s.split(i, (None, 8), qqqq=1), "split has no parameter 'qqqq'", "usage: "),
    ],
)  # fmt: skip
def test_invalid_arguments_are_named_errors(call, message, hint):
    sch, (i, _, _) = loops()
    with pytest.raises(ParameterError) as caught:
        call(sch, i)
    assert caught.value.message == message
    assert caught.value.hint.startswith(hint)
    assert len(sch.trace) == 2


def test_a_misspelled_method_is_reported_with_a_similar_one():
    sch, _ = loops()
    with pytest.raises(UnknownAttributeError) as caught:
        sch.storage_align_to("A", 0, 4, 0)
    message = "Schedule has no attribute 'storage_align_to'; did you mean 'storage_align'?"
    assert caught.value.message == message
    with pytest.raises(AttributeError, match=r"'verfy'; did you mean 'verify'\?"):
        sch.verfy()
    with pytest.raises(UnknownAttributeError) as caught:
        sch.zzz()
    assert caught.value.message == "Schedule has no attribute 'zzz'"


def test_a_method_of_another_compiler_is_reported_with_its_equivalent():
    sch, _ = loops()
    with pytest.raises(UnknownAttributeError, match="has no attribute 'mod'\n") as caught:
        _ = sch.mod
    assert caught.value.hint == "TVM's `mod` is `module` here"


def test_protocols_of_python_get_a_plain_error():
    sch, _ = loops()
    for name in ("__array__", "_ipython_canary_method_should_not_exist_"):
        assert not hasattr(sch, name)
        with pytest.raises(AttributeError) as caught:
            getattr(sch, name)
        assert type(caught.value) is AttributeError


def test_python_text_of_a_trace_accepts_separate_handles():
    text = "mm = sch.get_block('mm')\ni, j, k = sch.get_loops(mm)\nsch.reorder(j, i)"
    trace = from_python(text)
    assert to_python(trace).splitlines()[-1] == "sch.reorder(loops=(j, i))"
    assert from_python(text.replace("(j, i)", "((j, i))")) == trace


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda s: s.cache_read("mm", 0, "global"), "A"),
        (lambda s: s.cache_read(s.get_block("mm"), 1, "global"), "B"),
        (lambda s: s.cache_write("mm", 0, "global"), "C"),
    ],
)
def test_a_buffer_may_be_the_index_of_an_access(make, named):
    sch = schedule(MATMUL)
    make(sch)
    lines = to_python(sch.trace).splitlines()
    assert "A, B, C = sch.get_buffers(block=mm)" in lines
    assert f"buffer={named}, " in lines[-1]
    assert sch.verify(runs=1).required().ok


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s: s.cache_read("mm", 2, "global"),
         "no buffer 2; the buffers that block 'mm' only reads are 0: A, 1: B"),
        (lambda s: s.cache_read("mm", -1, "global"), "no buffer -1; "),
        (lambda s: s.cache_write("mm", 1, "global"),
         "no buffer 1; the buffers that block 'mm' writes are 0: C"),
        (lambda s: s.set_scope(0, "local"), "set_scope has no parameter 'block', so 0 is not a"),
    ],
)  # fmt: skip
def test_an_index_of_an_access_that_does_not_exist_is_a_named_error(make, message):
    with pytest.raises(NotFoundError) as caught:
        make(schedule(MATMUL))
    assert caught.value.message.startswith(message)


def test_a_truth_value_is_not_an_index():
    with pytest.raises(ParameterError, match="invalid value True for parameter 'buffer'"):
        schedule(MATMUL).cache_read("mm", True, "global")
