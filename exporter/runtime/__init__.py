"""Runs exported models on torch tensors: in ONNX Runtime, in ONNX's reference evaluator, and beside eager PyTorch to compare the two."""

from .options import ONNXRuntimeOptions
from .profiling import Profile, ProfileRow, profile
from .reference import run_reference
from .sessions import MakeSession, run, session
from .verification import Verification, difference_text, sizes_text, verify

__all__ = [
    "MakeSession",
    "ONNXRuntimeOptions",
    "Profile",
    "ProfileRow",
    "Verification",
    "difference_text",
    "profile",
    "run",
    "run_reference",
    "session",
    "sizes_text",
    "verify",
]
