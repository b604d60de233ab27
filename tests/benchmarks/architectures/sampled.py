"""A sample of architectures by family: small configs with random weights, without downloads."""

from __future__ import annotations

import torch
import zoo
from torch import nn

from .architecture import (
    ANY_IMAGE,
    BART,
    DECODER,
    ENCODER,
    IMAGE,
    PATCHES,
    SPEECH,
    T5,
    TEXT,
    TEXTS,
    Architecture,
    Config,
    Family,
    Given,
    floats,
    ids,
    image,
    of,
    of_transformers,
    text,
    transformer,
)

_EXPERTS: Config = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2}
_SWIN: Config = {"image_size": 64, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}


def _detr() -> nn.Module:
    from transformers import ResNetConfig

    backbone = ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 32, 64], depths=[1] * 4, out_features=["stage4"])
    sizes = {"d_model": 64, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
    config = {**sizes, "backbone_config": backbone, "use_timm_backbone": False, "backbone": None, "num_queries": 8}
    return transformer("DetrForObjectDetection", config)


def _rt_detr() -> nn.Module:
    from transformers import RTDetrResNetConfig

    backbone = RTDetrResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32, 32, 64], depths=[1] * 4, out_features=["stage2", "stage3", "stage4"]
    )
    sizes = {"d_model": 32, "encoder_hidden_dim": 32, "decoder_layers": 1, "decoder_ffn_dim": 64, "encoder_ffn_dim": 64}
    config = {**sizes, "encoder_in_channels": [32, 32, 64], "decoder_in_channels": [32] * 3, "backbone_config": backbone, "num_queries": 10}
    return transformer("RTDetrForObjectDetection", {**config, "anchor_image_size": [64, 64]})


def _sam() -> nn.Module:
    vision = {
        **PATCHES,
        "output_channels": 32,
        "num_pos_feats": 16,
        "global_attn_indexes": [1],
        "window_size": 3,
        "mlp_dim": 128,
    }
    decoder = {"hidden_size": 32, "mlp_dim": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "iou_head_hidden_dim": 32}
    prompt = {"hidden_size": 32, "image_size": 64, "patch_size": 16, "image_embedding_size": 4}
    config = {"vision_config": vision, "prompt_encoder_config": prompt, "mask_decoder_config": decoder}
    return transformer("SamModel", config)


def _points(batch: int = 1, points: int = 2) -> zoo.Inputs:
    return zoo.Inputs(kwargs={"pixel_values": torch.randn(batch, 3, 64, 64), "input_points": torch.rand(batch, 1, points, 2) * 64})


def _tokens(batch: int = 2, length: int = 16) -> zoo.Inputs:
    return zoo.Inputs((ids(batch, length),))


def _long_text(batch: int = 2, length: int = 64) -> zoo.Inputs:
    return text(batch, length)


def _heard(batch: int = 1, written: int = 8) -> zoo.Inputs:
    return zoo.Inputs(kwargs={"input_features": torch.randn(batch, 80, 64), "decoder_input_ids": ids(batch, written)})


def _captioned(batch: int = 2, length: int = 16) -> zoo.Inputs:
    return zoo.Inputs(kwargs={**text(batch, length).kwargs, **image(batch).kwargs})


def _noise(batch: int = 1, size: int = 32) -> zoo.Inputs:
    return zoo.Inputs((torch.randn(batch, 3, size, size), torch.tensor([1])))


def _prompted(batch: int = 1, size: int = 16, length: int = 8) -> zoo.Inputs:
    return zoo.Inputs(
        (torch.randn(batch, 4, size, size), torch.randn(batch, length, 64)), {"timestep": torch.ones(batch, dtype=torch.int64)}
    )


def _labelled(batch: int = 1, size: int = 16) -> zoo.Inputs:
    labels = torch.arange(batch) + 3
    return zoo.Inputs((torch.randn(batch, 4, size, size),), {"timestep": torch.ones(batch, dtype=torch.int64), "class_labels": labels})


