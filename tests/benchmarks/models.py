"""The models: real architectures in real sizes, with random weights from configs and without downloads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
import zoo
from torch import nn


@dataclasses.dataclass(frozen=True)
class Subject:
    """A model in evaluation mode and its inputs."""

    model: nn.Module
    inputs: zoo.Inputs


MODELS: dict[str, Callable[[], Subject]] = {}
"""The builder of every model by its name. It makes the same weights every time."""


def build(name: str) -> Subject:
    """Builds one of `MODELS`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        subject = MODELS[name]()
    subject.model.eval()
    return subject


def _model(builder: Callable[[], Subject]) -> Callable[[], Subject]:
    MODELS[builder.__name__] = builder
    return builder


def _ids() -> torch.Tensor:
    return torch.randint(3, 500, (2, 32))


def _image() -> zoo.Inputs:
    return zoo.Inputs((torch.randn(1, 3, 224, 224),))


@_model
def mlp() -> Subject:
    return Subject(zoo.MLPModel(), zoo.Inputs((torch.randn(97, 8),)))


@_model
def lstm() -> Subject:
    return Subject(nn.LSTM(64, 128, num_layers=2, batch_first=True), zoo.Inputs((torch.randn(2, 16, 64),)))


@_model
def highresnet() -> Subject:
    from monai.networks.nets import HighResNet

    return Subject(HighResNet(spatial_dims=3, in_channels=1, out_channels=2), zoo.Inputs((torch.randn(1, 1, 48, 48, 48),)))


@_model
def resnet50() -> Subject:
    from transformers import ResNetConfig, ResNetForImageClassification

    return Subject(ResNetForImageClassification(ResNetConfig(num_labels=1000)), _image())


@_model
def vit_b_16() -> Subject:
    from transformers import ViTConfig, ViTForImageClassification

    return Subject(ViTForImageClassification(ViTConfig(num_labels=1000)), _image())


@_model
def swin_t() -> Subject:
    from transformers import SwinConfig, SwinForImageClassification

    config = SwinConfig(embed_dim=96, depths=[2, 2, 6, 2], num_heads=[3, 6, 12, 24], window_size=7, num_labels=1000)
    return Subject(SwinForImageClassification(config), _image())


@_model
def bert() -> Subject:
    from transformers import BertConfig, BertModel

    ids = _ids()
    return Subject(BertModel(BertConfig()), zoo.Inputs((ids,), {"attention_mask": torch.ones_like(ids)}))


@_model
def gpt2() -> Subject:
    from transformers import GPT2Config, GPT2LMHeadModel

    return Subject(GPT2LMHeadModel(GPT2Config(use_cache=False)), zoo.Inputs((_ids(),)))


@_model
def llama() -> Subject:
    return llama_of(16)


@_model
def t5() -> Subject:
    from transformers import T5Config, T5ForConditionalGeneration

    inputs = zoo.Inputs(kwargs={"input_ids": _ids(), "decoder_input_ids": _ids()})
    return Subject(T5ForConditionalGeneration(T5Config(use_cache=False)), inputs)


@_model
def unet() -> Subject:
    from diffusers import UNet2DConditionModel

    model = UNet2DConditionModel(sample_size=32, block_out_channels=(64, 128, 256, 256), cross_attention_dim=64)
    return Subject(model, zoo.Inputs((torch.randn(1, 4, 32, 32), torch.tensor([1]), torch.randn(1, 8, 64))))


def llama_of(layers: int, width: int = 512) -> Subject:
    """A Llama with `layers` layers and `width` hidden features."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=1000,
        hidden_size=width,
        intermediate_size=width * 8 // 3,
        num_hidden_layers=layers,
        num_attention_heads=8,
        use_cache=False,
    )
    return Subject(LlamaForCausalLM(config).eval(), zoo.Inputs((_ids(),)))
