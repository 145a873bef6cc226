"""Export, compilation, and comparison of one model of the catalog with PyTorch."""

from __future__ import annotations

import copy
import logging
import math
import os
import time
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

import tilewright as tw
from tilewright.codegen.build.worker_pool import default_pool
from tilewright.codegen.sandbox.shared_programs import require_shared
from tilewright.errors import TilewrightError, UnsupportedOperatorsError
from tilewright.ir.graph.nodes import CallDPSLibrary
from tilewright.ir.graph.visit import all_bindings

from tests.suites.model_catalog.catalog import models
from tests.suites.model_catalog.rows import CALLS, Model, randomize

if TYPE_CHECKING:
    from collections.abc import Sequence

Status = Literal["pass", "unsupported", "unreachable", "wrong", "error"]
Source = Literal["torch", "onnx"]
"""The format from which a model is imported: a program of ``torch.export``, or an ONNX file."""

ORDERS: Final = 8
"""How much larger than PyTorch's own rounding error a result may be wrong.

Both evaluate the same sums of 32-bit floats in other orders. The rounding error of a sum of K
terms grows with the square root of the longest chain of additions, so one accumulator instead of
16 quadruples it; and the largest of the errors of one kind varies by less than two from one order
to another.
"""

EPSILON: Final = 2.0**-23
"""The spacing of 32-bit floats at 1, which is allowed relative to the largest element, too."""

UNKNOWN: Final = 2.0**-23 * 1024
"""The bound relative to the largest element, of models that PyTorch cannot run in float64, or that
compute another function then.

A chain of 64 layers with sums of 256 terms, whose errors add up like random numbers, has an error
of 128 units; ORDERS is the factor, as for other models.
"""


@dataclass
class Result:
    """The result of one model.

    Parameters
    ----------
    status : str
        ``pass``: the results of each call are within the bound. ``unsupported``: an operator of
        the exported program has no importer. ``unreachable``: PyTorch does not export or run the
        model. ``wrong``: another result. ``error``: any other end.
    reason : str
        The operators, the error, or the difference.
    nodes : int
        The number of calls of operators in the exported program.
    compile : float
        The time of ``tw.compile`` in seconds, without a cache.
    cpu : float
        The CPU time of ``tw.compile`` and its two worker processes in seconds.
    error : float
        The largest difference from PyTorch, as a fraction of the bound.
    calls : list of str
        The sizes of the dynamic dimensions in each call.
    """

    status: Status
    reason: str = ""
    nodes: int = 0
    compile: float = 0.0
    cpu: float = 0.0
    error: float = 0.0
    calls: list[str] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)


class OnnxExportError(Exception):
    """A model that PyTorch does not export to ONNX."""


def check(name: str, source: Source = "torch") -> dict[str, Any]:
    """Check one model in a process of its own, and return the result as JSON."""
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with warnings.catch_warnings(), torch.no_grad(), TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        os.environ["TILEWRIGHT_CACHE"] = folder
        return asdict(checked(models()[name], source))


def checked(model: Model, source: Source = "torch") -> Result:
    """Check one model."""
    try:
        module = randomize(model.make())
        expected = [_run(module, model.arguments(k)) for k in range(CALLS)]
    except Exception as error:  # noqa: BLE001 - PyTorch has no common class of errors
        return Result("unreachable", f"PyTorch: {text(error)}")
    if defect := _untested(expected):
        return Result("unreachable", defect)
    exported = None
    try:
        if source == "onnx":
            exported = _exported(module, model)
            imported = tw.from_onnx(exported)
        else:
            imported = tw.from_torch(module, (), model.arguments(0), dynamic=model.dynamic())
        start, work = time.perf_counter(), cpu_seconds()
        executable: Any = tw.compile(imported, target="cpu")
        seconds, work = time.perf_counter() - start, cpu_seconds() - work
    except OnnxExportError as error:
        return Result("unreachable", f"ONNX: {text(_origin(error))}")
    except UnsupportedOperatorsError as error:
        uses: Any = error.details["operators"]
        operators = sorted({u["operator"].removeprefix("aten.") for u in uses})
        reason = "; ".join(sorted({f"{u['operator']} {u['reason']}".strip() for u in uses}))
        return Result("unsupported", reason[:400], operators=operators)
    except TilewrightError as error:
        status: Status = "unreachable" if error.title == "Failed export by PyTorch" else "error"
        return Result(status, text(error))
    except Exception as error:  # noqa: BLE001 - any other error is a defect to report
        return Result("error", text(error))
    bindings = [b for graph in imported.graphs for b in all_bindings(graph.bindings)]
    require_shared(
        (b.right.symbol for b in bindings if isinstance(b.right, CallDPSLibrary)), model.name
    )
    exact = exact_results(module, model)
    found = _compared(model, executable, expected, exact)
    if found.status in ("wrong", "error") and exported is not None:
        other = _compared(model, _runtime(exported), expected, exact)
        if other.status != "pass":
            return Result("unreachable", f"ONNX Runtime, too, is {other.status} {other.reason}")
    found.nodes, found.compile, found.cpu = len(bindings), round(seconds, 1), round(work, 1)
    return found


def _exported(module: torch.nn.Module, model: Model) -> Any:
    """Export a model to ONNX with dynamic dimensions."""
    try:
        program = torch.onnx.export(
            module,
            kwargs=model.arguments(0),
            dynamic_shapes=model.dynamic(),
            dynamo=True,
            verbose=False,
        )
    except Exception as error:
        raise OnnxExportError from error
    if program is None:
        raise OnnxExportError("the exporter returned no program")
    return program.model_proto


