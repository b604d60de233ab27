"""What a model takes and gives, as text."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onnxplain.diagnostics import visible


def signature(graph: ir.Graph) -> Iterator[str]:
    """A line for each input and output: its name, dtype and shape, such as `input x: FLOAT[batch,3]`."""
    for kind, values in ("input", graph.inputs), ("output", graph.outputs):
        for value in values:
            if value.name not in graph.initializers:
                yield visible(f"{kind} {value.name}: {value.dtype}{value.shape}")
