"""Models, inputs and options as expressions that make their like: the same classes, shapes and dtypes, other numbers."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import inspect
import pathlib
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from onnxplain.request import Request
from onnxplain.torch_internals import modules
from onnxplain.torch_internals.fake_tensors import is_fake
from onnxplain.torch_internals.operators import OpOverload, OpOverloadPacket

from .expression import Expression, Items, Ref, Text, call, in_a_row, literal, parts
from .sources import is_users

MAKE = Text("make")
RANDOM = Text("random")
"""Functions of the script itself."""

# NOTE: transformers marks each module whose weights it has drawn.
_INTERNALS = frozenset({*vars(torch.nn.Module()), "_is_hf_initialized"})
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that is no part of the interpreter
_LONGEST = 1000
_LARGEST_MASK = 64


class Unknown(Exception):
    """There is no expression for a value."""


@dataclasses.dataclass(frozen=True)
class Described:
    """A model as source.

    Attributes:
        expression: What makes it.
        afterwards: Statements on `model`: what is shared, hooks, modes.
        left_out: What the model has and the script has not, each with the reason.
    """

    expression: Expression
    afterwards: tuple[Expression, ...]
    left_out: tuple[str, ...]


def described(model: torch.nn.Module, wanted: Callable[[str], bool]) -> Described:
    """`model` without its data.

    Args:
        model: Any module.
        wanted: Whether the code has use for an attribute of this name. Only classes of the user's are asked about: all of their code
            is known.
    """
    writer = _Writer(wanted, {}, root=model)
    expression = writer.module(model, "")
    return Described(expression, (*writer.afterwards, *_modes(model)), tuple(writer.left_out))


def example(value: Any, names: Mapping[int, Text]) -> Expression:
    """An input as source: Python values as they are, tensors by shape and dtype.

    The numbers of a tensor are the user's data and are drawn anew. Kept are: a single integer or bool, which may be a size or an index;
    a mask of a few bools, whose sum may be one; and patterns that say nothing, such as `torch.arange`. Other integers are drawn between
    the smallest and the largest there was, so that an index stays one.

    Args:
        value: The input.
        names: Expressions for objects that occur more than once, by their id.
    """
    return _Writer(lambda _: True, names, as_input=True).value(value, "")


def data(value: Any, place: str = "") -> Expression:
    """A global value, an option or `dynamic_shapes` as source. Raises `Unknown`, which tells `place`."""
    return _Writer(lambda _: True, {}).value(value, place)


def shapes_of(request: Request) -> Any:
    """`dynamic_shapes` with the names that the user gave; as a structure where they were collected, or shown by further examples."""
    return request.shapes.given


class _Writer:
    """Walks through a value once. Modules and weights of `root` that are met again are named, once the model is there."""

    def __init__(
        self,
        wanted: Callable[[str], bool],
        names: Mapping[int, Text],
        *,
        root: torch.nn.Module | None = None,
        as_input: bool = False,
        constructors: bool = True,
    ) -> None:
        self.afterwards: list[Expression] = []
        self.left_out: list[str] = []
        self._wanted = wanted
        self._names = names
        self._as_input = as_input
        self._constructors = constructors
        self._around: list[object] = []
        self._references = 0
        self._modules = {} if root is None else {id(module): path for path, module in root.named_modules()}
        tensors = () if root is None else (*root.named_parameters(), *root.named_buffers())
        self._tensors = {id(tensor): path for path, tensor in tensors}

    def module(self, module: torch.nn.Module, path: str) -> Expression:
        """The expression for `module`, which is at `path` of the model."""
        if isinstance(module, torch.jit.ScriptModule):
            return call(Text("torch.jit.script"), self._made(_scripted_class(module), module, path))
        if type(module) in (torch.nn.ModuleList, torch.nn.Sequential) and list(modules.children(module)) == [
            *map(str, range(len(modules.children(module))))
        ]:
            return self._sequence(module, path)
        short = _from_config(module)
        if short is None and self._constructors:
            short = _constructed(module)
        if short is not None:
            self._restore(module, path)
            return short
        return self._made(type(module), module, path)

    def value(self, value: Any, place: str) -> Expression:
        """The expression for any value. Raises `Unknown` with `place` in it."""
        if id(value) in self._names:
            return self._names[id(value)]
        if (reference := self._reference(value)) is not None:
            return reference
        if isinstance(value, torch.Tensor):
            return _like(value, place, as_input=self._as_input)
        if isinstance(value, torch.nn.Module):
            return self._held(value, place)
        if value is None or type(value) in (bool, int, float, complex, str, bytes):
            text = literal(value)
            if len(text.text) > _LONGEST:
                raise Unknown(f"{place} (a long {kind_of(value)})")
            return text
        if isinstance(value, torch.device):
            return call(Text("torch.device"), literal(str(value)))
        if value is Ellipsis or isinstance(value, torch.dtype | torch.layout | torch.memory_format):
            return literal(value)
        if any(each is value for each in self._around):
            raise Unknown(f"{place} (contains itself)")
        self._around.append(value)
        try:
            return self._composite(value, place)
        finally:
            self._around.pop()

    def _composite(self, value: Any, place: str) -> Expression:
        if (reference := named(value)) is not None:
            return reference
        cls = type(value)
        if cls in (list, tuple, set, frozenset, torch.Size):
            items = tuple(("", self.value(item, f"{place}[{number}]")) for number, item in enumerate(value))
            if cls is list:
                return Items(None, ("[", "]"), items)
            if cls in (tuple, torch.Size):
                return Items(None, ("(", ")"), items)
            return call(Text(cls.__name__), Items(None, ("[", "]"), items))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return call(Ref(cls), *(self.value(item, f"{place}.{name}") for name, item in zip(value._fields, value, strict=True)))
        if isinstance(value, dict) and not dataclasses.is_dataclass(value):
            items = tuple((f"{self._key(key)}: ", self.value(item, f"{place}[{key!r}]")) for key, item in value.items())
            shown = Items(None, ("{", "}"), items)
            if cls in (dict, types.MappingProxyType):
                return shown
            if isinstance(value, collections.defaultdict):
                return call(Ref(cls), self.value(value.default_factory, place), shown)
            return call(Ref(cls), shown)
        if isinstance(value, enum.Enum):
            return Items(Ref(cls), ("[", "]"), (("", literal(value.name)),))
        if isinstance(value, functools.partial):
            given = [self.value(each, place) for each in (value.func, *value.args)]
            return call(
                Text("functools.partial"), *given, keywords={name: self.value(each, place) for name, each in value.keywords.items()}
            )
        if isinstance(value, types.MethodType):
            owner = self.value(value.__self__, place)
            if isinstance(owner, Ref):
                return dataclasses.replace(owner, after=f"{owner.after}.{value.__func__.__name__}")
            return call(Text("types.MethodType"), self.value(value.__func__, place), owner)
        if isinstance(value, slice):
            return call(Text("slice"), *(self.value(each, place) for each in (value.start, value.stop, value.step)))
        if isinstance(value, range):
            return literal(value)
        if isinstance(value, pathlib.PurePath):
            return call(Ref(type(value)), literal(value.name))
        if (dim := _dim(value)) is not None:
            return dim
        return self._object(value, place)

    def _object(self, value: Any, place: str) -> Expression:
        if (short := _from_config_dict(value)) is not None:
            return short
        cls = type(value)
        if dataclasses.is_dataclass(cls) and all(field.init for field in dataclasses.fields(cls)) and not hasattr(cls, "__post_init__"):
            fields = [field.name for field in dataclasses.fields(cls)]
            return call(Ref(cls), keywords={name: self.value(getattr(value, name), f"{place}.{name}") for name in fields})
        if dataclasses.is_dataclass(cls) and isinstance(value, dict):
            return call(Ref(cls), keywords={str(name): self.value(each, f"{place}.{name}") for name, each in value.items()})
        slots = [name for base in cls.__mro__ for name in vars(base).get("__slots__", ()) if isinstance(name, str) and hasattr(value, name)]
        state = {**{name: getattr(value, name) for name in slots}, **getattr(value, "__dict__", {})}
        # NOTE: an object that C code makes would be empty, and may crash.
        new: object = cls.__new__
        if not cls.__flags__ & _HEAP_TYPE or new is not object.__new__ or named(cls) is None:
            raise Unknown(f"{place} ({kind_of(value)})")
        return call(MAKE, Ref(cls), self._state(state, place, cls))

    def _made(self, cls: type, module: torch.nn.Module, path: str) -> Expression:
        """A call that makes `module`, with all that it holds."""
        parametrized = torch.nn.utils.parametrize.is_parametrized(module)
        if parametrized:
            # NOTE: it has a class of its own, made from the original one (torch 2.13, nn/utils/parametrize.py).
            cls = cls.__bases__[0]
        if named(cls) is None:
            raise Unknown(f"{path} ({kind_of(module)})")
        state: dict[str, Any] = {} if isinstance(module, torch.jit.ScriptModule) else dict(vars(module))
        plain = {name: value for name, value in state.items() if name not in _INTERNALS}
        volatile = modules.without_state(module) if state else set()
        items: list[tuple[str, Expression]] = list(self._state(plain, path, cls).items)
        for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
            items += self._entry(path, name, functools.partial(self._weight, parameter, path, name))
        for name, buffer in module.named_buffers(recurse=False, remove_duplicate=False):
            items += self._entry(path, name, functools.partial(self._buffer, buffer, path, name, name not in volatile))
        empty = {**(modules.parameters(module) if state else {}), **(modules.buffers(module) if state else {})}
        items += [(f"{name!r}: ", Text("None")) for name, value in empty.items() if value is None]
        for name, child in module.named_children() if not state else modules.children(module).items():
            items.append((f"{name!r}: ", self._child(child, path, name)))
        if parametrized:
            utility = "torch.nn.utils.parametrize._inject"
            self.afterwards.append(call(Text(f"{utility}_new_class"), _at(path)))
            names = modules.children(dict(module.named_children())["parametrizations"])
            self.afterwards += [call(Text(f"{utility}_property"), _at(path), literal(name)) for name in names]
        self._hooks(module, path)
        return call(MAKE, Ref(cls), Items(None, ("{", "}"), tuple(items)))

    def _child(self, child: torch.nn.Module | None, path: str, name: str) -> Expression:
        """A submodule; for one that has another place, too, something that keeps this place."""
        if child is None:
            return Text("None")
        if (reference := self._reference(child, _joined(path, name))) is None:
            try:
                return self.module(child, _joined(path, name))
            except Unknown as unknown:
                self.left_out.append(str(unknown))
        else:
            self._set(path, name, reference)
        return Text("torch.nn.Identity()")

    def _set(self, path: str, name: str, value: Expression) -> None:
        self.afterwards.append(call(Text("setattr"), _at(path), literal(name), value))

    def _reference(self, value: object, place: str | None = None) -> Expression | None:
        """The name of a module or weight of the model, unless it belongs to `place`."""
        kind, known = ("get_submodule", self._modules) if isinstance(value, torch.nn.Module) else ("", self._tensors)
        path = known.get(id(value))
        if path is None or path == place:
            return None
        self._references += 1
        if kind:
            return Text(f"model.{kind}({path!r})")
        owner, _, last = path.rpartition(".")
        return call(Text("getattr"), _at(owner), literal(last))

    def _state(self, state: Mapping[str, Any], place: str, cls: type) -> Items:
        """The attributes of an object that are of use and have an expression."""
        items: list[tuple[str, Expression]] = []
        for name, value in state.items():
            if self._wanted(name) or not _all_code_is_users(cls):
                items += self._entry(place, name, functools.partial(self.value, value, _joined(place, name)))
        return Items(None, ("{", "}"), tuple(items))

    def _entry(self, path: str, name: str, expression: Callable[[], Expression]) -> Iterator[tuple[str, Expression]]:
        """An entry of a state; none where it has to wait for the model, or cannot be."""
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
        """A module that is in an attribute and no submodule."""
        writer = _Writer(self._wanted, {}, root=module)
        made = writer.module(module, "")
        if writer.afterwards:
            raise Unknown(f"{place} ({kind_of(module)})")
        self.left_out += [f"{place}: {each}" for each in writer.left_out]
        return made

    def _hooks(self, module: torch.nn.Module, path: str) -> None:
        for attribute, register in modules.HOOKS.items() if self._constructors else ():
            with_kwargs = getattr(module, f"{attribute}_with_kwargs", {})
            for key, hook in getattr(module, attribute, {}).items():
                keywords = {"with_kwargs": Text("True")} if key in with_kwargs else {}
                try:
                    made = self.value(hook, _joined(path, attribute))
                    self.afterwards.append(call(Text(f"{_at(path).text}.{register}"), made, keywords=keywords))
                except Unknown as unknown:
                    self.left_out.append(str(unknown))

    def _weight(self, parameter: torch.Tensor, path: str, name: str) -> Expression:
        if (reference := self._reference(parameter, _joined(path, name))) is not None:
            return reference
        grad = {} if parameter.requires_grad else {"requires_grad": Text("False")}
        return call(Text("torch.nn.Parameter"), _like(parameter, _joined(path, name), as_input=False), keywords=grad)

    def _buffer(self, buffer: torch.Tensor, path: str, name: str, persistent: bool) -> Expression:
        if (reference := self._reference(buffer, _joined(path, name))) is not None:
            return reference
        volatile = {} if persistent else {"persistent": Text("False")}
        return call(Text("torch.nn.Buffer"), _like(buffer, _joined(path, name), as_input=False), keywords=volatile)

    def _key(self, key: Any) -> str:
        expression = self.value(key, "a key")
        if not isinstance(expression, Text):
            raise Unknown(f"a key ({kind_of(key)})")
        return expression.text

    def _restore(self, module: torch.nn.Module, path: str) -> None:
        """What a constructor does not make: what a module shares with others, and its hooks."""
        for name, inner in module.named_modules():
            owner = ".".join(part for part in (path, name) if part)
            self._hooks(inner, owner)
            for each, value in (*modules.parameters(inner).items(), *modules.buffers(inner).items(), *modules.children(inner).items()):
                if value is not None and (reference := self._reference(value, _joined(owner, each))) is not None:
                    self._set(owner, each, reference)


def named(value: Any) -> Ref | None:
    """A class, function or operator that has a name, in an installed package or in the user's sources."""
    if isinstance(value, OpOverload | OpOverloadPacket):
        return Ref(value)
    if not isinstance(value, type | types.FunctionType | types.BuiltinFunctionType | types.MethodDescriptorType):
        return None
    return Ref(value) if is_users(value) or public_name(value) is not None else None


