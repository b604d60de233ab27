"""`dynamic_shapes` as Python source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from torch.export import Dim

from onnxplain.torch_internals.dim_entries import Hint


def code(shapes: Any) -> str:
    """`shapes` as Python to paste: the definitions of its named dims, then the structure."""
    named: dict[str, Dim] = {}
    text = expression(shapes, named)
    lines = [f"{name} = {definition(dim)}" for name, dim in named.items()]
    return "\n".join([*lines, f"dynamic_shapes = {text}"])


def expression(spec: Any, named: dict[str, Dim]) -> str:
    """`spec` as an expression with named dims by name. Adds these dims to `named`."""
    if isinstance(spec, Mapping):
        return "{" + ", ".join(f"{key(each)}: {expression(part, named)}" for each, part in spec.items()) + "}"
    if isinstance(spec, list):
        return "[" + ", ".join(expression(each, named) for each in spec) + "]"
    if isinstance(spec, tuple) and hasattr(spec, "_fields"):
        return f"{type(spec).__name__}({', '.join(expression(each, named) for each in spec)})"
    if isinstance(spec, tuple):
        return "(" + "".join(f"{expression(each, named)}, " for each in spec).removesuffix(" ") + ")"
    if isinstance(spec, Dim):
        root = getattr(spec, "root", spec)
        named.setdefault(root.__name__, root)
        return str(spec.__name__)
    if isinstance(spec, Hint):
        bounds = _bounds(spec.min, spec.max)
        return f"torch.export.Dim.{spec.type.name}" + (f"({bounds})" if bounds else "")
    return key(spec)


def key(value: Any) -> str:
    """The key of a dict, or another entry. Texts are in double quotes, as users mostly write them."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def definition(dim: Dim) -> str:
    """The expression that makes `dim`."""
    if (root := getattr(dim, "root", None)) is not None:
        # NOTE: torch names a derived dim after its formula, such as `2*_n` (torch 2.11 to 2.15).
        return dim.__name__.replace(root.__name__, definition(root)).replace("*", " * ")
    bounds = _bounds(dim.min or None, dim.max)
    return f'torch.export.Dim("{dim.__name__}"' + (f", {bounds})" if bounds else ")")


def _bounds(least: Any, most: Any) -> str:
    # NOTE: torch's infinity is not an int.
    return ", ".join(f"{name}={bound}" for name, bound in (("min", least), ("max", most)) if isinstance(bound, int))
