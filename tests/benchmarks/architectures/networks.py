"""Networks of MONAI and modules of plain torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import zoo
from torch import nn

from .architecture import Architecture, Family, Given, floats, of

_SLICE = floats("batch:1", 1, "height:32", "width:32", batch=3, height=64, width=96)
_VOLUME = floats("batch:1", 1, "depth:32", "height:32", "width:32", batch=3, depth=48, height=64, width=32)
_LARGE = floats("batch:1", 1, "depth:64", "height:64", "width:64", batch=2, depth=96, height=64, width=128)
_FIXED = floats("batch:1", 1, 32, 32, 32, batch=3)
_SEQUENCES = floats("batch:2", "length:8", 16, batch=3, length=11)
_STEPS = floats("length:8", "batch:2", 16, batch=3, length=11)
_LINES = floats("batch:2", 8, "length:32", batch=3, length=45)
_PLANES = floats("batch:2", 8, "height:32", "width:24", batch=3, height=27, width=40)
_SPACES = floats("batch:2", 8, "depth:12", "height:10", "width:8", batch=3, depth=9, height=11, width=14)


def _two(batch: int = 2, length: int = 8, other: int = 6) -> zoo.Inputs:
    return zoo.Inputs((torch.randn(batch, length, 16), torch.randn(batch, other, 16)))


def _bags(batch: int = 3, length: int = 10) -> zoo.Inputs:
    return zoo.Inputs((torch.randint(0, 50, (length,)), torch.linspace(0, length - 1, batch).long()))


def _bag_rows(batch: int = 3, length: int = 5) -> zoo.Inputs:
    return zoo.Inputs((torch.randint(0, 50, (batch, length)),))


def _warped(batch: int = 2, height: int = 12, width: int = 10) -> zoo.Inputs:
    return zoo.Inputs((torch.randn(batch, 3, height, width), torch.rand(batch, height, width, 2) * 2 - 1))


def _diffused(batch: int = 1, size: int = 16) -> zoo.Inputs:
    return zoo.Inputs((torch.randn(batch, 1, size, size), torch.tensor([1])))


def _registered(batch: int = 1, size: int = 32) -> zoo.Inputs:
    return zoo.Inputs((torch.randn(batch, 1, size, size, size), torch.randn(batch, 1, size, size, size)))


class _Attention(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True, **options)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        attended, weights = self.attention(x, y, y)
        return attended, weights


class _Causal(nn.Module):
    """A decoder with a causal mask of the length of its input."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4, 32, batch_first=True), 2)

    def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.decoder(x, memory, tgt_mask=mask, tgt_is_causal=True)


class _Unpooled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled, indices = nn.functional.max_pool2d(x, 2, return_indices=True)
        return nn.functional.max_unpool2d(pooled, indices, 2, output_size=x.shape[2:])


class _Packed(nn.Module):
    """Runs an LSTM over sequences of different lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(16, 8, batch_first=True)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]


class _Warp(nn.Module):
    def forward(self, x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        return nn.functional.grid_sample(x, grid, align_corners=False)


class _Unrolled(nn.Module):
    """A cell over time in a Python loop."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden, cell = x.new_zeros(x.shape[0], 8), x.new_zeros(x.shape[0], 8)
        steps = []
        for step in x.unbind(1):
            hidden, cell = self.cell(step, (hidden, cell))
            steps.append(hidden)
        return torch.stack(steps, 1)


def _net(name: str, given: Given, **config: Any) -> Architecture:
    return of("monai.networks.nets", name, given, **config)


def _modules(given: Given, **makers: Callable[[], nn.Module]) -> Family:
    return {name: Architecture(maker, given) for name, maker in makers.items()}


_FLAT = {"spatial_dims": 2, "in_channels": 1, "out_channels": 2}
_DEEP = {"spatial_dims": 3, "in_channels": 1, "out_channels": 2}

