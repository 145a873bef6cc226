"""States of executables: results and states as in the interpreter, isolation, threads, errors."""

from __future__ import annotations

import copy
import pickle  # noqa: TID251  # the test of its support
import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.codegen import compile
from tilewright.codegen.errors import (
    ArgumentCountError,
    ArgumentNameError,
    FactError,
    OutOfMemoryError,
    SizeError,
    StateError,
)
from tilewright.codegen.runtime.executable import Executable
from tilewright.codegen.runtime.state import ExecutableState
from tilewright.errors import MalformedProgramError, TilewrightError, UnpicklableError
from tilewright.ir.dtype import DTYPES
from tilewright.ir.graph.nodes import GraphFunc, GraphParam, TensorInfo
from tilewright.ir.interpreter.graph import run_graph
from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.schedules import Schedule

from tests.ir.graph.state_programs import KERNELS, ORDERED, PROGRAMS

Array = NDArray[Any]

CALLS = 3


def values(param: GraphParam, seed: int) -> Array:
    """Return an argument of a parameter: small integers, or a condition."""
    info = param.value.info
    assert isinstance(info, TensorInfo)
    random = np.random.default_rng(seed)
    if info.dtype.name == "bool":
        return np.array(seed % 2 == 0)
    return random.integers(-9, 9, tuple(int(str(d)) for d in info.shape or ())).astype(np.float32)


class Twin:
    """A function in the interpreter and in native code, with equal states and arguments."""

    def __init__(self, module: Module, exe: Executable, name: str) -> None:
        self.module, self.exe, self.name = module, exe, name
        self.func: GraphFunc = module.graph(name)
        self.states = {
            p.value.name: values(p, 100 + k)
            for k, p in enumerate(self.func.params)
            if p.access == "state"
        }
        self.state = exe.new_state(**self.states) if self.states else None

    def check(self, seed: int) -> None:
        """Call both, and compare results, written arguments and states."""
        own = [
            self.states[p.value.name] if p.access == "state" else values(p, seed + k)
            for k, p in enumerate(self.func.params)
        ]
        passed = [
            a.copy() for p, a in zip(self.func.params, own, strict=True) if p.access != "state"
        ]
        inputs = [a for p, a in zip(self.func.params, own, strict=True) if p.access != "state"]
        expected = run_graph(self.module, own, function=self.name)
        named = {} if self.state is None else {"state": self.state}
        got = self.exe[self.name](*passed, **named)
        several = got if isinstance(got, tuple) else () if got is None else (got,)
        for a, b in zip(several, expected, strict=True):
            np.testing.assert_array_equal(a, b)
        for a, b in zip(passed, inputs, strict=True):
            np.testing.assert_array_equal(a, b)
        for name, array in self.states.items():
            assert self.state is not None
            np.testing.assert_array_equal(self.state[name], array)


@pytest.fixture(scope="module", params=["cpu", "simt"])
def programs(request: pytest.FixtureRequest) -> tuple[Module, Executable]:
    """All programs as functions of one module, and its native code."""
    bodies = [
        text.removeprefix(KERNELS).replace("def main(", f"def program{k}(")
        for k, text in enumerate(PROGRAMS.values())
    ]
    module = parse(KERNELS + "\n".join(bodies))
    return module, compile(module, request.param)


@pytest.mark.parametrize("name", PROGRAMS)
def test_native_code_equals_the_interpreter_in_every_call(
    name: str, programs: tuple[Module, Executable]
) -> None:
    twin = Twin(*programs, f"program{list(PROGRAMS).index(name)}")
    for seed in range(CALLS):
        twin.check(seed)


@pytest.mark.parametrize("target", ["cpu", "simt"])
def test_a_read_before_an_update_sees_the_old_value(target: str) -> None:
    exe = compile(parse(ORDERED), target)
    state = exe.new_state(cache=np.full(8, 10, np.float32))
    assert exe(np.full(8, 100, np.float32), state=state).tolist() == [22.0] * 8
    assert state["cache"].tolist() == [100.0] * 8