def _graph(nodes: int = 10, edges: int = 40) -> zoo.Inputs:
    return zoo.Inputs((torch.randn(nodes, 16), torch.randint(0, nodes, (2, edges))))


def _latents(batch: int = 1, size: int = 16, length: int = 8) -> zoo.Inputs:
    return zoo.Inputs((torch.randn(batch, 4, size, size), torch.ones(batch, dtype=torch.int64), torch.randn(batch, length, 32)))


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


_VOLUME = floats("batch:1", 1, "depth:16", "height:16", "width:16", batch=3, depth=24, height=32, width=16)
_LARGE_VOLUME = floats("batch:1", 1, "depth:32", "height:32", "width:32", batch=3, depth=48, height=64, width=32)

FAMILIES: dict[str, Family] = {
    "text-encoder": {
        **of_transformers(
            TEXT,
            ENCODER,
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
        **of_transformers(TEXT, {}, DistilBertModel={"vocab_size": 500, "dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128}),
        **of_transformers(Given(_tokens, batch=3, length=24), ENCODER, FNetModel={"tpu_short_seq_length": 16}),
        **of_transformers(
            Given(_long_text, batch=3, length=96),
            {**ENCODER, "block_size": 8, "num_random_blocks": 1},
            BigBirdModel={"attention_type": "block_sparse"},
        ),
        "TransformerEncoder": Architecture(
            lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2),
            floats("batch:2", "length:16", 64, batch=3, length=24),
        ),
    },
    "text-decoder": {
        **of_transformers(
            TEXT,
            DECODER,
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
        **of_transformers(TEXT, {"vocab_size": 500, "n_embd": 64, "n_layer": 2, "n_head": 4, "use_cache": False}, GPT2LMHeadModel={}),
        **of_transformers(
            TEXT, {"vocab_size": 500, "n_embd": 64, "n_layer": 2, "n_head": 4, "use_cache": False}, GPTJForCausalLM={"rotary_dim": 8}
        ),
        **of_transformers(TEXT, {"vocab_size": 500, "hidden_size": 64, "n_layer": 2, "n_head": 4, "use_cache": False}, BloomForCausalLM={}),
        **of_transformers(TEXT, {**ENCODER, "use_cache": False}, OPTForCausalLM={"ffn_dim": 128, "word_embed_proj_dim": 64}),
    },
    "experts": of_transformers(TEXT, {**DECODER, **_EXPERTS}, MixtralForCausalLM={}, Qwen3MoeForCausalLM={"moe_intermediate_size": 32}),
    "encoder-decoder": {
        **of_transformers(TEXTS, BART, BartModel={}, MarianModel={"pad_token_id": 1}, PegasusModel={}, MBartModel={}),
        **of_transformers(TEXTS, T5, T5Model={}, LongT5Model={"encoder_attention_type": "local", "local_radius": 4}, MT5Model={}),
    },
    "vision-transformer": {
        **of_transformers(IMAGE, PATCHES, ViTModel={}, DeiTModel={}, BeitModel={"use_relative_position_bias": True}, Dinov2Model={}),
        **of_transformers(IMAGE, {**PATCHES, "decoder_hidden_size": 32, "decoder_num_hidden_layers": 1}, ViTMAEForPreTraining={}),
        **of_transformers(IMAGE, _SWIN, SwinModel={}, Swinv2Model={}),
        **of_transformers(
            ANY_IMAGE,
            {"hidden_sizes": [16, 32, 32, 64], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4]},
            SegformerModel={},
        ),
        **of_transformers(
            IMAGE,
            {"hidden_sizes": [16, 32, 32, 64], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4]},
            PvtModel={"image_size": 64},
        ),
        **of_transformers(
            IMAGE, {"image_size": 64, "hidden_sizes": [32, 48, 64], "num_attention_heads": [2, 3, 4], "depths": [1, 1, 1]}, LevitModel={}
        ),
        **of_transformers(ANY_IMAGE, {"image_size": 64, "embed_dim": 16, "depths": [1] * 4}, FocalNetModel={}),
        **of_transformers(ANY_IMAGE, {"hidden_sizes": [16, 16, 32, 32], "depths": [1] * 4}, PoolFormerModel={}),
        **of_transformers(
            IMAGE, {"image_size": 64, "hidden_sizes": [32, 48, 64], "neck_hidden_sizes": [16, 16, 24, 32, 48, 64, 80]}, MobileViTModel={}
        ),
    },
    "vision-convolution": {
        **of_transformers(
            ANY_IMAGE, {"hidden_sizes": [16, 32], "depths": [1, 1], "embedding_size": 16}, ResNetModel={}, RegNetModel={"groups_width": 8}
        ),
        **of_transformers(ANY_IMAGE, {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2}, ConvNextModel={}, ConvNextV2Model={}),
        **of_transformers(
            ANY_IMAGE,
            {},
            MobileNetV2Model={"depth_multiplier": 0.35},
            EfficientNetModel={"width_coefficient": 0.25, "depth_coefficient": 0.2, "hidden_dim": 320},
        ),
    },
    "detection-segmentation": {
        **of_transformers(
            ANY_IMAGE,
            {"hidden_sizes": [16, 32, 32, 64], "depths": [1] * 4, "num_attention_heads": [1, 2, 2, 4]},
            SegformerForSemanticSegmentation={"decoder_hidden_size": 32},
        ),
        "DetrForObjectDetection": Architecture(_detr, ANY_IMAGE),
        "RTDetrForObjectDetection": Architecture(_rt_detr, IMAGE),
        "SamModel": Architecture(_sam, Given(_points, batch=3, points=5)),
        **of_transformers(IMAGE, PATCHES, YolosForObjectDetection={"image_size": [64, 64], "num_detection_tokens": 8}),
        **of_transformers(
            IMAGE,
            {**PATCHES, "neck_hidden_sizes": [16, 16, 32, 32], "fusion_hidden_size": 16},
            DPTForDepthEstimation={"num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3]},
        ),
    },
    "audio": {
        **of_transformers(floats("batch:2", "length:2000", batch=3, length=3000), SPEECH, Wav2Vec2Model={}, HubertModel={}),
        **of_transformers(
            Given(_heard, batch=3, written=11),
            {**BART, "max_source_positions": 32, "pad_token_id": 0, "decoder_start_token_id": 1, "bos_token_id": 1, "eos_token_id": 2},
            WhisperModel={},
        ),
        **of_transformers(
            floats("batch:1", 64, 32, batch=3),
            {key: value for key, value in PATCHES.items() if key != "image_size"} | {"max_length": 64, "num_mel_bins": 32},
            ASTModel={},
        ),
        "Spectrogram": Architecture(_Spectrogram, floats("batch:2", "length:1024", batch=3, length=1600)),
    },
    "image-text": {
        **of_transformers(
            Given(_captioned, batch=3, length=24),
            {"text_config": {**ENCODER, "eos_token_id": 2, "bos_token_id": 1}, "vision_config": PATCHES, "projection_dim": 32},
            CLIPModel={},
            SiglipModel={},
        ),
        **of_transformers(IMAGE, PATCHES, CLIPVisionModel={}),
        **of_transformers(TEXT, {**ENCODER, "eos_token_id": 2, "bos_token_id": 1}, CLIPTextModel={}),
    },
    "diffusion": {
        "UNet2DConditionModel": of(
            "diffusers",
            "UNet2DConditionModel",
            Given(_latents, batch=3, size=24, length=11),
            sample_size=16,
            block_out_channels=(32, 64),
            layers_per_block=1,
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
            cross_attention_dim=32,
        ),
        "UNet2DModel": of(
            "diffusers",
            "UNet2DModel",
            Given(_noise, batch=3, size=48),
            sample_size=32,
            block_out_channels=(32, 64),
            layers_per_block=1,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        ),
        "AutoencoderKL": of(
            "diffusers",
            "AutoencoderKL",
            floats("batch:1", 3, "height:32", "width:32", batch=3, height=48, width=64),
            block_out_channels=(32, 64),
            layers_per_block=1,
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
        ),
        "VQModel": of("diffusers", "VQModel", floats("batch:1", 3, "height:32", "width:32", batch=3, height=48, width=64)),
        "PixArtTransformer2DModel": of(
            "diffusers",
            "PixArtTransformer2DModel",
            Given(_prompted, batch=3, size=24, length=11),
            num_attention_heads=4,
            attention_head_dim=16,
            num_layers=2,
            sample_size=16,
            caption_channels=64,
            cross_attention_dim=64,
            out_channels=8,
            use_additional_conditions=False,
        ),
        "DiTTransformer2DModel": of(
            "diffusers",
            "DiTTransformer2DModel",
            Given(_labelled, batch=3),
            num_attention_heads=4,
            attention_head_dim=16,
            num_layers=2,
            sample_size=16,
            in_channels=4,
            out_channels=8,
        ),
    },
    "volume": {
        "UNet": of(
            "monai.networks.nets",
            "UNet",
            _VOLUME,
            spatial_dims=3,
            in_channels=1,
            out_channels=2,
            channels=(4, 8, 16),
            strides=(2, 2),
            num_res_units=1,
        ),
        "DynUNet": of(
            "monai.networks.nets",
            "DynUNet",
            _VOLUME,
            spatial_dims=3,
            in_channels=1,
            out_channels=2,
            kernel_size=[3] * 3,
            strides=[1, 2, 2],
            upsample_kernel_size=[2, 2],
        ),
        "AttentionUnet": of(
            "monai.networks.nets",
            "AttentionUnet",
            _VOLUME,
            spatial_dims=3,
            in_channels=1,
            out_channels=2,
            channels=(4, 8, 16),
            strides=(2, 2),
        ),
        "HighResNet": of("monai.networks.nets", "HighResNet", _VOLUME, spatial_dims=3, in_channels=1, out_channels=2),
        "SegResNet": of("monai.networks.nets", "SegResNet", _VOLUME, in_channels=1, init_filters=8),
        "VNet": of("monai.networks.nets", "VNet", _LARGE_VOLUME),
        "DenseNet": of(
            "monai.networks.nets",
            "DenseNet",
            _LARGE_VOLUME,
            spatial_dims=3,
            in_channels=1,
            out_channels=2,
            init_features=8,
            growth_rate=4,
            block_config=(2, 2),
        ),
    },
    "recurrent": {
        "LSTM": Architecture(lambda: nn.LSTM(16, 32, 2, batch_first=True), floats("batch:2", "length:8", 16, batch=3, length=11)),
        "GRU": Architecture(lambda: nn.GRU(16, 32, bidirectional=True), floats("length:8", "batch:2", 16, batch=3, length=11)),
        "RNN": Architecture(lambda: nn.RNN(16, 32), floats("length:8", "batch:2", 16, batch=3, length=11)),
        "Decoding": Architecture(_Decoding, floats("batch:2", 16, batch=3)),
    },
    "small": {
        "MLP": Architecture(zoo.MLPModel, floats("batch:97", 8, batch=5)),
        "GraphConvolution": Architecture(_GraphConvolution, Given(_graph, nodes=12, edges=50)),
        "Triangles": Architecture(_Triangles, floats("batch:10", 3, 3, batch=7)),
        "Canvas": Architecture(_Canvas, floats("batch:2", 3, 16, 16, batch=3)),
        "Autoencoder": Architecture(
            lambda: nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.SiLU(), nn.ConvTranspose2d(8, 3, 2, 2), nn.Sigmoid()),
            floats("batch:2", 3, "height:32", "width:32", batch=3, height=48, width=64),
        ),
    },
}
"""The architectures by family and name."""
