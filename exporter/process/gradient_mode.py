"""How an export runs a model that has tensors of `torch.inference_mode`: PyTorch refuses to save these for gradients."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from onnxplain.torch_internals import modules
from onnxplain.torch_internals.put_back import put_back
from onnxplain.torch_internals.python_values import is_a


@contextlib.contextmanager
def as_model_allows(model: Any) -> Iterator[None]:
    """Records no gradients while it is open if a module holds such tensors, for example a mask that a run in inference mode has left."""
    held = [module for _, module in modules.named_modules(model)] if is_a(model, torch.nn.Module) else []
    if not any(tensor.is_inference() for module in held for tensor in (*_weights(module), *_others(module))):
        yield
        return
    fast = torch.backends.mha.get_fastpath_enabled()
    with put_back(lambda: torch.backends.mha.set_fastpath_enabled(fast)):
        # NOTE: with such weights, a capture keeps the fast path of nn.TransformerEncoderLayer as one operator.
        torch.backends.mha.set_fastpath_enabled(False)
        # NOTE: a capture makes other parameters, which take part in gradients.
        with torch.no_grad() if any(tensor.is_inference() for module in held for tensor in _others(module)) else contextlib.nullcontext():
            yield


def _weights(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    return (each for each in modules.parameters(module).values() if each is not None)


def _others(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    """The buffers and other tensors of a module itself, and those in its lists, tuples and dicts."""
    for value in (*modules.buffers(module).values(), *vars(module).values()):
        items = value.values() if type(value) is dict else value if type(value) in (list, tuple) else (value,)
        yield from (item for item in items if is_a(item, torch.Tensor))
