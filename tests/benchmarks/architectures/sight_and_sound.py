"""Models of transformers that see and hear: images, video, audio, time series, and images with text."""

from __future__ import annotations

import functools
from collections.abc import Mapping

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
    Architecture,
    Config,
    Family,
    Given,
    ids,
    image,
    of_transformers,
    text,
    transformer,
)

_STAGES: Config = {"hidden_sizes": [16, 32, 32, 64], "depths": [1] * 4, "num_attention_heads": [1, 2, 2, 4], "image_size": 64}
_RESNET: Config = {"embedding_size": 16, "hidden_sizes": [16, 32, 32, 64], "depths": [1] * 4}
_DETECTION: Config = {
    "d_model": 64,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "num_queries": 8,
    "use_timm_backbone": False,
    "backbone": None,
}
_TEXT: Config = {**ENCODER, "eos_token_id": 2, "bos_token_id": 1}
_PAIR: Config = {"text_config": _TEXT, "vision_config": PATCHES, "projection_dim": 32}
_IMAGE_TOKEN = 499
_LANGUAGE: Config = {**DECODER, "model_type": "llama"}
_SEES: Config = {"image_token_id": _IMAGE_TOKEN, "image_token_index": _IMAGE_TOKEN, "projection_dim": 64}


def _video(batch: int = 2, frames: int = 4) -> zoo.Inputs:
    return zoo.Inputs(kwargs={"pixel_values": torch.randn(batch, frames, 3, 64, 64)})


def _wave(batch: int = 2, length: int = 2000) -> zoo.Inputs:
    return zoo.Inputs(kwargs={"input_values": torch.randn(batch, length)})


def _captioned(batch: int = 2, length: int = 16) -> zoo.Inputs:
    return zoo.Inputs(kwargs={**text(batch, length).kwargs, **image(batch).kwargs})


def _packed_patches(batch: int = 2, length: int = 16) -> zoo.Inputs:
    pixels = {"pixel_values": torch.randn(batch, 16, 768), "pixel_attention_mask": torch.ones(batch, 16, dtype=torch.int64)}
    return zoo.Inputs(kwargs={**text(batch, length).kwargs, **pixels, "spatial_shapes": torch.tensor([[4, 4]] * batch)})


def _seen(batch: int = 2, length: int = 24, patches: int = 16) -> zoo.Inputs:
    """A prompt in which each image stands as `patches` tokens."""
    tokens = torch.randint(3, _IMAGE_TOKEN, (batch, length))
    tokens[:, 1 : 1 + patches] = _IMAGE_TOKEN
    return zoo.Inputs(kwargs={"input_ids": tokens, "attention_mask": torch.ones_like(tokens), **image(batch).kwargs})


def _seen_prefix(batch: int = 2, length: int = 24) -> zoo.Inputs:
    """As `_seen`, with the types of tokens: without them, transformers masks the prefix in eager mode otherwise than during a capture."""
    inputs = _seen(batch, length).kwargs
    return zoo.Inputs(kwargs={**inputs, "token_type_ids": (torch.arange(length) >= 20).long().expand(batch, length).contiguous()})


def _patch_grid(images: int, size: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(images * size * size, 3 * 2 * 14 * 14), torch.tensor([[1, size, size]] * images)


def _qwen(batch: int = 1, length: int = 12) -> zoo.Inputs:
    tokens = torch.randint(3, 490, (batch, length))
    tokens[:, 1], tokens[:, 2:6], tokens[:, 6] = 496, _IMAGE_TOKEN, 497
    pixels, grid = _patch_grid(batch)
    inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "pixel_values": pixels, "image_grid_thw": grid}
    return zoo.Inputs(kwargs={**inputs, "mm_token_type_ids": (tokens == _IMAGE_TOKEN).int()})


def _boxes(batch: int = 2, length: int = 16) -> zoo.Inputs:
    corners = torch.randint(0, 400, (batch, length, 2))
    return zoo.Inputs(kwargs={**text(batch, length).kwargs, "bbox": torch.cat([corners, corners + 50], -1)})


def _spoken(batch: int = 1, frames: int = 64, written: int = 8) -> zoo.Inputs:
    return zoo.Inputs(kwargs={"input_features": torch.randn(batch, frames, 80), "decoder_input_ids": ids(batch, written)})


def _features(batch: int = 1, frames: int = 64) -> zoo.Inputs:
    return zoo.Inputs(kwargs={"input_features": torch.randn(batch, frames, 80)})


