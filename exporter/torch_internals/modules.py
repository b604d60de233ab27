"""The registered parts of a module: its hooks, parameters, buffers and submodules, and which buffers no state dict has."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from .patching import Slot, wrapped
from .python_values import is_a
from .symbols import Attribute, Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15, nn/modules/module.py. Nothing can replace these three: torch.export itself reads and writes them,
# and no public function gives the parts that are None, or that a module has twice.
REGISTERED = ("_parameters", "_buffers", "_modules")
"""The attributes that hold the registered parts."""
IN_EVERY_MODULE = frozenset(vars(torch.nn.Module()))
"""The attributes that torch gives to every module."""

_WITHOUT_HOOKS = "hooks are neither reported nor in the script that fails alike"
_HOOKS = [
    (
        Attribute(f"torch.nn:Module._{kind}", without=_WITHOUT_HOOKS, otherwise={}),
        Attribute(f"torch.nn:Module._{kind}_with_kwargs", without="the script that fails alike may call a hook wrongly", otherwise={}),
        register,
    )
    for kind, register in (("forward_pre_hooks", "register_forward_pre_hook"), ("forward_hooks", "register_forward_hook"))
]
_NOT_PERSISTENT = Attribute(
    "torch.nn:Module._non_persistent_buffers_set",
    without="buffers that no state dict has lose their data if a model is built within enable_fake_mode",
    otherwise=frozenset(),
)

# NOTE: read in torch 2.11, 2.13 and 2.15, nn/utils/parametrize.py.
_PARAMETRIZING = [
    Symbol(f"torch.nn.utils.parametrize:{name}", without="the script that fails alike lacks parametrized modules")
    for name in ("_inject_new_class", "_inject_property")
]

_PARSED = Symbol("torch._C:_nn._parse_to", without="a model that moves its modules in forward cannot be captured")

# NOTE: read in torch 2.11, 2.13 and 2.15, jit/_script.py and _C/__init__.pyi.
_WITHOUT_SCRIPTED = "the script that fails alike lacks modules of TorchScript"
_SCRIPTED = [
    Attribute("torch.jit:RecursiveScriptModule._c", without=_WITHOUT_SCRIPTED),
    Symbol("torch._C:ScriptModule._type", without=_WITHOUT_SCRIPTED),
    Symbol("torch._C:ClassType.qualified_name", without=_WITHOUT_SCRIPTED),
]


@dataclasses.dataclass(frozen=True)
class Hook:
    """A hook of a module.

    Attributes:
        attribute: Where torch keeps it.
        register: The method that registers one of its kind.
        function: It is called before or after `forward`.
        takes_keywords: Whether it gets keyword arguments as well.
    """

    attribute: str
    register: str
    function: Callable[..., Any]
    takes_keywords: bool


def forward_hooks(module: torch.nn.Module) -> Iterator[Hook]:
    """The hooks that run before and after `forward`."""
    for attribute, with_keywords, register in _HOOKS:
        for key, hook in attribute.of(module).items():
            yield Hook(attribute.name, register, hook, key in with_keywords.of(module))


def named_modules(model: torch.nn.Module, path: str = "") -> Iterator[tuple[str, torch.nn.Module]]:
    """As `model.named_modules()`, also for modules that have no hash."""
    # NOTE: a loop, since modules may be nested more deeply than Python calls may be.
    seen: set[int] = set()
    left = [(path, model)]
    while left:
        path, module = left.pop()
        if id(module) not in seen:
            seen.add(id(module))
            yield path, module
            inner = [(joined(path, name), child) for name, child in children(module).items() if is_a(child, torch.nn.Module)]
            left += reversed(inner)


def named_tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """As `model.named_parameters()` and `model.named_buffers()`, also for classes whose methods do something else."""
    seen: set[int] = set()
    for path, module in named_modules(model):
        for name, tensor in (*parameters(module).items(), *buffers(module).items()):
            if tensor is not None and id(tensor) not in seen:
                seen.add(id(tensor))
                yield joined(path, name), tensor


def joined(path: str, name: str) -> str:
    """The path of the part `name` of the module at `path`."""
    return f"{path}.{name}" if path else name


def is_set_up(module: torch.nn.Module) -> bool:
    """Whether its `__init__` has called that of torch.nn.Module."""
    return all(hasattr(module, name) for name in REGISTERED)


def parameters(module: torch.nn.Module) -> Mapping[str, torch.nn.Parameter | None]:
    """Its direct parameters, including those that are None."""
    return getattr(module, "_parameters", {})


def buffers(module: torch.nn.Module) -> dict[str, torch.Tensor | None]:
    """Its direct buffers, including those that are None. A change of the dict changes the module."""
    return getattr(module, "_buffers", {})


def children(module: torch.nn.Module) -> Mapping[str, torch.nn.Module | None]:
    """Its direct submodules, including those that are None and those that it has twice."""
    return getattr(module, "_modules", {})


def registers(module: torch.nn.Module) -> list[dict[str, Any]]:
    """The parameters, buffers and submodules of a module, as it holds them: those of TorchScript's modules are left out."""
    return [found for name in REGISTERED if is_a(found := vars(module).get(name), dict)]


