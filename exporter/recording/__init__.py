"""Runs translations and records the ONNX operators that they call, folded where they are small constants."""

from .folding import FIXED, RANDOM, small_constant, uniform_number
from .operators import Operators, op
from .recorder import Recorder, current, recording
from .semantics import LIMIT
from .signatures import UnknownArgument
from .tensor import PRECISE, SIZE, VECTOR, Tensor

__all__ = [
    "FIXED",
    "LIMIT",
    "PRECISE",
    "RANDOM",
    "SIZE",
    "VECTOR",
    "Operators",
    "Recorder",
    "Tensor",
    "UnknownArgument",
    "current",
    "op",
    "recording",
    "small_constant",
    "uniform_number",
]