def public_name(value: Any) -> tuple[str, str] | None:
    """The module to import for a class or function of an installed package, and its name there."""
    module = getattr(value, "__module__", None) or ""
    for place in ("builtins", "torch", "torch.nn", "torch.nn.functional", module.partition(".")[0], module):
        for name in (value.__name__, value.__qualname__):
            found: Any = sys.modules.get(place)
            for part in name.split("."):
                found = getattr(found, part, None)
            if found is value:
                return place, name
    return None


def _all_code_is_users(cls: type) -> bool:
    """Whether no class of a library, whose code is not searched for the names of attributes, is among the bases."""
    bases = [base for base in cls.__mro__ if base not in (object, torch.nn.Module)]
    return all(is_users(base) for base in bases)


def _like(tensor: torch.Tensor, path: str, *, as_input: bool) -> Expression:
    """A tensor of the same shape, strides, dtype and device."""
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise Unknown(f"{path} (a tensor of layout {tensor.layout})")
    known = type(tensor) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) or is_fake(tensor)
    if not known and not hasattr(tensor, "_is_buffer"):
        raise Unknown(f"{path} ({kind_of(tensor)})")
    shape = tuple(tensor.shape)
    dtype = {} if tensor.dtype is torch.float32 else {"dtype": literal(tensor.dtype)}
    plain = tensor.is_contiguous() and tensor.device.type == "cpu"
    if plain and not is_fake(tensor) and not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        return _integers(tensor, as_input=as_input)
    if plain and as_input and tensor.dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        return call(Text("torch.randn"), *(map(literal, shape) if shape else [Text("()")]), keywords=dtype)
    stride = {} if tensor.is_contiguous() else {"stride": literal(tensor.stride())}
    device = {} if tensor.device.type == "cpu" else {"device": literal(str(tensor.device))}
    return call(RANDOM, *map(literal, shape), keywords={**dtype, **stride, **device})