@pytest.mark.parametrize("count", range(8))
def test_a_read_before_an_update_sees_the_old_value_after_every_step(count: int) -> None:
    steps = ("fold_constants", "dead_code", "legalize", "lift_transforms", "fuse_ops", "fuse_tir",
             "collapse_dims", "plan_memory")  # fmt: skip
    sch = Schedule(parse(ORDERED))
    for step in steps[: count + 1]:
        if step == "collapse_dims":
            for kernel in [f.name for f in sch.module.prims]:
                sch.collapse_dims(kernel)
        else:
            getattr(sch, step)()
    old = np.full(8, 10, np.float32)
    (y,) = run_graph(sch.module, [old, np.full(8, 100, np.float32)])
    assert (y == 22).all()
    assert (old == 100).all()
    exe = compile(sch)
    state = exe.new_state(cache=np.full(8, 10, np.float32))
    assert exe(np.full(8, 100, np.float32), state=state).tolist() == [22.0] * 8
    assert state["cache"].tolist() == [100.0] * 8


SUM = """
b = symbols("b", lower=0)
constant("start", (2,), f32)

@prim_func
def add(total: InOut[(b, 2), f32], x: Buffer[(b, 2), f32], y: Out[(b, 2), f32]):
    for i in range(b):
        for j in range(2):
            with block("t"):
                vi, vj = spatial(i), spatial(j)
                total[vi, vj] = total[vi, vj] + x[vi, vj]
    for k in range(b):
        for m in range(2):
            with block("y"):
                vk, vm = spatial(k), spatial(m)
                y[vk, vm] = total[vk, vm]

b = symbols("b", lower=0)

@graph_func
def main(x: Tensor[(b, 2), f32], total: State[Tensor[(b, 2), f32]], count: State[Tensor[(2,), f32], const("start")]):
    t: Tuple[Tensor[(b, 2), f32], Tensor[(b, 2), f32]] = call_tir(add, total, x, updates=(0,))
    y = t[0]
    new = t[1]
    more: Tensor[(2,), f32] = add(count, 1.0)
    return y, updates(total=new, count=more)

b = symbols("b", lower=0)

@graph_func
def peek(total: State[Tensor[(b, 2), f32]], scale: Tensor[(), f32]):
    y: Tensor[(b, 2), f32] = multiply(total, scale)
    return y
"""  # noqa: E501
START = np.array([5, 6], np.float32)


@pytest.fixture(scope="module")
def summing() -> Executable:
    return compile(parse(SUM, constants={"start": START}))


def ones(rows: int) -> Array:
    return np.ones((rows, 2), np.float32)


def test_states_are_independent_and_keep_their_values(summing: Executable) -> None:
    first, second = summing.new_state(b=1), summing.new_state(b=3)
    for _ in range(3):
        summing(ones(1), state=first)
    summing(ones(3) * 4, state=second)
    assert first["total"].tolist() == [[3, 3]]
    assert second["total"].tolist() == [[4, 4]] * 3
    assert first["count"].tolist() == [8, 9]
    assert second["count"].tolist() == [6, 7]
    assert START.tolist() == [5, 6]


def test_functions_share_a_state_by_name(summing: Executable) -> None:
    state = summing.new_state(b=2)
    summing(ones(2), state=state)
    assert summing["peek"](np.float32(10), state=state).tolist() == [[10, 10]] * 2


def test_a_result_is_not_the_memory_of_the_state() -> None:
    module = parse(PROGRAMS["the old value is a result"])
    exe = compile(module)
    old, new = exe(np.ones(8, np.float32))
    exe(np.full(8, 2, np.float32))
    assert old.tolist() == [0.0] * 8
    assert new.tolist() == [1.0] * 8


