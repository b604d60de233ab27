"""Where ONNX nodes come from: the FX node in `meta`, and the user's line, the module and the operator in `metadata_props`.

The entries are those that our own tools read, and those that torch.onnx writes, for the tools that read its models
(torch/onnx/_internal/exporter/_core.py in torch 2.13).
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterable
from typing import Any

import onnx_ir as ir
import torch

from onnxplain.diagnostics import Location, line_text, privacy_of
from onnxplain.registry import qualified_name
from onnxplain.source import locations
from onnxplain.source.module_calls import path_and_class
from onnxplain.torch_internals.operators import OpOverload


@dataclasses.dataclass(slots=True)
class _Calls:
    """What the entries of all operators in a module call have in common: the module's path, and the beginnings of three entries."""

    path: str
    namespace: str
    classes: str
    paths: str


_NO_CALLS = _Calls("", "", "", "")


class Origins:
    """Records where ONNX nodes come from.

    Args:
        folder: The current folder. Paths of sources are as in a report: relative to it below the checkout, relative to `site-packages`, or
            the name alone. None if there is no such folder.
    """

    def __init__(self, folder: pathlib.Path | None) -> None:
        self._folder = folder
        self._paths: dict[str, str] = {}
        self._calls: dict[tuple[tuple[str, type | str], ...], _Calls] = {(): _NO_CALLS}
        self._targets: dict[Any, tuple[str, str]] = {}
        self._stacks: dict[str, tuple[str, str]] = {}

    def add(self, node: torch.fx.Node, made: Iterable[ir.Node]) -> None:
        """Records `node` as the origin of ONNX nodes."""
        entries = self.of(node)
        for each in made:
            # NOTE: the nodes in a graph of control flow already have their origins.
            if locations.FX_NODE not in each.meta:
                each.meta[locations.FX_NODE] = node
                each.metadata_props.update(entries)

    def of(self, node: torch.fx.Node) -> dict[str, str]:
        """What `metadata_props` of an ONNX node tell of `node`. The parent is the operator that was decomposed into it."""
        # NOTE: each operator of a model comes here, also those of layers that are copied.
        name, target, meta = node.name, node.target, node.meta
        stack = meta.get("nn_module_stack")
        calls = self._calls_of(tuple(stack.values())) if stack else _NO_CALLS
        qualified, operator = self._targets.get(target) or self._texts_of(target)
        facts = {"onnxplain.fx_node": name, "onnxplain.operator": qualified}
        called = meta.get("original_aten")
        if called is not None and called is not target and isinstance(called, OpOverload):
            facts["onnxplain.parent"] = qualified_name(called)
        trace = meta.get("stack_trace") or ""
        source, frames = self._stacks.get(trace) or self._texts_of_stack(trace)
        if source:
            facts["onnxplain.source"] = source
        if calls.path:
            facts["onnxplain.module"] = calls.path
        facts["namespace"] = f"{calls.namespace}{name}: {operator}"
        facts["pkg.torch.onnx.class_hierarchy"] = f"[{calls.classes}{operator!r}]"
        facts["pkg.torch.onnx.name_scopes"] = f"[{calls.paths}{name!r}]"
        if frames:
            facts["pkg.torch.onnx.stack_trace"] = frames
        return facts

    def _texts_of(self, target: Any) -> tuple[str, str]:
        self._targets[target] = texts = qualified_name(target), str(target)
        return texts

    def _calls_of(self, entries: tuple[tuple[str, type | str], ...]) -> _Calls:
        """The texts for the paths and classes that torch.export records of the calls around an operator, outermost first."""
        found = self._calls.get(entries)
        if found is None:
            found = self._calls[entries] = self._within(self._calls_of(entries[:-1]), *entries[-1])
        return found

    @staticmethod
    def _within(outer: _Calls, path: str, cls: type | str) -> _Calls:
        """The texts for a call within another one."""
        call = path_and_class(path, cls)
        if call is None:
            return outer
        path, name = call
        return _Calls(path, f"{outer.namespace}{path}: {name}/", f"{outer.classes}{name!r}, ", f"{outer.paths}{path!r}, ")

    def _texts_of_stack(self, trace: str) -> tuple[str, str]:
        """The file and the line of the user's code in the text of a stack, and the stack without the frames of torch; empty without one."""
        # NOTE: the operators of a decomposition, and those of repeated layers, share their stacks.
        evidence = locations.at_stack(locations.in_trace(trace))
        place = evidence.location
        source = f"{self._path(place.file)}:{place.line}" if place is not None and place.file else ""
        self._stacks[trace] = texts = source, "\n  ".join(map(self._frame, evidence.stack))
        return texts

    def _frame(self, frame: Location) -> str:
        code = line_text(frame.file, frame.line).strip() if frame.line else ""
        text = f'File "{self._path(frame.file)}", line {frame.line}, in {frame.function}'
        return f"{text}\n    {code}" if code else text

    def _path(self, file: str) -> str:
        # NOTE: a model has thousands of nodes from a few files, and where a file lies takes several calls of the system.
        if file not in self._paths:
            name = pathlib.PurePath(file).name
            self._paths[file] = privacy_of(self._folder).path(file, self._folder) if self._folder else name
        return self._paths[file]
