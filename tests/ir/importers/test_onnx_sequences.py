"""Sequences of tensors of ONNX models, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

from tilewright import compile, from_onnx
from tilewright.ir.importers.onnx_file import MalformedModelError
from tilewright.ir.importers.unsupported import UnsupportedOperatorsError
from tilewright.ir.interpreter import run_graph
from tilewright.ir.verify import violations

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'


def model(text: str) -> onnx.ModelProto:
    made = parser.parse_model(HEAD + text)
    onnx.checker.check_model(made, full_check=True)
    return made


def agree(text: str, **inputs: np.ndarray) -> None:
    """Compare the interpreter and native code with ONNX Runtime."""
    made = model(text)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    expected = session.run(None, inputs)
    module = from_onnx(made)
    assert violations(module) == ()
    native = compile(module)(*inputs.values())
    native = native if isinstance(native, tuple) else (native,)
    for found in (run_graph(module, tuple(inputs.values())), native):
        for a, b in zip(found, expected, strict=True):
            assert np.shape(a) == b.shape
            np.testing.assert_array_equal(a, b)


X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_tensors_are_inserted_erased_and_concatenated() -> None:
    text = """
    main (float[n, 4] x) => (float[m, 4] y, float[3, n, 4] z, int64 count, float[n, 4] last) {
      empty = SequenceEmpty ()
      double = Add (x, x)
      first = Constant <value = int64 {0}> ()
      end = Constant <value = int64 {-1}> ()
      a = SequenceInsert (empty, x)
      b = SequenceInsert (a, double, first)
      c = SequenceInsert (b, x, end)
      y = ConcatFromSequence <axis = 0> (c)
      z = ConcatFromSequence <axis = 0, new_axis = 1> (c)
      count = SequenceLength (c)
      d = SequenceErase (c, first)
      e = SequenceErase (d)
      last = SequenceAt (e, end)
    }"""
    for n in (0, 1, 3):
        agree(text, x=X[:n])


@pytest.mark.parametrize(
    ("sizes", "attributes"),
    [
        ("", "axis = 1, keepdims = 0"),
        ("", "axis = 0, keepdims = 1"),
        ("value = int64 {3}", "axis = 1"),
        ("value = int64 {2}", "axis = -1"),
        ("value = int64[2] {1, 3}", "axis = 1"),
    ],
)
def test_a_tensor_is_split_into_a_sequence(sizes: str, attributes: str) -> None:
    given = f"sizes = Constant <{sizes}> ()" if sizes else ""
    operand = ", sizes" if sizes else ""
    agree(
        f"""
    main (float[3, 4] x) => (float y, int64 count) {{
      {given}
      parts = SplitToSequence <{attributes}> (x{operand})
      count = SequenceLength (parts)
      at = Constant <value = int64 {{-1}}> ()
      found = SequenceAt (parts, at)
      y = ReduceSum <keepdims = 0> (found)
    }}""",
        x=X,
    )


def test_an_iteration_of_a_loop_selects_from_a_sequence() -> None:
    text = """
    main (float[n, 4] x, int64 count) => (float[n, 4] last, float[k, n, 4] all) {
      double = Add (x, x)
      square = Mul (x, x)
      items = SequenceConstruct (x, double, square)
      true = Constant <value = bool {1}> ()
      last, all = Loop (count, true, x) <body = step (int64 i, bool going, float[n, 4] h)
          => (bool again, float[n, 4] sum, float[n, 4] slice) {
        again = Identity (going)
        slice = SequenceAt (items, i)
        sum = Add (h, slice)
      }>
    }"""
    for count in (0, 1, 3):
        made = model(text)
        module = from_onnx(made)
        session = onnxruntime.InferenceSession(made.SerializeToString())
        expected = session.run(None, {"x": X, "count": np.array(count)})
        found = compile(module)(X, np.array(count))
        np.testing.assert_array_equal(found[0], expected[0])
        assert len(found[1]) == count


CARRIED = """
    main (float[n, 4] xCOUNT) => (float[m, 4] y, int64 length) {
      DEFINED
      true = Constant <value = bool {1}> ()
      empty = SequenceEmpty ()
      found, last = Loop (count, true, empty, x)
        <body = step (int64 i, bool going, seq(float[n, 4]) held, float[n, 4] h)
            => (bool again, seq(float[n, 4]) more, float[n, 4] sum) {
          again = Identity (going)
          sum = Add (h, x)
          more = SequenceInsert (held, sum)
        }>
      y = ConcatFromSequence <axis = 0> (found)
      length = SequenceLength (found)
    }"""


def test_a_loop_that_carries_a_sequence_is_unrolled() -> None:
    text = CARRIED.replace("COUNT", "").replace(
        "DEFINED", "count = Constant <value = int64 {3}> ()"
    )
    for n in (0, 1, 3):
        agree(text, x=X[:n])


APPENDED = """
    main (float[n, 4] x, int64 at) => (RESULTS, int64 length, float[1, 4] row) {
      zero = Constant <value = int64 {0}> ()
      shape = Shape <start = 0, end = 1> (x)
      rows = Squeeze (shape)
      some = Less (zero, rows)
      empty = SequenceEmpty ()
      found, last = Loop ("", some, empty, zero)
        <body = step (int64 i, bool going, seq(float[1, 4]) held, int64 k)
            => (bool again, seq(float[1, 4]) more, int64 next) {
          ahead = Constant <value = int64[1] {-1}> ()
          one = Constant <value = int64 {1}> ()
          index = Reshape (k, ahead)
          slice = Gather <axis = 0> (x, index)
          double = Add (slice, slice)
          more = SequenceInsert (held, double)
          next = Add (k, one)
          again = Less (next, rows)
        }>
      CONCATENATIONS
      length = SequenceLength (found)
      row = SequenceAt (found, at)
    }"""


def test_a_loop_that_only_appends_to_a_sequence_stacks_its_tensors() -> None:
    forms = {"a": "axis = 0", "b": "axis = 1", "c": "axis = 0, new_axis = 1", "d": "axis = -1"}
    forms["e"] = "axis = 2, new_axis = 1"
    ranks = {"a": "p, 4", "b": "1, q", "c": "r, 1, 4", "d": "1, s", "e": "1, 4, t"}
    text = APPENDED.replace("RESULTS", ", ".join(f"float[{d}] {k}" for k, d in ranks.items()))
    made = [f"{k} = ConcatFromSequence <{v}> (found)" for k, v in forms.items()]
    text = text.replace("CONCATENATIONS", "\n".join(made))
    for n, at in ((1, 0), (3, -1), (5, 2)):
        x = np.arange(4 * n, dtype=np.float32).reshape(n, 4)
        agree(text, x=x, at=np.array(at))


def test_a_loop_with_a_count_appends_to_a_sequence() -> None:
    text = CARRIED.replace("COUNT", ", int64 count").replace("DEFINED", "")
    for count in (1, 3):
        agree(text, x=X, count=np.array(count))
    y, length = compile(from_onnx(model(text)))(X, np.array(0))
    assert (y.shape, int(length)) == ((0, 4), 0)


def carried(old: str, new: str) -> str:
    """Return the loop with a count that depends on data and another line in its body."""
    assert old in CARRIED
    text = CARRIED.replace("COUNT", ", int64 count").replace("DEFINED", "")
    return text.replace(old, new)


REFUSED = "carries a sequence of tensors and has .*; expected a constant number of at most 256"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (carried("sum = Add (h, x)", "k = SequenceLength (held)\n sum = Add (h, x)"), REFUSED),
        (carried("(held, sum)", "(held, sum, i)"), REFUSED),
        (carried("more = Seq", "two = SequenceInsert (held, h)\n more = Seq"), REFUSED),
        (carried("(held, sum)", "(held, sum)\n last = SequenceErase (more)"), REFUSED),
        (carried("empty = SequenceEmpty ()", "empty = SequenceConstruct (x)"), REFUSED),
        (
            """main (float[n, 4] x) => (int64 count) {
              parts = SplitToSequence <axis = 0> (x)
              count = SequenceLength (parts)
            }""",
            "parts of 1 needs a dimension of constant size, got n; state the size of each part",
        ),
        (
            """main (float[n, 4] x, int64 at) => (float[n, 4] y) {
              double = Concat <axis = 0> (x, x)
              items = SequenceConstruct (x, double)
              y = SequenceAt (items, at)
            }""",
            "the tensors of the sequence have different shapes; pad the tensors to one shape",
        ),
        (
            """main (float[n, 4] x, bool p) => (int64 count) {
              found = If (p) <
                then_branch = a () => (seq(float[n, 4]) y) { y = SequenceConstruct (x) },
                else_branch = b () => (seq(float[n, 4]) y) { y = SequenceConstruct (x, x) }>
              count = SequenceLength (found)
            }""",
            "output 0 is a sequence of 1 tensors; expected a tensor; concatenate the sequence",
        ),
    ],
)  # fmt: skip
def test_sequences_whose_length_varies_are_named(text: str, message: str) -> None:
    with pytest.raises(UnsupportedOperatorsError, match=message):
        from_onnx(parser.parse_model(HEAD + text))


@pytest.mark.parametrize("position", [-2, 1, 5])
def test_a_position_out_of_range_is_an_error(position: int) -> None:
    text = f"""main (float[n, 4] x) => (float[n, 4] y) {{
      at = Constant <value = int64 {{{position}}}> ()
      items = SequenceConstruct (x)
      y = SequenceAt (items, at)
    }}"""
    with pytest.raises(MalformedModelError, match=f"position {position} is out of range"):
        from_onnx(parser.parse_model(HEAD + text))
