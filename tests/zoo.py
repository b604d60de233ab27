"""Small models of many architectures, with random weights and without downloads, for tests that export real code."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.export import Dim

DynamicShapes = Mapping[str, Mapping[int, Any] | None]


@dataclasses.dataclass(frozen=True)
class Inputs:
    """The inputs of a model."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The tensors among them, in the order of an exported graph's inputs."""
        return [value for value in (*self.args, *self.kwargs.values()) if isinstance(value, torch.Tensor)]

    def outputs_of(self, model: nn.Module) -> list[torch.Tensor]:
        """The tensors that `model` returns, in the order of an exported graph's outputs."""
        # NOTE: not under no_grad, which sends nn.TransformerEncoder down another path than the one torch.export captures.
        output = model(*self.args, **self.kwargs)
        return [leaf.detach() for leaf in torch.utils._pytree.tree_leaves(output) if isinstance(leaf, torch.Tensor)]


@dataclasses.dataclass(frozen=True)
class Built:
    """A model in evaluation mode and its inputs.

    Attributes:
        model: The model.
        args: Positional example inputs.
        kwargs: Keyword example inputs.
        other: Other values of the same shapes.
        sized: Makes inputs in given sizes, such as `sized(batch=3)`.
        resized: Other values in other sizes of the dynamic dims. The last is a batch of one, which captured graphs often get wrong.
    """

    model: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    other: Inputs
    sized: Callable[..., Inputs]
    resized: tuple[Inputs, ...]


@dataclasses.dataclass(frozen=True)
class Case:
    """An architecture.

    Attributes:
        name: Its name.
        build: Makes the model and its inputs, the same ones every time.
        dynamic: `dynamic_shapes` for `torch.export.export`, an entry for each input and in their order.
        needs: The package it comes from.
    """

    name: str
    build: Callable[[], Built]
    dynamic: DynamicShapes
    needs: str = "torch"


CASES: list[Case] = []

_BATCH = Dim("batch")
_TOKENS = 64
_POSITIONS = 32
_TEXT = {0: _BATCH, 1: Dim("sequence")}
_BOUNDED_TEXT = {0: _BATCH, 1: Dim("sequence", max=_POSITIONS)}
"""For models that slice a buffer of positions, which torch.export turns into a bound."""


def _case(dynamic: DynamicShapes, needs: str = "torch") -> Callable[[Callable[[], Built]], Callable[[], Built]]:
    """Puts a builder into `CASES`, under its own name."""

    def put(build: Callable[[], Built]) -> Callable[[], Built]:
        def seeded() -> Built:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                return build()

        CASES.append(Case(build.__name__, seeded, dynamic, needs))
        return seeded

    return put


def _built(model: nn.Module, inputs: Callable[..., Inputs], *sizes: Mapping[str, int]) -> Built:
    """`model` with inputs of the default sizes, twice, and of the other `sizes`."""
    randomize(model)
    example = inputs()
    return Built(model.eval(), example.args, example.kwargs, inputs(), inputs, tuple(inputs(**size) for size in sizes))


@torch.no_grad()
def randomize(model: nn.Module) -> None:
    """Draws all weights again: biases of zero, identity norms and very small matrices would hide a wrong graph."""
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_normal_(parameter)
        else:
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.normal_(std=0.1)
        elif name.endswith("running_var"):
            buffer.uniform_(0.5, 1.5)


def _ids(batch: int, sequence: int) -> torch.Tensor:
    """Token ids without special tokens."""
    return torch.randint(3, _TOKENS - 1, (batch, sequence))


def _padding(batch: int, sequence: int) -> torch.Tensor:
    """An attention mask: zero after the end of each text. The texts have different lengths."""
    lengths = torch.randint(1, sequence + 1, (batch, 1))
    return (torch.arange(sequence) < lengths).long()


class MLPModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc0 = nn.Linear(8, 8, bias=True)
        self.fc1 = nn.Linear(8, 4, bias=True)
        self.fc2 = nn.Linear(4, 2, bias=True)
        self.fc3 = nn.Linear(2, 2, bias=True)

    def forward(self, tensor_x: torch.Tensor) -> torch.Tensor:
        for layer in (self.fc0, self.fc1, self.fc2, self.fc3):
            tensor_x = torch.relu(layer(tensor_x))
        return tensor_x


