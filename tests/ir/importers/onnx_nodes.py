"""The test cases of the ONNX package for models of one node."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class NodeCase:
    """A node, its operands, and the results of ONNX."""

    node: Any
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    opset: int

    def model(self) -> Any:
        """Return the model of the node."""
        from onnx import helper

        def infos(names: Any, arrays: tuple[Array, ...]) -> list[Any]:
            kinds = [helper.np_dtype_to_tensor_dtype(a.dtype) for a in arrays]
            given = zip([n for n in names if n], kinds, arrays, strict=True)
            return [helper.make_tensor_value_info(n, k, a.shape) for n, k, a in given]

        graph = helper.make_graph(
            [self.node],
            "node",
            infos(self.node.input, self.inputs),
            infos(self.node.output, self.outputs),
        )
        opset = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opset, ir_version=10)


@cache
def node_cases(*files: str, opset: int = 22) -> dict[str, NodeCase]:
    """Return the cases of files of ``onnx.backend.test.case.node`` by name."""
    found: dict[str, NodeCase] = {}

    def expect(node: Any, inputs: Any, outputs: Any, name: str, **more: Any) -> None:
        arrays = (tuple(np.asarray(a) for a in group) for group in (inputs, outputs))
        stated = [o.version for o in more.get("opset_imports") or () if not o.domain]
        found.setdefault(name, NodeCase(node, *arrays, stated[0] if stated else opset))

    for file in files:
        module = importlib.import_module(f"onnx.backend.test.case.node.{file}")
        kept, module.expect = module.expect, expect
        try:
            for class_ in [c for c in vars(module).values() if isinstance(c, type)]:
                for name in [n for n in vars(class_) if n.startswith("export")]:
                    getattr(class_, name)()
        finally:
            module.expect = kept
    return found


def interpreted(case: NodeCase, rtol: float = 1e-3, atol: float = 1e-7) -> None:
    """Import a case, and compare the results of the interpreter with those of ONNX."""
    from tilewright.ir.importers import from_onnx
    from tilewright.ir.interpreter.graph import run_graph

    found = run_graph(from_onnx(case.model()), list(case.inputs))
    for have, want in zip(found, case.outputs, strict=True):
        if want.dtype.kind in "biu":
            np.testing.assert_array_equal(have, want, strict=True)
        else:
            np.testing.assert_allclose(have, want, rtol=rtol, atol=atol, strict=True)
