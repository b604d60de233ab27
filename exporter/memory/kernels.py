"""How ONNX Runtime's CPU kernels use memory, as far as it decides a model's peak."""

from __future__ import annotations

from collections.abc import Mapping

# NOTE: measured with ONNX Runtime 1.31: each operator after an Exp whose result nothing else reads, with every allocation counted.
VIEWS = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"})
"""Their result is their first input with another shape, in the same memory."""

IN_PLACE = frozenset(
    [
        "Cast",
        "Celu",
        "Clip",
        "Elu",
        "HardSigmoid",
        "LeakyRelu",
        "LogSoftmax",
        "Relu",
        "Selu",
        "Sigmoid",
        "Softmax",
        "Softplus",
        "Softsign",
        "Tanh",
        "ThresholdedRelu",
        "Trilu",
    ]
)
"""Their result takes the place of their first input, if nothing else needs it any more and it has as many bytes."""

WORKSPACE: Mapping[str, int] = {"Where": 2, "LSTM": 4, "GRU": 3}
"""What they allocate while they run, in multiples of their first result."""
