"""ONNX Runtime with torch tensors: sessions, and runs that keep dtypes that numpy lacks."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import from_torch_dtype, to_torch_dtype

from . import files, weights

if TYPE_CHECKING:
    # NOTE: an export that is not verified need not load it.
    import onnxruntime as ort

_BY_BITS = {1: torch.uint8, 2: torch.uint16}


Make: TypeAlias = "Callable[[str | bytes], ort.InferenceSession]"
"""Makes a session from the path of a model, or from its bytes."""


def session(model: ir.Model, path: pathlib.Path | None = None, make: Make | None = None) -> ort.InferenceSession:
    """A session for a saved model, or for one in memory.

    Args:
        model: The model.
        path: Where it was saved, if it was.
        make: Makes the session; None makes one on the CPU.
    """
    make = make or _on_cpu
    if path is not None:
        return make(str(path))
    if weights.total_bytes(model) < weights.PROTOBUF_LIMIT // 2:
        return make(ir.to_proto(model).SerializeToString())
    with tempfile.TemporaryDirectory() as folder:
        saved = pathlib.Path(folder) / "model.onnx"
        files.write(model, saved, external_data=True)
        return make(str(saved))


def _on_cpu(model: str | bytes) -> ort.InferenceSession:
    import onnxruntime as ort

    options = ort.SessionOptions()
    # NOTE: errors are raised; what else it logs would go to the user's terminal unasked.
    options.log_severity_level = 4
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run(runtime: ort.InferenceSession, inputs: Sequence[torch.Tensor | float | bool]) -> list[torch.Tensor]:
    """Runs `inputs` in the order of the session's inputs; returns the outputs in its order. Complex tensors go in as real ones.

    Raises:
        ValueError: There are more or fewer inputs than the model has.
    """
    names = [each.name for each in runtime.get_inputs()]
    if len(inputs) != len(names):
        raise ValueError(f"inputs: expected {len(names)} ({', '.join(names)}), got {len(inputs)}")
    feeds: Mapping[str, ort.OrtValue] = {name: _to_ort(value) for name, value in zip(names, inputs, strict=True)}
    return [_to_torch(value) for value in runtime.run_with_ort_values(None, feeds)]


def _to_ort(value: torch.Tensor | float | bool) -> ort.OrtValue:
    import onnxruntime as ort

    tensor = value if isinstance(value, torch.Tensor) else torch.tensor(value)
    tensor = tensor.detach().cpu()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    tensor = tensor.contiguous()
    try:
        return ort.OrtValue.ortvalue_from_numpy(tensor.numpy())
    except TypeError:
        # bfloat16 and the eight-bit floats, which numpy lacks
        bits = tensor.view(_BY_BITS[tensor.element_size()]).numpy()
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, int(from_torch_dtype(tensor.dtype)))


def _to_torch(value: ort.OrtValue) -> torch.Tensor:
    dtype = to_torch_dtype(ir.DataType(value.element_type()))
    if dtype in (torch.bfloat16,) or (dtype.itemsize == 1 and dtype.is_floating_point):
        return torch.utils.dlpack.from_dlpack(value._ortvalue.to_dlpack()).view(dtype)
    return torch.from_numpy(value.numpy())
