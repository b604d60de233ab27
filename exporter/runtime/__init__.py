"""ONNX Runtime: sessions with torch tensors, and the comparison with eager PyTorch."""

from .sessions import Make, ONNXRuntimeOptions, as_real, run, session
from .verification import verify

__all__ = ["Make", "ONNXRuntimeOptions", "as_real", "run", "session", "verify"]