def _integers(tensor: torch.Tensor, *, as_input: bool) -> Expression:
    shape = tuple(tensor.shape)
    size = literal(shape)
    dtype = {} if tensor.dtype is torch.int64 else {"dtype": literal(tensor.dtype)}
    count = tensor.numel()
    if count == 0:
        return call(Text("torch.zeros"), size, keywords={"dtype": literal(tensor.dtype)})
    least, most = tensor.min().item(), tensor.max().item()
    if least == most:
        full = [Text("torch.full"), size] if shape else [Text("torch.tensor")]
        return call(*full, literal(least), keywords=dtype)
    if tensor.dtype is torch.bool:
        return (
            call(Text("torch.tensor"), literal(tensor.tolist()))
            if count <= _LARGEST_MASK
            else Items(call(Text("torch.rand"), size), (" > ", ""), (("", Text("0.5")),))
        )
    if torch.equal(tensor.flatten(), torch.arange(count, dtype=tensor.dtype)):
        arange = call(Text("torch.arange"), literal(count), keywords=dtype)
        return arange if len(shape) == 1 else Items(arange, (".reshape(", ")"), (("", size),))
    if not as_input:
        # NOTE: indices, which may not be too large, and quantized weights, which are nobody's business.
        return call(Text("torch.zeros"), size, keywords={"dtype": literal(tensor.dtype)})
    return call(Text("torch.randint"), literal(least), literal(most + 1), size, keywords=dtype)


