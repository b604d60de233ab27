"""What an export does to the process while it runs, and puts back: garbage collection, console output, the capture flag."""

from .capture_flag import capturing, is_in_onnx_export
from .console_output import kept
from .garbage_collection import without_collection

__all__ = ["capturing", "is_in_onnx_export", "kept", "without_collection"]
