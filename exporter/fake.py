"""Models larger than memory: within `enable_fake_mode`, parameters have shapes and dtypes but no data."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
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

from onnxplain.torch_internals import initializers, pytree
from onnxplain.torch_internals.fake_tensors import FakeTensorMode, forget_converted, is_fake
from onnxplain.torch_internals.modules import buffers, without_state
from onnxplain.torch_internals.operators import OpOverload, schema

LARGE = 2**26
"""The largest tensor that gets data when it is made within `enable_fake_mode`, in bytes."""


@dataclasses.dataclass(frozen=True)
class ONNXFakeContext:
    """The result of `enable_fake_mode`.

    Attributes:
        fake_mode: The mode of the fake tensors.
    """

    fake_mode: FakeTensorMode


@contextlib.contextmanager
def enable_fake_mode() -> Iterator[ONNXFakeContext]:
    """Lets models be built without memory: their parameters and persistent buffers become fake tensors.

    Tensors up to `LARGE` bytes that are in no state dict keep their data, since nothing could restore it: buffers that are not
    persistent, such as the frequencies of rotary embeddings, and plain tensors. Set the dtype of the model within this context: torch
    cannot convert fake parameters outside.

    Yields:
        A context for `ExportOptions(fake_context=...)`. `export` does not need it: it recognizes fake parameters.
    """
    mode = _Mode()
    hooks = (
        register_module_parameter_registration_hook(_in_this_thread(mode.registered)),
        register_module_buffer_registration_hook(_in_this_thread(mode.seen)),
        # NOTE: a copy of a module does not register its parameters, only itself in another module.
        register_module_module_registration_hook(_in_this_thread(mode.has)),
    )
    try:
        with mode, initializers.without_data():
            yield ONNXFakeContext(mode)
        mode.finish()
    finally:
        for hook in hooks:
            hook.remove()


def _in_this_thread(hook: Callable[..., Any]) -> Callable[..., Any]:
    """`hook` for modules that this thread builds: torch calls such hooks for every module of the process."""
    # NOTE: a hook may return another parameter, or None to keep the given one, although torch's types do not say so.
    thread = threading.get_ident()
    return lambda *args: hook(*args) if threading.get_ident() == thread else None


class _Mode(FakeTensorMode):
    """Makes parameters fake, and with them all results that depend on them. Computes small tensors of real ones."""

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
            # NOTE: a fake tensor is written into a real one, whose data is wrong from now on.
            self._unknown[tensors[0].untyped_storage().data_ptr()] = tensors[0].untyped_storage()
        with self._all_fake():
            result = super().__torch_dispatch__(func, types, args, kwargs or {})
        if self._building and not self._everything:
            # NOTE: `Module.to` swaps parameters. torch refuses that while its converter holds a weak reference to one.
            forget_converted(self)
        if tensors or self._everything or not is_fake(result) or result.device.type == "meta":
            return result
        # NOTE: an export within the mode makes tensors of sizes that are not known.
        small = all(isinstance(size, int) for size in result.shape) and result.nbytes <= LARGE
        return func(*args, **(kwargs or {})) if small else result

    def __deepcopy__(self, _: object) -> _Mode:
        # NOTE: a copy of a tensor copies its attributes, including its mode, and tensors of two modes do not mix.
        return self

    @contextlib.contextmanager
    def _all_fake(self) -> Iterator[None]:
        """Makes small tensors fake as well, while torch runs the operators that an operator consists of."""
        before, self._everything = self._everything, True
        try:
            yield
        finally:
            self._everything = before

    def registered(self, module: torch.nn.Module, _: str, parameter: torch.nn.Parameter | None) -> torch.nn.Parameter | None:
        """Takes the data from a parameter that a module registers."""
        self._modules.add(module)
        if parameter is None or is_fake(parameter) or torch.nn.parameter.is_lazy(parameter):
            return None
        made: torch.nn.Parameter = self._without_data(parameter)
        return made

    def seen(self, module: torch.nn.Module, _name: str, _buffer: torch.Tensor | None) -> None:
        """Remembers a module with a buffer. Whether the buffer is persistent is known later."""
        self._modules.add(module)

    def has(self, module: torch.nn.Module, _name: str, submodule: torch.nn.Module | None) -> None:
        """Remembers a module, and a new submodule with all of its submodules."""
        self._modules.update((module, *(submodule.modules() if submodule is not None else ())))

    def finish(self) -> None:
        """Takes the data from persistent buffers, and from buffers that a fake tensor was written into."""
        self._building = False
        for module in self._modules:
            registered, volatile = buffers(module), without_state(module)
            for name, buffer in registered.items():
                if buffer is None or is_fake(buffer) or buffer.is_meta:
                    continue
                if name not in volatile or buffer.untyped_storage().data_ptr() in self._unknown:
                    registered[name] = self._without_data(buffer)

    def _without_data(self, tensor: torch.Tensor) -> Any:
        # NOTE: a tied weight is registered twice and must stay one tensor.
        if tensor not in self._fake:
            with self, self._all_fake():
                made: Any = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
            if isinstance(tensor, torch.nn.Parameter):
                made = torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
            made.__dict__.update(tensor.__dict__)
            self._fake[tensor] = made
        return self._fake[tensor]
