"""Vision models of ``transformers``: classification, detection, segmentation, and depth."""

from __future__ import annotations

from typing import Any, Final

from .configured import TEXT, row
from .rows import Model, Values

_FIXED: Values = {"pixel_values": "f batch 3 32 32"}
_ANY: Values = {"pixel_values": "f batch 3 32*height 32*width"}
_VIT: Values = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "image_size": 32, "patch_size": 8, "num_labels": 5,
}  # fmt: skip
_RESNET: Values = {
    "embedding_size": 8, "hidden_sizes": [8, 16, 24, 32], "depths": [2, 1, 2, 1], "num_labels": 5,
    "num_groups": 4, "groups_width": 4, "layer_scale_init_value": 0.5,
}  # fmt: skip
_PYRAMID: Values = {
    "hidden_sizes": [8, 16, 24, 32], "depths": [2, 1, 1, 1], "num_attention_heads": [1, 2, 3, 4],
    "decoder_hidden_size": 16, "num_labels": 5, "image_size": 32, "mlp_ratios": [2, 2, 2, 2],
}  # fmt: skip
_SWIN: Values = {
    "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4, "image_size": 32,
    "patch_size": 2, "num_labels": 5,
}  # fmt: skip
_BACKBONE: Values = {
    "model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 16, 24, 32],
    "depths": [1, 1, 1, 1], "layer_type": "basic", "out_features": ["stage4"],
}  # fmt: skip
_STAGES: Values = {**_BACKBONE, "out_features": ["stage2", "stage3", "stage4"]}
_VIT_BACKBONE: Values = {
    "model_type": "dinov2", "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4,
    "image_size": 32, "patch_size": 8, "out_features": ["stage1", "stage2", "stage3", "stage4"],
    "reshape_hidden_states": False,
}  # fmt: skip
_DETR: Values = {
    "backbone_config": _BACKBONE, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64, "num_queries": 5, "num_labels": 4, "use_timm_backbone": False,
    "use_pretrained_backbone": False,
}  # fmt: skip
_RT_DETR: Values = {
    **_DETR, "encoder_hidden_dim": 32, "encoder_in_channels": [16, 24, 32],
    "decoder_in_channels": [32, 32, 32], "encoder_layers": 1, "num_feature_levels": 3,
    "anchor_image_size": [64, 64], "num_denoising": 0,
}  # fmt: skip


def _image(name: str, values: Any, *, kind: str = "", fixed: bool = True, **more: Any) -> Model:
    inputs = _FIXED if fixed else _ANY
    auto = "AutoModelForImageClassification"
    return row(name, "vision", auto, inputs, {**values, **more}, kind=kind)


def _task(
    name: str, family: str, auto: str, values: Any, *, kind: str = "", inputs: Any = _FIXED,
    **more: Any,
) -> Model:  # fmt: skip
    return row(name, family, auto, inputs, {**values, **more}, kind=kind)


_STILL: Values = {"pixel_values": "f batch 3 64 64"}
_CLIP: Values = {
    "text_config": {**TEXT, "projection_dim": 16}, "vision_config": {**_VIT, "projection_dim": 16},
    "projection_dim": 16,
}  # fmt: skip
_PAIRED: Values = {
    "input_ids": "i96 texts length",
    "pixel_values": "f images 3 32 32",
}
_BOTH: Values = {"texts": (2, 3, 1, 4), "images": (3, 2, 4, 1)}