def _constructed(module: torch.nn.Module) -> Expression | None:
    """The call of a constructor of torch's own that makes the like of `module`, tried out."""
    cls = type(module)
    if not cls.__module__.startswith(("torch.nn.modules.", "torch.ao.nn.")):
        return None
    given: list[Expression] = []
    keywords: dict[str, Expression] = {}
    arguments: dict[str, Any] = {}
    try:
        for name, parameter in _parameters(cls).items():
            value = _argument(module, name, parameter)
            if value is inspect.Parameter.empty:
                continue
            arguments[name] = value
            if parameter.default is inspect.Parameter.empty and not keywords:
                given.append(data(value))
            elif parameter.default is inspect.Parameter.empty or value != parameter.default:
                keywords[name] = data(value)
        if _plainly(_instance(cls, arguments)) != _plainly(module):
            return None
    except Exception:
        # NOTE: a constructor that takes other things than its attributes say may raise anything.
        return None
    devices = {str(each.device) for each in (*module.parameters(), *module.buffers())} - {"cpu"}
    made = call(Ref(cls), *given, keywords=keywords)
    if devices:
        made = Items(made, (".to(", ")"), (("", literal(min(devices))),))
    return made if len(devices) < 2 else None


def _parameters(cls: type) -> dict[str, inspect.Parameter]:
    """What a constructor takes; where it hands on whatever comes, what that of the class above takes."""
    found: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:
        signature = inspect.signature(base.__init__).parameters  # type: ignore[misc]
        found |= {name: each for name, each in signature.items() if name not in found and name not in ("self", "mode")}
        if not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in signature.values()):
            break
    return found


