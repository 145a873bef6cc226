"""Convolutions of image and speech models, with constant weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from .case import ULP, Case, Goal, compiled, normal, onnx_runtime, size_of


class Layer(NamedTuple):
    """A convolution of square windows and images; one spatial dimension if ``rank`` is 1."""

    model: str
    channels: int
    filters: int
    kernel: int
    stride: int
    padding: int
    groups: int
    extent: int
    rank: int = 2
    batch: int = 1

    def __str__(self) -> str:
        """Return the model and the sizes."""
        kind = "x".join([str(self.kernel)] * self.rank)
        kind += f"/{self.stride}" if self.stride > 1 else ""
        kind += "" if self.groups == 1 else " depthwise"
        sides = "x".join([str(self.extent)] * self.rank)
        batch = f"{self.batch} x " if self.batch > 1 else ""
        return f"{self.model} {kind} {self.channels}-{self.filters} {batch}{sides}"


LAYERS: Final = (
    Layer("ResNet-50", 3, 64, 7, 2, 3, 1, 224),
    Layer("ResNet-50", 64, 64, 1, 1, 0, 1, 56),
    Layer("ResNet-50", 64, 64, 3, 1, 1, 1, 56),
    Layer("ResNet-50", 64, 256, 1, 1, 0, 1, 56),
    Layer("ResNet-50", 128, 128, 3, 2, 1, 1, 56),
    Layer("ResNet-50", 128, 128, 3, 1, 1, 1, 28),
    Layer("ResNet-50", 256, 512, 1, 2, 0, 1, 56),
    Layer("ResNet-50", 256, 256, 3, 1, 1, 1, 14),
    Layer("ResNet-50", 1024, 256, 1, 1, 0, 1, 14),
    Layer("ResNet-50", 512, 512, 3, 1, 1, 1, 7),
    Layer("ResNet-50", 2048, 512, 1, 1, 0, 1, 7),
    Layer("ResNet-50", 64, 64, 3, 1, 1, 1, 56, batch=8),
    Layer("ResNet-50", 512, 512, 3, 1, 1, 1, 7, batch=8),
    Layer("MobileNetV2", 32, 32, 3, 1, 1, 32, 112),
    Layer("MobileNetV2", 96, 96, 3, 2, 1, 96, 112),
    Layer("MobileNetV2", 144, 144, 3, 1, 1, 144, 56),
    Layer("MobileNetV2", 384, 384, 3, 1, 1, 384, 14),
    Layer("MobileNetV2", 960, 960, 3, 1, 1, 960, 7),
    Layer("MobileNetV2", 16, 96, 1, 1, 0, 1, 112),
    Layer("MobileNetV2", 320, 1280, 1, 1, 0, 1, 7),
    Layer("MobileNetV2", 144, 144, 3, 1, 1, 144, 56, batch=8),
    Layer("EfficientNet", 144, 144, 5, 2, 2, 144, 56),
    Layer("EfficientNet", 672, 672, 5, 1, 2, 672, 14),
    Layer("EfficientNet", 1152, 1152, 5, 1, 2, 1152, 7),
    Layer("ConvNeXt", 3, 96, 4, 4, 0, 1, 224),
    Layer("ConvNeXt", 96, 96, 7, 1, 3, 96, 56),
    Layer("ConvNeXt", 384, 384, 7, 1, 3, 384, 14),
    Layer("U-Net", 64, 64, 3, 1, 1, 1, 128),
    Layer("U-Net", 320, 320, 3, 1, 1, 1, 32),
    Layer("Whisper", 80, 384, 3, 1, 1, 1, 3000, rank=1),
    Layer("Whisper", 384, 384, 3, 2, 1, 1, 3000, rank=1),
)


def cases(threads: int) -> Iterator[Case]:
    """Yield a case per layer."""
    for layer in LAYERS:
        yield _case(layer, threads)


def _case(layer: Layer, threads: int) -> Case:
    import torch

    rank, sides = layer.rank, (layer.extent,) * layer.rank
    x = normal(1, (layer.batch, layer.channels, *sides))
    window = (layer.kernel,) * rank
    w = normal(2, (layer.filters, layer.channels // layer.groups, *window))
    strides, padding = (layer.stride,) * rank, (layer.padding,) * rank
    ours = compiled(
        f"x: Tensor[{x.shape}, f32]",
        f'y = conv(x, const("w"), strides={strides}, padding={padding * 2}, '
        f"dilation={(1,) * rank}, groups={layer.groups})",
        threads,
        w=w,
    )
    convolve = torch.conv1d if rank == 1 else torch.conv2d
    tx, tw_ = torch.from_numpy(x), torch.from_numpy(w)

    def peer() -> object:
        return convolve(tx, tw_, None, strides, padding, 1, layer.groups)

    def exact(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return convolve(left.double(), right.double(), None, strides, padding, 1, layer.groups)

    result = exact(tx, tw_).numpy()
    terms = w[0].size
    bound = terms * ULP * exact(tx.abs(), tw_.abs()).numpy() + ULP
    attributes = {"strides": strides, "pads": padding * 2, "group": layer.groups}
    runtime = onnx_runtime("Conv", {"x": x}, {"w": w}, threads, attributes)
    return Case(
        str(layer),
        lambda: ours(x),
        {"torch": peer, "onnxruntime": runtime},
        result,
        bound,
        2 * result.size * terms,
        size_of(x, w) + 4 * result.size,
        Goal(peer=0.9, roof=0.92),
    )
