"""class: unsupported operators (several in one model)
stage: dispatch
thread: none
expect: error
rule: no-onnx-function
fix: all three at once: linalg_eigh, linalg_qr, special_i0e are not in ONNX
"""

import functools

import torch


def traced(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        return fn(*args, **kwargs)

    return inner


class Whiten(torch.nn.Module):
    @traced
    def forward(self, x):
        values, vectors = torch.linalg.eigh(x.T @ x)  # BLAME
        return x @ vectors / values.clamp_min(1e-3).sqrt()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.whiten = Whiten()
        self.window = lambda t: torch.special.i0e(t)  # BLAME

    def forward(self, x):
        q, r = torch.linalg.qr(self.whiten(x))  # BLAME
        return self.window(q) + r.diagonal()


def build():
    return Net().eval(), (torch.randn(5, 3),), {}, {}
