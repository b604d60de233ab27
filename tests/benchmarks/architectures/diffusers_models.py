"""Models of diffusers: UNets, autoencoders, transformers, control networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import zoo

from .architecture import Architecture, Family, Given, floats, of

_IMAGE = floats("batch:1", 3, "height:32", "width:32", batch=2, height=48, width=64)
_VIDEO = floats("batch:1", 3, "frames:5", "height:32", "width:32", batch=2, frames=9, height=48, width=64)


def _time(batch: int) -> torch.Tensor:
    return torch.linspace(10, 500, batch)


def _unet(batch: int = 1, size: int = 16, length: int = 8) -> zoo.Inputs:
    return zoo.Inputs((torch.randn(batch, 4, size, size), _time(batch), torch.randn(batch, length, 32)))


def _controlled(batch: int = 1, size: int = 16, length: int = 8) -> zoo.Inputs:
    return zoo.Inputs((*_unet(batch, size, length).args, torch.randn(batch, 3, 8 * size, 8 * size)))


def _clip(batch: int = 1, frames: int = 3, size: int = 16, length: int = 8) -> zoo.Inputs:
    return zoo.Inputs((torch.randn(batch, 4, frames, size, size), _time(batch), torch.randn(batch, length, 32)))


def _clip_prompted(batch: int = 1, frames: int = 3, size: int = 16, length: int = 8) -> zoo.Inputs:
    """The prompt repeats for each frame."""
    return zoo.Inputs((torch.randn(batch, 4, frames, size, size), _time(batch), torch.randn(batch * frames, length, 32)))


def _prompted(batch: int = 1, height: int = 16, width: int = 16, length: int = 8) -> zoo.Inputs:
    return zoo.Inputs(
        kwargs={
            "hidden_states": torch.randn(batch, 4, height, width),
            "encoder_hidden_states": torch.randn(batch, length, 32),
            "timestep": _time(batch),
        }
    )


def _pooled(batch: int = 1, height: int = 16, width: int = 16, length: int = 8) -> zoo.Inputs:
    return zoo.Inputs(kwargs={**_prompted(batch, height, width, length).kwargs, "pooled_projections": torch.randn(batch, 32)})


def _sana(batch: int = 1, height: int = 16, width: int = 16, length: int = 8) -> zoo.Inputs:
    mask = torch.ones(batch, length, dtype=torch.int64)
    return zoo.Inputs(kwargs={**_prompted(batch, height, width, length).kwargs, "encoder_attention_mask": mask})


def _clips(batch: int = 1, frames: int = 2, height: int = 16, width: int = 16, length: int = 8) -> zoo.Inputs:
    return zoo.Inputs(
        kwargs={
            "hidden_states": torch.randn(batch, 4, frames, height, width),
            "timestep": _time(batch),
            "encoder_hidden_states": torch.randn(batch, length, 32),
        }
    )


def _frames_first(batch: int = 1, frames: int = 2, height: int = 16, width: int = 16) -> zoo.Inputs:
    return zoo.Inputs(
        kwargs={
            "hidden_states": torch.randn(batch, frames, 4, height, width),
            "timestep": _time(batch),
            "encoder_hidden_states": torch.randn(batch, 8, 32),
        }
    )


def _masked_clips(batch: int = 1, frames: int = 2, height: int = 16, width: int = 16, length: int = 8) -> zoo.Inputs:
    return zoo.Inputs(
        kwargs={
            **_clips(batch, frames, height, width, length).kwargs,
            "encoder_attention_mask": torch.ones(batch, length, dtype=torch.int64),
        }
    )


def _flux(batch: int = 1, patches: int = 16, length: int = 8) -> zoo.Inputs:
    return zoo.Inputs(
        kwargs={
            "hidden_states": torch.randn(batch, patches, 4),
            "encoder_hidden_states": torch.randn(batch, length, 32),
            "pooled_projections": torch.randn(batch, 32),
            "timestep": torch.rand(batch),
            "img_ids": torch.randint(0, 8, (patches, 3)).float(),
            "txt_ids": torch.zeros(length, 3),
        }
    )


def _flux2(batch: int = 1, patches: int = 16, length: int = 8) -> zoo.Inputs:
    return zoo.Inputs(
        kwargs={
            "hidden_states": torch.randn(batch, patches, 4),
            "encoder_hidden_states": torch.randn(batch, length, 32),
            "timestep": torch.rand(batch),
            "img_ids": torch.randint(0, 8, (patches, 4)).float(),
            "txt_ids": torch.zeros(length, 4),
            "guidance": torch.rand(batch),
        }
    )


def _z_image(height: int = 16, width: int = 16, length: int = 8) -> zoo.Inputs:
    return zoo.Inputs(([torch.randn(4, 1, height, width)], torch.rand(1), [torch.randn(length, 32)]))


def _lumina(batch: int = 1, height: int = 16, width: int = 16, length: int = 8) -> zoo.Inputs:
    mask = torch.ones(batch, length, dtype=torch.bool)
    return zoo.Inputs(kwargs={**_prompted(batch, height, width, length).kwargs, "encoder_attention_mask": mask})


def _qwen_image(batch: int = 1, length: int = 8) -> zoo.Inputs:
    return zoo.Inputs(
        kwargs={
            "hidden_states": torch.randn(batch, 16, 16),
            "encoder_hidden_states": torch.randn(batch, length, 32),
            "encoder_hidden_states_mask": torch.ones(batch, length, dtype=torch.int64),
            "timestep": torch.rand(batch),
            "img_shapes": [[(1, 4, 4)]] * batch,
        }
    )


def _ltx(batch: int = 1, length: int = 8) -> zoo.Inputs:
    return zoo.Inputs(
        kwargs={
            "hidden_states": torch.randn(batch, 32, 8),
            "encoder_hidden_states": torch.randn(batch, length, 32),
            "timestep": _time(batch),
            "encoder_attention_mask": torch.ones(batch, length),
            "num_frames": 2,
            "height": 4,
            "width": 4,
        }
    )


def _cogview(batch: int = 1, height: int = 16, width: int = 16, length: int = 8) -> zoo.Inputs:
    sizes = torch.tensor([[128.0, 128.0]] * batch)
    rest = {"original_size": sizes, "target_size": sizes, "crop_coords": torch.zeros(batch, 2)}
    return zoo.Inputs(kwargs={**_prompted(batch, height, width, length).kwargs, **rest})


def _sound(batch: int = 1, length: int = 64) -> zoo.Inputs:
    return zoo.Inputs((torch.randn(batch, 2, length),))


def _line(batch: int = 1, length: int = 64) -> zoo.Inputs:
    return zoo.Inputs((torch.randn(batch, 2, length), _time(batch)))


def _video_unet(batch: int = 1, frames: int = 3, size: int = 16) -> zoo.Inputs:
    return zoo.Inputs((torch.randn(batch, frames, 8, size, size), _time(batch), torch.randn(batch, 1, 32), torch.rand(batch, 3)))


def _prior(batch: int = 2) -> zoo.Inputs:
    rest = {"proj_embedding": torch.randn(batch, 32), "encoder_hidden_states": torch.randn(batch, 7, 32)}
    return zoo.Inputs(kwargs={"hidden_states": torch.randn(batch, 32), "timestep": _time(batch), **rest})


def _diffusers(name: str, make: Callable[..., zoo.Inputs] | Given, other: dict[str, int] | None = None, **config: Any) -> Architecture:
    return of("diffusers", name, make if isinstance(make, Given) else Given(make, **(other or {})), **config)


_LATENT = {"batch": 2, "size": 24, "length": 11}
_SIZES = {"batch": 2, "height": 24, "width": 32, "length": 11}
_CLIP = {"batch": 2, "frames": 4, "height": 24, "width": 32, "length": 11}
_BLOCKS = {"block_out_channels": (32, 64), "layers_per_block": 1}
_CROSS = {
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
    "cross_attention_dim": 32,
}
_KL = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
_HEADS = {"num_attention_heads": 4, "attention_head_dim": 16, "num_layers": 2}
_ROPE_HEADS = {**_HEADS, "axes_dims_rope": (4, 6, 6)}
_SD3 = {
    **_HEADS,
    "sample_size": 32,
    "patch_size": 2,
    "in_channels": 4,
    "out_channels": 4,
    "caption_projection_dim": 64,
    "joint_attention_dim": 32,
    "pooled_projection_dim": 32,
    "pos_embed_max_size": 32,
}

FAMILIES: dict[str, Family] = {
    "diffusion-unet": {
        "UNet1DModel": _diffusers(
            "UNet1DModel",
            _line,
            {"batch": 2, "length": 96},
            sample_size=64,
            in_channels=2,
            out_channels=2,
            extra_in_channels=0,
            block_out_channels=(16, 32),
            down_block_types=("DownResnetBlock1D", "DownResnetBlock1D"),
            up_block_types=("UpResnetBlock1D",),
            mid_block_type="MidResTemporalBlock1D",
            out_block_type="OutConv1DBlock",
            time_embedding_type="positional",
            use_timestep_embedding=True,
            act_fn="mish",
            layers_per_block=1,
            downsample_each_block=False,
        ),
        "UNet3DConditionModel": _diffusers(
            "UNet3DConditionModel",
            _clip,
            {"batch": 2, "frames": 4, "size": 24, "length": 11},
            **_BLOCKS,
            down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
            up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"),
            cross_attention_dim=32,
            attention_head_dim=16,
            norm_num_groups=8,
        ),
        "UNetMotionModel": _diffusers(
            "UNetMotionModel",
            _clip_prompted,
            {"batch": 2, "frames": 4, "size": 24, "length": 11},
            **_BLOCKS,
            down_block_types=("CrossAttnDownBlockMotion", "DownBlockMotion"),
            up_block_types=("UpBlockMotion", "CrossAttnUpBlockMotion"),
            cross_attention_dim=32,
            num_attention_heads=4,
            motion_num_attention_heads=4,
            norm_num_groups=8,
            motion_max_seq_length=16,
        ),
        "UNetSpatioTemporal": _diffusers(
            "UNetSpatioTemporalConditionModel",
            _video_unet,
            {"batch": 2, "frames": 4, "size": 24},
            **_BLOCKS,
            down_block_types=("CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"),
            up_block_types=("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"),
            cross_attention_dim=32,
            num_attention_heads=(4, 4),
            addition_time_embed_dim=8,
            projection_class_embeddings_input_dim=24,
        ),
        "ControlNetModel": _diffusers(
            "ControlNetModel",
            _controlled,
            _LATENT,
            **_BLOCKS,
            down_block_types=_CROSS["down_block_types"],
            cross_attention_dim=32,
            conditioning_embedding_out_channels=(8, 16, 16, 16),
        ),
        "UNetWithAddedTime": _diffusers(
            "UNet2DConditionModel",
            _unet,
            _LATENT,
            sample_size=16,
            **_BLOCKS,
            **_CROSS,
            resnet_time_scale_shift="scale_shift",
            use_linear_projection=True,
            attention_head_dim=(4, 8),
        ),
    },
    "diffusion-autoencoder": {
        "AutoencoderTiny": _diffusers(
            "AutoencoderTiny",
            _IMAGE,
            encoder_block_out_channels=(16, 16),
            decoder_block_out_channels=(16, 16),
            num_encoder_blocks=(1, 1),
            num_decoder_blocks=(1, 1),
        ),
        "AsymmetricAutoencoderKL": _diffusers(
            "AsymmetricAutoencoderKL",
            _IMAGE,
            down_block_out_channels=(32, 64),
            up_block_out_channels=(32, 64),
            layers_per_down_block=1,
            layers_per_up_block=1,
            **_KL,
        ),
        "AutoencoderKLTemporalDecoder": _diffusers(
            "AutoencoderKLTemporalDecoder",
            lambda batch=2: zoo.Inputs((torch.randn(batch, 3, 32, 32),), {"num_frames": 2}),
            block_out_channels=(32, 64),
            layers_per_block=1,
            down_block_types=_KL["down_block_types"],
        ),
        "AutoencoderKLCogVideoX": _diffusers(
            "AutoencoderKLCogVideoX", _VIDEO, block_out_channels=(8, 8, 8, 8), layers_per_block=1, norm_num_groups=4, latent_channels=4
        ),
        "AutoencoderKLWan": _diffusers(
            "AutoencoderKLWan",
            _VIDEO,
            base_dim=4,
            z_dim=4,
            dim_mult=[1, 1, 1, 1],
            num_res_blocks=1,
            temperal_downsample=[False, True, True],
            latents_mean=[0.0] * 4,
            latents_std=[1.0] * 4,
        ),
        "AutoencoderKLMochi": _diffusers(
            "AutoencoderKLMochi",
            floats(1, 3, 7, 32, 32),
            encoder_block_out_channels=(32, 32, 32, 32),
            decoder_block_out_channels=(32, 32, 32, 32),
            layers_per_block=(1, 1, 1, 1, 1),
            latent_channels=4,
            out_channels=3,
        ),
        "AutoencoderKLHunyuanVideo": _diffusers(
            "AutoencoderKLHunyuanVideo", _VIDEO, block_out_channels=(8, 8, 8, 8), layers_per_block=1, norm_num_groups=4, latent_channels=4
        ),
        "AutoencoderKLLTXVideo": _diffusers(
            "AutoencoderKLLTXVideo",
            floats("batch:1", 3, 9, "height:32", "width:32", batch=2, height=64, width=96),
            latent_channels=8,
            block_out_channels=(8, 8, 8, 8),
            decoder_block_out_channels=(8, 8, 8, 8),
            layers_per_block=(1, 1, 1, 1, 1),
            decoder_layers_per_block=(1, 1, 1, 1, 1),
            patch_size=1,
        ),
        "AutoencoderDC": _diffusers(
            "AutoencoderDC",
            _IMAGE,
            latent_channels=4,
            attention_head_dim=4,
            encoder_block_types=("ResBlock", "EfficientViTBlock"),
            decoder_block_types=("ResBlock", "EfficientViTBlock"),
            encoder_block_out_channels=(8, 8),
            decoder_block_out_channels=(8, 8),
            encoder_qkv_multiscales=((), (5,)),
            decoder_qkv_multiscales=((), (5,)),
            encoder_layers_per_block=(1, 1),
            decoder_layers_per_block=(1, 1),
            upsample_block_type="interpolate",
            downsample_block_type="stride_conv",
            decoder_norm_types="rms_norm",
            decoder_act_fns="silu",
        ),
        "AutoencoderKLMagvit": _diffusers(
            "AutoencoderKLMagvit",
            _VIDEO,
            latent_channels=4,
            block_out_channels=(8, 8, 8, 8),
            down_block_types=(
                "SpatialDownBlock3D",
                "SpatialTemporalDownBlock3D",
                "SpatialTemporalDownBlock3D",
                "SpatialTemporalDownBlock3D",
            ),
            up_block_types=("SpatialUpBlock3D", "SpatialTemporalUpBlock3D", "SpatialTemporalUpBlock3D", "SpatialTemporalUpBlock3D"),
            layers_per_block=1,
            norm_num_groups=4,
        ),
        "AutoencoderOobleck": _diffusers(
            "AutoencoderOobleck",
            _sound,
            {"batch": 2, "length": 96},
            encoder_hidden_size=8,
            downsampling_ratios=[2, 4],
            channel_multiples=[1, 2],
            decoder_channels=8,
            decoder_input_channels=4,
        ),
        "AutoencoderKLQwenImage": _diffusers(
            "AutoencoderKLQwenImage",
            floats("batch:1", 3, 1, "height:32", "width:32", batch=2, height=48, width=64),
            base_dim=4,
            z_dim=4,
            dim_mult=[1, 1, 1, 1],
            num_res_blocks=1,
            temperal_downsample=[False, True, True],
            latents_mean=[0.0] * 4,
            latents_std=[1.0] * 4,
        ),
    },
    "diffusion-transformer": {
        "FluxTransformer2DModel": _diffusers(
            "FluxTransformer2DModel",
            _flux,
            {"batch": 2, "patches": 24, "length": 11},
            patch_size=1,
            in_channels=4,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=32,
            pooled_projection_dim=32,
            axes_dims_rope=(4, 6, 6),
        ),
        "Flux2Transformer2DModel": _diffusers(
            "Flux2Transformer2DModel",
            _flux2,
            {"batch": 2, "patches": 24, "length": 11},
            patch_size=1,
            in_channels=4,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=32,
            timestep_guidance_channels=32,
            axes_dims_rope=(4, 4, 4, 4),
        ),
        "ChromaTransformer2DModel": _diffusers(
            "ChromaTransformer2DModel",
            lambda batch=1, patches=16, length=8: zoo.Inputs(
                kwargs={key: value for key, value in _flux(batch, patches, length).kwargs.items() if key != "pooled_projections"}
            ),
            {"batch": 2, "patches": 24, "length": 11},
            patch_size=1,
            in_channels=4,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=32,
            axes_dims_rope=(4, 6, 6),
            approximator_num_channels=8,
            approximator_hidden_dim=32,
            approximator_layers=1,
        ),
        "SD3Transformer2DModel": _diffusers("SD3Transformer2DModel", _pooled, _SIZES, **_SD3),
        "SD3WithNorm": _diffusers(
            "SD3Transformer2DModel",
            _pooled,
            _SIZES,
            **_SD3,
            qk_norm="rms_norm",
            dual_attention_layers=(0,),
        ),
        "AuraFlowTransformer2DModel": _diffusers(
            "AuraFlowTransformer2DModel",
            _prompted,
            {"batch": 2, "length": 11},
            sample_size=16,
            patch_size=2,
            in_channels=4,
            num_mmdit_layers=1,
            num_single_dit_layers=1,
            attention_head_dim=16,
            num_attention_heads=4,
            joint_attention_dim=32,
            caption_projection_dim=64,
            pos_embed_max_size=64,
        ),
        "SanaTransformer2DModel": _diffusers(
            "SanaTransformer2DModel",
            _sana,
            _SIZES,
            patch_size=1,
            in_channels=4,
            out_channels=4,
            num_layers=1,
            attention_head_dim=16,
            num_attention_heads=4,
            num_cross_attention_heads=4,
            cross_attention_head_dim=16,
            cross_attention_dim=64,
            caption_channels=32,
            sample_size=16,
        ),
        "PixArtResized": _diffusers(
            "PixArtTransformer2DModel",
            _prompted,
            _SIZES,
            **_HEADS,
            sample_size=16,
            in_channels=4,
            caption_channels=32,
            cross_attention_dim=64,
            out_channels=8,
            use_additional_conditions=False,
        ),
        "CogVideoXTransformer3DModel": _diffusers(
            "CogVideoXTransformer3DModel",
            _frames_first,
            {"batch": 2, "frames": 3, "height": 24, "width": 32},
            num_attention_heads=4,
            attention_head_dim=16,
            in_channels=4,
            out_channels=4,
            num_layers=1,
            text_embed_dim=32,
            time_embed_dim=8,
            sample_width=16,
            sample_height=16,
            sample_frames=5,
            patch_size=2,
            max_text_seq_length=8,
            use_rotary_positional_embeddings=False,
        ),
        "CogView3PlusTransformer2DModel": _diffusers(
            "CogView3PlusTransformer2DModel",
            _cogview,
            _SIZES,
            patch_size=2,
            in_channels=4,
            num_layers=1,
            attention_head_dim=16,
            num_attention_heads=4,
            out_channels=4,
            text_embed_dim=32,
            time_embed_dim=8,
            condition_dim=4,
            pos_embed_max_size=32,
            sample_size=16,
        ),
        "CogView4Transformer2DModel": _diffusers(
            "CogView4Transformer2DModel",
            _cogview,
            _SIZES,
            patch_size=2,
            in_channels=4,
            num_layers=1,
            attention_head_dim=16,
            num_attention_heads=4,
            out_channels=4,
            text_embed_dim=32,
            time_embed_dim=8,
            condition_dim=4,
            sample_size=16,
        ),
        "WanTransformer3DModel": _diffusers(
            "WanTransformer3DModel",
            _clips,
            _CLIP,
            patch_size=(1, 2, 2),
            num_attention_heads=2,
            attention_head_dim=12,
            in_channels=4,
            out_channels=4,
            text_dim=32,
            freq_dim=32,
            ffn_dim=32,
            num_layers=1,
            cross_attn_norm=True,
            qk_norm="rms_norm_across_heads",
            rope_max_seq_len=32,
        ),
        "HunyuanVideoTransformer3DModel": _diffusers(
            "HunyuanVideoTransformer3DModel",
            lambda batch=1, frames=2, height=16, width=16, length=8: zoo.Inputs(
                kwargs={
                    **_masked_clips(batch, frames, height, width, length).kwargs,
                    "pooled_projections": torch.randn(batch, 32),
                    "guidance": torch.rand(batch) * 100,
                }
            ),
            _CLIP,
            in_channels=4,
            out_channels=4,
            num_attention_heads=2,
            attention_head_dim=10,
            num_layers=1,
            num_single_layers=1,
            num_refiner_layers=1,
            patch_size=2,
            patch_size_t=1,
            guidance_embeds=True,
            text_embed_dim=32,
            pooled_projection_dim=32,
            rope_axes_dim=(2, 4, 4),
        ),
        "LTXVideoTransformer3DModel": _diffusers(
            "LTXVideoTransformer3DModel",
            _ltx,
            {"batch": 2, "length": 11},
            in_channels=8,
            out_channels=8,
            num_attention_heads=4,
            attention_head_dim=8,
            cross_attention_dim=32,
            num_layers=1,
            caption_channels=32,
        ),
        "MochiTransformer3DModel": _diffusers(
            "MochiTransformer3DModel",
            _masked_clips,
            _CLIP,
            patch_size=2,
            num_attention_heads=2,
            attention_head_dim=8,
            num_layers=2,
            pooled_projection_dim=16,
            in_channels=4,
            text_embed_dim=32,
            time_embed_dim=4,
        ),
        "AllegroTransformer3DModel": _diffusers(
            "AllegroTransformer3DModel",
            lambda batch=1, frames=2, height=16, width=16: zoo.Inputs(
                kwargs={
                    **_clips(batch, frames, height, width).kwargs,
                    "attention_mask": torch.ones(batch, frames, height, width),
                    "encoder_attention_mask": torch.ones(batch, 8),
                }
            ),
            {"batch": 2},
            num_attention_heads=2,
            attention_head_dim=12,
            in_channels=4,
            out_channels=4,
            num_layers=1,
            cross_attention_dim=24,
            sample_width=16,
            sample_height=16,
            sample_frames=2,
            caption_channels=32,
        ),
        "LatteTransformer3DModel": _diffusers(
            "LatteTransformer3DModel",
            _clips,
            {"batch": 2, "length": 11},
            sample_size=16,
            num_layers=1,
            patch_size=2,
            attention_head_dim=16,
            num_attention_heads=4,
            caption_channels=32,
            in_channels=4,
            cross_attention_dim=64,
            out_channels=8,
            attention_bias=True,
            activation_fn="gelu-approximate",
            num_embeds_ada_norm=1000,
            norm_type="ada_norm_single",
            norm_elementwise_affine=False,
            norm_eps=1e-6,
            video_length=2,
        ),
        "Lumina2Transformer2DModel": _diffusers(
            "Lumina2Transformer2DModel",
            _lumina,
            _SIZES,
            sample_size=16,
            patch_size=2,
            in_channels=4,
            hidden_size=24,
            num_layers=1,
            num_refiner_layers=1,
            num_attention_heads=3,
            num_kv_heads=1,
            multiple_of=2,
            scaling_factor=1.0,
            axes_dim_rope=(4, 2, 2),
            axes_lens=(64, 64, 64),
            cap_feat_dim=32,
        ),
        "ZImageTransformer2DModel": _diffusers(
            "ZImageTransformer2DModel",
            _z_image,
            {"height": 24, "width": 32, "length": 11},
            all_patch_size=(2,),
            all_f_patch_size=(1,),
            in_channels=4,
            dim=32,
            n_layers=1,
            n_refiner_layers=1,
            n_heads=2,
            n_kv_heads=2,
            cap_feat_dim=32,
            axes_dims=[4, 6, 6],
            axes_lens=[64, 64, 64],
        ),
        "QwenImageTransformer2DModel": _diffusers(
            "QwenImageTransformer2DModel",
            _qwen_image,
            {"length": 11},
            patch_size=2,
            in_channels=16,
            out_channels=4,
            num_layers=1,
            attention_head_dim=16,
            num_attention_heads=4,
            joint_attention_dim=32,
            axes_dims_rope=(4, 6, 6),
        ),
        "Transformer2DModel": _diffusers(
            "Transformer2DModel",
            lambda batch=1, height=16, width=16, length=8: zoo.Inputs(
                kwargs={"hidden_states": torch.randn(batch, 32, height, width), "encoder_hidden_states": torch.randn(batch, length, 32)}
            ),
            _SIZES,
            num_attention_heads=4,
            attention_head_dim=8,
            in_channels=32,
            cross_attention_dim=32,
            norm_num_groups=8,
        ),
        "PriorTransformer": _diffusers(
            "PriorTransformer",
            _prior,
            {"batch": 3},
            num_attention_heads=2,
            attention_head_dim=16,
            num_layers=2,
            embedding_dim=32,
            num_embeddings=7,
            additional_embeddings=4,
        ),
        "StableAudioDiTModel": _diffusers(
            "StableAudioDiTModel",
            lambda batch=1, length=32: zoo.Inputs(
                kwargs={
                    "hidden_states": torch.randn(batch, 4, length),
                    "timestep": _time(batch),
                    "encoder_hidden_states": torch.randn(batch, 8, 32),
                    "global_hidden_states": torch.randn(batch, 1, 32),
                    "rotary_embedding": None,
                }
            ),
            {"batch": 2},
            sample_size=32,
            in_channels=4,
            num_layers=1,
            attention_head_dim=8,
            num_attention_heads=4,
            num_key_value_attention_heads=2,
            out_channels=4,
            cross_attention_dim=32,
            time_proj_dim=8,
            global_states_input_dim=32,
            cross_attention_input_dim=32,
        ),
    },
    "diffusion-control": {
        "SD3ControlNetModel": _diffusers(
            "SD3ControlNetModel",
            lambda batch=1, height=16, width=16, length=8: zoo.Inputs(
                kwargs={**_pooled(batch, height, width, length).kwargs, "controlnet_cond": torch.randn(batch, 4, height, width)}
            ),
            _SIZES,
            **{**_SD3, "num_layers": 1},
        ),
        "FluxControlNetModel": _diffusers(
            "FluxControlNetModel",
            lambda batch=1, patches=16, length=8: zoo.Inputs(
                kwargs={**_flux(batch, patches, length).kwargs, "controlnet_cond": torch.randn(batch, patches, 4)}
            ),
            {"batch": 2, "patches": 24, "length": 11},
            patch_size=1,
            in_channels=4,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=32,
            pooled_projection_dim=32,
            axes_dims_rope=(4, 6, 6),
        ),
        "T2IAdapter": _diffusers(
            "T2IAdapter",
            floats("batch:1", 3, "height:64", "width:64", batch=2, height=96, width=128),
            channels=[8, 16, 16, 16],
            num_res_blocks=1,
            downscale_factor=8,
            adapter_type="full_adapter",
        ),
    },
}
"""The architectures by family and name."""
