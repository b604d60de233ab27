"""Modules that are moved during a capture, and the parts that a module registers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from onnxplain.torch_internals import modules


class Mixed(nn.Module):
    """Weights of several dtypes."""

    def __init__(self, dtype: torch.dtype = torch.float32, other: torch.dtype = torch.int64) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, dtype=dtype))
        self.register_buffer("other", torch.ones(2).to(other))


# NOTE: each with whether torch has nothing to convert.
MOVES: dict[str, tuple[nn.Module, tuple[Any, ...], dict[str, Any], bool]] = {
    "the same device": (Mixed(), ("cpu",), {}, True),
    "the same device by keyword": (Mixed(), (), {"device": torch.device("cpu")}, True),
    "another device": (Mixed(), ("meta",), {}, False),
    "the same dtype": (Mixed(), (torch.float32,), {}, True),
    "another dtype": (Mixed(), (torch.float64,), {}, False),
    "device and dtype": (Mixed(), ("cpu", torch.float32), {}, True),
    "the device and another dtype": (Mixed(), ("cpu", torch.float16), {}, False),
    "another device and the dtype": (Mixed(), ("meta", torch.float32), {}, False),
    "like a tensor": (Mixed(), (torch.ones(1),), {}, True),
    "like another tensor": (Mixed(), (torch.ones(1).double(),), {}, False),
    "a buffer of another dtype": (Mixed(other=torch.float64), (torch.float32,), {}, False),
    "a buffer of another dtype alone": (Mixed(torch.float64, torch.float32), (torch.float64,), {}, False),
    "complex weights": (Mixed(torch.complex64), (torch.complex128,), {}, False),
    "the same complex weights": (Mixed(torch.complex64), (torch.complex64,), {}, True),
    "another layout": (Mixed(), (), {"memory_format": torch.contiguous_format}, False),
    "no weights": (nn.ReLU(), ("meta", torch.float16), {}, True),
    "no weights and another layout": (nn.ReLU(), (), {"memory_format": torch.channels_last}, False),
}


@pytest.mark.parametrize(("module", "args", "kwargs", "is_idle"), MOVES.values(), ids=MOVES)
def test_only_conversions_that_change_nothing_are_left_out(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], is_idle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied = []
    monkeypatch.setattr(nn.Module, "_apply", lambda self, function, recurse=True: applied.append(self) or self)
    with modules.idle_conversions():
        assert module.to(*args, **kwargs) is module
    assert bool(applied) is not is_idle
    applied.clear()
    module.to(*args, **kwargs)
    assert applied


def test_a_conversion_is_what_torch_makes() -> None:
    with modules.idle_conversions():
        module = Mixed().to(torch.float64)
    assert (module.weight.dtype, module.other.dtype) == (torch.float64, torch.int64)


def test_modules_with_their_paths() -> None:
    shared = nn.ReLU()
    model = nn.Sequential(nn.Sequential(shared, nn.Linear(1, 1)), shared, nn.ModuleDict({"a": nn.Tanh()}))
    model.register_module("nothing", None)
    for path in ("", "outer"):
        assert list(modules.named_modules(model, path)) == list(model.named_modules(prefix=path))
    deep = nn.Identity()
    for _ in range(3000):
        deep = nn.Sequential(deep)  # type: ignore[assignment]
    assert sum(1 for _ in modules.named_modules(deep)) == 3001


def test_tensors_with_their_paths() -> None:
    layer = nn.BatchNorm1d(2)
    model = nn.Sequential(layer, nn.Linear(2, 2), nn.Sequential(layer), nn.Linear(2, 2, bias=False))
    model[3].weight = model[1].weight
    expected = ["0.weight", "0.bias", "0.running_mean", "0.running_var", "0.num_batches_tracked", "1.weight", "1.bias"]
    assert [name for name, _ in modules.named_tensors(model)] == expected


def test_hooks_before_and_after() -> None:
    module = nn.ReLU()
    assert list(modules.forward_hooks(module)) == []
    first, second, third = (lambda *args: None), (lambda *args: None), (lambda *args: None)
    module.register_forward_hook(second)
    module.register_forward_hook(third, with_kwargs=True)
    module.register_forward_pre_hook(first)
    assert list(modules.forward_hooks(module)) == [
        modules.Hook("_forward_pre_hooks", "register_forward_pre_hook", first, False),
        modules.Hook("_forward_hooks", "register_forward_hook", second, False),
        modules.Hook("_forward_hooks", "register_forward_hook", third, True),
    ]


def test_the_direct_parts() -> None:
    model = nn.Sequential(Mixed(), nn.ReLU())
    model.register_buffer("kept", torch.ones(1))
    model.register_buffer("lost", torch.ones(1), persistent=False)
    model.register_parameter("none", None)
    assert (list(modules.parameters(model)), list(modules.buffers(model)), list(modules.children(model))) == (
        ["none"],
        ["kept", "lost"],
        ["0", "1"],
    )
    assert modules.without_state(model) == {"lost"}
