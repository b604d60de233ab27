"""The weights of an ONNX model: which initializers they are, how large, where their data is, and a model without them."""

from .initializers import (
    PROTOBUF_LIMIT,
    apart,
    check_data,
    files_of,
    has_data,
    is_hollow,
    listed,
    of,
    size_of,
    sources,
    state,
    total_bytes,
    without_data,
)
from .restore import restored
from .stored import Stored, version_of
from .tensors import Computed, Weight, as_real, is_stored

__all__ = [
    "PROTOBUF_LIMIT",
    "Computed",
    "Stored",
    "Weight",
    "apart",
    "as_real",
    "check_data",
    "files_of",
    "has_data",
    "is_hollow",
    "is_stored",
    "listed",
    "of",
    "restored",
    "size_of",
    "sources",
    "state",
    "total_bytes",
    "version_of",
    "without_data",
]
