"""What an architecture is, and how the lists make them: small configs with random weights, without downloads."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import torch
import zoo
from torch import nn

from benchmarks.models import Subject


class Given:
    """The inputs of an architecture in any sizes.

    Attributes:
        make: Makes the inputs. Its keyword arguments are sizes; their defaults are those of the example.
        other: Other sizes that the architecture takes. The axes of inputs that differ in them are dynamic.
    """

    def __init__(self, make: Callable[..., zoo.Inputs], **other: int) -> None:
        self.make = make
        self.other = other


@dataclasses.dataclass(frozen=True)
class Architecture:
    """An architecture.

    Attributes:
        model: Builds the model.
        given: Its inputs.
    """

    model: Callable[[], nn.Module]
    given: Given

    def __call__(self) -> Subject:
        """The model with its example inputs."""
        return Subject(self.model(), self.given.make())


Family = dict[str, Architecture]
Config = Mapping[str, Any]


def of_transformers(given: Given, common: Config, **own: Config) -> Family:
    """An architecture for each class of transformers, with the part of its config that differs from `common`."""
    return {
        name: Architecture(lambda name=name, config=config: transformer(name, {**common, **config}), given) for name, config in own.items()
    }


def transformer(name: str, config: Config) -> nn.Module:
    """The model of a class of transformers."""
    model_class = getattr(importlib.import_module("transformers"), name)
    model: nn.Module = model_class(model_class.config_class(**config))
    return model


def of(package: str, name: str, given: Given, **config: Any) -> Architecture:
    """A class of another package."""
    return Architecture(lambda: getattr(importlib.import_module(package), name)(**config), given)


def floats(*shape: int | str, **other: int) -> Given:
    """One tensor of numbers. A size is a number, or `"name:size"` where it has a name.

    Args:
        shape: The example's shape.
        other: Other sizes by name.
    """
    names = [each.split(":") if isinstance(each, str) else ["", str(each)] for each in shape]

    def make(**sizes: int) -> zoo.Inputs:
        return zoo.Inputs((torch.randn(*(sizes.get(name, int(size)) for name, size in names)),))

    return Given(make, **other)


def ids(batch: int, length: int) -> torch.Tensor:
    """Token ids, int64, of a vocabulary of 500 without its first three."""
    return torch.randint(3, 500, (batch, length))


def text(batch: int = 2, length: int = 16) -> zoo.Inputs:
    """Token ids and their attention mask, int64, (batch, length). The last row ends with padding: a mask of ones may get lost unseen."""
    tokens = ids(batch, length)
    mask = torch.ones_like(tokens)
    mask[-1, length - length // 5 :] = 0
    return zoo.Inputs(kwargs={"input_ids": tokens, "attention_mask": mask})


def image(batch: int = 2, height: int = 64, width: int = 64) -> zoo.Inputs:
    """Pixels, float32, (batch, 3, height, width)."""
    return zoo.Inputs(kwargs={"pixel_values": torch.randn(batch, 3, height, width)})


def _texts(batch: int = 2, length: int = 16, written: int = 8) -> zoo.Inputs:
    return zoo.Inputs(kwargs={**text(batch, length).kwargs, "decoder_input_ids": ids(batch, written)})


TEXT = Given(text, batch=3, length=24)
TEXTS = Given(_texts, batch=3, length=24, written=11)
IMAGE = Given(image, batch=3)
ANY_IMAGE = Given(image, batch=3, height=96, width=128)
"""For models that take images of any size."""

ENCODER: Config = {
    "vocab_size": 500,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
}
DECODER: Config = {**ENCODER, "use_cache": False, "num_key_value_heads": 2, "head_dim": 16}
PATCHES: Config = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "image_size": 64,
    "patch_size": 16,
}
BART: Config = {
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
T5: Config = {
    "vocab_size": 500,
    "d_model": 64,
    "d_kv": 16,
    "d_ff": 128,
    "num_layers": 2,
    "num_heads": 4,
    "use_cache": False,
    "decoder_start_token_id": 0,
}
SPEECH: Config = {
    **ENCODER,
    "conv_dim": (32, 32),
    "conv_stride": (5, 4),
    "conv_kernel": (10, 8),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