@_case({"tensor_x": {0: _BATCH}})
def mlp() -> Built:
    return _built(MLPModel(), lambda rows=97: Inputs((torch.randn(rows, 8),)), {"rows": 5}, {"rows": 1})


@_case({"input": {0: _BATCH}})
def lstm() -> Built:
    model = nn.LSTM(8, 16, num_layers=2, batch_first=True)
    return _built(model, lambda batch=2: Inputs((torch.randn(batch, 5, 8),)), {"batch": 3}, {"batch": 1})


@_case({"src": _TEXT, "src_key_padding_mask": _TEXT})
def transformer_encoder() -> Built:
    layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True)

    def inputs(batch: int = 2, sequence: int = 6) -> Inputs:
        return Inputs((torch.randn(batch, sequence, 32),), {"src_key_padding_mask": _padding(batch, sequence) == 0})

    return _built(nn.TransformerEncoder(layer, 2), inputs, {"batch": 3, "sequence": 9}, {"batch": 1})


@_case({"x": {0: Dim.DYNAMIC, 2: Dim.DYNAMIC, 3: Dim.DYNAMIC, 4: Dim.DYNAMIC}}, needs="monai")
def monai_highresnet() -> Built:
    from monai.networks.nets import HighResNet

    def inputs(batch: int = 2, depth: int = 16, height: int = 16, width: int = 16) -> Inputs:
        return Inputs((torch.randn(batch, 1, depth, height, width),))

    return _built(
        HighResNet(spatial_dims=3, in_channels=1, out_channels=3),
        inputs,
        {"batch": 3, "depth": 12, "height": 10, "width": 14},
        {"batch": 1},
    )


@_case({"x": {0: _BATCH, 2: 4 * Dim("height"), 3: 4 * Dim("width")}}, needs="monai")
def monai_unet() -> Built:
    from monai.networks.nets import UNet

    def inputs(batch: int = 2, height: int = 32, width: int = 32) -> Inputs:
        return Inputs((torch.randn(batch, 1, height, width),))

    model = UNet(spatial_dims=2, in_channels=1, out_channels=2, channels=(8, 16, 32), strides=(2, 2), num_res_units=2)
    return _built(model, inputs, {"batch": 3, "height": 24, "width": 40}, {"batch": 1})


@_case({"input_ids": _BOUNDED_TEXT, "attention_mask": _BOUNDED_TEXT, "token_type_ids": _BOUNDED_TEXT}, needs="transformers")
def bert() -> Built:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=_TOKENS,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=_POSITIONS,
    )

    def inputs(batch: int = 2, sequence: int = 8) -> Inputs:
        types = torch.randint(0, 2, (batch, sequence))
        return Inputs((_ids(batch, sequence),), {"attention_mask": _padding(batch, sequence), "token_type_ids": types})

    return _built(BertModel(config), inputs, {"batch": 3, "sequence": 11}, {"batch": 1})


@_case({"input_ids": _TEXT, "attention_mask": _TEXT, "use_cache": None}, needs="transformers")
def gpt2() -> Built:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=_TOKENS, n_positions=_POSITIONS, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0)

    def inputs(batch: int = 2, sequence: int = 8) -> Inputs:
        return Inputs((_ids(batch, sequence),), {"attention_mask": _padding(batch, sequence), "use_cache": False})

    return _built(GPT2LMHeadModel(config), inputs, {"batch": 3, "sequence": 11}, {"batch": 1})


@_case({"input_ids": _TEXT, "attention_mask": _TEXT}, needs="transformers")
def llama() -> Built:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=_TOKENS,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=_POSITIONS,
        use_cache=False,
    )

    def inputs(batch: int = 2, sequence: int = 8) -> Inputs:
        return Inputs((_ids(batch, sequence),), {"attention_mask": _padding(batch, sequence)})

    return _built(LlamaForCausalLM(config), inputs, {"batch": 3, "sequence": 11}, {"batch": 1})