def _runtime(exported: Any) -> Any:
    """Return a function that runs an exported model by ONNX Runtime.

    Where it is wrong like Tilewright, the exporter wrote another function than that of the module:
    the mean of ``scatter_reduce``, for example, becomes a scatter without a reduction.
    """

    def run(**arguments: torch.Tensor) -> Any:
        import onnxruntime

        session = onnxruntime.InferenceSession(exported.SerializeToString())
        return session.run(None, {n: x.numpy() for n, x in arguments.items()})

    return run


def cpu_seconds() -> float:
    """Return the CPU time of this process and of the shared compile workers."""
    total = time.process_time()
    for worker in default_pool().workers:
        if worker.pid is not None:
            words = Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return total


def _compared(
    model: Model, executable: Any, expected: list[Any], exact: list[list[torch.Tensor]] | None
) -> Result:
    result = Result("pass")
    for k in range(CALLS):
        sizes = ", ".join(f"{n} {v}" for n, v in model.shapes(k).items())
        try:
            made = tensors(executable(**model.arguments(k)))
        except Exception as error:  # noqa: BLE001 - any error of a call is a defect
            return Result("error", f"({sizes}): {text(error)}")
        wide = exact[k] if exact else [None] * len(expected[k])
        reason, error = difference(made, expected[k], wide)
        if reason:
            return Result("wrong", f"({sizes}): {reason}")
        result.error = max(result.error, round(error, 3))
        result.calls.append(sizes)
    return result


def difference(
    found: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor],
    exact: Sequence[torch.Tensor | None],
) -> tuple[str, float]:
    """Return how results differ, or nothing, and the largest difference relative to the bound."""
    if len(found) != len(expected):
        return f"{len(found)} results instead of {len(expected)}", math.inf
    worst = 0.0
    for k, (have, want, wide) in enumerate(zip(found, expected, exact, strict=True)):
        if (have.shape, have.dtype) != (want.shape, want.dtype):
            kinds = f"{have.dtype}{tuple(have.shape)}, not {want.dtype}{tuple(want.shape)}"
            return f"result {k}: {kinds}", math.inf
        error = _excess(have, want, wide)
        if not error <= 1:
            return f"result {k}: {error:.3g} times the bound", error
        worst = max(worst, error)
    return "", worst


def _excess(have: torch.Tensor, want: torch.Tensor, wide: torch.Tensor | None) -> float:
    """Return the largest difference of two tensors relative to the bound."""
    if not want.is_floating_point() or not want.numel():
        return 0.0 if torch.equal(have, want) else math.inf
    special = ~want.isfinite()
    same = torch.where(special, have, 0), torch.where(special, want, 0)
    if not torch.equal(*(x.nan_to_num(12345.0) for x in same)):
        return math.inf
    have, want = (torch.where(special, 0, x).double() for x in (have, want))
    largest = float(want.abs().max())
    gap, bound = float((have - want).abs().max()), UNKNOWN * largest
    if wide is not None and wide.shape == want.shape:
        wide = torch.where(special, 0, wide).double()
        own = float((want - wide).abs().max())
        if own <= UNKNOWN * largest:
            gap = float((have - wide).abs().max())
            bound = ORDERS * (own + EPSILON * largest)
    if gap == 0:
        return 0.0
    return gap / bound if bound and not math.isnan(gap) else math.inf


def tensors(made: Any) -> list[torch.Tensor]:
    """Return the tensors in a result, in order."""
    leaves = pytree.tree_leaves(dict(made) if hasattr(made, "to_tuple") else made)
    leaves = [torch.from_numpy(x) if isinstance(x, np.ndarray) else x for x in leaves]
    return [x.detach() for x in leaves if isinstance(x, torch.Tensor)]


def _run(module: Any, arguments: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    return [x.clone() for x in tensors(module(**arguments))]


class _Wide(TorchDispatchMode):
    """Operators with float64 results where the code of a model asks for float32.

    Embeddings of time steps, for example, multiply a frequency by up to 999 in float32, also if
    all tensors are in float64, so a frequency with another last bit changes the result by far more
    than the rounding of the other operators.
    """

    def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {} if kwargs is None else kwargs
        wide = {n: torch.float64 if v is torch.float32 else v for n, v in given.items()}
        return func(*args, **wide)


def exact_results(module: torch.nn.Module, model: Model) -> list[list[torch.Tensor]] | None:
    """Return the results in float64, or None if PyTorch cannot run the module so."""
    default = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        wide = copy.deepcopy(module).double()  # the program shares the weights of the module
        calls = [
            {n: x.double() if x.is_floating_point() else x for n, x in given.items()}
            for given in map(model.arguments, range(CALLS))
        ]
        with _Wide():
            return [_run(wide, given) for given in calls]
    except Exception:  # noqa: BLE001 - PyTorch has no common class of errors
        return None
    finally:
        torch.set_default_dtype(default)


def _untested(expected: list[list[torch.Tensor]]) -> str:
    """Return why results could not show an error, or nothing."""
    if not all(expected):
        return "no tensor is a result"
    floats = [x for found in expected for x in found if x.is_floating_point() and x.numel() > 1]
    if any(bool(x.isnan().any()) for x in floats):
        return "a result of PyTorch is not a number"
    if floats and not any(float(x.std()) > 0 for x in floats):
        return "the results of PyTorch are constant"
    return ""


def _origin(error: BaseException) -> BaseException:
    """Return the first of a chain of errors, which states the reason."""
    return error if error.__cause__ is None else _origin(error.__cause__)


def text(error: BaseException) -> str:
    """Return the class and the first line of an error."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]
