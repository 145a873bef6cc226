"""Denoising networks and autoencoders of ``diffusers``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .rows import Model, Values

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch


def _model(
    name: str, cls: str, inputs: Mapping[str, str],
    sizes: Mapping[str, tuple[int, ...]] | None = None, **values: Any,
) -> Model:  # fmt: skip
    def make() -> torch.nn.Module:
        made: Any = getattr(import_module("diffusers"), cls)
        return made(**values)

    return Model(name, "diffusion", make, inputs, sizes or {}, "diffusers")


_IMAGE: Values = {"sample": "f batch 4 8*height 8*width", "timestep": "i999 batch"}
_TEXT: Values = {**_IMAGE, "encoder_hidden_states": "f batch length 16"}
_TOKENS: Values = {"hidden_states": "f batch 4 8 8", "encoder_hidden_states": "f batch length 16",
                  "timestep": "i999 batch"}  # fmt: skip
_UNET: Values = {"in_channels": 4, "out_channels": 4, "block_out_channels": (8, 16),
                "layers_per_block": 1, "norm_num_groups": 4, "attention_head_dim": 4}  # fmt: skip
_CROSS: Values = {**_UNET, "cross_attention_dim": 16,
                 "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
                 "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D")}  # fmt: skip
_CODER: Values = {"block_out_channels": (8, 16), "norm_num_groups": 4, "layers_per_block": 1,
                 "down_block_types": ("DownEncoderBlock2D",) * 2,
                 "up_block_types": ("UpDecoderBlock2D",) * 2}  # fmt: skip
_PICTURE: Values = {"sample": "f batch 3 8*height 8*width"}
_DIT: Values = {"num_attention_heads": 2, "attention_head_dim": 8, "in_channels": 4,
               "num_layers": 2, "sample_size": 8, "patch_size": 2}  # fmt: skip

MODELS: Final = (
    _model("unet2d", "UNet2DModel", _IMAGE, **_UNET,
           down_block_types=("DownBlock2D", "AttnDownBlock2D"),
           up_block_types=("AttnUpBlock2D", "UpBlock2D")),
    _model("unet2d_resnet_sampling", "UNet2DModel", _IMAGE, **_UNET,
           down_block_types=("ResnetDownsampleBlock2D", "AttnDownBlock2D"),
           up_block_types=("AttnUpBlock2D", "ResnetUpsampleBlock2D"),
           resnet_time_scale_shift="scale_shift"),
    _model("unet2d_condition", "UNet2DConditionModel", _TEXT, **_CROSS),
    _model("unet2d_condition_linear", "UNet2DConditionModel", _TEXT, **_CROSS,
           use_linear_projection=True, transformer_layers_per_block=2, time_cond_proj_dim=None),
    _model("unet2d_simple_cross", "UNet2DConditionModel", _TEXT, **{
        **_CROSS, "down_block_types": ("SimpleCrossAttnDownBlock2D", "ResnetDownsampleBlock2D"),
        "up_block_types": ("ResnetUpsampleBlock2D", "SimpleCrossAttnUpBlock2D"),
        "mid_block_type": "UNetMidBlock2DSimpleCrossAttn",
        "resnet_time_scale_shift": "scale_shift"}),
    _model("controlnet", "ControlNetModel",
           {**_TEXT, "controlnet_cond": "f batch 3 16*height 16*width"},
           **{k: v for k, v in _CROSS.items() if k not in {"out_channels", "up_block_types"}},
           conditioning_embedding_out_channels=(8, 16)),
    _model("autoencoder_kl", "AutoencoderKL", _PICTURE, **_CODER),
    _model("vq_model", "VQModel", _PICTURE, **_CODER, num_vq_embeddings=16),
    _model("autoencoder_tiny", "AutoencoderTiny", {"sample": "u batch 3 8*height 8*width"},
           encoder_block_out_channels=(8, 8), decoder_block_out_channels=(8, 8),
           num_encoder_blocks=(1, 2), num_decoder_blocks=(2, 1)),
    _model("dit", "DiTTransformer2DModel",
           {"hidden_states": "f batch 4 8 8", "timestep": "i999 batch", "class_labels": "i9 batch"},
           **{**_DIT, "in_channels": 4}),
    _model("pixart", "PixArtTransformer2DModel", _TOKENS, **_DIT, cross_attention_dim=16,
           caption_channels=16, use_additional_conditions=False),
    _model("sd3", "SD3Transformer2DModel", {**_TOKENS, "pooled_projections": "f batch 16"},
           sample_size=8, patch_size=2, in_channels=4, num_layers=2, attention_head_dim=8,
           num_attention_heads=2, joint_attention_dim=16, caption_projection_dim=16,
           pooled_projection_dim=16, out_channels=4, pos_embed_max_size=8, qk_norm="rms_norm",
           dual_attention_layers=(0,)),
    _model("flux", "FluxTransformer2DModel",
           {"hidden_states": "f batch area 8", "encoder_hidden_states": "f batch length 16",
            "pooled_projections": "f batch 16", "timestep": "u batch", "img_ids": "f area 3",
            "txt_ids": "f length 3"}, {"area": (4, 9, 6, 12)},
           patch_size=1, in_channels=8, num_layers=2, num_single_layers=2, attention_head_dim=8,
           num_attention_heads=2, joint_attention_dim=16, pooled_projection_dim=16,
           axes_dims_rope=(2, 2, 4)),
    _model("auraflow", "AuraFlowTransformer2DModel", {**_TOKENS, "timestep": "u batch"},
           sample_size=8, patch_size=2, in_channels=4, num_mmdit_layers=2,
           num_single_dit_layers=2, attention_head_dim=8, num_attention_heads=2,
           joint_attention_dim=16, caption_projection_dim=16, out_channels=4,
           pos_embed_max_size=16),
    _model("sana", "SanaTransformer2DModel", _TOKENS, in_channels=4, out_channels=4,
           num_attention_heads=2, attention_head_dim=8, num_layers=2,
           num_cross_attention_heads=2, cross_attention_head_dim=8, cross_attention_dim=16,
           caption_channels=16, sample_size=8),
    _model("latte", "LatteTransformer3DModel",
           {"hidden_states": "f batch 4 2 8 8", "timestep": "i999 batch",
            "encoder_hidden_states": "f batch length 16"},
           **{**_DIT, "num_layers": 2}, cross_attention_dim=16, caption_channels=16,
           norm_type="ada_norm_single", video_length=2, out_channels=4,
           norm_elementwise_affine=False, activation_fn="gelu-approximate"),
    _model("wan", "WanTransformer3DModel",
           {"hidden_states": "f batch 4 2 8 8", "timestep": "i999 batch",
            "encoder_hidden_states": "f batch length 16"},
           num_attention_heads=2, attention_head_dim=12, in_channels=4, out_channels=4,
           text_dim=16, freq_dim=16, ffn_dim=32, num_layers=2, rope_max_seq_len=32),
    _model("cogvideox", "CogVideoXTransformer3DModel",
           {"hidden_states": "f batch 1 4 8 8", "encoder_hidden_states": "f batch 6 16",
            "timestep": "i999 batch"},
           num_attention_heads=2, attention_head_dim=8, in_channels=4, out_channels=4,
           time_embed_dim=8, text_embed_dim=16, num_layers=2, sample_width=8, sample_height=8,
           sample_frames=1, max_text_seq_length=6),
    _model("prior", "PriorTransformer",
           {"hidden_states": "f batch 16", "timestep": "i999 batch",
            "proj_embedding": "f batch 16", "encoder_hidden_states": "f batch 6 16"},
           num_attention_heads=2, attention_head_dim=8, num_layers=2, embedding_dim=16,
           num_embeddings=6),
    _model("t2i_adapter", "T2IAdapter", {"x": "f batch 3 16*height 16*width"},
           channels=[8, 8, 16, 16], num_res_blocks=2, downscale_factor=2),
)  # fmt: skip
