"""Models, inputs and options as expressions that make their like: the same classes, shapes and dtypes, other numbers."""

from __future__ import annotations

import dataclasses
import functools
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from onnxplain.torch_internals import modules
from onnxplain.torch_internals.python_values import is_a

from .configurations import configuration, model_from_configuration
from .constructors import constructor_call
from .expression import Expression, Items, Quoted, Ref, Text, Unknown, call, in_a_row, literal, parts
from .kinds import composite
from .live_objects import is_users, kind_of, looked_at
from .references import named
from .strings import is_public
from .tensors import like

MAKE = Text("make")
"""The script's function for an object with a given state."""

# NOTE: transformers marks each module whose weights it has initialized.
_INTERNALS = modules.IN_EVERY_MODULE | {"_is_hf_initialized"}
"""The attributes that no code of the user sets."""
_HEAP_TYPE = 1 << 9
"""The flag of a class that is not a part of the interpreter (Py_TPFLAGS_HEAPTYPE)."""
_LONGEST = 1000
"""The longest text of a number, a string or bytes, in characters."""
_DEVICE = re.compile(r"'(meta|\w+:\d+)'")
"""The `repr` of a device other than the CPU."""


@dataclasses.dataclass(frozen=True)
class Described:
    """A model as source.

    Attributes:
        expression: Makes the model.
        afterwards: Statements on `model`: they share modules and weights, register hooks, and set the mode.
        left_out: The parts of the model that the script does not have, each with the reason.
    """

    expression: Expression
    afterwards: tuple[Expression, ...]
    left_out: tuple[str, ...]


def described(model: torch.nn.Module, wanted: Callable[[str], bool]) -> Described:
    """A model without its data.

    Args:
        model: Any module.
        wanted: Whether the code uses an attribute of this name. It is only asked about classes whose code is all the user's.

    Raises:
        Unknown: There is no expression for the model.
    """
    writer = _Writer(wanted, {}, root=model)
    expression = writer.module(model, "")
    return Described(expression, (*writer.afterwards, *_modes(model)), tuple(writer.left_out))


def example(value: Any, names: Mapping[int, Text], place: str = "") -> Expression:
    """An input as source: Python values as they are, tensors by shape and dtype.

    The numbers of a tensor are the user's data, so the script draws new ones. It keeps a single integer or bool, which may be a size or
    an index; a mask of a few bools, whose sum may be a size; and patterns that reveal nothing, such as `torch.arange`. It draws other
    integers between the smallest and the largest, so that an index stays an index.

    Args:
        value: The input.
        names: Expressions for objects that occur several times, by their ids.
        place: Its name.

    Raises:
        Unknown: There is no expression for a part of the input.
    """
    return _Writer(lambda _: True, names, as_input=True).value(value, place)


def data(value: Any, place: str = "", *, owner: type | None = None) -> Expression:
    """A global value, an option or `dynamic_shapes` as source.

    Args:
        value: The value.
        place: Its name.
        owner: The class of the object that holds it, `object` if that is not known. Its strings may then become placeholders. None for
            arguments that torch or the export gives a meaning: the script quotes their strings.

    Raises:
        Unknown: There is no expression for the value. The exception names `place`.
    """
    return _Writer(lambda _: True, {}, owner=owner).value(value, place)