@contextlib.contextmanager
def new_buffers_as_attributes(model: torch.nn.Module) -> Iterator[None]:
    """While it is open, buffers that are None are plain attributes, and so are those that code registers.

    NOTE: torch.export takes the data that `forward` assigns to a buffer for those of another buffer, or of an input, after one that is None
    (read in torch 2.11, 2.13 and 2.15, export/_trace.py).
    """
    known = [module for _, module in named_modules(model) if is_a(vars(module).get("_buffers"), dict)]
    empty = [(module, dict(buffers(module))) for module in known if None in buffers(module).values()]
    for module, before in empty:
        for name in [name for name, buffer in before.items() if buffer is None]:
            del buffers(module)[name]
            vars(module)[name] = None
    ids = set(map(id, known))

    def register(original: Callable[..., None], module: torch.nn.Module, name: str, tensor: Any, *args: Any, **kwargs: Any) -> None:
        if id(module) in ids and name not in buffers(module) and is_a(tensor, torch.Tensor):
            object.__setattr__(module, name, tensor)
        else:
            original(module, name, tensor, *args, **kwargs)

    try:
        with wrapped(Slot(torch.nn.Module, "register_buffer"), register):
            yield
    finally:
        for module, before in empty:
            now = dict(buffers(module))
            buffers(module).clear()
            buffers(module).update({name: now.pop(name, None) for name in before} | now)
            for name in [name for name, buffer in before.items() if buffer is None]:
                vars(module).pop(name, None)


def is_parametrized(module: torch.nn.Module) -> bool:
    """As `torch.nn.utils.parametrize.is_parametrized(module)`, also for classes whose attributes do something else."""
    return any(
        name == "parametrizations" and is_a(child, torch.nn.ModuleDict) and len(child) > 0 for name, child in children(module).items()
    )


def without_state(module: torch.nn.Module) -> set[str]:
    """The names of its direct buffers that no state dict has."""
    return set(_NOT_PERSISTENT.of(module))


def scripted_name(module: torch.jit.ScriptModule) -> str:
    """The name that TorchScript gave to the class of a scripted module; empty if it is not known."""
    return str(module._c._type().qualified_name()) if all(each.is_present for each in _SCRIPTED) else ""


def parametrizing_functions() -> Sequence[str]:
    """The functions that give a parametrized module its class, and that class a tensor; none if the installed torch lacks one."""
    return [each.path.replace(":", ".") for each in _PARAMETRIZING] if all(each.is_present for each in _PARAMETRIZING) else []


def idle_conversions() -> contextlib.AbstractContextManager[None]:
    """While it is open, `module.to(...)` leaves modules alone that have the device and the dtype already, as it does outside a capture.

    torch replaces all parameters of the module, which fails for the stand-ins of parameters during a capture.
    """
    return wrapped(Slot(torch.nn.Module, "to"), _to) if _PARSED.is_present else contextlib.nullcontext()


def _to(original: Callable[..., Any], module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    # NOTE: read in torch 2.11, 2.13 and 2.15: `Module.to` parses its arguments so, and converts floating-point and complex tensors.
    device, dtype, _, memory_format = _PARSED.value(*args, **kwargs)
    tensors = itertools.chain(module.parameters(), module.buffers())
    if memory_format is None and all(
        device in (None, each.device) and (dtype in (None, each.dtype) or not (each.is_floating_point() or each.is_complex()))
        for each in tensors
    ):
        return module
    return original(module, *args, **kwargs)
