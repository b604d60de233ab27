"""State that `forward` changes: attributes, variables outside, lists, dicts and sets. The exported model keeps none between runs."""

from __future__ import annotations

import collections
import contextlib
import enum
import functools
import operator
import sys
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import torch

from onnxplain.diagnostics import Location
from onnxplain.process import BudgetSpent, Stopped
from onnxplain.source import locations
from onnxplain.torch_internals import pytree
from onnxplain.torch_internals.code_objects import code_of, lines_of, stored_attributes
from onnxplain.torch_internals.modules import named_modules, registers
from onnxplain.torch_internals.python_values import is_a

from . import line_watch, outer_variables

_CONTAINERS = (list, dict, set, *(getattr(collections, name) for name in ("deque", "Counter", "OrderedDict", "defaultdict")))
_LOOKED_AT = 10_000
"""The length up to which a container is watched, with the containers in it."""
_TORCHS_OWN = frozenset(vars(torch.nn.Module()))
_State = dict[str, tuple[int, ...]]


class Attributes:
    """What the user's modules can change between runs: their attributes, except parameters and buffers, and variables outside.

    Args:
        model: The model.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        classes: dict[type, bool] = {}
        self._modules = []
        self._cached: dict[int, tuple[Any, Any]] = {}
        helpers: dict[type, bool] = {}
        namespaces: dict[int, dict[str, Any]] = {}
        self._helpers: dict[int, tuple[str, Any]] = {}
        self._registers: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self._registered: dict[int, set[str]] = {}
        for path, module in named_modules(model):
            found = registers(module)
            self._registers += [(each, each.copy()) for each in found]
            self._registered[id(module)] = {name for each in found for name, value in each.items() if value is not None}
            for name, value in vars(module).items():
                kind = type(value)
                if kind not in helpers:
                    helpers[kind] = _is_helper(kind)
                if helpers[kind]:
                    own = getattr(value, "__dict__", {})
                    if _is_users(kind):
                        self._helpers.setdefault(id(value), (f"{path}.{name}" if path else name, value))
                    self._cached |= {id(each): (each, each.copy()) for each in (own, *(inner for _, inner in _containers(own)))}
            cls = type(module)
            if cls not in classes:
                # NOTE: not `cls.forward`, which is a computed property in torch.jit's classes.
                forward = next((vars(base)["forward"] for base in cls.__mro__ if "forward" in vars(base)), None)
                place = None if forward is None else locations.definition_of(forward)
                classes[cls] = place is not None and locations.is_users(place.file)
                if classes[cls]:
                    namespace = getattr(forward, "__globals__", {})
                    namespaces[id(namespace)] = namespace
            if classes[cls]:
                self._modules.append((path, module))
        self._values = [dict(vars(module)) for _, module in self._modules]
        # NOTE: a capture writes to tensors that are no buffers (seen in torch 2.13).
        tensors = {id(value): value for values in self._values for value in values.values() if type(value) is torch.Tensor}
        self._data = [(each, each.detach().clone()) for each in tensors.values() if _has_data(each)]
        self._globals = {name: value for namespace in namespaces.values() for name, value in _containers(namespace)}
        users = [module for _, module in self._modules]
        self._outside = [(each, dict(each.values())) for each in outer_variables.reached_from(_users_classes(classes), map(vars, users))]
        held = [*(values for _, values in self._outside), *map(_own, self._values)]
        self._helped = [(value, _attributes_of(value)) for _, value in self._helpers.values()]
        held += [attributes for _, attributes in self._helped]
        outer = [*self._globals.values(), *(value for values in held for _, value in _containers(values))]
        containers = [*outer, *(inner for each in outer for inner in _items(each) if type(inner) in _CONTAINERS)]
        self._contents = {id(value): (value, value.copy()) for value in containers}
        self._before = self._state()
        self._changed: set[str] = set()
        self._empty = {name for name, value in self._named() if value is None}

    def changes(self, frames: Sequence[Location], again: Callable[[], object]) -> Iterator[tuple[str, Location]]:
        """The attributes that have changed since, each with the user's line that changed it. Restores all of them.

        Args:
            frames: The user's frames that made the program.
            again: Runs the model once more, while the lines are watched, to find the line of each change.
        """
        changed = self._changed | self._differing()
        # NOTE: torch.export restores assigned tensors (seen in 2.13), so only the code tells that there may have been an assignment.
        assigned = _assigned(self._modules, frames)
        changed |= {name for name in self._before if name.rpartition(".")[2] in assigned}
        self.put_back()
        if not changed:
            return

        filled: dict[str, dict[Any, Any]] = {}
        numbers: dict[str, float] = {}

        values = self._reader(changed)

        def states() -> Mapping[str, object]:
            now = values()
            numbers.update(self._new_numbers(now))
            for name, value in _private_dicts(now).items():
                # NOTE: torch.export empties them again at the end.
                if len(value) >= len(filled.get(name, ())):
                    filled[name] = value.copy()
            return {name: _state_of(now[name]) if name in now else None for name in changed}

        seen = line_watch.changes(again, states)
        by_key = self._filled_once(filled, again, states)
        counted = self._counted(numbers, again)
        self.put_back()
        times = collections.Counter(name for name, _ in seen)
        outside = {f"{each.holder}.{name}" for each, _ in self._outside for name in each.values()}
        helpers = {path for path, _ in self._helpers.values()}
        # NOTE: a name that had no value, and gets one only once, is a cache, mostly, and not state; unless the model offers it to others. A
        # helper may make its tables in several steps.
        empty = {name for name in times if name not in self._before or name in self._empty}
        caches = {name for name in empty if times[name] == 1 and (name in outside or _is_private(name))}
        caches |= {name for name in empty if name.rpartition(".")[0] in helpers}
        caches = (caches | by_key) - counted
        # NOTE: a line that many layers run is reported once.
        yield from dict.fromkeys((name.rpartition(".")[2], place) for name, place in seen if name not in caches)

    def _filled_once(
        self, filled: Mapping[str, dict[Any, Any]], again: Callable[[], object], states: Callable[[], Mapping[str, object]]
    ) -> set[str]:
        """The dicts that a further run leaves alone if they hold what they held at the end of the last one: caches by key."""
        ran = False

        def further() -> None:
            nonlocal ran
            ran = True
            try:
                again()
            except (BudgetSpent, Stopped):
                ran = False

        for name, value in _private_dicts(self._reader(filled)()).items():
            value.update(filled[name])
        repeated = {name for name, _ in line_watch.changes(further, states)} if filled else set()
        return filled.keys() - repeated if ran else set()

    def _new_numbers(self, values: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
        """The private numbers among `values` that the user's modules did not have before."""
        yield from ((name, value) for name, value in values.items() if _is_private(name) and name not in self._before and _is_number(value))

    def _counted(self, numbers: Mapping[str, float], again: Callable[[], object]) -> set[str]:
        """Those of the new `numbers` that a further run changes again. It leaves caches alone."""
        for path, module in self._modules if numbers else ():
            known = {name: f"{path}.{name}" if path else name for name in {each.rpartition(".")[2] for each in numbers}}
            vars(module).update({name: numbers[whole] for name, whole in known.items() if whole in numbers})

        values = self._reader(numbers)

        def states() -> Mapping[str, object]:
            now = dict(self._new_numbers(values()))
            return {name: now.get(name) for name in numbers}

        return {name for name, _ in line_watch.changes(again, states)} if numbers else set()

    def note(self) -> None:
        """Notes what has changed, at the end of a run of the model: torch.export restores attributes without tensors (seen in 2.13)."""
        self._changed |= self._differing()

    def undo(self) -> None:
        """Restores all attributes. `changes` still tells what had changed."""
        self._changed |= self._differing()
        self.put_back()

    def _differing(self) -> set[str]:
        return {name for name, state in self._state().items() if self._before.get(name) != state}

    def _state(self) -> _State:
        """A value for each attribute, which changes when the attribute changes."""
        return {name: _state_of(value) for name, value in self._named()}

    def _named(self) -> Iterator[tuple[str, Any]]:
        """The values by unique names."""
        for prefix, values in self._holders():
            yield from ((f"{prefix}.{name}" if prefix else name, value) for name, value in values().items())

    def _holders(self) -> Iterator[tuple[str, Callable[[], Mapping[str, Any]]]]:
        """Reads what each object holds; with the first part of the names."""
        yield "globals", lambda: self._globals
        yield from ((each.holder, each.values) for each, _ in self._outside)
        yield from ((path, functools.partial(self._own_of, module)) for path, module in self._modules)
        yield from ((path, functools.partial(_attributes_of, helper, special=False)) for path, helper in self._helpers.values())

    def _own_of(self, module: torch.nn.Module) -> dict[str, Any]:
        """The attributes of a module that are not torch's, with the parameters, buffers and submodules that it did not have before."""
        known = self._registered[id(module)]
        new = {name: value for each in registers(module) for name, value in each.items() if name not in known}
        return new | _own(vars(module))

    def _reader(self, names: Collection[str]) -> Callable[[], dict[str, Any]]:
        """Reads the values of those of `names` that have one. It is called for each line of a run, and looks at their holders only."""
        wanted = collections.defaultdict[str, dict[str, str]](dict)
        for name in names:
            prefix, _, last = name.rpartition(".")
            wanted[prefix][last] = name
        holders = [(values, wanted[prefix]) for prefix, values in self._holders() if prefix in wanted]

        def read() -> dict[str, Any]:
            return {whole: now[name] for values, known in holders for now in [values()] for name, whole in known.items() if name in now}

        return read

    def put_back(self) -> None:
        """Restores all attributes."""
        for (_, module), values in zip(self._modules, self._values, strict=True):
            now = vars(module)
            for name in now.keys() - values.keys():
                del now[name]
            now.update({name: value for name, value in values.items() if now.get(name) is not value})
        _put_back(self._registers)
        for variables, before in self._outside:
            variables.put_back(before)
        for helper, attributes in self._helped:
            _reset(helper, attributes)
        with torch.no_grad():
            for tensor, data in self._data:
                if not torch.equal(tensor, data):
                    tensor.copy_(data)
        for value, content in self._cached.values():
            known = {*map(id, _items(content))}
            # NOTE: what a helper caches during a capture, such as a table of positions, has no data. Its other changes stay: for example,
            # another thread may use its queue.
            if any(_is_symbolic(leaf) for leaf in pytree.tree_leaves([each for each in _items(value) if id(each) not in known])):
                _restore(value, content)
        for value, content in self._contents.values():
            if [*map(id, _items(value))] != [*map(id, _items(content))]:
                _restore(value, content)


