"""Registers the classes of inputs and outputs that torch.export does not know and that can be taken apart and rebuilt without loss."""

from __future__ import annotations

import copy
import copyreg
import dataclasses
import enum
import itertools
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, SimpleNamespace
from typing import Any

import torch

from onnxplain.torch_internals import pytree
from onnxplain.torch_internals.python_values import is_a
from onnxplain.torch_internals.size_rows import Row

from .inputs import is_supported

_CONSTANTS = frozenset(
    {
        *(NoneType, bool, int, float, complex, str, bytes),
        *(torch.dtype, torch.device, torch.layout, torch.memory_format),
    }
)
"""The types of attributes that a program keeps as constants. A subclass, such as that of a symbolic size, may be none."""

_SIZES: Mapping[str, int] = {"batch_size": 0, "num_heads": 1, "cumulative_length": -2}
"""Attributes of transformers' cache layers that repeat a size of the attribute `keys`, each with its axis.

Read in transformers 5.23, cache_utils.py. There, the `cumulative_length` of a layer with a sliding window also counts the tokens that
have left the window. Masks depend only on whether the window is full, and transformers computes it from `keys` when it rebuilds a cache.
"""

_UNREAD = frozenset({"_sliding_window_tensor"})
"""Tensors of transformers' cache layers that no model reads; they serve DataParallel."""


def register(value: Any) -> None:
    """Registers each class in `value` that torch.export does not know and that can be rebuilt, such as transformers' `DynamicCache`.

    The registration outlives the export, because the captured program and calls of the exported model need it. A class that is already
    registered keeps its registration.

    Args:
        value: The inputs or the outputs of a model.
    """
    for leaf in pytree.tree_leaves(value):
        # NOTE: an earlier leaf may have the same class.
        if not is_supported(leaf) and pytree.tree_is_leaf(leaf):
            for cls in _rebuildable(leaf, ()) or ():
                _register(cls)


@dataclasses.dataclass(frozen=True)
class _Rest:
    """What an object consists of beside its parts. Two values are equal if one program fits both objects.

    Attributes:
        keys: The keys of its items; the items are the first parts.
        names: The names of the attributes that are the other parts.
        constants: The attributes that hold no tensors.
        mirrored: The keys of the items that are attributes as well.
        is_namespace: Whether its items are its attributes, because the class sets `self.__dict__ = self`.
        arguments: The arguments that make a new object.
        sizes: The attributes that repeat sizes.
        unread: The attributes that no model reads.
    """

    keys: tuple[Any, ...]
    names: tuple[str, ...]
    constants: Mapping[str, Any]
    mirrored: tuple[str, ...]
    is_namespace: bool
    arguments: tuple[Any, ...]
    sizes: tuple[str, ...] = dataclasses.field(compare=False)
    unread: Mapping[str, Any] = dataclasses.field(compare=False)


def _rebuildable(value: Any, around: tuple[Any, ...]) -> list[type] | None:
    """The classes to register for `value`; None if it cannot be rebuilt, or if something in it cannot.

    Args:
        value: The object.
        around: The objects that it lies in.
    """
    if any(each is value for each in around) or _is_whole(value) or not _is_new_and_empty(value):
        return None
    parts, _ = _flatten(value)
    classes = [type(value)]
    for leaf in pytree.tree_leaves(parts):
        if is_a(leaf, torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool) or _is_constant(leaf):
            continue
        inside = _rebuildable(leaf, (*around, value))
        if inside is None:
            return None
        classes += inside
    return list(dict.fromkeys(classes))


def _is_whole(value: Any) -> bool:
    """Whether `value` is more than its parts: a module, torch's, what stands for a list, or an `object()`, which only has an identity."""
    cls = type(value)
    return cls is object or is_a(value, torch.Tensor, torch.nn.Module, Row) or cls.__module__.partition(".")[0] == "torch"


def _is_new_and_empty(value: Any) -> bool:
    """Whether Python's protocol for copies makes a new and empty object of the class, to which items and attributes are then added."""
    cls = type(value)
    try:
        if (arguments := _arguments(value)) is None:
            return False
        made = _made(cls, arguments)
        return type(made) is cls and made is not value and not any(_attributes(made)) and not any(_items(made))
    except Exception:  # noqa: BLE001  methods of a class that we do not know run here
        return False