def test_values_are_read_written_copied_and_reset(summing: Executable) -> None:
    state = summing.new_state(total=ones(2) * 3)
    assert list(state) == ["total", "count"]
    assert len(state) == 2
    view = state["total"]
    summing(ones(2), state=state)
    assert view.tolist() == [[4, 4]] * 2
    other = state.copy()
    state["total"] = 7
    state["total"][0, 1] = 8
    assert view.tolist() == [[7, 8], [7, 7]]
    assert other["total"].tolist() == [[4, 4]] * 2
    state.reset()
    assert state["total"].tolist() == [[0, 0]] * 2
    assert state["count"].tolist() == [5, 6]
    assert repr(other) == "<ExecutableState total: f32(2, 2), count: f32(2,)>"
    assert "16 bytes" in str(other)
    assert "<table" in other._repr_html_()


def test_the_default_state_belongs_to_the_executable() -> None:
    exe = compile(parse(ORDERED))
    assert exe(np.ones(8, np.float32)).tolist() == [2.0] * 8
    assert exe.state is exe.state
    assert exe.state["cache"].tolist() == [1.0] * 8
    assert exe["main"](np.ones(8, np.float32)).tolist() == [4.0] * 8
    assert exe(new=np.ones(8, np.float32), state=None).tolist() == [4.0] * 8


def test_an_empty_state(summing: Executable) -> None:
    state = summing.new_state(b=0)
    assert summing(ones(0), state=state).shape == (0, 2)
    assert state["count"].tolist() == [6, 7]


def test_the_signature_shows_the_state(summing: Executable) -> None:
    assert str(summing.signature()) == (
        "(x: 'Tensor((b, 2), f32)', *, state: 'ExecutableState' = None) -> "
        "'y : Tensor((b, 2), f32)'"
    )
    assert "total: Tensor((b, 2), f32)" in (summing["main"].__doc__ or "")
    assert "state total: Tensor((b, 2), f32)" in repr(summing)


def test_calls_on_one_state_wait_for_each_other(summing: Executable) -> None:
    state, rows, each = summing.new_state(b=64), ones(64), 50
    seen: list[float] = []
    errors: list[BaseException] = []
    ready = threading.Barrier(8)

    def work() -> None:
        try:
            ready.wait()
            for _ in range(each):
                result = summing(rows, state=state)
                assert (result == result[0, 0]).all()
                seen.append(float(result[0, 0]))
        except BaseException as error:  # noqa: BLE001  # reported by the main thread
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sorted(seen) == list(range(1, 8 * each + 1))
    assert (state["total"] == 8 * each).all()


def test_profiles_advance_the_state(summing: Executable) -> None:
    state = summing.new_state(b=1)
    summing.profile(ones(1), state=state, repeats=2)
    assert state["total"].tolist() == [[3, 3]]


def test_the_memory_plan_lists_the_updates(summing: Executable) -> None:
    plan = summing.memory({"b": 3})
    assert [(u.memory, u.in_place) for u in plan.updates] == [("total", True), ("count", False)]
    assert plan.to_json()["updates"][1]["reason"] == "the last value of 'count'"
    text = str(plan)
    assert "updates of 'main': 1 of 2 in place" in text
    assert "the last value of 'count'" in plan._repr_html_().replace("&#x27;", "'")
    assert "updates of" not in str(summing.memory({"b": 3}, function="peek"))


def fails(error: type[TilewrightError], message: str, call: Any) -> None:
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value), str(caught.value)
    assert caught.value.hint