class _Writer:
    """Walks through a value once.

    Args:
        wanted: As for `described`.
        names: As for `example`.
        root: The model. Its modules and weights that occur again are written as names, in statements after the one that makes it.
        as_input: Whether the value is an input.
        constructors: Whether to write modules as calls of constructors, and with their hooks.
        owner: As for `data`.

    Attributes:
        afterwards: As for `Described`.
        left_out: As for `Described`.
    """

    def __init__(
        self,
        wanted: Callable[[str], bool],
        names: Mapping[int, Text],
        *,
        root: torch.nn.Module | None = None,
        as_input: bool = False,
        constructors: bool = True,
        owner: type | None = object,
    ) -> None:
        self.afterwards: list[Expression] = []
        self.left_out: list[str] = []
        self._wanted = wanted
        self._names = names
        self._as_input = as_input
        self._constructors = constructors
        self._owner = owner
        self._around: list[object] = []
        self._references = 0
        self._modules = {} if root is None else {id(module): path for path, module in modules.named_modules(root)}
        self._tensors = {} if root is None else {id(tensor): path for path, tensor in modules.named_tensors(root)}

    def module(self, module: torch.nn.Module, path: str) -> Expression:
        """The expression for `module`, which is at `path` in the model. Raises `Unknown`."""
        with looked_at(path):
            return self._module(module, path)

    def value(self, value: Any, place: str) -> Expression:
        """The expression for any value. Raises `Unknown`, which names `place`."""
        with looked_at(place):
            return self._value(value, place)

    def _module(self, module: torch.nn.Module, path: str) -> Expression:
        if isinstance(module, torch.jit.ScriptModule):
            return call(Text("torch.jit.script"), self._made(_scripted_class(module), module, path))
        if type(module) in (torch.nn.ModuleList, torch.nn.Sequential) and list(modules.children(module)) == [
            *map(str, range(len(modules.children(module))))
        ]:
            return self._sequence(module, path)
        short = model_from_configuration(module, functools.partial(data, place=modules.joined(path, "config"), owner=type(module)))
        if short is None and self._constructors:
            short = constructor_call(module, data, _facts)
        if short is not None:
            self._restore(module, path)
            return short
        return self._made(type(module), module, path)

    def _value(self, value: Any, place: str) -> Expression:
        if id(value) in self._names:
            return self._names[id(value)]
        if (reference := self._reference(value)) is not None:
            return reference
        if is_a(value, torch.Tensor):
            return like(value, place, as_input=self._as_input)
        if is_a(value, torch.nn.Module):
            return self._held(value, place)
        if value is None or type(value) in (bool, int, float, complex, str, bytes):
            text = literal(value)
            if len(text.text) > _LONGEST:
                raise Unknown(place, f"a long {kind_of(value)}")
            if isinstance(value, str | bytes) and self._owner is not None and not is_public(value, self._owner):
                return Quoted(value, place)
            return text
        if is_a(value, torch.device):
            return call(Text("torch.device"), literal(str(value)))
        if value is Ellipsis or is_a(value, torch.dtype, torch.layout, torch.memory_format):
            return literal(value)
        if any(each is value for each in self._around):
            raise Unknown(place, "contains itself")
        self._around.append(value)
        try:
            return named(value) or composite(value, place, self.value) or self._object(value, place)
        finally:
            self._around.pop()

    def _object(self, value: Any, place: str) -> Expression:
        if (short := configuration(value, functools.partial(data, place=place, owner=self._owner and type(value)))) is not None:
            return short
        cls = type(value)
        if dataclasses.is_dataclass(cls) and all(field.init for field in dataclasses.fields(cls)) and not hasattr(cls, "__post_init__"):
            fields = [field.name for field in dataclasses.fields(cls)]
            return call(Ref(cls), keywords={name: self.value(getattr(value, name), f"{place}.{name}") for name in fields})
        if dataclasses.is_dataclass(cls) and is_a(value, dict):
            return call(Ref(cls), keywords={str(name): self.value(each, f"{place}.{name}") for name, each in value.items()})
        slots = [name for base in cls.__mro__ for name in vars(base).get("__slots__", ()) if isinstance(name, str) and hasattr(value, name)]
        state = {**{name: getattr(value, name) for name in slots}, **getattr(value, "__dict__", {})}
        # NOTE: without its state, an object that C code makes would be empty and might crash.
        new: object = cls.__new__
        if not cls.__flags__ & _HEAP_TYPE or new is not object.__new__ or named(cls) is None:
            raise Unknown(place, kind_of(value))
        return call(MAKE, Ref(cls), self._state(state, place, cls))

    def _made(self, cls: type, module: torch.nn.Module, path: str) -> Expression:
        """A call that makes `module` with all that it holds."""
        parametrized = modules.is_parametrized(module)
        if parametrized:
            # NOTE: torch gives it a new class, derived from the original one (torch 2.11 to 2.15, nn/utils/parametrize.py).
            cls = cls.__bases__[0]
        # NOTE: the script's `make` sets modules up, also one whose class does not.
        if named(cls) is None or (parametrized and not modules.parametrizing_functions()) or not modules.is_set_up(module):
            raise Unknown(path, kind_of(module))
        state: dict[str, Any] = {} if isinstance(module, torch.jit.ScriptModule) else dict(vars(module))
        plain = {name: value for name, value in state.items() if name not in _INTERNALS}
        volatile = modules.without_state(module) if state else set()
        items: list[tuple[str, Expression]] = list(self._state(plain, path, cls).items)
        parameters, buffers = dict(modules.parameters(module).items()), dict(modules.buffers(module).items())
        for name, parameter in _present(parameters):
            items += self._entry(path, name, functools.partial(self._weight, parameter, path, name))
        for name, buffer in _present(buffers):
            items += self._entry(path, name, functools.partial(self._buffer, buffer, path, name, name not in volatile))
        empty = {**parameters, **buffers} if state else {}
        items += [(f"{name!r}: ", Text("None")) for name, value in empty.items() if value is None]
        for name, child in modules.children(module).items():
            items.append((f"{name!r}: ", self._child(child, path, name)))
        if parametrized:
            new_class, new_property = map(Text, modules.parametrizing_functions())
            self.afterwards.append(call(new_class, _at(path)))
            made = modules.children(module)["parametrizations"]
            assert made is not None
            self.afterwards += [call(new_property, _at(path), literal(name)) for name in modules.children(made)]
        self._hooks(module, path)
        return call(MAKE, Ref(cls), Items(None, ("{", "}"), tuple(items)))

    def _child(self, child: torch.nn.Module | None, path: str, name: str) -> Expression:
        """A submodule; a placeholder for one that also has another place, or that has no expression."""
        if child is None:
            return Text("None")
        if (reference := self._reference(child, modules.joined(path, name))) is None:
            try:
                return self.module(child, modules.joined(path, name))
            except Unknown as unknown:
                self.left_out.append(str(unknown))
        else:
            self._set(path, name, reference)
        return Text("torch.nn.Identity()")

    def _set(self, path: str, name: str, value: Expression) -> None:
        self.afterwards.append(call(Text("setattr"), _at(path), literal(name), value))

    def _reference(self, value: object, place: str | None = None) -> Expression | None:
        """The name of a module or weight of the model; None for other values, and if the model has it at `place`."""
        is_module = is_a(value, torch.nn.Module)
        path = (self._modules if is_module else self._tensors).get(id(value))
        if path is None or path == place:
            return None
        self._references += 1
        if is_module:
            return Text(f"model.get_submodule({path!r})")
        owner, _, last = path.rpartition(".")
        return call(Text("getattr"), _at(owner), literal(last))

    def _state(self, state: Mapping[str, Any], place: str, cls: type) -> Items:
        """The attributes of an object that the code uses and that have an expression."""
        items: list[tuple[str, Expression]] = []
        outer, self._owner = self._owner, self._owner and cls
        for name, value in state.items():
            if self._wanted(name) or not _all_code_is_users(cls):
                items += self._entry(place, name, functools.partial(self.value, value, modules.joined(place, name)))
        self._owner = outer
        return Items(None, ("{", "}"), tuple(items))

    def _entry(self, path: str, name: str, expression: Callable[[], Expression]) -> Iterator[tuple[str, Expression]]:
        """An entry of a state. It becomes a statement if it refers to the model, and is left out if it has no expression."""
        before = self._references
        try:
            made = expression()
        except Unknown as unknown:
            self.left_out.append(str(unknown))
            return
        if self._references > before:
            self._set(path, name, made)
        else:
            yield f"{name!r}: ", made

    def _sequence(self, module: torch.nn.Module, path: str) -> Expression:
        items = in_a_row([self._child(child, path, name) for name, child in modules.children(module).items()])
        self._hooks(module, path)
        if type(module) is torch.nn.Sequential:
            return Items(Text("torch.nn.Sequential"), ("(", ")"), items)
        repeated = items[0][1] if len(items) == 1 and items[0][0] == "*" else Items(None, ("[", "]"), items)
        return call(Text("torch.nn.ModuleList"), repeated)

    def _held(self, module: torch.nn.Module, place: str) -> Expression:
        """A module in an attribute that is not one of the submodules."""
        writer = _Writer(self._wanted, {}, root=module)
        made = writer.module(module, "")
        if writer.afterwards:
            raise Unknown(place, kind_of(module))
        self.left_out += [f"{place}: {each}" for each in writer.left_out]
        return made

    def _hooks(self, module: torch.nn.Module, path: str) -> None:
        for hook in modules.forward_hooks(module) if self._constructors else ():
            keywords = {"with_kwargs": Text("True")} if hook.takes_keywords else {}
            try:
                made = self.value(hook.function, modules.joined(path, hook.attribute))
                self.afterwards.append(call(Text(f"{_at(path).text}.{hook.register}"), made, keywords=keywords))
            except Unknown as unknown:
                self.left_out.append(str(unknown))

    def _weight(self, parameter: torch.Tensor, path: str, name: str) -> Expression:
        if (reference := self._reference(parameter, modules.joined(path, name))) is not None:
            return reference
        grad = {} if parameter.requires_grad else {"requires_grad": Text("False")}
        return call(Text("torch.nn.Parameter"), like(parameter, modules.joined(path, name), as_input=False), keywords=grad)

    def _buffer(self, buffer: torch.Tensor, path: str, name: str, persistent: bool) -> Expression:
        if (reference := self._reference(buffer, modules.joined(path, name))) is not None:
            return reference
        volatile = {} if persistent else {"persistent": Text("False")}
        return call(Text("torch.nn.Buffer"), like(buffer, modules.joined(path, name), as_input=False), keywords=volatile)

    def _restore(self, module: torch.nn.Module, path: str) -> None:
        """Adds what a constructor does not make: hooks, and modules and weights that the module shares with others."""
        for name, inner in modules.named_modules(module):
            owner = ".".join(part for part in (path, name) if part)
            self._hooks(inner, owner)
            for each, value in (*modules.parameters(inner).items(), *modules.buffers(inner).items(), *modules.children(inner).items()):
                if value is not None and (reference := self._reference(value, modules.joined(owner, each))) is not None:
                    self._set(owner, each, reference)