def _instance(cls: type, arguments: Mapping[str, Any]) -> torch.nn.Module:
    """A module of torch's own, without memory for its weights where that is possible. No random number is drawn."""
    with torch.random.fork_rng(devices=[]):
        try:
            with torch.device("meta"):
                made = cls(**arguments)
        except Exception:
            made = cls(**arguments)
    assert isinstance(made, torch.nn.Module)
    return made


def _argument(module: torch.nn.Module, name: str, parameter: inspect.Parameter) -> Any:
    """What `module` was probably made with; `empty` where it does not tell."""
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD) or name == "device":
        return inspect.Parameter.empty
    if name == "dtype":
        first = next((each.dtype for each in module.parameters()), parameter.default)
        return parameter.default if first is torch.float32 and parameter.default is None else getattr(module, "dtype", first)
    value = getattr(module, name, inspect.Parameter.empty)
    if isinstance(parameter.default, bool) and not isinstance(value, bool):
        tensor = value() if inspect.ismethod(value) else value
        return parameter.default if value is inspect.Parameter.empty else tensor is not None
    return inspect.Parameter.empty if inspect.ismethod(value) else value


def _plainly(module: torch.nn.Module) -> tuple[object, ...]:
    """All that is to be known of a module of torch's, for comparing: no data, no device."""
    writer = _Writer(lambda _: True, {}, root=module, constructors=False)
    expression = writer.module(module, "")
    return (_without_device(expression), tuple(writer.afterwards), tuple(writer.left_out))