def _waves_and_text(batch: int = 1, length: int = 2000, written: int = 8) -> zoo.Inputs:
    return zoo.Inputs(kwargs={"input_values": torch.randn(batch, length), "decoder_input_ids": ids(batch, written)})


def _series(batch: int = 2) -> zoo.Inputs:
    return zoo.Inputs(kwargs={"past_values": torch.randn(batch, 32, 3)})


def _states(batch: int = 2, length: int = 6) -> zoo.Inputs:
    steps = torch.arange(length).expand(batch, length)
    rest = {"actions": torch.randn(batch, length, 4), "rewards": torch.randn(batch, length, 1), "timesteps": steps}
    return zoo.Inputs(
        kwargs={
            "states": torch.randn(batch, length, 8),
            **rest,
            "returns_to_go": torch.randn(batch, length, 1),
            "attention_mask": torch.ones(batch, length),
        }
    )


def _codes(batch: int = 2, length: int = 8) -> zoo.Inputs:
    return zoo.Inputs(kwargs={"input_ids": ids(batch, length)})


def _backbone(*stages: str) -> object:
    from transformers import ResNetConfig

    return ResNetConfig(**_RESNET, out_features=list(stages))


def _detector(name: str, *stages: str, **config: object) -> Architecture:
    return Architecture(lambda: transformer(name, {**_DETECTION, "backbone_config": _backbone(*stages), **config}), ANY_IMAGE)


def _maskformer() -> nn.Module:
    from transformers import DetrConfig, MaskFormerConfig, MaskFormerForInstanceSegmentation, SwinConfig

    backbone = SwinConfig(
        image_size=64, embed_dim=16, depths=[1] * 4, num_heads=[2] * 4, window_size=2, out_features=["stage1", "stage2", "stage3", "stage4"]
    )
    decoder = DetrConfig(**{**_DETECTION, "backbone_config": _backbone("stage4")})
    return MaskFormerForInstanceSegmentation(
        MaskFormerConfig(backbone_config=backbone, decoder_config=decoder, fpn_feature_size=32, mask_feature_size=32)
    )


def _mask2former() -> nn.Module:
    return transformer(
        "Mask2FormerForUniversalSegmentation",
        {
            "backbone_config": _backbone("stage1", "stage2", "stage3", "stage4"),
            "feature_size": 32,
            "mask_feature_size": 32,
            "hidden_dim": 32,
            "encoder_feedforward_dim": 64,
            "dim_feedforward": 64,
            "encoder_layers": 1,
            "decoder_layers": 2,
            "num_attention_heads": 4,
            "num_queries": 8,
            "use_timm_backbone": False,
            "backbone": None,
        },
    )


def _with_backbone(name: str, **config: object) -> nn.Module:
    from transformers import Dinov2Config

    backbone = Dinov2Config(**PATCHES, out_features=["stage1", "stage2"], reshape_hidden_states=False, apply_layernorm=True)
    return transformer(name, {"backbone_config": backbone, **config})


def _qwen_vl(name: str, **vision: object) -> nn.Module:
    language = {**DECODER, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}}
    seen = {"depth": 2, "embed_dim": 32, "hidden_size": 64, "num_heads": 4, "patch_size": 14, "mlp_ratio": 2, "intermediate_size": 64}
    tokens = {"image_token_id": _IMAGE_TOKEN, "video_token_id": 498, "vision_start_token_id": 496, "vision_end_token_id": 497}
    return transformer(name, {"text_config": language, "vision_config": {**seen, **vision}, **tokens})


def _both(batch: int = 2, length: int = 16, written: int = 8) -> zoo.Inputs:
    return zoo.Inputs(kwargs={**image(batch).kwargs, "decoder_input_ids": ids(batch, written)})


def _vision_encoder_decoder() -> nn.Module:
    from transformers import GPT2Config, VisionEncoderDecoderConfig, VisionEncoderDecoderModel, ViTConfig

    decoder = GPT2Config(vocab_size=500, n_embd=64, n_layer=2, n_head=4, use_cache=False, add_cross_attention=True, is_decoder=True)
    return VisionEncoderDecoderModel(VisionEncoderDecoderConfig.from_encoder_decoder_configs(ViTConfig(**PATCHES), decoder))


_VIDEO: Config = {**PATCHES, "num_frames": 4, "tubelet_size": 2}
_WAVE = Given(_wave, batch=3, length=3000)
_IMAGES: Mapping[str, Given] = {"fixed": IMAGE, "any": ANY_IMAGE}

