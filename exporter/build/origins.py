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
from onnxplain.source.module_calls import ModuleStack, calls_of, module_stack
from onnxplain.torch_internals.operators import OpOverload


@dataclasses.dataclass(frozen=True, slots=True)
class _Calls:
    """What the entries of all operators in a module call have in common: the module's path, and the beginnings of three entries."""

    path: str
    namespace: str
    classes: str
    paths: str


class Origins:
    """Records where ONNX nodes come from.

    Args:
        folder: The current folder. Paths of sources are as in a report: relative to it below the checkout, relative to `site-packages`, or
            the name alone. None if there is no such folder.
    """

    def __init__(self, folder: pathlib.Path | None) -> None:
        self._folder = folder
        self._paths: dict[str, str] = {}
        self._calls: dict[ModuleStack, _Calls] = {}
        self._targets: dict[Any, tuple[str, str]] = {}
        self._before: tuple[object, _Calls] = None, _Calls("", "", "", "")
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
        calls, name, target, meta = self._module_calls(node), node.name, node.target, node.meta
        qualified, operator = self._targets.get(target) or self._texts_of(target)
        facts = {"onnxplain.fx_node": name, "onnxplain.operator": qualified}
        called = meta.get("original_aten")
        if called is not target and isinstance(called, OpOverload):
            facts["onnxplain.parent"] = qualified_name(called)
        source, stack = self._stack(meta.get("stack_trace") or "")
        if source:
            facts["onnxplain.source"] = source
        if calls.path:
            facts["onnxplain.module"] = calls.path
        facts["namespace"] = f"{calls.namespace}{name}: {operator}"
        facts["pkg.torch.onnx.class_hierarchy"] = f"[{calls.classes}{operator!r}]"
        facts["pkg.torch.onnx.name_scopes"] = f"[{calls.paths}{name!r}]"
        if stack:
            facts["pkg.torch.onnx.stack_trace"] = stack
        return facts

    def _texts_of(self, target: Any) -> tuple[str, str]:
        self._targets[target] = texts = qualified_name(target), str(target)
        return texts

    def _module_calls(self, node: torch.fx.Node) -> _Calls:
        # NOTE: the operators of one module share its texts, and most of them follow one another.
        entries = node.meta.get("nn_module_stack")
        if entries == self._before[0]:
            return self._before[1]
        stack = module_stack(node)
        if stack not in self._calls:
            calls = calls_of(stack)
            self._calls[stack] = _Calls(
                path=calls[-1].path if calls else "",
                namespace="".join(f"{call.path}: {call.class_name}/" for call in calls),
                classes="".join(f"{call.class_name!r}, " for call in calls),
                paths="".join(f"{call.path!r}, " for call in calls),
            )
        self._before = entries, self._calls[stack]
        return self._calls[stack]

    def _stack(self, trace: str) -> tuple[str, str]:
        """The file and the line of the user's code in the text of a stack, and the stack without the frames of torch; empty without one."""
        # NOTE: the operators of a decomposition, and those of repeated layers, share their stacks.
        if trace not in self._stacks:
            evidence = locations.at_stack(locations.in_trace(trace))
            place = evidence.location
            source = f"{self._path(place.file)}:{place.line}" if place is not None and place.file else ""
            self._stacks[trace] = source, "\n  ".join(map(self._frame, evidence.stack))
        return self._stacks[trace]

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