@_case({"input_ids": _TEXT, "attention_mask": _TEXT, "decoder_input_ids": {0: _BATCH, 1: Dim("target")}}, needs="transformers")
def t5() -> Built:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=_TOKENS, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, use_cache=False)

    def inputs(batch: int = 2, sequence: int = 8, target: int = 5) -> Inputs:
        mask = _padding(batch, sequence)
        return Inputs(kwargs={"input_ids": _ids(batch, sequence), "attention_mask": mask, "decoder_input_ids": _ids(batch, target)})

    return _built(T5ForConditionalGeneration(config), inputs, {"batch": 3, "sequence": 11, "target": 7}, {"batch": 1})


@_case({"pixel_values": {0: Dim.DYNAMIC}}, needs="transformers")
def vit() -> Built:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8, num_labels=5
    )
    return _built(ViTForImageClassification(config), lambda batch=2: Inputs((torch.randn(batch, 3, 32, 32),)), {"batch": 3}, {"batch": 1})


@_case({"input_ids": _BOUNDED_TEXT, "pixel_values": {0: Dim("images")}, "attention_mask": _BOUNDED_TEXT}, needs="transformers")
def clip() -> Built:
    from transformers import CLIPConfig, CLIPModel

    tower = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    end = _TOKENS - 1
    text = {"vocab_size": _TOKENS, "max_position_embeddings": _POSITIONS, "bos_token_id": 0, "eos_token_id": end}
    config = CLIPConfig(text_config={**tower, **text}, vision_config={**tower, "image_size": 32, "patch_size": 8}, projection_dim=16)

    def inputs(texts: int = 3, images: int = 2, sequence: int = 7) -> Inputs:
        ids, mask = _ids(texts, sequence), _padding(texts, sequence)
        ids[torch.arange(texts), mask.sum(1) - 1] = end
        return Inputs(kwargs={"input_ids": ids, "pixel_values": torch.randn(images, 3, 32, 32), "attention_mask": mask})

    return _built(CLIPModel(config), inputs, {"texts": 4, "images": 5, "sequence": 10}, {"texts": 1, "images": 1})


@_case({"input_features": {0: _BATCH}, "decoder_input_ids": {0: _BATCH, 1: Dim("target")}}, needs="transformers")
def whisper() -> Built:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=_TOKENS,
        num_mel_bins=8,
        d_model=32,
        encoder_layers=2,
        encoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_layers=2,
        decoder_attention_heads=4,
        decoder_ffn_dim=64,
        max_source_positions=16,
        max_target_positions=_POSITIONS,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        use_cache=False,
    )

    def inputs(batch: int = 2, target: int = 5) -> Inputs:
        return Inputs((torch.randn(batch, 8, 32),), {"decoder_input_ids": _ids(batch, target)})

    return _built(WhisperForConditionalGeneration(config), inputs, {"batch": 3, "target": 7}, {"batch": 1})


# NOTE: diffusers works around a slow path from a batch of 64 on, and a captured graph is one side of that `if`.
_UNET_BATCH = Dim("batch", max=63)


@_case(
    {
        "sample": {0: _UNET_BATCH, 2: 2 * Dim("height"), 3: 2 * Dim("width")},
        "timestep": {0: _UNET_BATCH},
        "encoder_hidden_states": {0: _UNET_BATCH, 1: Dim("sequence")},
    },
    needs="diffusers",
)
def diffusers_unet() -> Built:
    from diffusers import UNet2DConditionModel

    model = UNet2DConditionModel(
        sample_size=16,
        block_out_channels=(16, 32),
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        norm_num_groups=8,
        cross_attention_dim=24,
        attention_head_dim=4,
    )

    def inputs(batch: int = 2, height: int = 16, width: int = 16, sequence: int = 5) -> Inputs:
        text = torch.randn(batch, sequence, 24)
        return Inputs((torch.randn(batch, 4, height, width), torch.randint(0, 1000, (batch,))), {"encoder_hidden_states": text})

    return _built(model, inputs, {"batch": 3, "height": 12, "width": 20, "sequence": 7}, {"batch": 1})
