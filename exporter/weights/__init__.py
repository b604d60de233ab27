"""The weights of an ONNX model: which initializers they are, where their data is, and how a state dict or a checkpoint gives them data."""

from .initializers import (
    PROTOBUF_LIMIT,
    check_data,
    files_of,
    has_data,
    in_state_dict,
    lacks_all_data,
    names_without_data,
    of,
    set_aside,
    size_of,
    total_bytes,
)
from .original_weights import with_original_weights
from .state_dict import apply
from .tensors import Computed, Formula, Weight, as_real, is_stored

__all__ = [
    "PROTOBUF_LIMIT",
    "Computed",
    "Formula",
    "Weight",
    "apply",
    "as_real",
    "check_data",
    "files_of",
    "has_data",
    "in_state_dict",
    "is_stored",
    "lacks_all_data",
    "names_without_data",
    "of",
    "set_aside",
    "size_of",
    "total_bytes",
    "with_original_weights",
]
