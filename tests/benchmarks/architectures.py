"""A sample of architectures by family: small configs with random weights, without downloads."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import torch
import zoo
from torch import nn

from .models import Subject

Builder = Callable[[], Subject]

_TEXT: Mapping[str, Any] = {
    "vocab_size": 500,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
}
_DECODER: Mapping[str, Any] = {**_TEXT, "use_cache": False, "num_key_value_heads": 2, "head_dim": 16}
_PATCHES: Mapping[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "image_size": 64,
    "patch_size": 16,
}
_EXPERTS: Mapping[str, Any] = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2}
_BART: Mapping[str, Any] = {
    "vocab_size": 500,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "max_position_embeddings": 128,
    "use_cache": False,
}
_T5: Mapping[str, Any] = {
    "vocab_size": 500,
    "d_model": 64,
    "d_kv": 16,
    "d_ff": 128,
    "num_layers": 2,
    "num_heads": 4,
    "use_cache": False,
    "decoder_start_token_id": 0,
}
_SWIN: Mapping[str, Any] = {"image_size": 64, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
_SPEECH: Mapping[str, Any] = {
    **_TEXT,
    "conv_dim": (32, 32),
    "conv_stride": (5, 4),
    "conv_kernel": (10, 8),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}


def _ids(length: int = 16) -> torch.Tensor:
    return torch.randint(3, 500, (2, length))


def _text(length: int = 16) -> zoo.Inputs:
    ids = _ids(length)
    return zoo.Inputs(kwargs={"input_ids": ids, "attention_mask": torch.ones_like(ids)})


def _both() -> zoo.Inputs:
    return zoo.Inputs(kwargs={**_text().kwargs, "decoder_input_ids": _ids(8)})


def _image(size: int = 64) -> zoo.Inputs:
    return zoo.Inputs(kwargs={"pixel_values": torch.randn(2, 3, size, size)})


def _transformers(name: str, inputs: Callable[[], zoo.Inputs], config: Mapping[str, Any]) -> Subject:
    """`name` is that of the model class; the class of its config has the longest name that begins alike."""
    package = importlib.import_module("transformers")
    stem = next(name[:end] for end in range(len(name), 0, -1) if hasattr(package, f"{name[:end]}Config"))
    settings = getattr(package, f"{stem}Config")(**config)
    return Subject(getattr(package, name)(settings), inputs())


def _entries(inputs: Callable[[], zoo.Inputs], common: Mapping[str, Any], **own: Mapping[str, Any]) -> dict[str, Builder]:
    """A builder for each class of transformers, with the part of its config that differs from `common`."""
    return {name: functools.partial(_transformers, name, inputs, {**common, **config}) for name, config in own.items()}


def _detr() -> Subject:
    from transformers import ResNetConfig

    backbone = ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 32, 64], depths=[1] * 4, out_features=["stage4"])
    sizes = {"d_model": 64, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
    config = {**sizes, "backbone_config": backbone, "use_timm_backbone": False, "backbone": None, "num_queries": 8}
    return _transformers("DetrForObjectDetection", _image, config)


def _rt_detr() -> Subject:
    from transformers import RTDetrResNetConfig

    backbone = RTDetrResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32, 32, 64], depths=[1] * 4, out_features=["stage2", "stage3", "stage4"]
    )
    sizes = {"d_model": 32, "encoder_hidden_dim": 32, "decoder_layers": 1, "decoder_ffn_dim": 64, "encoder_ffn_dim": 64}
    config = {**sizes, "encoder_in_channels": [32, 32, 64], "decoder_in_channels": [32] * 3, "backbone_config": backbone, "num_queries": 10}
    return _transformers("RTDetrForObjectDetection", _image, {**config, "anchor_image_size": [64, 64]})


def _sam() -> Subject:
    vision = {
        **_PATCHES,
        "output_channels": 32,
        "num_pos_feats": 16,
        "global_attn_indexes": [1],
        "window_size": 3,
        "mlp_dim": 128,
    }
    decoder = {"hidden_size": 32, "mlp_dim": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "iou_head_hidden_dim": 32}
    prompt = {"hidden_size": 32, "image_size": 64, "patch_size": 16, "image_embedding_size": 4}
    inputs = zoo.Inputs(kwargs={"pixel_values": torch.randn(1, 3, 64, 64), "input_points": torch.rand(1, 1, 2, 2) * 64})
    config = {"vision_config": vision, "prompt_encoder_config": prompt, "mask_decoder_config": decoder}
    return _transformers("SamModel", lambda: inputs, config)


def _made(make: Callable[[], nn.Module], *inputs: Callable[[], Any], **named: Callable[[], Any]) -> Builder:
    return lambda: Subject(make(), zoo.Inputs(tuple(each() for each in inputs), {name: each() for name, each in named.items()}))


def _of(package: str, name: str, inputs: Callable[[], zoo.Inputs], **config: Any) -> Builder:
    return lambda: Subject(getattr(importlib.import_module(package), name)(**config), inputs())


def _floats(*shape: int) -> Callable[[], torch.Tensor]:
    return lambda: torch.randn(*shape)


def _given(*shape: int) -> Callable[[], zoo.Inputs]:
    return lambda: zoo.Inputs((torch.randn(*shape),))


def _latents(channels: int = 4, width: int = 32) -> zoo.Inputs:
    return zoo.Inputs((torch.randn(1, channels, 16, 16), torch.tensor([1]), torch.randn(1, 8, width)))


class _GraphConvolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 8)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        for layer in (self.first, self.second):
            messages = layer(x)[edges[0]]
            degree = torch.zeros(x.shape[0]).index_add_(0, edges[1], torch.ones(edges.shape[1])).clamp_(min=1)
            x = torch.relu(torch.zeros(x.shape[0], messages.shape[1]).index_add_(0, edges[1], messages) / degree[:, None])
        return x


class _Triangles(nn.Module):
    """Normals and areas of triangles."""

    def forward(self, points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first, second = points[:, 1] - points[:, 0], points[:, 2] - points[:, 0]
        normals = torch.linalg.cross(first, second)
        lengths = torch.linalg.vector_norm(normals, dim=-1, keepdim=True)
        return normals / lengths, torch.addcdiv(torch.zeros(1), lengths, torch.full((1,), 2.0))


class _Spectrogram(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        window = torch.hann_window(64)
        return torch.stft(x, 64, hop_length=16, window=window, return_complex=True).abs().log1p()


class _Canvas(nn.Module):
    """Pastes patches into an image and marks its border."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        canvas = torch.zeros(x.shape[0], 3, 32, 32)
        canvas[:, :, 4:20, 8:24] = x
        canvas[:, 0, 0] = 1
        canvas[..., -1] += 0.5
        canvas[:, 1].mul_(2)
        return canvas


