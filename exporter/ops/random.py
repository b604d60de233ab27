"""Random numbers. The generator is the runtime's: no seed gives PyTorch's numbers."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxplain.recording import op

from . import translates


@translates("aten::multinomial")
def multinomial(self: ir.Value, num_samples: int, replacement: bool = False) -> Any:
    """aten::multinomial(Tensor self, int num_samples, bool replacement, ...) of weights (N) or (B, N). ONNX draws with replacement only."""
    assert self.shape is not None
    if num_samples > 1 and not replacement:
        raise ValueError("ONNX draws with replacement only")
    single = len(self.shape) == 1
    scores = op.Log(op.Unsqueeze(self, [0]) if single else self)
    drawn = op.Multinomial(scores, dtype=int(ir.DataType.INT64), sample_size=num_samples)
    return op.Squeeze(drawn, [0]) if single else drawn
