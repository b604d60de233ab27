"""ONNX's reference implementation, and helpers for tests that compare with it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import hypothesis
import numpy as np
import numpy.typing as npt
import onnx
from onnx.reference import ReferenceEvaluator

Array = npt.NDArray[Any]
Draw = Callable[..., Any]

SETTINGS = hypothesis.settings(
    derandomize=True, database=None, deadline=None, max_examples=50, suppress_health_check=list(hypothesis.HealthCheck)
)


def ints(values: Sequence[int]) -> Array:
    """INT64, as shapes and axes are."""
    return np.array(values, dtype=np.int64)


def arrays_are_equal(got: Array, want: Array, ulps: int = 0) -> None:
    """Checks dtype, shape and elements, which may be `ulps` apart; NaN equals NaN."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if ulps and got.dtype.kind == "f":
        known = np.isfinite(want)
        np.testing.assert_array_max_ulp(got[known], want[known], ulps)
        got, want = got[~known], want[~known]
    # NOTE: for numpy, no two NaNs of bfloat16 are equal.
    np.testing.assert_array_equal(*(each.astype(np.float64) if each.dtype.kind == "V" else each for each in (got, want)))


def evaluated(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> Array:
    """The first output of a model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(ReferenceEvaluator(model).run(None, dict(inputs))[0])


def referenced(name: str, inputs: Sequence[Array | None], attributes: Mapping[str, Any]) -> Array:
    """The results of ONNX's reference implementation."""
    if name == "GatherElements" and inputs[0] is not None and inputs[1] is not None:
        # NOTE: the reference needs equal sizes along the other axes, and no negative indices (onnx 1.23).
        data, axis = inputs[0], (attributes["axis"] or 0) % inputs[0].ndim
        cut = tuple(slice(None if each == axis else size) for each, size in enumerate(inputs[1].shape))
        inputs, attributes = [data[cut], inputs[1]], {"axis": axis}
    names = ["" if each is None else f"x{position}" for position, each in enumerate(inputs)]
    while names[-1] == "":
        names.pop()
    node = onnx.helper.make_node(name, names, ["y"], **{key: value for key, value in attributes.items() if value is not None})
    untyped = [onnx.helper.make_tensor_value_info(each, onnx.TensorProto.UNDEFINED, None) for each in (*filter(None, names), "y")]
    model = onnx.helper.make_model(
        onnx.helper.make_graph([node], "one", untyped[:-1], untyped[-1:]), opset_imports=[onnx.helper.make_opsetid("", 18)]
    )
    return evaluated(model, {key: each for key, each in zip(names, inputs, strict=False) if key and each is not None})
