"""Models that differentiate in `forward`, captured below autograd.

torch.export records operators before autograd sees them. What autograd keeps for the backward pass, such as the result of a `tanh`, then
has no node, and the capture fails. Below autograd, all operators of both passes are recorded as they run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from . import pytree
from .patching import Slot, all_wrapped
from .symbols import Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15, export/__init__.py: torch.export.export calls it with pre_dispatch=True.
_EXPORT = Symbol(
    "torch.export._trace:_export",
    without="most models that differentiate in forward cannot be captured",
    names=("dynamic_shapes", "strict", "pre_dispatch", "prefer_deferred_runtime_asserts_over_guards"),
)
# NOTE: read in torch 2.11, 2.13 and 2.15, _functorch/eager_transforms.py: torch.func's functions of gradients open these contexts.
_BACKWARD = Symbol(
    "torch._functorch.eager_transforms:grad_increment_nesting",
    without="most models that use functions of torch.func cannot be captured",
)
_FORWARD = Symbol("torch._functorch.eager_transforms:jvp_increment_nesting", without=_BACKWARD.without)


def can_capture() -> bool:
    """Whether the installed torch has what `export` needs."""
    return _EXPORT.is_present


def noticed(on_gradient: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
    """While it is open, calls `on_gradient` when the model differentiates."""

    def noticing(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        on_gradient()
        return original(*args, **kwargs)

    slots = [Slot(torch.autograd, "grad"), Slot(torch.autograd, "backward")]
    nested = [Slot(torch._functorch.eager_transforms, each.name) for each in (_BACKWARD, _FORWARD) if each.is_present]
    return all_wrapped((slot, noticing) for slot in (*slots, *nested))


def export(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any) -> torch.export.ExportedProgram:
    """Captures `model` below autograd; see `torch.export.export` for the arguments."""
    with _outside_of_export(model), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        program: torch.export.ExportedProgram = _EXPORT.value(
            model,
            args,
            kwargs,
            dynamic_shapes,
            strict=False,
            pre_dispatch=False,
            prefer_deferred_runtime_asserts_over_guards=True,
        )
    return program


@contextlib.contextmanager
def _outside_of_export(model: torch.nn.Module) -> Iterator[None]:
    """While it is open, `model` runs with gradients, which torch switches off, and its outputs have none, which torch would compute."""
    modes: list[bool] = []

    def begin(*_: Any) -> None:
        modes.append(torch.is_grad_enabled())
        torch.set_grad_enabled(True)

    def end(_module: Any, _args: Any, outputs: Any) -> Any:
        torch.set_grad_enabled(modes.pop())
        # NOTE: a model may call itself.
        return outputs if modes else pytree.map_tensors(torch.detach, outputs)

    hooks = [model.register_forward_pre_hook(begin), model.register_forward_hook(end)]
    before = torch.is_grad_enabled()
    try:
        yield
    finally:
        torch.set_grad_enabled(before)
        for hook in hooks:
            hook.remove()