def _without_device(expression: Expression) -> tuple[object, ...]:
    kept: list[object] = []
    for part in parts(expression):
        if isinstance(part, Items):
            kept.append((part.brackets, tuple(key for key, _ in part.items if key != "device=")))
        elif not (isinstance(part, Text) and part.text in _DEVICES):
            kept.append(part)
    return tuple(kept)


_DEVICES = {"'meta'", *(f"'cuda:{number}'" for number in range(8)), "'mps:0'"}


def _from_config(module: torch.nn.Module) -> Expression | None:
    """A model of a library that is made from a configuration, such as those of transformers and diffusers."""
    config = getattr(module, "config", None)
    if config is None or is_users(type(module)) or not hasattr(module, "save_pretrained"):
        return None
    try:
        if isinstance(config, dict):
            plain = {name: value for name, value in config.items() if not name.startswith("_")}
            return call(Ref(type(module), ".from_config"), data(plain))
        made = call(Ref(type(module)), _configuration(config))
    except Unknown:
        return None
    dtypes = {each.dtype for each in module.parameters() if each.is_floating_point()} - {torch.float32}
    if len(dtypes) == 1:
        made = Items(made, (".to(", ")"), (("", literal(dtypes.pop())),))
    return made


def _from_config_dict(value: Any) -> Expression | None:
    return _configuration(value) if hasattr(value, "to_diff_dict") and not is_users(type(value)) else None


def _configuration(config: Any) -> Expression:
    """A configuration of transformers: what is not the default. Names of files and versions are nobody's business."""
    given = {name: value for name, value in config.to_diff_dict().items() if name not in ("_name_or_path", "transformers_version")}
    attention = getattr(config, "_attn_implementation", None)
    chosen = {"attn_implementation": literal(attention)} if isinstance(attention, str) else {}
    return call(Ref(type(config), ".from_dict"), data(given), keywords=chosen)


def _scripted_class(module: torch.jit.ScriptModule) -> type:
    """The Python class that TorchScript was made of: it remembers its name only."""
    names = [name for name in modules.scripted_name(module).split(".")[1:] if not name.startswith("___torch_mangle")]
    found = getattr(sys.modules.get(".".join(names[:-1])), names[-1], None)
    if not isinstance(found, type):
        raise Unknown(f"TorchScript of {'.'.join(names)}")
    return found


def _dim(value: Any) -> Expression | None:
    """A dim of `dynamic_shapes`."""
    if isinstance(value, type(torch.export.Dim.AUTO)):
        kind = value.type.name
        bounds = {name: literal(getattr(value, name)) for name in ("min", "max") if getattr(value, name) is not None}
        return call(Text(f"torch.export.Dim.{kind}"), keywords=bounds) if bounds else Text(f"torch.export.Dim.{kind}")
    if not isinstance(value, torch.export.Dim):
        return None
    root, function = getattr(value, "root", None), getattr(value, "fn", None)
    if root is not None and function is not None:
        # NOTE: a dim that is made from another is a linear function of it (torch 2.13, export/dynamic_shapes.py).
        at_zero, at_one = int(function(0)), int(function(1))
        inner = _dim(root)
        assert inner is not None
        return Items(None, (f"{at_one - at_zero} * ", f" + {at_zero}" if at_zero else ""), (("", inner),))
    bounds = {}
    if value.min > 0:
        bounds["min"] = literal(int(value.min))
    if isinstance(value.max, int) and value.max < sys.maxsize:
        bounds["max"] = literal(int(value.max))
    return call(Text("torch.export.Dim"), literal(value.__name__), keywords=bounds)


def _modes(model: torch.nn.Module) -> list[Expression]:
    """How the model is set to training or evaluation."""
    training = [path for path, module in model.named_modules() if module.training]
    if len(training) == sum(1 for _ in model.modules()):
        return [Text("model.train()")]
    return [Text("model.eval()"), *(Text(f"{_at(path).text}.training = True") for path in training)]


def _at(path: str) -> Text:
    """A submodule of the model, once that is there."""
    return Text(f"model.get_submodule({path!r})" if path else "model")


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def kind_of(value: object) -> str:
    """What a value is, for a message."""
    return type(value).__qualname__
