"""The request of an export: its arguments as one frozen value, the example inputs, and which of their dims are dynamic."""

from . import containers, inputs, shapes_source
from .binding import constant_of, example_shapes, fake_inputs, fitted, flat_inputs, is_constant, signature_of
from .checks import (
    check_inputs,
    checked,
    checked_choice,
    checked_model,
    checked_names,
    checked_shapes,
    checked_sizes,
    checked_subject,
    unknown_argument,
)
from .dim_names import DimNames
from .dynamic_axes import MisfitAxes, WrongEntry, as_shapes, misfit
from .dynamic_shapes import DynamicShapes, InputDim, Kind
from .inputs import copied, is_dense, with_keywords
from .module_functions import FUNCTIONS, ModuleFunctions, checked_functions
from .request import CONTROL_FLOW, DEFAULT_OPSET, VERIFY_SIZES, Request
from .shapes_mirrored import part
from .strategies import STRATEGIES, FXGraphExtractor, checked_strategies
from .value_names import input_names, output_names

__all__ = [
    "CONTROL_FLOW",
    "DEFAULT_OPSET",
    "FUNCTIONS",
    "STRATEGIES",
    "VERIFY_SIZES",
    "DimNames",
    "DynamicShapes",
    "FXGraphExtractor",
    "InputDim",
    "Kind",
    "MisfitAxes",
    "ModuleFunctions",
    "Request",
    "WrongEntry",
    "as_shapes",
    "check_inputs",
    "checked",
    "checked_choice",
    "checked_functions",
    "checked_model",
    "checked_names",
    "checked_shapes",
    "checked_sizes",
    "checked_strategies",
    "checked_subject",
    "constant_of",
    "containers",
    "copied",
    "example_shapes",
    "fake_inputs",
    "fitted",
    "flat_inputs",
    "input_names",
    "inputs",
    "is_constant",
    "is_dense",
    "misfit",
    "output_names",
    "part",
    "shapes_source",
    "signature_of",
    "unknown_argument",
    "with_keywords",
]