def test_wrong_states_are_named(summing: Executable) -> None:
    other = compile(parse(ORDERED))
    foreign = other.new_state()
    x = ones(1)
    fails(StateError, "the state belongs to another executable", lambda: summing(x, state=foreign))
    fails(StateError, "expected an ExecutableState, got dict", lambda: summing(x, state={}))
    fails(StateError, "depends on b", lambda: summing(x))
    fails(StateError, "depends on b", lambda: summing.state)
    fails(ArgumentCountError, "expected 1, got 2", lambda: summing(x, x))
    fails(ArgumentNameError, "no parameter 'total'", lambda: summing(x=x, total=x))
    good = summing.new_state(b=2)
    fails(
        TilewrightError,
        "expected b = 3 from the other arguments, got 2",
        lambda: summing(ones(3), state=good),
    )
    plain = compile(
        parse(KERNELS + "\n@graph_func\ndef main(x: Tensor[(8,), f32]):\n    return x\n")
    )
    fails(StateError, "no function has state parameters", plain.new_state)
    fails(
        StateError,
        "the function has no state parameters",
        lambda: plain(np.ones(8, np.float32), state=foreign),
    )


def test_wrong_values_are_named(summing: Executable) -> None:
    fails(StateError, "no state parameter or symbol 'totl'", lambda: summing.new_state(totl=1))
    fails(StateError, "depends on b", summing.new_state)
    fails(TilewrightError, "must be an integer", lambda: summing.new_state(b=-1))
    fails(StateError, "f32(3, 2), got", lambda: summing.new_state(b=3, total=ones(2)))
    fails(StateError, "(2,), got", lambda: summing.new_state(b=1, count=ones(2)))
    fails(StateError, "got float64(1, 2)", lambda: summing.new_state(total=np.ones((1, 2))))
    fails(StateError, "got complex64", lambda: summing.new_state(total=ones(1) * 1j))
    state = summing.new_state(b=1)
    fails(StateError, "no state parameter 'x'", lambda: state["x"])
    with pytest.raises(StateError, match="no state parameter 'x'"):
        state["x"] = 1
    with pytest.raises(StateError, match="got str"):
        state["total"] = "one"


def test_states_that_do_not_fit_in_memory_are_named(summing: Executable) -> None:
    with pytest.raises(SizeError, match="overflows: sizes must be less than"):
        summing.new_state(b=2**61)
    with pytest.raises(OutOfMemoryError, match=r"cannot allocate .* bytes for state 'total'"):
        summing.new_state(b=2**50)


DATA = """
n = symbols("n", lower=0)
k = symbols("k", lower=0, upper=2)

@prim_func
def add(total: InOut[(4,), f32], x: Buffer[(4,), f32]):
    for i in range(4):
        with block("t"):
            vi = spatial(i)
            total[vi] = total[vi] + x[vi]

@graph_func
def main(x: Tensor[(4,), f32], size: Tensor[(1,), i64], total: State[Tensor[(4,), f32]]):
    new = call_tir(add, total, x, updates=(0,))
    s = match_cast(size, Tensor((1,), i64, elements=(k,)))
    return new, updates(total=new)
"""


def test_a_state_of_a_failed_call_is_refused() -> None:
    exe = compile(parse(DATA))
    state, x = exe.new_state(), np.ones(4, np.float32)
    exe(x, np.array([1]), state=state)
    kept = state.copy()
    with pytest.raises(TilewrightError, match="k <= 2"):
        exe(x, np.array([7]), state=state)
    fails(
        StateError,
        "an earlier call failed after it had begun to write the state",
        lambda: exe(x, np.array([1]), state=state),
    )
    assert exe(x, np.array([1]), state=kept).tolist() == [2.0] * 4
    state.reset()
    assert exe(x, np.array([1]), state=state).tolist() == [1.0] * 4
    with pytest.raises(TilewrightError):
        exe(np.ones(5, np.float32), np.array([1]), state=state)
    assert exe(x, np.array([1]), state=state).tolist() == [2.0] * 4


def test_a_last_value_of_another_size_is_an_error_of_the_call() -> None:
    exe = compile(
        parse("""
b, c = symbols("b c", lower=1)

@graph_func
def main(x: Tensor[(c,), f32], total: State[Tensor[(b,), f32]]):
    new = add(x, 1.0)
    return new, updates(total=new)
""")
    )
    state = exe.new_state(b=3)
    exe(np.ones(3, np.float32), state=state)
    assert state["total"].tolist() == [2.0] * 3
    with pytest.raises(TilewrightError, match="value 'total', dimension 0: c == b"):
        exe(np.ones(2, np.float32), state=state)