def _put_back(registers: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    """Restores the parts of modules. There are thousands, and mostly none has changed."""
    for register, before in registers:
        if register or before:
            same = register.keys() == before.keys() and all(map(operator.is_, register.values(), before.values()))
            if not same or list(register) != list(before):
                _restore(register, before)


def _has_data(tensor: torch.Tensor) -> bool:
    return not tensor.is_meta and tensor.layout is torch.strided and not tensor.is_quantized


def _is_private(name: str) -> bool:
    return name.rpartition(".")[2][0] == "_"


def _users_classes(known: Mapping[type, bool]) -> list[type]:
    """The user's classes among those of modules and their bases."""
    bases = dict.fromkeys(base for cls, is_users in known.items() if is_users for base in cls.__mro__)
    return list(filter(_is_users, bases))


def _is_users(cls: type) -> bool:
    # NOTE: the classes of a notebook have no file, but their methods do.
    codes = (code_of(each) for each in vars(cls).values() if isinstance(each, types.FunctionType))
    files = [code.co_filename for code in codes if code is not None]
    return any(map(locations.is_users, files or [getattr(sys.modules.get(cls.__module__), "__file__", None) or "<built-in>"]))


def _own(values: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a module that are not torch's."""
    return {name: value for name, value in values.items() if name not in _TORCHS_OWN and not name.startswith("__")}


def _restore(container: Any, content: Any) -> None:
    container.clear()
    container.extend(content) if isinstance(container, list | collections.deque) else container.update(content)


def _state_of(value: object) -> tuple[int, ...]:
    """It changes when `value` or its content becomes another object, other than a copy of a container.

    NOTE: torch.export leaves copies of all containers that it can take apart, such as tuples and lists (seen in 2.11, 2.13 and 2.15).
    """
    state, waiting, known = list[int](), collections.deque([value]), set[int]()
    while waiting:
        each = waiting.popleft()
        inner = _inner(each) if len(state) <= _LOOKED_AT and id(each) not in known else None
        if inner is None:
            state.append(id(each))
            continue
        known.add(id(each))
        state += (id(type(each)), len(inner))
        waiting.extend(inner)
    return tuple(state)


def _inner(value: Any) -> Sequence[object] | None:
    """What a container holds; None for other values."""
    if is_a(value, dict) and type(value) in _CONTAINERS:
        return [*value, *value.values()]
    if type(value) in _CONTAINERS or is_a(value, tuple):
        return list(value)
    return None if pytree.tree_is_leaf(value) else pytree.tree_leaves(value)


def _private_dicts(values: Mapping[str, Any]) -> dict[str, dict[Any, Any]]:
    return {name: value for name, value in values.items() if type(value) is dict and _is_private(name)}


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _is_symbolic(value: object) -> bool:
    """Whether `value` may stand for data or a size during a capture."""
    return is_a(value, torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)


def _is_helper(cls: type) -> bool:
    """Whether objects of `cls` are neither torch's nor Python's, and may cache tensors in their attributes."""
    others = (torch.Tensor, torch.nn.Module, type, types.FunctionType, types.MethodType, types.ModuleType)
    plain = cls.__module__.partition(".")[0] not in ("builtins", "collections", "torch")
    # NOTE: some classes have no `__dict__`, and others compute it.
    namespace = next((vars(base)["__dict__"] for base in cls.__mro__ if "__dict__" in vars(base)), None)
    has_attributes = isinstance(namespace, types.GetSetDescriptorType) or (namespace is None and bool(_slots(cls)))
    return plain and has_attributes and not issubclass(cls, (*others, enum.Enum, BaseException))


def _slots(cls: type) -> dict[str, types.MemberDescriptorType]:
    """The attributes for which objects of `cls` have their own place, beside `__dict__`."""
    spaces = [vars(base) for base in reversed(cls.__mro__) if "__slots__" in vars(base)]
    return {name: value for space in spaces for name, value in space.items() if isinstance(value, types.MemberDescriptorType)}


def _attributes_of(value: object, *, special: bool = True) -> dict[str, Any]:
    """The attributes of a helper, those in slots included; `special` ones begin with two underscores."""
    # NOTE: not `getattr`, which may run the user's code.
    found = dict(getattr(value, "__dict__", {}))
    for name, slot in _slots(type(value)).items():
        with contextlib.suppress(AttributeError):
            found[name] = slot.__get__(value)
    return found if special else {name: value for name, value in found.items() if not name.startswith("__")}


def _reset(helper: object, attributes: Mapping[str, Any]) -> None:
    """Gives a helper the attributes again that it had."""
    now, slots, others = _attributes_of(helper), _slots(type(helper)), getattr(helper, "__dict__", {})
    for name in now.keys() - attributes.keys():
        slots[name].__delete__(helper) if name in slots else others.pop(name)
    for name in [name for name, value in attributes.items() if name not in now or now[name] is not value]:
        slots[name].__set__(helper, attributes[name]) if name in slots else others.update({name: attributes[name]})


def _assigned(modules: Sequence[tuple[str, torch.nn.Module]], frames: Sequence[Location]) -> set[str]:
    """The names of the attributes that those methods of `modules` assign that are among `frames`."""
    # NOTE: a run without operators leaves no frames.
    ran = collections.defaultdict[tuple[str, str], set[int]](set)
    for frame in frames:
        ran[frame.file, frame.function].add(frame.line or 0)
    codes = {
        code
        for cls in {base for _, module in modules for base in type(module).__mro__}
        for function in vars(cls).values()
        if isinstance(function, types.FunctionType)
        and (code := code_of(function)) is not None
        and (not ran or _may_have_run(function.__name__, code, ran))
    }
    return {name for code in codes for name in stored_attributes(code)}


def _may_have_run(name: str, code: types.CodeType, ran: Mapping[tuple[str, str], set[int]]) -> bool:
    lines = ran.get((code.co_filename, name))
    # NOTE: a function that calls no operator leaves no line, but only its name in another class. Modules are made before a run, though.
    return lines is not None and (name != "__init__" or not lines.isdisjoint(lines_of(code)))


def _containers(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if not name.startswith("__") and type(value) in _CONTAINERS and len(value) <= _LOOKED_AT:
            yield name, value


def _items(value: object) -> Iterator[object]:
    """The contents of `value` and of the containers in it, if it is a Python container."""
    waiting, known, count = collections.deque([value]), set[int](), 0
    while waiting:
        container: Any = waiting.popleft()
        if type(container) not in _CONTAINERS or id(container) in known:
            continue
        known.add(id(container))
        count += len(container)
        if count > _LOOKED_AT:
            return
        items = list(container.values() if isinstance(container, dict) else container)
        waiting.extend(items)
        yield from items
