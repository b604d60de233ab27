"""What an export changes in the process and restores, such as flags, limits and random numbers. Its budget, and the software's versions."""

from .autocast import autocast_devices, without_autocast
from .budget import Budget, BudgetSpent, Stopped, Stopwatch
from .capture_flag import capturing, is_in_onnx_export
from .console_output import kept, user_heard
from .exits import exits_as_errors
from .export_lock import exporting
from .float32_precision import exact_float32
from .garbage_collection import without_collection
from .gpu_assertions import gpu_assertions_raised
from .gradient_mode import as_model_allows
from .native_output import errors_read
from .native_output import is_readable as errors_readable
from .random_numbers import random_numbers_kept
from .recursion import deeper_calls
from .sampling import sampled
from .versions import versions

__all__ = [
    "Budget",
    "BudgetSpent",
    "Stopped",
    "Stopwatch",
    "as_model_allows",
    "autocast_devices",
    "capturing",
    "deeper_calls",
    "errors_read",
    "errors_readable",
    "exact_float32",
    "exits_as_errors",
    "exporting",
    "gpu_assertions_raised",
    "is_in_onnx_export",
    "kept",
    "random_numbers_kept",
    "sampled",
    "user_heard",
    "versions",
    "without_autocast",
    "without_collection",
]
