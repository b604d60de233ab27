"""The names of functions and of their calls."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

import onnx_ir as ir

from onnxplain.source.module_calls import ModuleCall

from .regions import Region

_STANDARD = ("ai.onnx", "com.microsoft")
"""The beginnings of domains whose operators runtimes know."""


class Names:
    """Finds names that a model does not have yet.

    Args:
        model: The model.
        around: For calls, by their keys, the calls around them that become functions later.
    """

    def __init__(self, model: ir.Model, around: Mapping[str, ModuleCall]) -> None:
        self._reserved = set(model.graph.opset_imports)
        self._functions: set[tuple[str, str]] = set()
        self._calls: set[tuple[str | None, str]] = {(None, node.name or "") for node in model.graph}
        self._around = around

    def of_function(self, class_name: str) -> tuple[str, str]:
        """The domain and the name of a function for a class: of two structures of one class, the second is called `Linear_1`.

        Args:
            class_name: Its name with its Python module. Characters that are no ASCII letters, digits, `_` become `_`.
        """
        *module, name = (_identifier(part) for part in class_name.split(".") if part != "<locals>")
        domain = ".".join(module) or "model"
        if domain in self._reserved or domain.startswith(_STANDARD):
            domain = f"pkg.{domain}"
        free = next(each for each in _numbered(name) if (domain, each) not in self._functions)
        self._functions.add((domain, free))
        return domain, free

    def of_call(self, region: Region) -> str:
        """The name of the node that calls the function of a region: the module's path within the module around it."""
        assert region.call is not None
        around = (region.parent and region.parent.call) or self._around.get(region.call.key)
        key = None if around is None else around.key
        path = region.call.path if around is None else region.call.path.removeprefix(f"{around.path}.")
        free = next(each for each in _numbered(path) if (key, each) not in self._calls)
        self._calls.add((key, free))
        return free


def _identifier(text: str) -> str:
    made = re.sub(r"\W", "_", text, flags=re.ASCII)
    return made if made and not made[0].isdigit() else f"_{made}"


def _numbered(name: str) -> itertools.chain[str]:
    return itertools.chain([name], (f"{name}_{index}" for index in itertools.count(1)))
