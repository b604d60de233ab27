"""Sessions of ONNX Runtime, and runs on torch tensors that keep the dtypes that numpy lacks."""

from __future__ import annotations

import ctypes
import pathlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import from_torch_dtype, to_torch_dtype

from onnxplain import weights
from onnxplain.diagnostics import InvalidArgument

from .options import ONNXRuntimeOptions

if TYPE_CHECKING:
    # NOTE: an export that is not verified does not load ONNX Runtime.
    import onnxruntime as ort

_UNSIGNED = {1: torch.uint8, 2: torch.uint16}
"""For each size in bytes, the dtype that stands for one that numpy lacks."""

MakeSession: TypeAlias = "Callable[[str | bytes], ort.InferenceSession]"
"""Makes a session from the path or the bytes of a model."""

WriteModel: TypeAlias = "Callable[[ir.Model, pathlib.Path], None]"
"""Writes a model to a file, and its weights to another file beside it."""


def session(
    model: ir.Model, path: pathlib.Path | None = None, make: MakeSession | None = None, *, write: WriteModel
) -> ort.InferenceSession:
    """A session for a saved model, or for one in memory.

    Args:
        model: The model.
        path: Where the model was saved, if it was.
        make: Makes the session; None makes one on the CPU.
        write: Writes a model that was not saved and is too large for one protobuf message.
    """
    make = make or ONNXRuntimeOptions().make
    if path is not None:
        return make(str(path))
    if weights.total_bytes(model) < weights.PROTOBUF_LIMIT // 2:
        return make(ir.to_proto(model).SerializeToString())
    with tempfile.TemporaryDirectory() as folder:
        saved = pathlib.Path(folder) / "model.onnx"
        write(model, saved)
        return make(str(saved))


def run(runtime: ort.InferenceSession, inputs: Sequence[torch.Tensor | complex]) -> list[torch.Tensor]:
    """Runs a model.

    Args:
        runtime: The session.
        inputs: Tensors and numbers in the order of the session's inputs. Complex ones become real, with a last dim of size 2.

    Returns:
        The outputs in the order of the session's outputs, on the CPU.

    Raises:
        InvalidArgument: The model has more or fewer inputs.
    """
    names = [each.name for each in runtime.get_inputs()]
    if len(inputs) != len(names):
        raise InvalidArgument(f"inputs: expected {len(names)} ({', '.join(names)}), got {len(inputs)}")
    feeds: Mapping[str, ort.OrtValue] = {name: _to_ort(value) for name, value in zip(names, inputs, strict=True)}
    return [_to_torch(value) for value in runtime.run_with_ort_values(None, feeds)]


def _to_ort(value: torch.Tensor | complex) -> ort.OrtValue:
    import onnxruntime as ort

    tensor = weights.as_real(torch.as_tensor(value)).detach().cpu().contiguous()
    try:
        return ort.OrtValue.ortvalue_from_numpy(tensor.numpy())
    except TypeError:
        # NOTE: numpy lacks bfloat16 and the eight-bit floats.
        bits = tensor.view(_UNSIGNED[tensor.element_size()]).numpy()
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, int(from_torch_dtype(tensor.dtype)))


def _to_torch(value: ort.OrtValue) -> torch.Tensor:
    dtype, shape = to_torch_dtype(ir.DataType(value.element_type())), value.shape()
    if dtype is not torch.bfloat16 and not (dtype.itemsize == 1 and dtype.is_floating_point):
        array = value.numpy()
        # NOTE: numpy has two names for eight bytes without a sign, and torch knows one.
        return torch.from_numpy(array.view("u8") if dtype is torch.uint64 else array)
    # NOTE: neither numpy nor, for the eight-bit floats, DLPack has these dtypes. The outputs of a session are in main memory.
    size = value.tensor_size_in_bytes()
    data = bytearray((ctypes.c_uint8 * size).from_address(value.data_ptr()))
    return torch.frombuffer(data, dtype=dtype).reshape(shape) if size else torch.empty(shape, dtype=dtype)
