"""One kernel with its inputs, its peers, and its limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Call: TypeAlias = Callable[[], object]

ULP = 2.0**-24
"""The relative error of one f32 operation."""


@dataclass(frozen=True)
class Goal:
    """A row is good if it reaches either fraction.

    Parameters
    ----------
    peer : float
        The time of the best peer divided by the time of Tilewright.
    roof : float
        The time that the roofline permits divided by the time of Tilewright.
    """

    peer: float
    roof: float


@dataclass(frozen=True)
class Case:
    """A kernel that is compiled by the default rules, and its peers.

    Parameters
    ----------
    name : str
        The name of the row.
    ours : Call
        Calls the compiled kernel.
    peers : Mapping of str to Call
        Call the kernels of other libraries.
    exact : ndarray
        The result in double precision.
    bound : float or ndarray
        The largest absolute error.
    operations, bytes : int
        The floating-point operations of a call, and the bytes that it must load and store.
    goal : Goal
        The fractions that the row must reach.
    """

    name: str
    ours: Call
    peers: Mapping[str, Call]
    exact: Any
    bound: Any
    operations: int
    bytes: int
    goal: Goal

    def check(self) -> None:
        """Raise unless the results of Tilewright and of all peers are within the bound."""
        import numpy as np

        for name, call in {"ours": self.ours, **self.peers}.items():
            found = np.asarray(call(), np.float64).reshape(self.exact.shape)
            worst = float(np.max(np.abs(found - self.exact) / self.bound, initial=0.0))
            if not worst <= 1:
                message = f"{self.name}: the error of {name} is {worst:.2g} times its bound"
                raise ArithmeticError(message)


def compiled(parameters: str, body: str, threads: int, **constants: Any) -> Callable[..., Any]:
    """Compile a graph function of one result with the default rules.

    Parameters
    ----------
    parameters : str
        The parameters of the function, as in ``x: Tensor[(n, 4), f32]``; n, m and k are symbols.
    body : str
        Statements that compute ``y``, one per line.
    threads : int
        The number of threads.
    **constants : ndarray
        The values of constants, which the body names as in ``const("w")``.
    """
    import tilewright as tw

    declared = "\n".join(
        f'constant("{name}", {value.shape}, {dtype_name(value)})'
        for name, value in constants.items()
    )
    lines = "\n    ".join([*body.strip().splitlines(), "return y"])
    text = f'n, m, k = symbols("n m k", lower=1)\n{declared}\n\n@graph_func\n'
    text += f"def main({parameters}):\n    {lines}\n"
    return tw.compile(tw.parse(text, constants=constants), tw.Target("cpu", threads=threads))


def dtype_name(array: Any) -> str:
    """Return the name of the dtype of an array."""
    return {"float32": "f32", "int64": "i64", "int32": "i32"}[str(array.dtype)]


def onnx_runtime(
    op: str,
    inputs: Mapping[str, Any],
    constants: Mapping[str, Any],
    threads: int,
    attributes: Mapping[str, Any],
) -> Call:
    """Return a call of ONNX Runtime for a model of one node.

    Parameters
    ----------
    op : str
        The ONNX operator.
    inputs : Mapping of str to ndarray
        The first inputs of the node.
    constants : Mapping of str to ndarray
        Its other inputs, which are constants of the model.
    threads : int
        The number of threads.
    attributes : Mapping of str to object
        The attributes of the node.
    """
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper

    node = helper.make_node(op, [*inputs, *constants], ["result"], **attributes)
    graph = helper.make_graph(
        [node],
        "kernel",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
            )
            for name, value in inputs.items()
        ],
        [helper.make_tensor_value_info("result", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feed = dict(inputs)
    return lambda: session.run(None, feed)[0]


def size_of(*arrays: Any) -> int:
    """Return the bytes of arrays."""
    return sum(a.nbytes for a in arrays)


def normal(seed: int, shape: Sequence[int]) -> Any:
    """Return an array of standard normal numbers in f32."""
    import numpy as np

    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
