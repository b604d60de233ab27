"""Models of repeated and nested modules."""

from __future__ import annotations

import torch
from torch import nn


class Residual(nn.Module):
    """A block of a ResNet."""

    def __init__(self, channels: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(channels // stride, channels, 3, stride, 1), nn.BatchNorm2d(channels), nn.ReLU())
        self.last = nn.Conv2d(channels, channels, 3, padding=1)
        self.shortcut = nn.Identity() if stride == 1 else nn.Conv2d(channels // stride, channels, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.last(self.conv(x)) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1)
        self.stages = nn.Sequential(Residual(8), Residual(8), Residual(16, 2), Residual(16))
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.stages(self.stem(x)).mean((2, 3)))


class UNet(nn.Module):
    """Two levels with a skip connection."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)])
        self.middle = nn.Sequential(nn.GroupNorm(2, 8), nn.SiLU(), nn.Conv2d(8, 8, 1))
        self.up = nn.ModuleList([nn.ConvTranspose2d(8, 4, 2, 2), nn.ConvTranspose2d(8, 2, 2, 2)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = []
        for down in self.down:
            x = nn.functional.max_pool2d(down(x), 2)
            skips.append(x)
        x = self.middle(skips.pop())
        x = self.up[0](x)
        return self.up[1](torch.cat([x, skips.pop()], 1))


class Layer(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(torch.relu(self.linear(x)) + x)


class Stack(nn.Module):
    """Equal layers, the first of which runs twice."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in (*self.layers, self.layers[0]):
            x = layer(x)
        return x


class Choice(nn.Module):
    """A branch and a loop, with weights in their graphs."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.cond(x.sum() > 0, lambda x: self.one(x), lambda x: self.other(x) + 1, (x,))
        start = torch.tensor(0)
        return torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, torch.tanh(self.one(x))), (start, x))[1]  # type: ignore[no-any-return]


class Choices(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Choice(), Choice()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x) * 2)


class Masked(nn.Module):
    """A layer that computes a mask, as all others do."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        mask = torch.arange(x.shape[1])[None] < lengths[:, None]
        return self.linear(x) * mask[..., None]


class MaskedStack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Masked() for _ in range(3))

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, lengths)
        return x


class Several(nn.Module):
    """A module whose results include an input, one value twice, and several parts."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        total = x + y
        return (x, total, total, *total.sin().split(2, -1))


class Around(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.several = Several()

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.several(x, y)  # type: ignore[no-any-return]