def _arguments(value: Any) -> tuple[Any, ...] | None:
    """The arguments that make an empty object of the class of `value`; None if more than items and attributes have to be added to it."""
    make, arguments, *_ = value.__reduce_ex__(2)
    cls = type(value)
    if is_a(value, tuple) or isinstance(cls, enum.EnumMeta):
        return None
    if make is copyreg.__newobj__ and arguments == (cls,):  # type: ignore[attr-defined]  # Python has it, its type does not
        return ()
    # NOTE: these classes of the standard library call the class, such as `defaultdict(list)`.
    called = make is cls and is_a(value, OrderedDict, defaultdict, SimpleNamespace)
    return arguments if called and _is_constant(arguments) else None


def _made(cls: type, arguments: tuple[Any, ...]) -> Any:
    return cls(*arguments) if arguments or issubclass(cls, OrderedDict) else cls.__new__(cls)


def _is_constant(value: Any) -> bool:
    if is_a(value, dict):
        return type(value) in (dict, OrderedDict) and all(map(_is_constant, itertools.chain(value, value.values())))
    if type(value) in (list, tuple, set, frozenset, torch.Size):
        return all(map(_is_constant, value))
    return type(value) in _CONSTANTS or is_a(value, type, enum.Enum)


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    """The items of a dict or a list. The class may read and write its items in another way; that way is not taken."""
    if is_a(value, dict):
        yield from dict.items(value)
    elif isinstance(value, list):
        yield from enumerate(list.__iter__(value))


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    namespace = getattr(value, "__dict__", {})
    if namespace is not value:
        yield from namespace.items()
    for base in type(value).__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name, getattr(value, name)


def _is_cache(cls: type) -> bool:
    return any(base.__module__ == "transformers.cache_utils" for base in cls.__mro__)


def _flatten(value: Any) -> tuple[list[Any], _Rest]:
    items, attributes, cls = dict(_items(value)), dict(_attributes(value)), type(value)
    mirrored = tuple(name for name, each in attributes.items() if isinstance(value, dict) and name in items and items[name] is each)
    sizes: list[str] = []
    unread: dict[str, Any] = {}
    if _is_cache(cls):
        of_keys = isinstance(attributes.get("keys"), torch.Tensor)
        sizes = [name for name in _SIZES if of_keys and isinstance(attributes.get(name), int | torch.SymInt)]
        unread = {name: attributes[name] for name in _UNREAD & set(attributes)}
    others = {name: each for name, each in attributes.items() if name not in (*mirrored, *sizes, *unread)}
    # NOTE: the model may change a list or a dict in place.
    constants = {name: copy.deepcopy(each) for name, each in others.items() if _is_constant(each)}
    parts = {name: each for name, each in others.items() if name not in constants}
    is_namespace = getattr(value, "__dict__", None) is value
    arguments = _arguments(value) or ()
    rest = _Rest(tuple(items), tuple(parts), constants, mirrored, is_namespace, arguments, tuple(sizes), unread)
    return [*items.values(), *parts.values()], rest


def _rebuilt(cls: type, parts: Sequence[Any], rest: _Rest) -> Any:
    value, items = _made(cls, rest.arguments), dict(zip(rest.keys, parts, strict=False))
    if issubclass(cls, OrderedDict):
        OrderedDict.update(value, items)
    elif issubclass(cls, dict):
        dict.update(value, items)
    elif issubclass(cls, list):
        list.extend(value, items.values())
    if rest.is_namespace:
        value.__dict__ = value
    attributes = dict(zip(rest.names, parts[len(items) :], strict=True)) | copy.deepcopy(dict(rest.constants)) | dict(rest.unread)
    attributes |= {name: items[name] for name in rest.mirrored}
    keys = attributes.get("keys")
    if isinstance(keys, torch.Tensor):
        attributes |= {name: keys.shape[_SIZES[name]] for name in rest.sizes}
    for name, each in attributes.items():
        # NOTE: the class may be frozen.
        object.__setattr__(value, name, each)
    return value


def _register(cls: type) -> None:
    def flatten_with_keys(value: Any) -> tuple[list[tuple[Any, Any]], _Rest]:
        parts, rest = _flatten(value)
        key = pytree.SequenceKey if issubclass(cls, list) else pytree.MappingKey
        return list(zip([*map(key, rest.keys), *map(pytree.GetAttrKey, rest.names)], parts, strict=True)), rest

    pytree.register_pytree_node(
        cls,
        _flatten,
        lambda parts, rest: _rebuilt(cls, list(parts), rest),
        serialized_type_name=f"{cls.__module__}.{cls.__qualname__}",
        to_dumpable_context=str,
        from_dumpable_context=_unknown,
        flatten_with_keys_fn=flatten_with_keys,
    )


def _unknown(_: Any) -> Any:
    # NOTE: in the process that loads a saved program, the class is not registered, or the user has registered it in another way.
    raise NotImplementedError("onnxplain does not read the structure of saved inputs: flatten the inputs yourself")
