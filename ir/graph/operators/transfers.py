"""Transfers of tensors between devices."""

from __future__ import annotations

from typing import ClassVar

from ..devices import device_named
from ..nodes import DEFAULT_DEVICE, Info, Operand, TensorInfo, operand_info
from .composition import Composer
from .errors import OperatorAttributeError
from .evaluation import Array, Evaluation
from .gradients import GradientCall
from .lowering import Lowering
from .operator import Operator, operator
from .shape_inference import CallFacts
from .signature import AttributeSpec, OperandSpec, Signature


@operator
class ToDevice(Operator):
    """Copy a tensor to the memory of a device.

    Parameters
    ----------
    x : tensor
        Any dtype, any shape ``(...,)``.
    device : str
        ``"default"``, the device that the program is compiled for, or a kind and an ordinal, such
        as ``"cpu"`` or ``"cuda:1"``.

    Returns
    -------
    tensor
        The shape and dtype of `x`, in the memory of the device.

    Raises
    ------
    OperatorAttributeError
        If `device` is not the name of a device.

    Notes
    -----
    Memory planning makes it an allocation on the device and a copy. Other operators have operands
    and results on the default device. A device that does not exist at run time is an error when the
    program is loaded. PyTorch: ``Tensor.to``; TVM Relax: ``to_vdevice``.

    Examples
    --------
    >>> import numpy as np
    >>> ToDevice().reference((np.arange(3),), {"device": "cpu:1"})
    array([0, 1, 2])
    """

    name = "to_device"
    signature = Signature((OperandSpec("x"),), (AttributeSpec("device", "str"),))
    is_transfer: ClassVar[bool] = True

    def deduce(self, call: CallFacts) -> Info:
        """Return the annotation of ``x`` on the device."""
        x, device = call.tensor(0), call.attributes.text("device")
        if device != DEFAULT_DEVICE and device_named(device) is None:
            raise OperatorAttributeError(
                f"{device!r} is not a device",
                where=f"operator {self.name}, attribute 'device'",
                hint="devices are 'default', 'cpu', 'cpu:1', 'cuda', 'cuda:1', ...",
            )
        return TensorInfo(x.shape, x.dtype, device, x.elements)

    def evaluate(self, run: Evaluation) -> Array:
        """Copy with NumPy; the interpreter has one memory."""
        return run.array(0).copy()

    def define(self, low: Lowering) -> None:
        """Define one block that copies."""
        x = low.sources[0]
        low.builder.compute(low.out, x, name=self.name)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Copy the cotangent to the device of the operand."""
        info = operand_info(call.args[position])
        device = info.device if isinstance(info, TensorInfo) else DEFAULT_DEVICE
        return graph.emit(self.name, call.cotangent(graph), device=device)