class _Decoding(nn.Module):
    """Greedy decoding with a GRU cell, which writes every step into its result."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(16, 16), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        written = torch.zeros(x.shape[0], 6, 16)
        state = x
        for step in range(6):
            state = self.cell(x, state)
            x = torch.softmax(self.head(state), -1)
            written[:, step] = x
        return written


FAMILIES: dict[str, dict[str, Builder]] = {
    "text-encoder": {
        **_entries(
            _text,
            _TEXT,
            BertModel={},
            RobertaModel={},
            ElectraModel={"embedding_size": 32},
            AlbertModel={"embedding_size": 32},
            ConvBertModel={"embedding_size": 32},
            MPNetModel={},
            DebertaV2Model={"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
            MegatronBertModel={},
            RoFormerModel={"embedding_size": 64},
            ModernBertModel={"local_attention": 8},
            SqueezeBertModel={"embedding_size": 64},
        ),
        **_entries(_text, {}, DistilBertModel={"vocab_size": 500, "dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128}),
        **_entries(lambda: zoo.Inputs((_ids(),)), _TEXT, FNetModel={"tpu_short_seq_length": 16}),
        **_entries(lambda: _text(64), {**_TEXT, "block_size": 8, "num_random_blocks": 1}, BigBirdModel={"attention_type": "block_sparse"}),
        "TransformerEncoder": _made(
            lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2), _floats(2, 16, 64)
        ),
    },
    "text-decoder": {
        **_entries(
            _text,
            _DECODER,
            LlamaForCausalLM={},
            MistralForCausalLM={},
            Qwen2ForCausalLM={},
            Qwen3ForCausalLM={},
            Gemma2ForCausalLM={},
            PhiForCausalLM={},
            OlmoForCausalLM={},
            GPTNeoXForCausalLM={},
            StableLmForCausalLM={},
        ),
        **_entries(_text, {"vocab_size": 500, "n_embd": 64, "n_layer": 2, "n_head": 4, "use_cache": False}, GPT2LMHeadModel={}),
        **_entries(
            _text, {"vocab_size": 500, "n_embd": 64, "n_layer": 2, "n_head": 4, "use_cache": False}, GPTJForCausalLM={"rotary_dim": 8}
        ),
        **_entries(_text, {"vocab_size": 500, "hidden_size": 64, "n_layer": 2, "n_head": 4, "use_cache": False}, BloomForCausalLM={}),
        **_entries(_text, {**_TEXT, "use_cache": False}, OPTForCausalLM={"ffn_dim": 128, "word_embed_proj_dim": 64}),
    },
    "experts": _entries(_text, {**_DECODER, **_EXPERTS}, MixtralForCausalLM={}, Qwen3MoeForCausalLM={"moe_intermediate_size": 32}),
    "encoder-decoder": {
        **_entries(_both, _BART, BartModel={}, MarianModel={"pad_token_id": 1}, PegasusModel={}, MBartModel={}),
        **_entries(_both, _T5, T5Model={}, LongT5Model={"encoder_attention_type": "local", "local_radius": 4}, MT5Model={}),
    },
    "vision-transformer": {
        **_entries(_image, _PATCHES, ViTModel={}, DeiTModel={}, BeitModel={"use_relative_position_bias": True}, Dinov2Model={}),
        **_entries(_image, {**_PATCHES, "decoder_hidden_size": 32, "decoder_num_hidden_layers": 1}, ViTMAEForPreTraining={}),
        **_entries(_image, _SWIN, SwinModel={}, Swinv2Model={}),
        **_entries(
            _image,
            {"hidden_sizes": [16, 32, 32, 64], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4]},
            SegformerModel={},
            PvtModel={"image_size": 64},
        ),
        **_entries(
            _image, {"image_size": 64, "hidden_sizes": [32, 48, 64], "num_attention_heads": [2, 3, 4], "depths": [1, 1, 1]}, LevitModel={}
        ),
        **_entries(_image, {"image_size": 64, "embed_dim": 16, "depths": [1] * 4}, FocalNetModel={}),
        **_entries(_image, {"hidden_sizes": [16, 16, 32, 32], "depths": [1] * 4}, PoolFormerModel={}),
        **_entries(
            _image, {"image_size": 64, "hidden_sizes": [32, 48, 64], "neck_hidden_sizes": [16, 16, 24, 32, 48, 64, 80]}, MobileViTModel={}
        ),
    },
    "vision-convolution": {
        **_entries(
            _image, {"hidden_sizes": [16, 32], "depths": [1, 1], "embedding_size": 16}, ResNetModel={}, RegNetModel={"groups_width": 8}
        ),
        **_entries(_image, {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2}, ConvNextModel={}, ConvNextV2Model={}),
        **_entries(
            _image,
            {},
            MobileNetV2Model={"depth_multiplier": 0.35},
            EfficientNetModel={"width_coefficient": 0.25, "depth_coefficient": 0.2, "hidden_dim": 320},
        ),
    },
    "detection-segmentation": {
        **_entries(
            _image,
            {"hidden_sizes": [16, 32, 32, 64], "depths": [1] * 4, "num_attention_heads": [1, 2, 2, 4]},
            SegformerForSemanticSegmentation={"decoder_hidden_size": 32},
        ),
        "DetrForObjectDetection": _detr,
        "RTDetrForObjectDetection": _rt_detr,
        "SamModel": _sam,
        **_entries(_image, _PATCHES, YolosForObjectDetection={"image_size": [64, 64], "num_detection_tokens": 8}),
        **_entries(
            _image,
            {**_PATCHES, "neck_hidden_sizes": [16, 16, 32, 32], "fusion_hidden_size": 16},
            DPTForDepthEstimation={"num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3]},
        ),
    },
    "audio": {
        **_entries(lambda: zoo.Inputs((torch.randn(2, 2000),)), _SPEECH, Wav2Vec2Model={}, HubertModel={}),
        **_entries(
            lambda: zoo.Inputs(kwargs={"input_features": torch.randn(1, 80, 64), "decoder_input_ids": _ids(8)[:1]}),
            {**_BART, "max_source_positions": 32, "pad_token_id": 0, "decoder_start_token_id": 1, "bos_token_id": 1, "eos_token_id": 2},
            WhisperModel={},
        ),
        **_entries(
            lambda: zoo.Inputs((torch.randn(1, 64, 32),)),
            {key: value for key, value in _PATCHES.items() if key != "image_size"} | {"max_length": 64, "num_mel_bins": 32},
            ASTModel={},
        ),
        "Spectrogram": _made(_Spectrogram, _floats(2, 1024)),
    },
    "image-text": {
        **_entries(
            lambda: zoo.Inputs(kwargs={**_text().kwargs, **_image().kwargs}),
            {"text_config": {**_TEXT, "eos_token_id": 2, "bos_token_id": 1}, "vision_config": _PATCHES, "projection_dim": 32},
            CLIPModel={},
            SiglipModel={},
        ),
        **_entries(_image, _PATCHES, CLIPVisionModel={}),
        **_entries(_text, {**_TEXT, "eos_token_id": 2, "bos_token_id": 1}, CLIPTextModel={}),
    },
    "diffusion": {
        "UNet2DConditionModel": _of(
            "diffusers",
            "UNet2DConditionModel",
            _latents,
            sample_size=16,
            block_out_channels=(32, 64),
            layers_per_block=1,
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
            cross_attention_dim=32,
        ),
        "UNet2DModel": _of(
            "diffusers",
            "UNet2DModel",
            lambda: zoo.Inputs((torch.randn(1, 3, 32, 32), torch.tensor([1]))),
            sample_size=32,
            block_out_channels=(32, 64),
            layers_per_block=1,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        ),
        "AutoencoderKL": _of(
            "diffusers",
            "AutoencoderKL",
            _given(1, 3, 32, 32),
            block_out_channels=(32, 64),
            layers_per_block=1,
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
        ),
        "VQModel": _of("diffusers", "VQModel", _given(1, 3, 32, 32)),
        "PixArtTransformer2DModel": _of(
            "diffusers",
            "PixArtTransformer2DModel",
            lambda: zoo.Inputs((torch.randn(1, 4, 16, 16), torch.randn(1, 8, 64)), {"timestep": torch.tensor([1])}),
            num_attention_heads=4,
            attention_head_dim=16,
            num_layers=2,
            sample_size=16,
            caption_channels=64,
            cross_attention_dim=64,
            out_channels=8,
            use_additional_conditions=False,
        ),
        "DiTTransformer2DModel": _of(
            "diffusers",
            "DiTTransformer2DModel",
            lambda: zoo.Inputs((torch.randn(1, 4, 16, 16),), {"timestep": torch.tensor([1]), "class_labels": torch.tensor([3])}),
            num_attention_heads=4,
            attention_head_dim=16,
            num_layers=2,
            sample_size=16,
            in_channels=4,
            out_channels=8,
        ),
    },
    "volume": {
        "UNet": _of(
            "monai.networks.nets",
            "UNet",
            _given(1, 1, 16, 16, 16),
            spatial_dims=3,
            in_channels=1,
            out_channels=2,
            channels=(4, 8, 16),
            strides=(2, 2),
            num_res_units=1,
        ),
        "DynUNet": _of(
            "monai.networks.nets",
            "DynUNet",
            _given(1, 1, 16, 16, 16),
            spatial_dims=3,
            in_channels=1,
            out_channels=2,
            kernel_size=[3] * 3,
            strides=[1, 2, 2],
            upsample_kernel_size=[2, 2],
        ),
        "AttentionUnet": _of(
            "monai.networks.nets",
            "AttentionUnet",
            _given(1, 1, 16, 16, 16),
            spatial_dims=3,
            in_channels=1,
            out_channels=2,
            channels=(4, 8, 16),
            strides=(2, 2),
        ),
        "HighResNet": _of("monai.networks.nets", "HighResNet", _given(1, 1, 16, 16, 16), spatial_dims=3, in_channels=1, out_channels=2),
        "SegResNet": _of("monai.networks.nets", "SegResNet", _given(1, 1, 16, 16, 16), in_channels=1, init_filters=8),
        "VNet": _of("monai.networks.nets", "VNet", _given(1, 1, 32, 32, 32)),
        "DenseNet": _of(
            "monai.networks.nets",
            "DenseNet",
            _given(1, 1, 32, 32, 32),
            spatial_dims=3,
            in_channels=1,
            out_channels=2,
            init_features=8,
            growth_rate=4,
            block_config=(2, 2),
        ),
    },
    "recurrent": {
        "LSTM": _made(lambda: nn.LSTM(16, 32, 2, batch_first=True), _floats(2, 8, 16)),
        "GRU": _made(lambda: nn.GRU(16, 32, bidirectional=True), _floats(8, 2, 16)),
        "RNN": _made(lambda: nn.RNN(16, 32), _floats(8, 2, 16)),
        "Decoding": _made(_Decoding, _floats(2, 16)),
    },
    "small": {
        "MLP": _made(zoo.MLPModel, _floats(97, 8)),
        "GraphConvolution": _made(_GraphConvolution, _floats(10, 16), lambda: torch.randint(0, 10, (2, 40))),
        "Triangles": _made(_Triangles, _floats(10, 3, 3)),
        "Canvas": _made(_Canvas, _floats(2, 3, 16, 16)),
        "Autoencoder": _made(
            lambda: nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.SiLU(), nn.ConvTranspose2d(8, 3, 2, 2), nn.Sigmoid()),
            _floats(2, 3, 32, 32),
        ),
    },
}
"""The builders by family and name."""