def _present(tensors: Mapping[str, torch.Tensor | None]) -> Iterator[tuple[str, torch.Tensor]]:
    return ((name, tensor) for name, tensor in tensors.items() if tensor is not None)


def _all_code_is_users(cls: type) -> bool:
    """Whether no base class comes from a library: the names of attributes are not searched for in the code of libraries."""
    bases = [base for base in cls.__mro__ if base not in (object, torch.nn.Module)]
    return all(is_users(base) for base in bases)


def _facts(module: torch.nn.Module) -> tuple[object, ...]:
    """All that is known of a module but its numbers and its device, for `constructor_call`."""
    writer = _Writer(lambda _: True, {}, root=module, constructors=False)
    expression = writer.module(module, "")
    return (_without_device(expression), tuple(writer.afterwards), tuple(writer.left_out))


def _without_device(expression: Expression) -> tuple[object, ...]:
    kept: list[object] = []
    for part in parts(expression):
        if isinstance(part, Items):
            kept.append((part.brackets, tuple(key for key, _ in part.items if key != "device=")))
        elif not (isinstance(part, Text) and _DEVICE.fullmatch(part.text)):
            kept.append(part)
    return tuple(kept)


def _scripted_class(module: torch.jit.ScriptModule) -> type:
    """The Python class that was scripted. TorchScript remembers only its name."""
    names = [name for name in modules.scripted_name(module).split(".")[1:] if not name.startswith("___torch_mangle")]
    if not names:
        raise Unknown("", "a class of TorchScript")
    found = getattr(sys.modules.get(".".join(names[:-1])), names[-1], None)
    if not isinstance(found, type):
        raise Unknown("", f"TorchScript of {'.'.join(names)}")
    return found


def _modes(model: torch.nn.Module) -> list[Expression]:
    """The statements that set the model to training or evaluation."""
    made = [(path, module) for path, module in modules.named_modules(model) if modules.is_set_up(module)]
    training = [path for path, module in made if module.training]
    if len(training) == len(made):
        return [Text("model.train()")]
    return [Text("model.eval()"), *(Text(f"{_at(path).text}.training = True") for path in training)]


def _at(path: str) -> Text:
    """A submodule of the finished model."""
    return Text(f"model.get_submodule({path!r})" if path else "model")
