"""Targets of `onnxplain export` for tests of the command line."""

from __future__ import annotations

MODELS = """\
import torch


class Double(torch.nn.Module):
    def forward(self, x):
        return x * 2


class Constant(torch.nn.Module):
    def forward(self):
        return torch.ones(3)


class Flip(torch.nn.Module):
    def forward(self, x):
        if x.sum() < 0:
            return -x
        return x


class Drop(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = torch.nn.Dropout()

    def forward(self, x):
        return self.dropout(x)


def double():
    return Double(), (torch.ones(3),)


def with_all():
    return Double(), (), {"x": torch.ones(3, 4)}, {"x": {0: "batch"}}


def flip():
    return Flip(), (torch.ones(3),)


def drop():
    return Drop(), (torch.ones(3),)


def needs(size):
    return Double(), (torch.ones(size),)


def raises():
    return helper()


def helper():
    raise LookupError("no such layer")


def returns_numbers():
    return 3, 4


class Holder:
    model = Constant()


model = Constant()
bare = Double()
number = 3
"""