FAMILIES: dict[str, Family] = {
    "vision-transformer": {
        **of_transformers(
            IMAGE,
            PATCHES,
            ViTMSNModel={},
            Data2VecVisionModel={},
            IJepaModel={},
            Dinov2WithRegistersModel={},
            DINOv3ViTModel={},
            MLCDVisionModel={"num_key_value_groups": 1},
            SiglipVisionModel={},
            Aimv2VisionModel={},
            VitDetModel={"window_size": 2, "num_channels": 3, "pretrain_image_size": 64},
            PixioModel={},
            RadioModel={},
        ),
        **of_transformers(
            IMAGE,
            {"image_size": 64, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "kernel_size": 3},
            Swin2SRModel={"window_size": 4},
        ),
        **of_transformers(
            ANY_IMAGE, {"image_size": 64, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4}, DonutSwinModel={}
        ),
        **of_transformers(ANY_IMAGE, _STAGES, PvtV2Model={}, GLPNModel={}),
        **of_transformers(
            ANY_IMAGE, {"image_size": 64, "embed_dim": [16, 32, 64], "num_heads": [1, 2, 4], "depth": [1, 2, 3]}, CvtModel={}
        ),
        **of_transformers(
            IMAGE, {"image_size": [64, 64], "embed_dim": 16, "depths": [1, 1, 1, 1], "num_heads": [1, 2, 4, 8]}, HieraModel={}
        ),
        **of_transformers(ANY_IMAGE, {"image_size": 64, "width_multiplier": 0.5}, MobileViTV2Model={}),
        **of_transformers(ANY_IMAGE, {"embed_dims": [16, 32, 32, 64], "depths": [1, 1, 2, 1]}, SwiftFormerModel={}),
        **of_transformers(
            Given(_codes, batch=3, length=11),
            {"vocab_size": 513, "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 4, "use_cache": False},
            ImageGPTModel={},
        ),
    },
    "vision-convolution": {
        **of_transformers(ANY_IMAGE, _RESNET, BitModel={"num_groups": 8}),
        **of_transformers(ANY_IMAGE, {}, MobileNetV1Model={"depth_multiplier": 0.25}, TextNetModel={}),
        **of_transformers(ANY_IMAGE, {"hidden_sizes": [16, 32, 32, 64], "depths": [1] * 4}, DINOv3ConvNextModel={}),
        **of_transformers(
            ANY_IMAGE,
            {},
            HGNetV2ForImageClassification={
                "stem_channels": [3, 8, 16],
                "stage_in_channels": [16, 16, 32, 32],
                "stage_mid_channels": [8, 8, 16, 16],
                "stage_out_channels": [16, 32, 32, 64],
                "stage_num_blocks": [1] * 4,
                "stage_numb_of_layers": [2] * 4,
                "hidden_sizes": [16, 32, 32, 64],
                "depths": [1] * 4,
            },
        ),
    },
    "detection-segmentation": {
        "ConditionalDetr": _detector("ConditionalDetrForObjectDetection", "stage4"),
        "TableTransformer": _detector("TableTransformerForObjectDetection", "stage4"),
        "DabDetr": _detector("DabDetrForObjectDetection", "stage4", hidden_size=64),
        "DeformableDetr": _detector("DeformableDetrForObjectDetection", "stage2", "stage3", "stage4", decoder_layers=2),
        "DetrForSegmentation": _detector(
            "DetrForSegmentation", "stage1", "stage2", "stage3", "stage4", encoder_attention_heads=8, decoder_attention_heads=8
        ),
        "MaskFormer": Architecture(_maskformer, IMAGE),
        "Mask2Former": Architecture(_mask2former, ANY_IMAGE),
        "DepthAnything": Architecture(
            functools.partial(
                _with_backbone,
                "DepthAnythingForDepthEstimation",
                reassemble_hidden_size=64,
                patch_size=16,
                reassemble_factors=[4, 2],
                neck_hidden_sizes=[16, 16],
                fusion_hidden_size=16,
                head_in_index=-1,
            ),
            IMAGE,
        ),
        "VitMatte": Architecture(
            lambda: transformer(
                "VitMatteForImageMatting",
                {
                    "backbone_config": _vitdet(),
                    "hidden_size": 64,
                    "fusion_hidden_sizes": [32, 16, 16, 8],
                    "convstream_hidden_sizes": [8, 16, 16],
                },
            ),
            Given(lambda batch=2: zoo.Inputs((torch.randn(batch, 4, 64, 64),)), batch=3),
        ),
        **of_transformers(
            IMAGE,
            {**PATCHES, "use_auxiliary_head": False, "out_indices": [1, 2, 3, 4], "num_hidden_layers": 4},
            BeitForSemanticSegmentation={},
        ),
        **of_transformers(
            Given(lambda batch=1, height=64, width=64: zoo.Inputs((torch.randn(batch, 3, height, width),)), batch=2, height=96, width=128),
            {"encoder_hidden_sizes": [8, 8, 16, 16], "decoder_hidden_size": 16, "keypoint_decoder_dim": 65, "descriptor_decoder_dim": 32},
            SuperPointForKeypointDetection={},
        ),
        **of_transformers(
            IMAGE,
            {"vision_config": PATCHES, "text_config": _TEXT, "projection_dim": 32},
        ),
        **of_transformers(
            ANY_IMAGE,
            {"neck_hidden_sizes": [16, 16, 24, 32, 48, 64, 80], "hidden_sizes": [32, 48, 64], "aspp_out_channels": 16},
            MobileViTForSemanticSegmentation={},
        ),
        **of_transformers(ANY_IMAGE, {"depth_multiplier": 0.35, "classifier_dropout_prob": 0.0}, MobileNetV2ForSemanticSegmentation={}),
        **of_transformers(
            IMAGE,
            {"image_size": 64, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4},
            Swin2SRForImageSuperResolution={"upscale": 2, "upsampler": "pixelshuffle"},
        ),
    },
    "video": {
        **of_transformers(
            Given(_video, batch=3),
            _VIDEO,
            VideoMAEModel={},
            TimesformerModel={},
            VivitModel={"tubelet_size": [2, 16, 16]},
        ),
        **of_transformers(
            Given(lambda batch=2: zoo.Inputs((torch.randn(batch, 4, 3, 64, 64),)), batch=3),
            {
                "patch_size": 16,
                "crop_size": 64,
                "frames_per_clip": 4,
                "hidden_size": 64,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "pred_hidden_size": 32,
                "pred_num_hidden_layers": 1,
                "pred_num_attention_heads": 4,
            },
            VJEPA2ForVideoClassification={},
        ),
    },
    "audio": {
        **of_transformers(
            _WAVE,
            SPEECH,
            WavLMModel={},
            UniSpeechModel={},
            UniSpeechSatModel={},
            Data2VecAudioModel={"num_conv_pos_embeddings": 3, "conv_pos_kernel_size": 7},
            Wav2Vec2ConformerModel={"position_embeddings_type": "relative", "conv_depthwise_kernel_size": 7},
            SEWModel={"squeeze_factor": 2},
            SEWDModel={"squeeze_factor": 2, "max_position_embeddings": 128},
            Wav2Vec2ForCTC={},
            HubertForSequenceClassification={"classifier_proj_size": 16},
        ),
        **of_transformers(
            Given(_features, batch=3, frames=96),
            {**ENCODER, "feature_projection_input_dim": 80, "conv_depthwise_kernel_size": 7},
            Wav2Vec2BertModel={},
        ),
        **of_transformers(
            Given(_spoken, batch=3, frames=96, written=11),
            {**BART, "conv_channels": 32, "input_feat_per_channel": 80, "max_source_positions": 100, "max_target_positions": 64},
            Speech2TextModel={},
        ),
        **of_transformers(
            Given(_waves_and_text, batch=3, length=3000, written=11),
            {
                "vocab_size": 500,
                "hidden_size": 64,
                "intermediate_size": 128,
                "encoder_num_hidden_layers": 2,
                "decoder_num_hidden_layers": 2,
                "encoder_num_attention_heads": 4,
                "decoder_num_attention_heads": 4,
                "encoder_num_key_value_heads": 4,
                "decoder_num_key_value_heads": 4,
                "use_cache": False,
            },
            MoonshineModel={},
        ),
        **of_transformers(
            Given(lambda batch=1, length=1920: zoo.Inputs((torch.randn(batch, 1, length),)), batch=2, length=2560),
            {},
            EncodecModel={
                "num_filters": 4,
                "hidden_size": 16,
                "codebook_size": 16,
                "upsampling_ratios": [4, 4],
                "codebook_dim": 16,
                "num_lstm_layers": 1,
            },
            DacModel={
                "encoder_hidden_size": 8,
                "decoder_hidden_size": 64,
                "downsampling_ratios": [2, 4],
                "upsampling_ratios": [4, 2],
                "codebook_size": 16,
                "n_codebooks": 2,
            },
        ),
        **of_transformers(
            Given(lambda batch=2, frames=24: zoo.Inputs((torch.randn(batch, frames, 16),)), batch=3, frames=32),
            {"model_in_dim": 16, "upsample_initial_channel": 32, "upsample_rates": [4, 2], "upsample_kernel_sizes": [8, 4]},
            SpeechT5HifiGan={"model_in_dim": 16},
        ),
    },
    "time-series": {
        **of_transformers(
            Given(_series, batch=3),
            {"num_input_channels": 3, "context_length": 32, "patch_length": 8, "patch_stride": 8, "d_model": 32},
            PatchTSMixerModel={},
            PatchTSTModel={"num_attention_heads": 4, "num_hidden_layers": 2, "ffn_dim": 64},
        ),
        **of_transformers(
            Given(_states, batch=3, length=9),
            {"state_dim": 8, "act_dim": 4, "hidden_size": 32, "n_layer": 2, "n_head": 4, "max_ep_len": 64},
            DecisionTransformerModel={},
        ),
    },
    "image-text": {
        **of_transformers(
            Given(_captioned, batch=3, length=24),
            _PAIR,
            ChineseCLIPModel={},
            AltCLIPModel={"text_config": {**_TEXT, "project_dim": 64}},
            BlipModel={},
            MetaClip2Model={},
            CLIPSegModel={},
            OwlViTModel={},
            GroupViTModel={},
            Aimv2Model={},
        ),
        **of_transformers(Given(_captioned, batch=3, length=24), {**ENCODER, **PATCHES, "max_image_length": -1}, ViltModel={}),
        **of_transformers(
            Given(_packed_patches, batch=3, length=24), {**_PAIR, "vision_config": {**PATCHES, "num_patches": 16}}, Siglip2Model={}
        ),
        **of_transformers(
            Given(_captioned, batch=3, length=24),
            {"text_config": _TEXT, "image_config": PATCHES, "multimodal_config": ENCODER, "hidden_size": 64, "projection_dim": 32},
            FlavaModel={},
        ),
        **of_transformers(Given(_captioned, batch=3, length=24), {**ENCODER, "vision_config": PATCHES}, GitModel={}),
        **of_transformers(Given(_boxes, batch=3, length=24), ENCODER, LayoutLMForTokenClassification={}, BrosModel={}),
        **of_transformers(
            Given(
                lambda batch=2, length=16: zoo.Inputs(kwargs={**_boxes(batch, length).kwargs, **image(batch).kwargs}), batch=3, length=24
            ),
            {**ENCODER, "input_size": 64, "patch_size": 16, "has_spatial_attention_bias": True, "coordinate_size": 10, "shape_size": 12},
            LayoutLMv3Model={},
        ),
        **of_transformers(
            Given(_seen, length=30),
            {
                **_SEES,
                "text_config": _LANGUAGE,
                "vision_config": {**PATCHES, "model_type": "clip_vision_model"},
                "vision_feature_select_strategy": "default",
                "vision_feature_layer": -1,
            },
            LlavaForConditionalGeneration={},
            VipLlavaForConditionalGeneration={"vision_feature_layers": [-1, -2]},
        ),
        **of_transformers(
            Given(_seen_prefix, batch=3, length=30),
            {
                **_SEES,
                "text_config": {**DECODER, "model_type": "gemma"},
                "vision_config": {**PATCHES, "model_type": "siglip_vision_model", "projection_dim": 64},
            },
            PaliGemmaForConditionalGeneration={},
        ),
        "Qwen2VL": Architecture(functools.partial(_qwen_vl, "Qwen2VLForConditionalGeneration"), Given(_qwen, batch=2, length=16)),
        "Qwen2_5_VL": Architecture(
            functools.partial(
                _qwen_vl, "Qwen2_5_VLForConditionalGeneration", out_hidden_size=64, window_size=56, fullatt_block_indexes=[1]
            ),
            Given(_qwen, batch=2, length=16),
        ),
        "VisionEncoderDecoder": Architecture(_vision_encoder_decoder, Given(_both, batch=3, written=11)),
    },
}
"""The architectures by family and name."""


def _vitdet() -> object:
    from transformers import VitDetConfig

    return VitDetConfig(**{**PATCHES, "num_channels": 4}, out_features=["stage2"], pretrain_image_size=64)
