"""Models larger than memory: within `enable_fake_mode`, parameters have shapes and dtypes, but no data."""

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.utils.weak import WeakTensorKeyDictionary

from onnxplain.torch_internals import pytree
from onnxplain.torch_internals.fake_tensors import FakeTensorMode, forget_converted, is_fake
from onnxplain.torch_internals.modules import buffers, without_state
from onnxplain.torch_internals.operators import OpOverload, schema

LARGE = 2**26
"""Bytes above which a tensor that is made within `enable_fake_mode` has no data from the start."""


@dataclasses.dataclass(frozen=True)
class ONNXFakeContext:
    """What `enable_fake_mode` gives.

    Attributes:
        fake_mode: The mode of its fake tensors.
    """

    fake_mode: FakeTensorMode


@contextlib.contextmanager
def enable_fake_mode() -> Iterator[ONNXFakeContext]:
    """Within it, models are built that take no memory: their parameters and persistent buffers are fake tensors.

    What is in no state dict keeps its data, as nothing could give it back: buffers that are not persistent, such as the frequencies of
    rotary embeddings, and plain tensors, up to `LARGE` bytes. The dtype has to be set within: torch cannot convert fake parameters outside.

    Yields:
        A context for `ExportOptions(fake_context=...)`. `export` needs none: it sees that the parameters are fake.
    """
    mode = _Mode()
    # NOTE: a hook may return another parameter, whatever torch's type says.
    registered: Callable[..., Any] = mode.registered
    hooks = (
        register_module_parameter_registration_hook(registered),
        register_module_buffer_registration_hook(mode.seen),
        # NOTE: copies of modules register nothing but themselves, in another one.
        register_module_module_registration_hook(mode.has),
    )
    try:
        with mode:
            yield ONNXFakeContext(mode)
        mode.finish()
    finally:
        for hook in hooks:
            hook.remove()


class _Mode(FakeTensorMode):
    """Makes parameters fake, and what is computed with them; computes all else as ever, while it is small."""

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True)
        self._modules: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()
        self._fake = WeakTensorKeyDictionary()
        self._unknown: dict[int, torch.UntypedStorage] = {}
        self._everything = False
        self._building = True

    def __torch_dispatch__(self, func: Any, types: Sequence[Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        tensors = [each for each in pytree.tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        fake = [is_fake(each) for each in tensors]
        if tensors and not any(fake):
            return func(*args, **(kwargs or {}))
        if fake and not fake[0] and isinstance(func, OpOverload) and schema(func).is_mutable:
            # NOTE: what is written into a real tensor here is not known, so its data is wrong from now on.
            self._unknown[tensors[0].untyped_storage().data_ptr()] = tensors[0].untyped_storage()
        with self._all_fake():
            result = super().__torch_dispatch__(func, types, args, kwargs or {})
        if self._building and not self._everything:
            # NOTE: `Module.to` exchanges parameters, which torch refuses while its converter has a weak reference to one.
            forget_converted(self)
        small = not tensors and is_fake(result) and result.device.type != "meta" and result.nbytes <= LARGE
        return func(*args, **(kwargs or {})) if small and not self._everything else result

    def __deepcopy__(self, _: object) -> _Mode:
        # NOTE: a copy of a tensor copies its attributes, of which its mode is one; and tensors of two modes do not mix.
        return self

    @contextlib.contextmanager
    def _all_fake(self) -> Iterator[None]:
        """Makes small tensors fake, too: for those that operators are made of."""
        before, self._everything = self._everything, True
        try:
            yield
        finally:
            self._everything = before

    def registered(self, module: torch.nn.Module, _: str, parameter: torch.nn.Parameter | None) -> torch.nn.Parameter | None:
        """Takes the data from a parameter that a module gets."""
        self._modules.add(module)
        if parameter is None or is_fake(parameter) or torch.nn.parameter.is_lazy(parameter):
            return None
        made: torch.nn.Parameter = self._without_data(parameter)
        return made

    def seen(self, module: torch.nn.Module, _name: str, _buffer: torch.Tensor | None) -> None:
        """Notes a module with a buffer: whether that is persistent is known later."""
        self._modules.add(module)

    def has(self, module: torch.nn.Module, _name: str, submodule: torch.nn.Module | None) -> None:
        """Notes a module, and one in it with all that this has."""
        self._modules.update((module, *(submodule.modules() if submodule is not None else ())))

    def finish(self) -> None:
        """Takes the data from the persistent buffers, and from those that fake tensors were written to."""
        self._building = False
        for module in self._modules:
            registered, volatile = buffers(module), without_state(module)
            for name, buffer in registered.items():
                if buffer is None or is_fake(buffer) or buffer.is_meta:
                    continue
                if name not in volatile or buffer.untyped_storage().data_ptr() in self._unknown:
                    registered[name] = self._without_data(buffer)

    def _without_data(self, tensor: torch.Tensor) -> Any:
        # NOTE: tied weights are registered twice, and must stay one tensor.
        if tensor not in self._fake:
            with self, self._all_fake():
                made: Any = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
            if isinstance(tensor, torch.nn.Parameter):
                made = torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
            made.__dict__.update(tensor.__dict__)
            self._fake[tensor] = made
        return self._fake[tensor]
