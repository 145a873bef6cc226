"""Image models of ``timm`` and ``torchvision``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .rows import Model, Values

if TYPE_CHECKING:
    import torch

_ANY: Final = "f batch 3 32*height 32*width"


def _timm(name: str, size: int = 0, **values: Any) -> Model:
    def make() -> torch.nn.Module:
        library: Any = import_module("timm")
        return library.create_model(name, num_classes=5, **values)

    spec = f"f batch 3 {size} {size}" if size else _ANY
    return Model(f"timm_{name}", "vision", make, {"x": spec}, {}, "timm")


def _torchvision(
    name: str, family: str = "vision", *, spec: str = _ANY, argument: str = "x", **values: Any
) -> Model:
    def make() -> torch.nn.Module:
        *path, last = name.split(".")
        owner: Any = import_module("torchvision").models
        for part in path:
            owner = getattr(owner, part)
        return getattr(owner, last)(weights=None, **values)

    known = {"num_classes": 5} if "num_classes" not in values else {}
    values |= known
    return Model(f"tv_{name.rpartition('.')[2]}", family, make, {argument: spec}, {}, "torchvision")


_SMALL: Values = {
    "embed_dim": 32,
    "num_heads": 4,
    "depth": 2,
    "img_size": 32,
    "patch_size": 8,
}
_STEM: Values = {"channels": (8, 16, 24, 32), "layers": (1, 1, 2, 1)}

MODELS: Final = (
    *map(_timm, (
        "test_byobnet", "test_efficientnet", "test_resnet", "test_nfnet", "test_convnext",
        "test_convnext2",
    )),
    _timm("test_mambaout"),
    _timm("mobilenetv3_small_050"), _timm("ghostnet_050"), _timm("mobileone_s0"),
    _timm("repvgg_a0"), _timm("lcnet_035"), _timm("mnasnet_small"), _timm("tinynet_e"),
    _timm("resnet10t"), _timm("resnext26ts"), _timm("hardcorenas_a"), _timm("dla46_c"),
    _timm("rexnet_100"), _timm("semnasnet_075"), _timm("edgenext_xx_small"),
    _timm("mixer_s32_224", 32, img_size=32, patch_size=8, num_blocks=2, embed_dim=32),
    _timm("resmlp_12_224", 32, img_size=32, patch_size=8, num_blocks=2, embed_dim=32),
    _timm("gmlp_ti16_224", 32, img_size=32, patch_size=8, num_blocks=2, embed_dim=32),
    _timm("convmixer_768_32", depth=2, dim=32),
    _timm("cait_xxs24_224", 32, img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4),
    _timm("xcit_nano_12_p16_224", 32, img_size=32, embed_dim=32, depth=2, num_heads=4),
    _timm("eva02_tiny_patch14_224", 32, **_SMALL),
    _timm("sequencer2d_s", 64, layers=(1, 1, 1, 1), embed_dims=(16, 32, 32, 32),
          hidden_sizes=(8, 8, 8, 8), patch_sizes=(7, 2, 2, 1)),
    _timm("starnet_s050"),
    _torchvision("alexnet", spec="f batch 3 64 64"),
    _torchvision("vgg11_bn", spec="f batch 3 32 32"),
    _torchvision("squeezenet1_1"),
    _torchvision("shufflenet_v2_x0_5"),
    _torchvision("mobilenet_v2", width_mult=0.25),
    _torchvision("mobilenet_v3_small", width_mult=0.25),
    _torchvision("mnasnet0_5"),
    _torchvision("resnet18"),
    _torchvision("regnet_y_400mf"),
    _torchvision("segmentation.lraspp_mobilenet_v3_large", "segmentation", argument="input",
                 weights_backbone=None),
    _torchvision("segmentation.fcn_resnet50", "segmentation", weights_backbone=None),
    _torchvision("segmentation.deeplabv3_mobilenet_v3_large", "segmentation",
                 weights_backbone=None),
    _torchvision("video.r3d_18", "video", spec="f batch 3 4 32 32"),
    _torchvision("video.r2plus1d_18", "video", spec="f batch 3 4 32 32"),
)  # fmt: skip
