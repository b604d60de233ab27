"""The request of an export: its arguments as one frozen value, the example inputs, and which of their dims are dynamic."""

from . import containers
from .binding import fake_inputs, fitted, flat_inputs, signature_of
from .dim_names import DimNames
from .dynamic_axes import MisfitAxes, as_shapes, misfit
from .dynamic_shapes import DynamicShapes, InputDim, Kind
from .inputs import copied
from .request import CONTROL_FLOW, DEFAULT_OPSET, Request
from .strategies import STRATEGIES, FXGraphExtractor, checked_strategies
from .value_names import input_names, output_names

__all__ = [
    "CONTROL_FLOW",
    "DEFAULT_OPSET",
    "STRATEGIES",
    "DimNames",
    "DynamicShapes",
    "FXGraphExtractor",
    "InputDim",
    "Kind",
    "MisfitAxes",
    "Request",
    "as_shapes",
    "checked_strategies",
    "containers",
    "copied",
    "fake_inputs",
    "fitted",
    "flat_inputs",
    "input_names",
    "misfit",
    "output_names",
    "signature_of",
]
