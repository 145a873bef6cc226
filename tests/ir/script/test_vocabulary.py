"""The keywords of the text format as Python names."""

from __future__ import annotations

import builtins
import keyword

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.interpreter import call_prim
from tilewright.ir.loop.combiners import COMBINERS, REDUCERS
from tilewright.ir.script import vocabulary
from tilewright.ir.script.parser.elements import CALLED
from tilewright.ir.script.vocabulary import *  # noqa: F403
from tilewright.ir.words import OutsideFunctionError


@pytest.mark.parametrize("name", [*COMBINERS, *REDUCERS, *CALLED])
def test_combiners_and_functions_are_names_for_editors(name):
    python = hasattr(builtins, name) or keyword.iskeyword(name)
    assert python or name in vocabulary.__all__


def test_a_combiner_is_not_called_outside_of_a_program():
    with pytest.raises(OutsideFunctionError, match="'argmax' was called outside"):
        vocabulary.argmax(1.0, 2)


def test_names_of_combiners_in_a_function_are_those_of_the_language():
    n = tw.script.vocabulary.symbols("n")

    @tw.script.prim_func
    def f(x: Buffer[(n,), c64], s: Out[(n,), c64], m: Out[(), f32], p: Out[(), i64]):  # noqa: F405
        for i in range(n):
            with block("s"):  # noqa: F405
                v = ordered(i)  # noqa: F405
                s[v] = scan(add, x[v] * complex(0.0, 2.0))  # noqa: F405
        for k in range(n):
            with block("m"):  # noqa: F405
                vk = reduce(k)  # noqa: F405
                with init():  # noqa: F405
                    m[()], p[()] = -inf, 9223372036854775807  # noqa: F405
                m[()], p[()] = argmax(real(x[vk]), vk)  # noqa: F405

    x = np.array([1 + 1j, 3 - 1j, 2], np.complex64)
    sums, largest, at = call_prim(f, [x])
    np.testing.assert_array_equal(sums, np.cumsum(x * 2j))
    assert (largest, at) == (3, 1)
