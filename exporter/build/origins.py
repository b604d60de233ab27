"""Where ONNX nodes come from: the FX node in `meta`, and the user's line, the module and the operator in `metadata_props`.

The entries are those that our own tools read, and those that torch.onnx writes, for the tools that read its models
(torch/onnx/_internal/exporter/_core.py in torch 2.13).
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterable

import onnx_ir as ir
import torch

from onnxplain.diagnostics import Location, line_text, privacy_of
from onnxplain.registry import qualified_name
from onnxplain.source import locations
from onnxplain.source.module_calls import ModuleStack, calls_of, module_stack
from onnxplain.torch_internals.operators import OpOverload

_PREFIX = "onnxplain"
"""The prefix of the keys: `.source`, `.module`, `.fx_node`, `.operator`, and `.parent`, the operator that was decomposed into it."""
_TORCH_ONNX = "pkg.torch.onnx"
"""The prefix of torch.onnx's keys."""


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
        """What `metadata_props` of an ONNX node tell of `node`."""
        calls, name, operator = self._module_calls(node), node.name, str(node.target)
        facts = {f"{_PREFIX}.fx_node": name, f"{_PREFIX}.operator": qualified_name(node.target)}
        called = node.meta.get("original_aten")
        if isinstance(called, OpOverload) and called is not node.target:
            facts[f"{_PREFIX}.parent"] = qualified_name(called)
        facts[f"{_PREFIX}.source"], stack = self._stack(node.meta.get("stack_trace") or "")
        facts[f"{_PREFIX}.module"] = calls.path
        facts["namespace"] = f"{calls.namespace}{name}: {operator}"
        facts[f"{_TORCH_ONNX}.class_hierarchy"] = f"[{calls.classes}{operator!r}]"
        facts[f"{_TORCH_ONNX}.name_scopes"] = f"[{calls.paths}{name!r}]"
        facts[f"{_TORCH_ONNX}.stack_trace"] = stack
        return {key: text for key, text in facts.items() if text}

    def _module_calls(self, node: torch.fx.Node) -> _Calls:
        # NOTE: the operators of one module share its texts.
        stack = module_stack(node)
        if stack not in self._calls:
            calls = calls_of(stack)
            self._calls[stack] = _Calls(
                path=calls[-1].path if calls else "",
                namespace="".join(f"{call.path}: {call.class_name}/" for call in calls),
                classes="".join(f"{call.class_name!r}, " for call in calls),
                paths="".join(f"{call.path!r}, " for call in calls),
            )
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
