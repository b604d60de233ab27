"""Attributes of the user's modules that `forward` changes: the exported model keeps nothing from one run to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from onnxplain import where
from onnxplain.diagnostics import DiagnosticContext, Evidence
from onnxplain.rules import AttributeChanged

from . import watch

_State = dict[str, tuple[int, ...]]


class Attributes:
    """The attributes of the user's modules as they are now, tensors that torch keeps apart left out.

    Args:
        model: The model.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        classes: dict[type, bool] = {}
        self._modules = []
        for path, module in model.named_modules():
            cls = type(module)
            if cls not in classes:
                # NOTE: not `cls.forward`, which torch.jit's classes compute.
                forward = next((vars(base)["forward"] for base in cls.__mro__ if "forward" in vars(base)), None)
                code = getattr(forward, "__code__", None)
                classes[cls] = code is not None and where.origin(code.co_filename) is where.Origin.USER
            if classes[cls]:
                self._modules.append((path, module))
        self._values = [dict(vars(module)) for _, module in self._modules]
        self._contents = {id(value): (value, value.copy()) for values in self._values for value in _containers(values)}
        self._before = self._state()

    def report(self, context: DiagnosticContext, again: Callable[[], object]) -> None:
        """Reports the user's lines that changed an attribute since this was made, and puts all of them back.

        Args:
            context: The context.
            again: Runs the model once more, watched: only then it is known which line did it.
        """
        changed = [name for name, state in self._state().items() if self._before.get(name) != state]
        self.put_back()
        if not changed:
            return

        def states() -> Mapping[str, object]:
            now = self._state()
            return {name: now.get(name) for name in changed}

        seen = watch.changes(again, states)
        self.put_back()
        for name, place in dict.fromkeys(seen):
            context.report(AttributeChanged(attribute=name), at=Evidence(place))

    def _state(self) -> _State:
        """Something for each attribute that is another thing when the attribute is."""
        return {
            f"{path}.{name}" if path else name: (id(value), *map(id, _items(value)))
            for path, module in self._modules
            for name, value in vars(module).items()
            if not name.startswith("_")
        }

    def put_back(self) -> None:
        """Makes all attributes what they were."""
        for (_, module), values in zip(self._modules, self._values, strict=True):
            now = vars(module)
            for name in now.keys() - values.keys():
                del now[name]
            now.update({name: value for name, value in values.items() if now.get(name) is not value})
        for value, content in self._contents.values():
            if [*map(id, _items(value))] != [*map(id, _items(content))]:
                value.clear()
                value.extend(content) if isinstance(value, list) else value.update(content)


def _containers(values: dict[str, Any]) -> Iterator[Any]:
    return (value for name, value in values.items() if not name.startswith("_") and type(value) in (list, dict, set))


def _items(value: object) -> Iterator[object]:
    """What is in `value`, if it is a container of Python's."""
    if type(value) is dict:
        yield from value.values()
    elif type(value) in (list, set):
        yield from value  # type: ignore[misc]
