"""Models of timm, one a module of it, and of torchvision."""

from __future__ import annotations

import importlib
from typing import Any

import torch
import zoo
from torch import nn

from .architecture import Architecture, Family, Given, floats

_FIXED = floats("batch:2", 3, 224, 224, batch=3)
_ANY = floats("batch:2", 3, "height:64", "width:64", batch=3, height=96, width=128)
_TALL = floats("batch:2", 3, "height:128", "width:128", batch=3, height=160, width=192)


def _timm(name: str, given: Given, **options: Any) -> Architecture:
    def model() -> nn.Module:
        made: nn.Module = importlib.import_module("timm").create_model(name, pretrained=False, num_classes=10, **options)
        return made

    return Architecture(model, given)


def _vision(name: str, given: Given, module: str = "torchvision.models", **options: Any) -> Architecture:
    def model() -> nn.Module:
        made: nn.Module = getattr(importlib.import_module(module), name)(weights=None, **options)
        return made

    return Architecture(model, given)


def _images(height: int = 96, width: int = 128) -> zoo.Inputs:
    return zoo.Inputs(([torch.rand(3, height, width)],))


def _pair(batch: int = 1, height: int = 128, width: int = 128) -> zoo.Inputs:
    return zoo.Inputs((torch.rand(batch, 3, height, width), torch.rand(batch, 3, height, width)))


_DETECTION = Given(_images, height=112, width=96)
_SMALL: dict[str, Any] = {"min_size": 96, "max_size": 128, "weights_backbone": None, "num_classes": 5}
_SEGMENTS: dict[str, Any] = {"weights_backbone": None, "num_classes": 5}

_TIMM_ANY = (
    "gernet_s",
    "convmixer_768_32",
    "convnext_atto",
    "cs3darknet_focus_s",
    "densenet121",
    "dla46_c",
    "dpn48b",
    "edgenext_xx_small",
    "efficientnet_b0",
    "efficientvit_b0",
    "fasternet_t0",
    "fastvit_t8",
    "ghostnet_050",
    "hardcorenas_a",
    "hgnetv2_b0",
    "hrnet_w18_small",
    "inception_next_atto",
    "lcnetv2_small",
    "mambaout_femto",
    "poolformer_s12",
    "mobilenetv3_small_050",
    "mobilevit_xxs",
    "dm_nfnet_f0",
    "pvt_v2_b0",
    "regnetx_002",
    "repghostnet_050",
    "repvit_m0_9",
    "res2net50_14w_8s",
    "resnest14d",
    "resnet18",
    "resnetv2_18",
    "rexnet_100",
    "legacy_seresnet18",
    "shvit_s1",
    "skresnet18",
    "starnet_s1",
    "swiftformer_xs",
    "test_vit",
    "vgg11",
    "ese_vovnet19b_slim",
    "xcit_nano_12_p16_224",
)
_TIMM_TALL = (
    "cspresnet50",
    "csatv2",
    "cpubone_b0",
    "inception_resnet_v2",
    "inception_v3",
    "inception_v4",
    "iformer_t",
    "lowformer_b0",
    "nasnetalarge",
    "nextvit_small",
    "pnasnet5large",
    "rdnet_tiny",
    "selecsls42",
    "tresnet_m",
    "legacy_xception",
    "xception41",
    "cspnext_t",
)
_TIMM_FIXED = (
    "coat_lite_tiny",
    "botnet26t_256",
    "beit_base_patch16_224",
    "cait_xxs24_224",
    "convit_tiny",
    "crossvit_9_240",
    "davit_tiny",
    "deit3_small_patch16_224",
    "efficientformer_l1",
    "efficientformerv2_s0",
    "efficientvim_m1",
    "efficientvit_m0",
    "eva02_tiny_patch14_224",
    "focalnet_tiny_srf",
    "gcvit_xxtiny",
    "hiera_tiny_224",
    "sam2_hiera_tiny",
    "levit_128s",
    "coatnet_nano_rw_224",
    "mixer_s32_224",
    "mvitv2_tiny",
    "naflexvit_base_patch16_gap",
    "nest_tiny",
    "pit_ti_224",
    "sequencer2d_s",
    "swin_tiny_patch4_window7_224",
    "swinv2_cr_tiny_ns_224",
    "tiny_vit_5m_224",
    "tnt_s_patch16_224",
    "twins_svt_small",
    "visformer_tiny",
    "vit_tiny_patch16_224",
    "vit_tiny_r_s16_p8_224",
    "vit_relpos_small_patch16_224",
    "vitamin_small_224",
    "volo_d1_224",
)


