"""ONNX's operators as functions. A call goes to the recorder that is running."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import onnx_ir as ir

from .signatures import newest


class Recording(Protocol):
    """What records calls of operators."""

    def call(self, signature: ir.schemas.OpSignature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Records one ONNX operator. Returns its output, or a list of outputs."""


running: list[Recording] = []
"""The recorders whose translations run, the innermost last."""


class Operators:
    """The operators of ONNX opset 18 by name, and the operators that later opsets added: `op.Add(a, b)`."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        signature = newest(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return running[-1].call(signature, args, kwargs)

        setattr(self, name, call)
        return call


op = Operators()
