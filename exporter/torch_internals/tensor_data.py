"""`tensor.data` and `tensor.as_subclass(torch.Tensor)` in a model's code: a capture would take them for constants without data.

While `followed` is open, reading `data` is `detach`, which shares the memory as well, and setting it writes to the tensor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from torch import Tensor

from . import python_frames, shape_env
from .fake_tensors import FakeTensor
from .patching import Slot, all_wrapped

shape_env.leave_out(__file__)

# NOTE: read in torch 2.11, 2.13 and 2.15: the attribute is that of a base class in C++, and torch reads it in many places.
_ATTRIBUTE: Any = Tensor.data
_PLAIN: dict[str, Any] = {"fget": _ATTRIBUTE.__get__, "fset": _ATTRIBUTE.__set__}


class _Accessor(Slot):
    """The function that reads the attribute, or the one that sets it.

    Args:
        kind: `fget` or `fset`.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(Tensor, "data")
        self.kind = kind

    @property
    def key(self) -> tuple[object, ...]:
        return (*super().key, self.kind)

    def get(self) -> Any:
        own = vars(Tensor).get(self.name)
        return getattr(own, self.kind) if isinstance(own, property) else _PLAIN[self.kind]

    def put(self, function: Any) -> None:
        both = {kind: _Accessor(kind).get() for kind in _PLAIN} | {self.kind: function}
        if both != _PLAIN:
            setattr(Tensor, self.name, property(**both))
        elif self.name in vars(Tensor):
            delattr(Tensor, self.name)


def followed() -> contextlib.AbstractContextManager[None]:
    """While it is open, a capture follows these."""
    return all_wrapped([(_Accessor("fget"), _read), (_Accessor("fset"), _set), (Slot(Tensor, "as_subclass"), _as_subclass)])


def _read(original: Callable[..., Any], tensor: Tensor) -> Any:
    return tensor.detach() if _is_models(tensor) else original(tensor)


def _set(original: Callable[..., Any], tensor: Tensor, value: Tensor) -> None:
    if not _is_models(tensor):
        original(tensor, value)
        return
    if value.dtype != tensor.dtype or value.ndim != tensor.ndim:
        kinds = [f"{each.ndim} dims of {each.dtype}" for each in (tensor, value)]
        raise RuntimeError(f"a tensor of {kinds[0]} got the data of one of {kinds[1]}, which no operator of an exported model can do")
    tensor.detach().copy_(value)


def _as_subclass(original: Callable[..., Any], tensor: Tensor, cls: type) -> Any:
    return tensor.view_as(tensor) if cls is Tensor and _is_models(tensor) else original(tensor, cls)


def _is_models(tensor: Tensor) -> bool:
    """Whether the model's code, or that of a layer of torch, asks in a capture."""
    frame = python_frames.current(2)
    name = "" if frame is None else str(frame.f_globals.get("__name__"))
    return isinstance(tensor, FakeTensor) and (name.startswith("torch.nn.modules.") or not name.startswith(("torch.", "onnxplain.")))