def _sized(size: int) -> Given:
    return floats("batch:1", 3, size, size, batch=2)


FAMILIES: dict[str, Family] = {
    "timm": {
        **{name: _timm(name, _ANY) for name in _TIMM_ANY},
        **{name: _timm(name, _TALL) for name in _TIMM_TALL},
        **{name: _timm(name, _sized(int(name[-3:]) if name.endswith(("240", "256")) else 224)) for name in _TIMM_FIXED},
        "swinv2_tiny_window8_256": _timm("swinv2_tiny_window8_256", _sized(256)),
        "samvit_base_patch16_224": _timm("samvit_base_patch16_224", _sized(224), depth=2, global_attn_indexes=(1,)),
        "mobilenetv5_300m": _timm("mobilenetv5_300m", _sized(256)),
        "deepseek_vit_412m": _timm("deepseek_vit_412m", _sized(224), depth=2),
        "gemma4_vit_167m": _timm("gemma4_vit_167m", _sized(224), depth=2),
        "qwen3_vit_88m": _timm("qwen3_vit_88m", _sized(224), depth=2),
    },
    "torchvision": {
        "AlexNet": _vision("alexnet", _TALL),
        "GoogLeNet": _vision("googlenet", _TALL, init_weights=False, aux_logits=False),
        "SqueezeNet": _vision("squeezenet1_1", _TALL),
        "ShuffleNetV2": _vision("shufflenet_v2_x0_5", _TALL),
        "MNASNet": _vision("mnasnet0_5", _TALL),
        "MaxVit": _vision("maxvit_t", _sized(224)),
        "ViT": _vision("vit_b_32", _sized(224)),
        "Swin": _vision("swin_t", _TALL),
        "FCOS": _vision("fcos_resnet50_fpn", _DETECTION, "torchvision.models.detection", **_SMALL),
        "RetinaNet": _vision("retinanet_resnet50_fpn", _DETECTION, "torchvision.models.detection", **_SMALL),
        "FasterRCNN": _vision("fasterrcnn_mobilenet_v3_large_320_fpn", _DETECTION, "torchvision.models.detection", **_SMALL),
        "MaskRCNN": _vision("maskrcnn_resnet50_fpn", _DETECTION, "torchvision.models.detection", **_SMALL),
        "SSDLite": _vision(
            "ssdlite320_mobilenet_v3_large", _DETECTION, "torchvision.models.detection", weights_backbone=None, num_classes=5
        ),
        "DeepLabV3": _vision("deeplabv3_mobilenet_v3_large", _TALL, "torchvision.models.segmentation", **_SEGMENTS),
        "LRASPP": _vision("lraspp_mobilenet_v3_large", _TALL, "torchvision.models.segmentation", **_SEGMENTS),
        "FCN": _vision("fcn_resnet50", _TALL, "torchvision.models.segmentation", **_SEGMENTS),
        "RAFT": _vision("raft_small", Given(_pair), "torchvision.models.optical_flow"),
        "VideoResNet": _vision("r3d_18", floats("batch:1", 3, "frames:8", 32, 32, batch=2, frames=12), "torchvision.models.video"),
        "VideoSwin": _vision("swin3d_t", floats("batch:1", 3, 8, 64, 64, batch=2), "torchvision.models.video"),
        "MViT": _vision("mvit_v2_s", floats("batch:1", 3, 16, 224, 224), "torchvision.models.video"),
    },
}
"""The architectures by family and name."""