UNKNOWN = """
n = symbols("n", lower=1)

@prim_func
def add_to(total: InOut[(n,), f32], x: Buffer[(n,), f32]):
    for i in range(n):
        with block("t"):
            vi = spatial(i)
            total[vi] = total[vi] + x[vi]

n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n,), f32], total: State[Tensor(None, f32, rank=1)]):
    known = match_cast(total, Tensor[(n,), f32])
    new = call_tir(add_to, known, x, updates=(0,))
    return new, updates(total=new)
"""


def test_a_state_of_unknown_shape_has_that_of_its_initial_array() -> None:
    exe = compile(parse(UNKNOWN))
    fails(StateError, "the shape of state 'total', Tensor(rank 1, f32), is", exe.new_state)
    state = exe.new_state(total=np.full(3, 2, np.float32))
    assert exe(np.ones(3, np.float32), state=state).tolist() == [3.0] * 3
    assert state["total"].tolist() == [3.0] * 3
    with pytest.raises(TilewrightError, match="match_cast 'known'"):
        exe(np.ones(2, np.float32), state=state)


def test_a_copy_to_a_state_of_unknown_shape_is_refused() -> None:
    text = UNKNOWN.replace("new = call_tir(add_to, known, x, updates=(0,))", "new = add(known, x)")
    fails(
        MalformedProgramError,
        "'total' is copied, but its shape is not known",
        lambda: compile(parse(text)),
    )


def test_a_parameter_named_state() -> None:
    text = KERNELS + (
        "\n@graph_func\ndef main(state: Tensor[(8,), f32], a: State[Tensor[(8,), f32]]):\n"
        "    a2 = call_tir(update, a, state, updates=(0,))\n    return a2, updates(a=a2)\n"
    )
    exe = compile(parse(text))
    own = exe.new_state()
    assert exe(state=np.ones(8, np.float32)).tolist() == [1.0] * 8
    assert exe(np.full(8, 3, np.float32), state=own).tolist() == [3.0] * 8
    assert own["a"].tolist() == [3.0] * 8
    assert exe.state["a"].tolist() == [1.0] * 8


def test_states_of_kernels_are_passed_as_a_state() -> None:
    text = """
n = symbols("n", lower=1)

@prim_func
def count(hits: State[(n,), f32], x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("h"):
            vi = spatial(i)
            hits[vi] = hits[vi] + x[vi]
    for j in range(n):
        with block("y"):
            vj = spatial(j)
            y[vj] = hits[vj] * 2.0
"""
    exe = compile(parse(text))
    state, x = exe.new_state(n=3), np.ones(3, np.float32)
    assert exe(x, state=state).tolist() == [2.0] * 3
    y = np.empty(3, np.float32)
    exe["count"].into(x, y, state=state)
    assert y.tolist() == [4.0] * 3
    assert state["hits"].tolist() == [2.0] * 3
    assert isinstance(state, ExecutableState)


def test_copies_are_independent_and_pickling_is_refused(summing: Executable) -> None:
    state = summing.new_state(b=1)
    for made in (copy.copy(state), copy.deepcopy(state)):
        summing(ones(1), state=made)
        assert made["total"].tolist() == [[1, 1]]
    assert state["total"].tolist() == [[0, 0]]
    with pytest.raises(UnpicklableError, match="cannot be pickled"):
        pickle.dumps(state)
    with pytest.raises(AttributeError) as caught:
        _ = state.total
    assert "state['total']" in str(caught.value)


