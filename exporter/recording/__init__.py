"""Runs translations and records the ONNX operators that they call, folded where they are small constants."""

from .folding import FIXED, LIMIT, RANDOM
from .recorder import VECTOR, Operators, Recorder, Tensor, UnknownArgument, current, op, recording

__all__ = ["FIXED", "LIMIT", "RANDOM", "VECTOR", "Operators", "Recorder", "Tensor", "UnknownArgument", "current", "op", "recording"]
