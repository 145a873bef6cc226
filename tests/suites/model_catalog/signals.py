"""Speech, audio, and time series models of ``transformers``."""

from __future__ import annotations

from typing import Any, Final

from .configured import TEXT, row
from .rows import Model, Values

_WAVE: Values = {"input_values": "f batch 160*time"}
_WAV2VEC: Values = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "conv_dim": [16, 16, 16], "conv_stride": [5, 2, 2], "conv_kernel": [10, 3, 2],
    "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 4, "vocab_size": 20,
    "apply_spec_augment": False, "mask_time_prob": 0.0, "squeeze_factor": 2, "num_buckets": 16,
    "max_bucket_distance": 32,
}  # fmt: skip
_FRAMES: Values = {"length": (16, 24, 32, 20)}
_SEQ2SEQ: Values = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "vocab_size": 96,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
    "use_cache": False, "num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 32,
    "input_feat_per_channel": 8, "conv_channels": 16,
}  # fmt: skip


def _speech(name: str, auto: str = "AutoModelForCTC", **values: Any) -> Model:
    return row(name, "speech", auto, _WAVE, {**_WAV2VEC, **values})


_SERIES: Values = {
    "context_length": 16, "prediction_length": 4, "num_input_channels": 3, "d_model": 16,
    "num_attention_heads": 2, "ffn_dim": 32, "num_hidden_layers": 2, "patch_length": 4,
    "patch_stride": 4, "num_layers": 2, "self_attn": True,
}  # fmt: skip
_PAST: Values = {"past_values": "f batch 16 3"}

MODELS: Final = (
    _speech("wav2vec2"),
    row("wav2vec2_layer_norm", "speech", "AutoModelForCTC", _WAVE,
        {**_WAV2VEC, "feat_extract_norm": "layer", "do_stable_layer_norm": True}, kind="wav2vec2"),
    _speech("hubert"),
    _speech("wavlm"),
    _speech("sew"),
    _speech("unispeech", num_ctc_classes=20),
    _speech("unispeech-sat", num_clusters=20),
    _speech("data2vec-audio"),
    _speech("wav2vec2-conformer", conv_depthwise_kernel_size=5),
    row("wav2vec2_conformer_rotary", "speech", "AutoModelForCTC", _WAVE,
        {**_WAV2VEC, "conv_depthwise_kernel_size": 5, "position_embeddings_type": "rotary"},
        kind="wav2vec2-conformer"),
    row("wav2vec2-bert", "speech", "AutoModelForCTC", {"input_features": "f batch length 16"},
        {**_WAV2VEC, "feature_projection_input_dim": 16, "conv_depthwise_kernel_size": 5}),
    row("audio-spectrogram-transformer", "speech", "AutoModelForAudioClassification",
        {"input_values": "f batch 32 16"},
        {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 64, "patch_size": 8, "frequency_stride": 4, "time_stride": 4,
         "max_length": 32, "num_mel_bins": 16}),
    row("whisper", "speech", "WhisperForConditionalGeneration",
        {"input_features": "f batch 8 32", "decoder_input_ids": "i96 batch target"}, _SEQ2SEQ),
    row("speech_to_text", "speech", "Speech2TextForConditionalGeneration",
        {"input_features": "f batch length 8", "decoder_input_ids": "i96 batch target"},
        _SEQ2SEQ, sizes=_FRAMES),
    row("moonshine", "speech", "MoonshineForConditionalGeneration",
        {"input_values": "f batch 768*time", "decoder_input_ids": "i96 batch target"},
        {**TEXT, "encoder_num_hidden_layers": 2, "decoder_num_hidden_layers": 2,
         "encoder_num_attention_heads": 4, "decoder_num_attention_heads": 4,
         "decoder_start_token_id": 1}),
    row("parakeet", "speech", "AutoModel", {"input_features": "f batch length 16"},
        {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 64, "subsampling_conv_channels": 8, "num_mel_bins": 16,
         "conv_kernel_size": 5}, kind="parakeet_encoder", sizes=_FRAMES),
    row("encodec", "audio", "EncodecModel", {"input_values": "f batch 1 160*time"},
        {"num_filters": 4, "hidden_size": 16, "upsampling_ratios": [4, 2], "codebook_size": 16,
         "codebook_dim": 16, "num_lstm_layers": 2, "sampling_rate": 80,
         "target_bandwidths": [0.16]}),
    row("dac", "audio", "DacModel", {"input_values": "f batch 1 160*time"},
        {"encoder_hidden_size": 4, "decoder_hidden_size": 32, "downsampling_ratios": [2, 4],
         "n_codebooks": 2, "codebook_size": 16, "codebook_dim": 4, "hidden_size": 16}),
    row("univnet", "audio", "UnivNetModel",
        {"input_features": "f batch length 8", "noise_sequence": "f batch length 8"},
        {"model_in_channels": 8, "model_hidden_channels": 4, "num_mel_bins": 8,
         "kernel_predictor_hidden_channels": 4}, sizes={"length": (6, 9, 5, 12)}),
    row("patchtst", "time series", "PatchTSTForPrediction", _PAST, _SERIES),
    row("patchtst_channels", "time series", "PatchTSTForRegression", _PAST,
        {**_SERIES, "channel_attention": True, "loss": "mse"}, kind="patchtst"),
    row("patchtsmixer", "time series", "PatchTSMixerForPrediction", _PAST, _SERIES),
    row("patchtsmixer_mix", "time series", "PatchTSMixerForPrediction", _PAST,
        {**_SERIES, "mode": "mix_channel"}, kind="patchtsmixer"),
    *(row(name, "time series", f"{cls}Model",
          {"past_values": "f batch 23", "past_time_features": "f batch 23 2",
           "past_observed_mask": "u batch 23", "future_values": "f batch 8",
           "future_time_features": "f batch 8 2"},
          {"prediction_length": 8, "context_length": 16, "num_time_features": 2, "d_model": 16,
           "encoder_layers": 2, "decoder_layers": 2, "use_cache": False, "label_length": 4,
           "moving_average": 5, "autocorrelation_factor": 2,
           "lags_sequence": [1, 2, 3, 4, 5, 6, 7]})
      for name, cls in (("time_series_transformer", "TimeSeriesTransformer"),
                        ("informer", "Informer"), ("autoformer", "Autoformer"))),
)  # fmt: skip
