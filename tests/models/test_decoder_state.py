"""A decoder with a static cache as one executable with state: tokens, updates, independence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright as tw
from tilewright.codegen.runtime.executable import Executable
from tilewright.codegen.runtime.state import ExecutableState
from tilewright.ir.importers import from_exported_program
from tilewright.ir.module import Module

from tests.codegen.runtime.helpers import CountingMemory
from tests.ir.importers.models import (
    cache_name,
    decoder,
    exported_decoder,
    exported_dynamic_decoder,
    exported_llama,
    greedy,
)

pytestmark = pytest.mark.slow

TOKENS = 200
LONGEST = 256
LAYERS = 4
LENGTHS = math.ceil(math.log(TOKENS, 1.25)) + 128 // 32
"""The number of plans for one sequence: the arena has room to grow by a quarter.

The packed keys of an attention grow in steps of 32 tokens, by more than a quarter up to 128.
"""


@pytest.fixture(scope="module")
def module() -> Module:
    return from_exported_program(exported_decoder(LONGEST, LAYERS))


@pytest.fixture(scope="module")
def exe(module: Module) -> Executable:
    return tw.compile(module)


class Decoder:
    """A sequence of tokens that is generated with one state."""

    def __init__(self, exe: Executable, state: ExecutableState, start: int) -> None:
        self.exe, self.state, self.tokens = exe, state, [start]

    def step(self) -> None:
        """Generate one token."""
        position = len(self.tokens) - 1
        token = np.array([[self.tokens[-1]]])
        logits: NDArray[Any] = self.exe(token, np.array([position]), state=self.state)
        self.tokens.append(int(logits[0, -1].argmax()))


@pytest.mark.parametrize("cache", ["static", "dynamic"])
def test_greedy_tokens_equal_those_of_pytorch(exe: Executable, cache: str) -> None:
    found = Decoder(exe, exe.new_state(), 3)
    for _ in range(TOKENS):
        found.step()
    expected = greedy(decoder(LAYERS), 3, TOKENS, cache)
    assert found.tokens[1:] == expected
    assert len(set(expected)) > TOKENS // 8


def test_the_caches_of_all_layers_are_updated_in_place(exe: Executable) -> None:
    updates = exe.memory().updates
    caches = [f"{part}_cache_{k}" for k in range(LAYERS) for part in ("key", "value")]
    in_place = {u.memory for u in updates if u.in_place}
    copied = {u.memory for u in updates if not u.in_place}
    assert in_place == set(caches)
    assert copied == {f"cumulative_length_{k}" for k in range(LAYERS)}  # one number each


def test_the_memory_of_the_state_and_the_plan_stay(exe: Executable) -> None:
    found = Decoder(exe, exe.new_state(), 5)
    found.step()
    addresses = {n: a.ctypes.data for n, a in found.state.items()}
    plan = exe.memory().call
    for _ in range(5):
        found.step()
    assert {n: a.ctypes.data for n, a in found.state.items()} == addresses
    assert exe.memory().call == plan
    assert found.state["cumulative_length_0"] == 6
    assert not found.state["key_cache_0"][0, :, 6:].any()
    assert found.state["key_cache_0"][0, :, :6].all()


def test_a_token_needs_no_memory_besides_its_result(module: Module, exe: Executable) -> None:
    memory = CountingMemory()
    counted = Executable(exe.artifact, module.constants, table=memory.table())
    found = Decoder(counted, counted.new_state(), 3)
    found.step()
    for _ in range(TOKENS - 1):
        before, live = memory.allocations, len(memory.live)
        found.step()
        assert memory.allocations - before == 1  # the logits
        assert len(memory.live) == live


def test_independent_states_decode_in_turn(exe: Executable) -> None:
    starts = (3, 90)
    alone = [Decoder(exe, exe.new_state(), s) for s in starts]
    together = [Decoder(exe, exe.new_state(), s) for s in starts]
    for sequence in alone:
        for _ in range(12):
            sequence.step()
    for _ in range(12):
        for sequence in together:
            sequence.step()
    assert [s.tokens for s in together] == [s.tokens for s in alone]
    assert together[0].tokens[1:] != together[1].tokens[1:]


def test_a_state_that_is_reset_or_copied_continues_from_there(exe: Executable) -> None:
    first = Decoder(exe, exe.new_state(), 3)
    for _ in range(8):
        first.step()
    second = Decoder(exe, first.state.copy(), 3)
    second.tokens = list(first.tokens)
    first.state.reset()
    assert not any(a.any() for a in first.state.values())
    again = Decoder(exe, first.state, 3)
    for _ in range(12):
        again.step()
    for _ in range(4):
        second.step()
    assert second.tokens == again.tokens


def test_a_position_beyond_the_cache_is_an_error(exe: Executable) -> None:
    state = exe.new_state()
    with pytest.raises(tw.TilewrightError, match=f"{LONGEST}"):
        exe(np.array([[3]]), np.array([LONGEST]), state=state)


def test_one_program_reads_a_prompt_of_any_length_and_decodes() -> None:
    exe = tw.compile(from_exported_program(exported_decoder(LONGEST, 2, LONGEST)))
    assert all(u.in_place for u in exe.memory({"seq": 4}).updates if "cache" in u.memory)
    for prompt in ([5], [5, 17, 42, 9], [3] * 11):
        state, tokens = exe.new_state(), list(prompt)
        logits = exe(np.array([prompt]), np.arange(len(prompt)), state=state)
        while len(tokens) < len(prompt) + 20:
            tokens.append(int(logits[0, -1].argmax()))
            logits = exe(np.array([tokens[-1:]]), np.array([len(tokens) - 1]), state=state)
        assert tokens[len(prompt) :] == greedy(decoder(2), prompt, 20, "dynamic")


def test_a_growing_cache_as_inputs_and_results_generates_the_tokens_of_pytorch() -> None:
    """The cache of any length is an input, and the longer cache is a result."""
    import torch

    from tests.ir.importers.models import cached_llama

    exe = tw.compile(from_exported_program(exported_llama("sdpa")))
    model = cached_llama("sdpa").model
    prompt = np.array([[5, 17, 42]])
    cache = [np.zeros((1, 2, 0, 8), np.float32) for _ in range(4)]
    tokens, step = [int(t) for t in prompt[0]], prompt
    for _ in range(20):
        logits, *cache = exe(step, np.ones((1, len(tokens)), np.int64), *cache)
        tokens.append(int(logits[0, -1].argmax()))
        step = np.array([tokens[-1:]])
    with torch.no_grad():
        expected = model.generate(
            torch.from_numpy(prompt), max_new_tokens=20, do_sample=False, eos_token_id=None,
            pad_token_id=0,
        )  # fmt: skip
    assert tokens == expected[0].tolist()


def test_the_dynamic_cache_of_transformers_is_a_state_that_stays_in_place() -> None:
    """The arena is planned and allocated for a few lengths, not for each token."""
    program = exported_dynamic_decoder(LAYERS)
    memory = CountingMemory()
    exe = tw.compile(
        from_exported_program(program, state={cache_name(): cache_name()}),
        table=memory.table(),
    )
    exe(np.array([[3]]), np.ones((1, 1), np.int64), state=exe.new_state(capacity=LONGEST))
    first = memory.allocations  # with the packed weights
    sizes = {"seq": 1, "past": TOKENS - 1, "capacity": LONGEST}
    for prompt in ([3], [5, 17, 42]):
        state, tokens = exe.new_state(capacity=LONGEST), list(prompt)
        addresses = {n: a.ctypes.data for n, a in state.items()}
        step = prompt
        while len(tokens) < len(prompt) + TOKENS:
            mask = np.ones((1, len(tokens)), np.int64)
            logits: NDArray[Any] = exe(np.array([step]), mask, state=state)
            tokens.append(int(logits[0, -1].argmax()))
            step = tokens[-1:]
        assert tokens[len(prompt) :] == greedy(decoder(LAYERS), prompt, TOKENS, "dynamic")
        assert state["length"] == len(tokens) - 1
        assert {n: a.ctypes.data for n, a in state.items()} == addresses
    plan = exe.memory(sizes)
    assert [u.memory for u in plan.updates if not u.in_place] == ["length"]  # one number
    assert plan.call is not None
    assert plan.call.planned <= 2 * LENGTHS
    assert plan.call.planned + plan.call.reused == 2 * TOKENS  # the first sizes are called twice
    assert memory.allocations - first <= 2 * TOKENS + plan.call.planned  # a result for each token
