"""Values of a model's tensors during a capture, for code that branches on them: torch knows only their shapes and dtypes."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

import torch

from .fake_tensors import FakeTensor, FakeTensorMode
from .modules import named_modules
from .patching import Slot, wrapped
from .symbols import Attribute, Symbol

_LARGEST = 64
"""The most elements of a tensor whose values are known. A flag or a count has one; torch itself keeps that one of each literal."""

_WITHOUT = "code that branches on the value of a buffer cannot be captured"

# NOTE: read in torch 2.11, 2.13 and 2.15, _subclasses/fake_tensor.py.
_CONVERT = Symbol("torch._subclasses.fake_tensor:FakeTensorConverter.from_real_tensor", without=_WITHOUT)
_MAY_STAY = Symbol("torch._subclasses.fake_tensor:FakeTensorMode.may_turn_const", without=_WITHOUT)
_CONSTANT = Attribute("torch._subclasses.fake_tensor:FakeTensor.constant", without=_WITHOUT)
# NOTE: read in torch 2.11, 2.13 and 2.15, fx/experimental/proxy_tensor.py: what it returns for a tensor has the `proxy` of its node.
_TRACKED = Symbol("torch.fx.experimental.proxy_tensor:get_proxy_slot", without="sizes computed with buffers may not stay dynamic")
_WRITTEN = Symbol("torch._subclasses.fake_tensor:FakeTensorConverter.add_constant_storage_mapping", without=_WITHOUT)

_fakes: contextvars.ContextVar[list[FakeTensor] | None] = contextvars.ContextVar("the fake tensors with known values", default=None)


def data_of(node: torch.fx.Node, tracer: Any) -> torch.Tensor | None:
    """The values of the tensor of the model that an input of the graph of `tracer` stands for; None if they are not known."""
    slots = ((each, _TRACKED.value(each, tracer, None)) for each in _fakes.get() or () if _TRACKED.is_present)
    return next((_CONSTANT.of(each) for each, slot in slots if slot is not None and slot.proxy.node is node), None)


@contextlib.contextmanager
def known(model: torch.nn.Module) -> Iterator[None]:
    """While it is open, torch computes small values that depend on tensors of `model` and on nothing else.

    So `if self.enabled[0]:` has an answer. torch itself does that for tensors that code makes of numbers: it keeps the data beside the
    shape, runs operators on both, and forgets the data where other values are written (FakeTensor.constant). The weights of an exported
    model are constants as well.
    """
    # NOTE: torch does not cache the shapes of operators on such tensors. Code branches on flags, counts and masks, and on single floats;
    # with all short weights, a model of normalizations takes twice as long.
    small = {id(each): each for each in _tensors(model) if _is_small(each) and (each.numel() == 1 or not _is_inexact(each))}
    if not small or not all(each.is_present for each in (_CONVERT, _MAY_STAY, _CONSTANT, _WRITTEN)):
        yield
        return

    from torch._subclasses.fake_tensor import FakeTensorConverter

    fakes: list[FakeTensor] = []

    def convert(original: Any, self: Any, mode: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        fake = original(self, mode, tensor, *args, **kwargs)
        if id(tensor) in small and isinstance(fake, FakeTensor) and fake.constant is None:
            # NOTE: a copy, because torch runs operators that write on it as well.
            fake.constant = tensor.detach().clone()
            self.add_constant_storage_mapping(fake)
            fakes.append(fake)
        return fake

    def may_stay(original: Any, self: Any, tensor: torch.Tensor) -> bool:
        return original(self, tensor) or _is_small(tensor)

    before = _fakes.set(fakes)
    try:
        with wrapped(Slot(FakeTensorConverter, "from_real_tensor"), convert), wrapped(Slot(FakeTensorMode, "may_turn_const"), may_stay):
            yield
    finally:
        _fakes.reset(before)


def _tensors(model: torch.nn.Module) -> Iterator[torch.Tensor]:
    """The parameters, the buffers and the other tensors that are attributes of modules."""
    for _, module in named_modules(model):
        # NOTE: without `getattr`, which a model may have replaced.
        fields = vars(module)
        for value in (*fields.get("_parameters", {}).values(), *fields.get("_buffers", {}).values(), *fields.values()):
            if isinstance(value, torch.Tensor):
                yield value


def _is_inexact(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _is_small(tensor: torch.Tensor) -> bool:
    """Whether it has data that is worth keeping."""
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.layout is torch.strided
        and tensor.device.type != "meta"
        and tensor.numel() <= _LARGEST
    )
