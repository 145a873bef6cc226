"""Encoders and encoder-decoders of ``transformers``."""

from __future__ import annotations

from typing import Any, Final

from .configured import TEXT, row
from .rows import Model, Values

_MASKED: Values = {
    "input_ids": "i96 batch length",
    "attention_mask": "m batch length",
}
_TOKENS: Values = {"input_ids": "i96 batch length"}
_PAIR: Values = {
    "input_ids": "i96 batch length",
    "decoder_input_ids": "i96 batch target",
}
_BERT: Values = {
    "type_vocab_size": 2, "embedding_size": 16, "intermediate_size": 64, "word_embed_proj_dim": 32,
}  # fmt: skip


def _encoder(name: str, *, kind: str = "", masked: bool = True, **values: Any) -> Model:
    inputs = _MASKED if masked else _TOKENS
    return row(name, "encoder", "AutoModel", inputs, {**TEXT, **_BERT, **values}, kind=kind)


_SEQ2SEQ: Values = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "d_kv": 8,
    "d_ff": 64, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4, "vocab_size": 96,
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 1, "use_cache": False, "forced_eos_token_id": 2,
    "relative_attention_num_buckets": 8,
}  # fmt: skip


def _seq2seq(name: str, auto: str = "AutoModelForSeq2SeqLM", **values: Any) -> Model:
    return row(name, "encoder-decoder", auto, _PAIR, {**_SEQ2SEQ, **values})


_T5GEMMA: Values = {**TEXT, "sliding_window": 4, "query_pre_attn_scalar": 8,
                   "layer_types": ["sliding_attention", "full_attention"]}  # fmt: skip

MODELS: Final = (
    *map(_encoder, (
        "bert", "roberta", "electra", "camembert", "ernie", "rembert", "megatron-bert",
        "roformer", "squeezebert", "data2vec-text", "xlm-roberta", "xlm-roberta-xl", "splinter",
        "mpnet", "layoutlm", "ibert", "roberta-prelayernorm", "eurobert", "nomic_bert",
    )),
    _encoder("albert", num_hidden_groups=2, inner_group_num=1),
    _encoder("distilbert", dim=32, n_layers=2, n_heads=4, hidden_dim=64),
    _encoder("convbert", conv_kernel_size=3, embedding_size=32),
    _encoder("mobilebert", true_hidden_size=16, intra_bottleneck_size=16, embedding_size=16),
    _encoder("deberta", relative_attention=True, pos_att_type=["c2p", "p2c"],
             max_relative_positions=8, position_biased_input=False),
    _encoder("deberta-v2", relative_attention=True, pos_att_type=["c2p", "p2c"],
             position_buckets=4, max_relative_positions=16, norm_rel_ebd="layer_norm",
             share_att_key=True, position_biased_input=False),
    _encoder("modernbert", local_attention=4, global_attn_every_n_layers=2),
    _encoder("esm", vocab_size=96, position_embedding_type="rotary", mask_token_id=3),
    _encoder("nystromformer", num_landmarks=4, segment_means_seq_len=4, conv_kernel_size=3),
    _encoder("xlnet", d_model=32, n_layer=2, n_head=4, d_inner=64),
    _encoder("xlm", emb_dim=32, n_layers=2, n_heads=4),
    _encoder("flaubert", emb_dim=32, n_layers=2, n_heads=4),
    _encoder("funnel", block_sizes=[1, 1], n_head=4, d_model=32, d_head=8, d_inner=64),
    _encoder("fnet", masked=False),
    _encoder("longformer", attention_window=4),
    _encoder("big_bird", attention_type="original_full"),
    _encoder("luke", entity_vocab_size=10, entity_emb_size=16),
    *map(_seq2seq, (
        "t5", "mt5", "umt5", "bart", "mbart", "pegasus", "blenderbot", "blenderbot-small",
        "marian", "m2m_100", "plbart", "mvp",
    )),
    row("t5_gated", "encoder-decoder", "AutoModelForSeq2SeqLM", _PAIR,
        {**_SEQ2SEQ, "feed_forward_proj": "gated-gelu"}, kind="t5"),
    _seq2seq("longt5", local_radius=3, encoder_attention_type="local"),
    _seq2seq("switch_transformers", num_experts=4, num_sparse_encoder_layers=1,
             num_sparse_decoder_layers=1, expert_capacity=64),
    _seq2seq("nllb-moe", num_experts=4, encoder_sparse_step=2, decoder_sparse_step=2,
             expert_capacity=64),
    _seq2seq("fsmt", src_vocab_size=96, tgt_vocab_size=96, langs=["en", "de"]),
    _seq2seq("prophetnet", hidden_size=32, num_encoder_layers=2, num_encoder_attention_heads=4,
             num_decoder_attention_heads=4, ngram=2, num_buckets=8),
    _seq2seq("led", attention_window=4),
    _seq2seq("bigbird_pegasus", attention_type="original_full"),
    _seq2seq("t5gemma", encoder=_T5GEMMA, decoder=_T5GEMMA),
)  # fmt: skip
