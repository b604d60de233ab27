"""Nodes and values that are copies. Their `meta` is made when somebody asks for it: few do, and a deep model has thousands of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnxplain.source import locations


class _Copy:
    """What makes `meta` late.

    Attributes:
        operator: The operator that `meta` will name; None once it does, or if there is none.
    """

    __slots__ = ()
    operator: torch.fx.Node | None

    @property
    def meta(self) -> Any:
        made, operator = super().meta, self.operator  # type: ignore[misc]  # the class beside this one has it
        if operator is not None:
            made[locations.FX_NODE] = operator
            self.operator = None  # type: ignore[misc]  # its subclasses have the slot
        return made


_FIELDS = frozenset(
    {
        *("_attributes", "_domain", "_graph", "_inputs", "_metadata", "_metadata_props", "_name", "_op_type", "_outputs", "_overload"),
        *("_version", "device_configurations", "doc_string"),
    }
)
"""The fields of a node (read in onnx_ir 1.1)."""

_IS_KNOWN = (
    frozenset(ir.Node.__slots__) == _FIELDS
    and vars(ir.Node("", "Identity", []).attributes).keys() == {"data", "_owner"}
    and hasattr(ir.Value, "_add_usage")
)
"""Whether these are all. If not, the constructor makes the copies. It takes twice the time, since it looks at what a copy has in common."""


class CopiedNode(_Copy, ir.Node):  # type: ignore[override]  # the protocol of onnx_ir has an attribute `meta`
    """A copy of a node.

    Args:
        pattern: The node that it is a copy of.
        inputs: Its inputs.
        outputs: Its outputs, which no other node has.
        name: Its name.
        facts: Its `metadata_props`.
        operator: The operator that `meta` will name.
    """

    __slots__ = ("operator",)

    def __init__(
        self,
        pattern: ir.Node,
        inputs: Sequence[ir.Value | None],
        outputs: Sequence[CopiedValue],
        name: str,
        facts: dict[str, str],
        operator: torch.fx.Node,
    ) -> None:
        self.operator = operator
        if not _IS_KNOWN:
            attributes, version = pattern.attributes, pattern.version
            super().__init__(
                pattern.domain, pattern.op_type, inputs, attributes, outputs=outputs, version=version, name=name, metadata_props=facts
            )
            return
        self._domain, self._op_type, self._overload, self._version = pattern.domain, pattern.op_type, pattern.overload, pattern.version
        self._name, self._metadata_props, self._metadata, self._graph, self.doc_string = name, facts, None, None, None
        self.device_configurations = ()
        self._inputs, self._outputs = tuple(inputs), tuple(outputs)
        kind = type(pattern.attributes)
        self._attributes = kind.__new__(kind)
        self._attributes.data, self._attributes._owner = pattern.attributes.data.copy(), self  # noqa: SLF001  as its constructor does
        for index, value in enumerate(outputs):
            value.is_made_by(self, index)
        for index, read in enumerate(inputs):
            if read is not None:
                read._add_usage(self, index)  # noqa: SLF001  as the constructor of a node does


class CopiedValue(_Copy, ir.Value):  # type: ignore[override]  # as above
    """A copy of a value."""

    __slots__ = ("operator",)

    def is_made_by(self, node: ir.Node, index: int) -> None:
        """Makes the value an output of a node."""
        self._producer, self._index = node, index
