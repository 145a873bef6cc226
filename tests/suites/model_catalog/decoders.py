"""Decoders of ``transformers``: dense, mixture of experts, latent attention, state space."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from .configured import TEXT, row
from .rows import Model, Values

_TOKENS: Values = {"input_ids": "i96 batch length"}


def _lm(
    name: str, family: str = "decoder", *, kind: str = "", without: str = "", **values: Any
) -> Model:
    """Return the row of a decoder; ``without`` is a value that its configuration computes."""
    known = {n: v for n, v in TEXT.items() if n != without}
    return row(name, family, "AutoModelForCausalLM", _TOKENS, {**known, **values}, kind=kind)


def _fixed(name: str, family: str = "state space", **values: Any) -> Model:
    """Return the row of a model whose code fixes the length: it loops over chunks."""
    inputs = {"input_ids": "i96 batch 12"}
    return row(name, family, "AutoModelForCausalLM", inputs, {**TEXT, **values})


def _moe(name: str, **values: Any) -> Model:
    experts: dict[str, Any] = {
        "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2,
        "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "n_shared_experts": 1,
        "first_k_dense_replace": 1,
    }  # fmt: skip
    return _lm(name, "mixture of experts", **{**experts, **values})


_LATENT: Values = {
    "kv_lora_rank": 16, "q_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8,
    "v_head_dim": 8, "n_group": 1, "topk_group": 1, "num_key_value_heads": 4,
}  # fmt: skip
_MAMBA2: Values = {
    "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_chunk_size": 8,
    "mamba_n_groups": 1, "mamba_expand": 2,
}  # fmt: skip
_LINEAR: Values = {
    "linear_key_head_dim": 8, "linear_value_head_dim": 8, "linear_num_key_heads": 2,
    "linear_num_value_heads": 4, "layer_types": ["linear_attention", "full_attention"] * 2,
    "num_hidden_layers": 4,
}  # fmt: skip


MODELS: Final = (
    *map(_lm, (
        "llama", "mistral", "qwen2", "qwen3", "gemma", "phi", "phi3", "gpt2", "gpt_neox",
        "bloom", "stablelm", "starcoder2", "cohere", "olmo", "olmo2", "granite", "glm", "glm4",
        "helium", "nemotron", "persimmon", "biogpt", "smollm3", "hunyuan_v1_dense",
        "ernie4_5", "arcee", "apertus", "seed_oss", "bitnet", "diffllama", "gpt_bigcode",
        "ctrl", "nanochat", "gpt_neox_japanese", "xglm",
    )),
    # PyTorch compares the length with that of the table of positions, which is 64.
    replace(_lm("openai-gpt"), limits={"length": 63}),
    _lm("gemma2", sliding_window=4, query_pre_attn_scalar=8),
    _lm("gemma3", kind="gemma3_text", sliding_window=4, query_pre_attn_scalar=8,
        layer_types=["sliding_attention", "full_attention"]),
    _lm("vaultgemma", sliding_window=4, query_pre_attn_scalar=8),
    _lm("cohere2", sliding_window=4, layer_types=["sliding_attention", "full_attention"]),
    _lm("olmo3", sliding_window=4, layer_types=["sliding_attention", "full_attention"]),
    _lm("exaone4", sliding_window=4, layer_types=["sliding_attention", "full_attention"]),
    _lm("ministral", sliding_window=4, layer_types=["sliding_attention", "full_attention"]),
    _lm("gpt_neo", num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]],
        window_size=4),
    _lm("gptj", rotary_dim=4),
    _lm("codegen", rotary_dim=4),
    _lm("opt", ffn_dim=64, word_embed_proj_dim=32),
    _lm("falcon", without="head_dim", num_kv_heads=2, new_decoder_architecture=True),
    _lm("falcon_alibi", kind="falcon", without="head_dim", alibi=True, multi_query=False,
        parallel_attn=False),
    _lm("mpt", d_model=32, n_heads=4, n_layers=2, max_seq_len=64),
    _lm("modernbert-decoder", local_attention=4, global_attn_every_n_layers=2),
    *map(_moe, (
        "mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "phimoe", "granitemoe", "glm4_moe",
        "ernie4_5_moe", "hunyuan_v1_moe", "minimax_m2", "flex_olmo", "solar_open",
    )),
    _moe("jetmoe", kv_channels=8),
    _moe("dots1", n_group=1, topk_group=1),
    _moe("gpt_oss", sliding_window=4, layer_types=["sliding_attention", "full_attention"]),
    _moe("afmoe", sliding_window=4, num_dense_layers=1),
    _moe("dbrx", d_model=32, n_heads=4, n_layers=2, max_seq_len=64,
         attn_config={"kv_n_heads": 2, "clip_qkv": 8.0},
         ffn_config={"hidden_size": 32, "ffn_hidden_size": 16, "moe_num_experts": 4,
                     "moe_top_k": 2}),
    _moe("llama4", kind="llama4_text", attention_chunk_size=4, intermediate_size_mlp=32,
         moe_layers=[1], layer_types=["chunked_attention", "full_attention"]),
    _moe("deepseek_v2", **_LATENT),
    _moe("deepseek_v3", **_LATENT),
    _moe("glm4_moe_lite", **_LATENT),
    _moe("longcat_flash", num_layers=2, ffn_hidden_size=32, expert_ffn_hidden_size=16,
         moe_topk=2, zero_expert_num=1, **_LATENT),
    _lm("minicpm3", "latent attention", **_LATENT),
    _lm("mamba", "state space", state_size=4, time_step_rank=4),
    _lm("falcon_mamba", "state space", state_size=4, time_step_rank=4),
    _fixed("mamba2", num_heads=4, head_dim=16, state_size=8, n_groups=1,
        chunk_size=8),
    _lm("rwkv", "state space", attention_hidden_size=32),
    _lm("xlstm", "state space", num_heads=4, chunk_size=8),
    _lm("lfm2", "hybrid", full_attn_idxs=[1, 3], num_hidden_layers=4, block_multiple_of=8),
    _lm("lfm2_moe", "hybrid", layer_types=["conv", "full_attention"] * 2, num_hidden_layers=4,
        num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, num_dense_layers=1),
    _lm("jamba", "hybrid", num_hidden_layers=4, attn_layer_period=2, attn_layer_offset=1,
        num_experts=2, mamba_d_state=4, mamba_dt_rank=4, use_mamba_kernels=False),
    _lm("bamba", "hybrid", num_hidden_layers=4, attn_layer_indices=[1, 3], **_MAMBA2),
    _lm("falcon_h1", "hybrid", mamba_d_ssm=64, **_MAMBA2),
    _lm("granitemoehybrid", "hybrid", num_hidden_layers=4, num_local_experts=4,
        shared_intermediate_size=32, layer_types=["mamba", "attention"] * 2, **_MAMBA2),
    _lm("nemotron_h", "hybrid", layers_block_type=["mamba", "attention", "mlp"] * 2,
        ssm_state_size=8, mamba_num_heads=4, mamba_head_dim=16, n_groups=1, chunk_size=8),
    _lm("zamba", "hybrid", num_hidden_layers=4, mamba_d_state=4, n_mamba_heads=2,
        attn_layer_period=2, attn_layer_offset=1, use_mamba_kernels=False,
        attention_head_dim=16, layers_block_type=["mamba", "hybrid"] * 2),
    _lm("zamba2", "hybrid", num_hidden_layers=4, mamba_d_state=8, n_mamba_heads=4,
        layers_block_type=["mamba", "hybrid"] * 2, chunk_size=8, num_mem_blocks=1,
        use_mamba_kernels=False),
    _lm("recurrent_gemma", "hybrid", lru_width=32, attention_window_size=4,
        num_hidden_layers=4, block_types=["recurrent", "attention"]),
    _lm("qwen3_next", "hybrid", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
        shared_expert_intermediate_size=16, **_LINEAR),
    _lm("qwen3_5", "hybrid", kind="qwen3_5_text", **_LINEAR),
    _lm("olmo_hybrid", "hybrid", **_LINEAR),
    _lm("minimax", "hybrid", num_local_experts=4, num_experts_per_tok=2, block_size=8,
        layer_types=["linear_attention", "full_attention"] * 2, num_hidden_layers=4),
    _lm("kimi_linear", "hybrid", num_local_experts=4, num_experts_per_tok=2,
        moe_intermediate_size=16, num_hidden_layers=4, linear_head_dim=8, linear_num_heads=4,
        layer_types=["linear_attention", "full_attention"] * 2,
        mlp_layer_types=["dense", "sparse", "sparse", "sparse"], **_LATENT),
)  # fmt: skip
