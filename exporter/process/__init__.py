"""What an export does to the process while it runs, and puts back: garbage collection, console output, the capture flag, the lock."""

from .capture_flag import capturing, is_in_onnx_export
from .console_output import kept
from .export_lock import exporting
from .garbage_collection import without_collection

__all__ = ["capturing", "exporting", "is_in_onnx_export", "kept", "without_collection"]