RANGED = """
n = symbols("n", lower=2, upper=8, multiple_of=2)

@prim_func
def add(total: State[(n,), f32], x: Buffer[(n,), f32]):
    for i in range(n):
        total[i] = total[i] + x[i]
"""


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (0, "n >= 2 is false for n = 0"),
        (10, "n <= 8 is false for n = 10"),
        (5, "n is a multiple of 2 is false for n = 5"),
    ],
)
def test_a_new_state_has_sizes_in_the_declared_range(size: int, message: str) -> None:
    exe = compile(parse(RANGED))
    for named in ({"n": size}, {"total": np.zeros(size, np.float32)}):
        with pytest.raises(FactError, match=message) as caught:
            exe.new_state(**named)
        assert "new_state" in caught.value.where
    state = exe.new_state(n=4)
    exe(np.ones(4, np.float32), state=state)
    assert state["total"].tolist() == [1, 1, 1, 1]


def test_a_state_that_one_of_two_functions_accepts_is_legal() -> None:
    text = (
        RANGED
        + """
m = symbols("m", lower=2, upper=16, multiple_of=2)

@prim_func
def more(total: State[(m,), f32], x: Buffer[(m,), f32]):
    for i in range(m):
        total[i] = total[i] + x[i]
"""
    )
    exe = compile(parse(text))
    state = exe.new_state(total=np.zeros(12, np.float32))
    exe["more"](np.ones(12, np.float32), state=state)
    assert state["total"].tolist() == [1] * 12
    with pytest.raises(FactError, match="n <= 8 is false for n = 12"):
        exe["add"](np.ones(12, np.float32), state=state)
    with pytest.raises(FactError, match="is false"):
        exe.new_state(total=np.zeros(18, np.float32))


def test_a_state_is_a_mapping_of_names() -> None:
    state = compile(parse(RANGED)).new_state(n=4)
    assert "total" in state
    assert "other" not in state
    assert 3 not in state
    assert state.get("total") is state["total"]
    assert state.get("other") is None
    assert state.get("other", 5) == 5


@pytest.mark.parametrize("value", [np.zeros((2, 2), np.float32), [[1.0, 2.0]]])
def test_an_initial_array_of_another_rank_is_named(value: Any) -> None:
    exe = compile(parse(RANGED))
    with pytest.raises(StateError, match=r"expected rank 1, got rank 2 \(shape \(., 2\)\)"):
        exe.new_state(total=value)
    assert exe.new_state(n=2, total=7)["total"].tolist() == [7, 7]


STORED = """
@graph_func
def main(x: Tensor[(2,), DTYPE], s: State[Tensor[(2,), DTYPE]]):
    return s, updates(s=x)
"""


@pytest.mark.parametrize("name", DTYPES)
def test_states_of_every_dtype_are_reset_and_have_numbers_without_a_dtype(name: str) -> None:
    element = DTYPES[name]
    given = np.array([0, 1]).astype(element.numpy)
    state = compile(parse(STORED.replace("DTYPE", name))).new_state(s=given)
    assert np.array(state["s"]).tolist() == given.tolist()
    state.reset()
    assert np.array(state["s"]).tolist() == np.zeros(2, element.numpy).tolist()
    for value in (1, [0, 1], [True, False], given):
        state["s"] = value
        want = np.zeros(2, element.numpy)
        want[...] = np.asarray(value).astype(element.numpy)
        assert np.array(state["s"]).tolist() == want.tolist()


@pytest.mark.parametrize(
    ("name", "value", "range_"),
    [("u8", 256, "0 to 255"), ("u8", -1, "0 to 255"), ("i8", [0, 128], "-128 to 127"),
     ("bool", 2, "0 to 1"), ("u4", 16, "0 to 15"), ("u64", 2**64, "0 to 18446744073709551615"),
     ("i32", 0.5, "-2147483648 to 2147483647")],
)  # fmt: skip
def test_numbers_that_are_not_elements_of_an_integer_dtype_are_rejected(
    name: str, value: Any, range_: str
) -> None:
    state = compile(parse(STORED.replace("DTYPE", name))).new_state()
    with pytest.raises(StateError, match=f"or integers in {range_}"):
        state["s"] = value