MODELS: Final = (
    *(_image(name, _VIT) for name in ("vit", "dinov2", "dinov2_with_registers", "vit_msn",
                                      "ijepa")),
    _image("beit", _VIT, use_relative_position_bias=True, use_absolute_position_embeddings=True),
    _image("data2vec-vision", _VIT, use_relative_position_bias=True),
    _task("dinov3_vit", "vision", "AutoModel", _VIT, num_register_tokens=2),
    _image("swin", _SWIN),
    _image("swinv2", _SWIN),
    _image("resnet", _RESNET, fixed=False),
    _image("resnet_basic", _RESNET, kind="resnet", fixed=False, layer_type="basic"),
    _image("regnet", _RESNET, fixed=False),
    _image("convnext", _RESNET, fixed=False),
    _image("convnextv2", _RESNET, fixed=False),
    _image("bit", _RESNET, fixed=False),
    _image("mobilenet_v1", {}, depth_multiplier=0.25, num_labels=5),
    _image("mobilenet_v2", {}, depth_multiplier=0.25, num_labels=5),
    _image("efficientnet", {}, fixed=False, image_size=32, hidden_dim=32, num_labels=5,
           num_block_repeats=[2, 2, 1], kernel_sizes=[3, 5, 3], in_channels=[8, 8, 16],
           out_channels=[8, 16, 16], strides=[1, 2, 1], expand_ratios=[1, 6, 6],
           width_coefficient=1.0, depth_coefficient=1.0, depthwise_padding=[]),
    _image("mobilevit", {}, image_size=32, hidden_sizes=[16, 24, 32],
           neck_hidden_sizes=[8, 8, 16, 16, 24, 24, 32], num_labels=5),
    _image("mobilevitv2", {}, image_size=32, width_multiplier=0.25, num_labels=5,
           n_attn_blocks=[1, 1, 1], base_attn_unit_dims=[32, 32, 64]),
    _image("poolformer", _PYRAMID, fixed=False, layer_scale_init_value=0.5),
    _image("pvt", _PYRAMID),
    _image("pvt_v2", _PYRAMID, fixed=False),
    _image("focalnet", {}, embed_dim=8, hidden_sizes=[16, 16], depths=[2, 1], image_size=32,
           focal_levels=[2, 2], focal_windows=[3, 3], num_labels=5),
    _task("levit", "vision", "AutoModelForImageClassification", {
        "image_size": 64, "hidden_sizes": [16, 24, 32], "num_attention_heads": [2, 3, 4],
        "depths": [2, 1, 1], "key_dim": [8, 8, 8], "num_labels": 5}, inputs=_STILL),
    _image("cvt", {}, fixed=False, embed_dim=[8, 16, 32], num_heads=[1, 2, 4], depth=[1, 2, 2],
           num_labels=5),
    _image("swiftformer", {}, fixed=False, depths=[2, 1, 1, 2], embed_dims=[8, 16, 24, 32],
           num_labels=5),
    _image("textnet", {}, fixed=False, stem_out_channels=8, hidden_sizes=[8, 8, 16, 16, 24],
           num_labels=5, conv_layer_kernel_sizes=[[[3, 3], [3, 1]]] * 4,
           conv_layer_strides=[[2, 1]] * 4),
    _image("hgnet_v2", {}, fixed=False, stem_channels=[3, 8, 8], stage_in_channels=[8, 16, 16, 24],
           stage_mid_channels=[8] * 4, stage_out_channels=[16, 16, 24, 32], embedding_size=8,
           hidden_sizes=[16, 16, 24, 32], stage_num_blocks=[1, 1, 1, 1],
           stage_numb_of_layers=[2] * 4, num_labels=5),
    _task("hiera", "vision", "AutoModelForImageClassification", {
        "embed_dim": 8, "image_size": [64, 64], "depths": [1, 2, 1, 1], "num_labels": 5,
        "num_heads": [1, 1, 2, 2], "masked_unit_size": [8, 8]}, inputs=_STILL),
    _task("segformer", "segmentation", "AutoModelForSemanticSegmentation", _PYRAMID, inputs=_ANY),
    _task("mobilevit_segmentation", "segmentation", "AutoModelForSemanticSegmentation",
          {"image_size": 32, "hidden_sizes": [16, 24, 32], "aspp_out_channels": 16,
           "neck_hidden_sizes": [8, 8, 16, 16, 24, 24, 32], "num_labels": 5}, kind="mobilevit"),
    _task("upernet", "segmentation", "AutoModelForSemanticSegmentation",
          {"backbone_config": {**_BACKBONE, "out_features": [f"stage{k}" for k in range(1, 5)]},
           "hidden_size": 16, "auxiliary_channels": 8, "auxiliary_in_channels": 24,
           "num_labels": 5, "use_pretrained_backbone": False}),
    _task("mask2former", "segmentation", "AutoModelForUniversalSegmentation",
          {"backbone_config": {**_SWIN, "model_type": "swin", "patch_size": 4,
                               "depths": [1, 1, 1, 1], "num_heads": [1, 1, 2, 2],
                               "image_size": 64,
                               "out_features": [f"stage{k}" for k in range(1, 5)]},
           "feature_size": 32, "mask_feature_size": 32, "hidden_dim": 32, "encoder_layers": 2,
           "encoder_feedforward_dim": 32, "decoder_layers": 3, "num_attention_heads": 4,
           "dim_feedforward": 32, "num_queries": 5, "num_labels": 4}, inputs=_STILL),
    _task("detr", "detection", "AutoModelForObjectDetection", _DETR, inputs=_STILL),
    _task("conditional_detr", "detection", "AutoModelForObjectDetection", _DETR, inputs=_STILL),
    _task("dab-detr", "detection", "AutoModelForObjectDetection", _DETR, inputs=_STILL,
          hidden_size=32),
    _task("deformable_detr", "detection", "AutoModelForObjectDetection", _DETR, inputs=_STILL,
          backbone_config=_STAGES, num_feature_levels=3),
    _task("yolos", "detection", "AutoModelForObjectDetection", _VIT, num_detection_tokens=5,
          image_size=[32, 32]),
    _task("rt_detr", "detection", "AutoModelForObjectDetection", _RT_DETR, inputs=_STILL,
          backbone_config={**_STAGES, "model_type": "rt_detr_resnet"}),
    _task("rt_detr_v2", "detection", "AutoModelForObjectDetection", _RT_DETR, inputs=_STILL,
          backbone_config={**_STAGES, "model_type": "rt_detr_resnet"}),
    _task("glpn", "depth", "AutoModelForDepthEstimation", _PYRAMID, inputs=_ANY),
    _task("dpt", "depth", "AutoModelForDepthEstimation", _VIT, neck_hidden_sizes=[8, 8, 16, 16],
          fusion_hidden_size=16, backbone_out_indices=[0, 1, 2, 3], num_hidden_layers=4),
    _task("depth_anything", "depth", "AutoModelForDepthEstimation",
          {"backbone_config": _VIT_BACKBONE, "patch_size": 8, "reassemble_hidden_size": 32,
           "neck_hidden_sizes": [8, 8, 16, 16], "fusion_hidden_size": 16, "head_hidden_size": 8}),
    _task("swin2sr", "super-resolution", "AutoModelForImageToImage", {
        "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 2], "window_size": 4,
        "image_size": 32, "upscale": 2}),
    _task("vitdet", "vision", "AutoBackbone", {
        **_VIT, "window_block_indices": [0], "window_size": 2, "out_features": ["stage2"]}),
    row("clip", "image and text", "CLIPModel", _PAIRED, _CLIP, sizes=_BOTH),
    row("siglip", "image and text", "SiglipModel", _PAIRED, _CLIP, sizes=_BOTH),
    row("vilt", "image and text", "AutoModel",
        {"input_ids": "i96 batch length", "pixel_values": "f batch 3 32 32"},
        {**TEXT, **_VIT, "vocab_size": 96}),
)  # fmt: skip
