"""The source tells which calls certainly return a tensor."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import torch

from onnxplain.capture.rewrite import returns_tensor

TENSORS = (torch.rand(2, 3), torch.arange(6).reshape(2, 3), torch.rand(3, 3), torch.ones(2, 3) > 0)
ARGUMENTS: tuple[tuple[Any, ...], ...] = (
    *((), (1,), (2.0,), (0, 1), (2, 3), ((3, 2),), (1, 0, True)),
    *((torch.rand(2, 3),), (torch.tensor([0, 1]),), (0, torch.tensor([0])), (torch.rand(2, 3), torch.rand(2, 3))),
)
KEYWORDS: tuple[dict[str, Any], ...] = ({}, {"dim": 1}, {"axis": 0}, {"keepdim": True, "dim": 0})
UNSAFE = frozenset({"backward", "register_hook", "set_", "share_memory_", "storage"})


def test_what_certainly_returns_a_tensor_does() -> None:
    """Every method of tensors, called in ways that fit and that do not."""
    returned, known, wrong = 0, 0, list[str]()
    warnings.simplefilter("ignore")
    for name in dir(torch.Tensor):
        method = getattr(torch.Tensor, name)
        if name.startswith("_") or name in UNSAFE or not callable(method):
            continue
        for tensor, args, kwargs in itertools.product(TENSORS, ARGUMENTS, KEYWORDS):
            try:
                result = method(tensor.clone(), *args, **kwargs)
            except Exception:  # noqa: BLE001  a method refuses these arguments with any exception
                continue
            certain = returns_tensor(name, [True, *(isinstance(each, torch.Tensor) for each in args)], list(kwargs))
            is_tensor = isinstance(result, torch.Tensor)
            returned, known = returned + is_tensor, known + (is_tensor and certain)
            wrong += [f"{name}{args}{kwargs}"] if certain and not is_tensor else []
    assert wrong == []
    assert returned > 2000
    assert known > 0.9 * returned


def test_what_may_return_something_else_is_not_certain() -> None:
    for name, arguments in (("max", 1), ("topk", 1), ("unbind", 0), ("split", 1), ("chunk", 1), ("type", 0), ("data_ptr", 0), ("item", 0)):
        assert not returns_tensor(name, [True, *[False] * arguments]), name
    for name in ("max", "sum", "to", "float", "sigmoid", "view_as"):
        assert returns_tensor(name, [True, *[True] * (name == "view_as")] + [False] * (name == "to")), name