FAMILIES: dict[str, Family] = {
    "monai": {
        "BasicUNet": _net("BasicUNet", _SLICE, **_FLAT, features=(4, 4, 8, 8, 8, 4)),
        "BasicUNet3D": _net("BasicUNet", _VOLUME, **_DEEP, features=(4, 4, 8, 8, 8, 4)),
        "BasicUNetPlusPlus": _net("BasicUNetPlusPlus", _SLICE, **_FLAT, features=(4, 4, 8, 8, 8, 4)),
        "UNETR": _net("UNETR", _FIXED, in_channels=1, out_channels=2, img_size=32, feature_size=8, hidden_size=48, mlp_dim=64, num_heads=4),
        "SwinUNETR": _net("SwinUNETR", _LARGE, in_channels=1, out_channels=2, feature_size=12, depths=(1, 1, 1, 1), num_heads=(2, 2, 4, 4)),
        "ViT": _net("ViT", _FIXED, in_channels=1, img_size=32, patch_size=16, hidden_size=48, mlp_dim=64, num_layers=2, num_heads=4),
        "ViTAutoEnc": _net(
            "ViTAutoEnc", _FIXED, in_channels=1, img_size=32, patch_size=16, hidden_size=48, mlp_dim=64, num_layers=2, num_heads=4
        ),
        "ResNet": _net(
            "ResNet", _VOLUME, block="basic", layers=[1, 1, 1, 1], block_inplanes=[4, 8, 16, 32], n_input_channels=1, num_classes=2
        ),
        "SENet": _net(
            "SENet",
            _SLICE,
            spatial_dims=2,
            in_channels=1,
            block="se_bottleneck",
            layers=[1, 1, 1, 1],
            groups=1,
            reduction=16,
            num_classes=2,
        ),
        "EfficientNetBN": _net(
            "EfficientNetBN", _SLICE, model_name="efficientnet-b0", pretrained=False, spatial_dims=2, in_channels=1, num_classes=2
        ),
        "FlexibleUNet": _net("FlexibleUNet", _SLICE, in_channels=1, out_channels=2, backbone="resnet18", pretrained=False),
        "AutoEncoder": _net("AutoEncoder", _SLICE, **_FLAT, channels=(4, 8, 16), strides=(2, 2, 2)),
        "VarAutoEncoder": _net(
            "VarAutoEncoder",
            floats("batch:1", 1, 32, 32, batch=3),
            spatial_dims=2,
            in_shape=(1, 32, 32),
            out_channels=1,
            latent_size=4,
            channels=(4, 8),
            strides=(2, 2),
        ),
        "Regressor": _net(
            "Regressor", floats("batch:1", 1, 32, 32, batch=3), in_shape=(1, 32, 32), out_shape=(2,), channels=(4, 8), strides=(2, 2)
        ),
        "Generator": _net(
            "Generator", floats("batch:2", 8, batch=3), latent_shape=(8,), start_shape=(4, 8, 8), channels=(4, 2), strides=(2, 2)
        ),
        "Quicknat": _net("Quicknat", _SLICE, num_classes=2, num_channels=1, num_filters=8),
        "SegResNetDS": _net("SegResNetDS", _VOLUME, in_channels=1, out_channels=2, init_filters=8, blocks_down=(1, 1, 1)),
        "SegResNetVAE": _net("SegResNetVAE", _FIXED, input_image_size=(32, 32, 32), in_channels=1, init_filters=8),
        "MedNeXt": _net(
            "MedNeXt",
            _VOLUME,
            spatial_dims=3,
            in_channels=1,
            out_channels=2,
            init_filters=4,
            blocks_down=(1, 1),
            blocks_bottleneck=1,
            blocks_up=(1, 1),
            encoder_expansion_ratio=(2, 2),
            decoder_expansion_ratio=(2, 2),
        ),
        "DiffusionModelUNet": _net(
            "DiffusionModelUNet",
            Given(_diffused, batch=3, size=24),
            spatial_dims=2,
            in_channels=1,
            out_channels=1,
            channels=(8, 16),
            attention_levels=(False, True),
            num_head_channels=8,
            norm_num_groups=8,
            num_res_blocks=1,
        ),
        "VQVAE": _net(
            "VQVAE",
            _SLICE,
            spatial_dims=2,
            in_channels=1,
            out_channels=1,
            channels=(8, 8),
            num_res_channels=(8, 8),
            num_res_layers=1,
            num_embeddings=16,
            embedding_dim=8,
            downsample_parameters=((2, 4, 1, 1), (2, 4, 1, 1)),
            upsample_parameters=((2, 4, 1, 1, 0), (2, 4, 1, 1, 0)),
        ),
        "AutoencoderKL": _net(
            "AutoencoderKL",
            _SLICE,
            spatial_dims=2,
            in_channels=1,
            out_channels=1,
            channels=(8, 8),
            attention_levels=(False, False),
            latent_channels=4,
            norm_num_groups=4,
            num_res_blocks=1,
        ),
        "PatchDiscriminator": _net("PatchDiscriminator", _SLICE, spatial_dims=2, in_channels=1, channels=4),
        "VoxelMorphUNet": _net(
            "VoxelMorphUNet",
            floats("batch:1", 2, "height:32", "width:32", batch=3, height=64, width=96),
            spatial_dims=2,
            in_channels=2,
            unet_out_channels=8,
            channels=(8, 8, 8, 8, 8, 8),
            final_conv_channels=(8, 8),
        ),
        "VoxelMorph": _net("VoxelMorph", Given(_registered, batch=3)),
        "LocalNet": _net(
            "LocalNet",
            _SLICE,
            spatial_dims=2,
            in_channels=1,
            num_channel_initial=4,
            extract_levels=(0, 1),
            out_kernel_initializer="kaiming_uniform",
            out_activation=None,
            out_channels=2,
        ),
        "Restormer": of(
            "monai.networks.nets.restormer",
            "Restormer",
            _SLICE,
            spatial_dims=2,
            in_channels=1,
            out_channels=1,
            dim=8,
            num_blocks=(1, 1),
            heads=(1, 2),
            num_refinement_blocks=1,
        ),
        "MILModel": _net(
            "MILModel", floats("batch:1", 3, 3, 32, 32, batch=2), num_classes=2, pretrained=False, mil_mode="att", backbone="resnet18"
        ),
        "Vista3D": of(
            "monai.networks.nets.vista3d",
            "ClassMappingClassify",
            Given(lambda batch=1: zoo.Inputs((torch.randn(batch, 8, 8, 8, 8), torch.tensor([1, 2]))), batch=2),
            n_classes=4,
            feature_size=8,
        ),
        "FullyConnectedNet": _net(
            "FullyConnectedNet", floats("batch:2", 10, batch=3), in_channels=10, out_channels=2, hidden_channels=(8, 8)
        ),
    },
    "torch-recurrent": _modules(
        _SEQUENCES,
        BidirectionalLSTM=lambda: nn.LSTM(16, 8, 2, batch_first=True, bidirectional=True),
        ProjectedLSTM=lambda: nn.LSTM(16, 8, proj_size=4, batch_first=True),
        StackedGRU=lambda: nn.GRU(16, 8, 3, batch_first=True, dropout=0.1),
        BidirectionalRNN=lambda: nn.RNN(16, 8, 2, batch_first=True, bidirectional=True, nonlinearity="relu"),
        UnrolledLSTMCell=_Unrolled,
    )
    | _modules(_STEPS, LSTMStepsFirst=lambda: nn.LSTM(16, 8, bidirectional=True, bias=False), GRUStepsFirst=lambda: nn.GRU(16, 8, 2))
    | {"PackedLSTM": Architecture(_Packed, Given(lambda: zoo.Inputs((torch.randn(3, 6, 16), torch.tensor([6, 4, 2])))))},
    "torch-attention": {
        **_modules(
            Given(_two, batch=3, length=11, other=9),
            Transformer=lambda: nn.Transformer(16, 4, 2, 2, 32, batch_first=True),
            TransformerDecoder=lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4, 32, batch_first=True, norm_first=True), 2),
            CausalDecoder=_Causal,
            MultiheadAttention=_Attention,
            MultiheadAttentionWithBias=lambda: _Attention(add_bias_kv=True, add_zero_attn=True),
        ),
        **_modules(
            _SEQUENCES,
            TransformerEncoderGelu=lambda: nn.TransformerEncoder(
                nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=True, activation="gelu"), 2, norm=nn.LayerNorm(16)
            ),
        ),
    },
    "torch-embedding": {
        "EmbeddingBag": Architecture(lambda: nn.EmbeddingBag(50, 8), Given(_bags, batch=5, length=14)),
        "EmbeddingBagSum": Architecture(lambda: nn.EmbeddingBag(50, 8, mode="sum"), Given(_bag_rows, batch=5, length=7)),
        "EmbeddingBagMax": Architecture(lambda: nn.EmbeddingBag(50, 8, mode="max", padding_idx=3), Given(_bag_rows, batch=5, length=7)),
        "Embedding": Architecture(lambda: nn.Embedding(50, 8, padding_idx=0, max_norm=None), Given(_bag_rows, batch=5, length=7)),
    },
    "torch-norm": {
        **_modules(
            _PLANES,
            BatchNorm2d=lambda: nn.BatchNorm2d(8),
            InstanceNorm2d=lambda: nn.InstanceNorm2d(8, affine=True),
            GroupNorm=lambda: nn.GroupNorm(4, 8),
            LocalResponseNorm=lambda: nn.LocalResponseNorm(3),
            WeightNorm=lambda: nn.utils.parametrizations.weight_norm(nn.Conv2d(8, 4, 3)),
            SpectralNorm=lambda: nn.utils.parametrizations.spectral_norm(nn.Conv2d(8, 4, 3)),
        ),
        **_modules(_SEQUENCES, LayerNorm=lambda: nn.LayerNorm(16), RMSNorm=lambda: nn.RMSNorm(16)),
        **_modules(_LINES, BatchNorm1d=lambda: nn.BatchNorm1d(8), InstanceNorm1d=lambda: nn.InstanceNorm1d(8)),
        **_modules(_SPACES, BatchNorm3d=lambda: nn.BatchNorm3d(8), InstanceNorm3d=lambda: nn.InstanceNorm3d(8, track_running_stats=True)),
    },
    "torch-pooling": {
        **_modules(
            _PLANES,
            MaxPool2d=lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True),
            AvgPool2d=lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
            LPPool2d=lambda: nn.LPPool2d(2, 3, 2),
            AdaptiveAvgPool2d=lambda: nn.AdaptiveAvgPool2d((5, 3)),
            AdaptiveMaxPool2d=lambda: nn.AdaptiveMaxPool2d((1, 1)),
            MaxUnpool2d=_Unpooled,
            PixelShuffle=lambda: nn.Sequential(nn.PixelShuffle(2), nn.ReflectionPad2d(2)),
            Upsample=lambda: nn.Upsample(scale_factor=2, mode="bicubic"),
            UpsampleBilinear=lambda: nn.Upsample(size=(20, 30), mode="bilinear", align_corners=True),
            Unfold=lambda: nn.Unfold(3, padding=1, stride=2),
            ConvTranspose2d=lambda: nn.ConvTranspose2d(8, 4, 3, 2, 1, output_padding=1),
        ),
        **_modules(
            _LINES,
            MaxPool1d=lambda: nn.MaxPool1d(3, 2),
            AvgPool1d=lambda: nn.AvgPool1d(4, 3, 1),
            AdaptiveAvgPool1d=lambda: nn.AdaptiveAvgPool1d(7),
            LPPool1d=lambda: nn.LPPool1d(2, 3),
            CircularConv1d=lambda: nn.Conv1d(8, 4, 3, padding="same", padding_mode="circular"),
        ),
        **_modules(
            _SPACES,
            MaxPool3d=lambda: nn.MaxPool3d(2),
            AvgPool3d=lambda: nn.AvgPool3d(3, 2),
            AdaptiveAvgPool3d=lambda: nn.AdaptiveAvgPool3d((2, 3, 1)),
            AdaptiveMaxPool3d=lambda: nn.AdaptiveMaxPool3d((2, 2, 2)),
        ),
        "GridSample": Architecture(_Warp, Given(_warped, batch=3, height=9, width=14)),
    },
}
"""The architectures by family and name."""
