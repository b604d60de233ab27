"""Tensors without data, the mode that makes them, and their exceptions when code asks for data. torch has no public fake mode."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

import torch

# NOTE: read in torch 2.11, 2.13 and 2.15, _subclasses/fake_tensor.py. Nothing can replace these two, and `fake_mode`, the mode of a fake
# tensor: torch.export itself is built on them.
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from .put_back import put_back
from .symbols import Attribute, Symbol

__all__ = [
    "FakeTensor",
    "FakeTensorMode",
    "checkpoint_offset",
    "forget_converted",
    "has_no_data",
    "is_fake",
    "mode_left",
    "mode_of",
    "needs_data",
    "real_of",
    "sizes_like",
    "without_data",
]

_CONVERTER = Attribute(
    "torch._subclasses.fake_tensor:FakeTensorMode.fake_tensor_converter",
    without="models that were built within enable_fake_mode cannot always be converted to another dtype",
)
_CONVERTED = Symbol("torch._subclasses.fake_tensor:FakeTensorConverter.tensor_memo", without=_CONVERTER.without)

# NOTE: read in torch 2.11, 2.13 and 2.15, storage.py and serialization.py.
_OFFSET = Symbol(
    "torch:UntypedStorage._checkpoint_offset",
    without="a file of torch.save cannot be given as the weights of a model that was built within enable_fake_mode",
)

ANSWER_DEPENDS_ON_DATA = Symbol(
    "torch._subclasses.fake_tensor:DataDependentOutputException",
    without="an operator that returns a Python bool, such as torch.equal, looks like other failures",
    otherwise=(),
)
_SHAPE_DEPENDS_ON_DATA = Symbol(
    "torch._subclasses.fake_tensor:DynamicOutputShapeException",
    without="a number that an operator takes of a size may not be told if the shape of the result depends on data",
)
UNSUPPORTED = Attribute(
    "torch._subclasses.fake_tensor:UnsupportedOperatorException.func",
    without="an operator without a fake kernel looks like other failures",
)

_KEEPS_DATA = Attribute(
    "torch._subclasses.fake_tensor:FakeTensorMode.propagate_real_tensors",
    without="a failed export may call it a decomposition's fault that the example's data are gone",
)
_REAL = Attribute(
    "torch._subclasses.fake_tensor:FakeTensor.real_tensor",
    without="a failed export does not list the problems after a line that calls numpy",
)

_UNSET = Symbol(
    "torch._subclasses.fake_tensor:unset_fake_temporarily",
    without="some models cannot be exported within enable_fake_mode, only after it",
    otherwise=contextlib.nullcontext,
)

MODE = "torch._subclasses.fake_tensor.FakeTensorMode"
"""The name of the mode's class, for scripts."""


def is_fake(value: object) -> TypeGuard[FakeTensor]:
    """Whether `value` is a tensor without data that knows its mode."""
    return isinstance(value, FakeTensor)


def mode_left() -> contextlib.AbstractContextManager[object]:
    """While it is open, the caller's fake mode is off: operators on the fake tensors of another mode refuse to run within it."""
    left: contextlib.AbstractContextManager[object] = _UNSET.value()
    return left


def needs_data(error: BaseException) -> bool:
    """Whether an operator raised `error` because it has no result without data, and not because it refuses its arguments."""
    classes = (each.value for each in (ANSWER_DEPENDS_ON_DATA, _SHAPE_DEPENDS_ON_DATA, UNSUPPORTED) if each.is_present)
    return isinstance(error, tuple(classes))


def real_of(value: object) -> torch.Tensor | None:
    """The example's data for a fake tensor, if the capture has them."""
    found: torch.Tensor | None = _REAL.of(value) if is_fake(value) else None
    return found


@contextlib.contextmanager
def without_data(mode: FakeTensorMode) -> Iterator[None]:
    """Enters `mode`. While it is open, operators do not compute with the example's data, which a capture may have changed since."""
    kept = _KEEPS_DATA.of(mode)

    def put() -> None:
        if kept:
            setattr(mode, _KEEPS_DATA.name, kept)

    with put_back(put), mode:
        if kept:
            setattr(mode, _KEEPS_DATA.name, False)
        yield


def sizes_like(result: torch.Tensor, given: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> list[int | torch.SymInt]:
    """The sizes of `result`, each that of a given tensor with an equal one in the example: at the same axis, or else anywhere.

    Args:
        result: A tensor with data.
        given: The tensors without data, each with the example's data.
    """
    sizes: list[int | torch.SymInt] = []
    for axis, size in enumerate(result.shape):
        alike = [fake.shape[axis] for fake, real in given if real.ndim == result.ndim and real.shape[axis] == size]
        others = [own for fake, real in given for own, other in zip(fake.shape, real.shape, strict=True) if other == size]
        sizes.append(next(iter(alike or others), size))
    return sizes


def has_no_data(tensor: torch.Tensor) -> bool:
    """Whether `tensor` is fake, or on the meta device."""
    return tensor.is_meta or hasattr(tensor, "fake_mode")


def mode_of(value: object) -> Any:
    """The mode of a fake tensor; None for other values."""
    return getattr(value, "fake_mode", None)


def forget_converted(mode: FakeTensorMode) -> None:
    """Drops the weak references that `mode` has to the tensors that it has converted to fake tensors."""
    if _CONVERTER.is_present and _CONVERTED.is_present:
        mode.fake_tensor_converter.tensor_memo.clear()


def checkpoint_offset(tensor: torch.Tensor) -> int | None:
    """The offset in bytes at which the storage of a fake tensor from torch.load begins in its file; None if it is not known."""
    return getattr(tensor.untyped_storage(), _OFFSET.name) if _OFFSET.is_present else None


def share_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two fake tensors are views of one storage. Fake tensors have no address to compare."""
    # NOTE: a storage stays one Python object while that is in use.
    return one.untyped_storage() is other.untyped_storage()
