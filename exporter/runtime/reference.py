"""ONNX's reference evaluator on torch tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import TorchTensor, to_torch_dtype

from onnxplain import weights


def run_reference(model: onnx.ModelProto, inputs: Sequence[torch.Tensor | complex]) -> list[torch.Tensor]:
    """Runs a model in NumPy, slowly.

    Args:
        model: The model with its weights.
        inputs: Tensors and numbers in the order of the model's inputs. Complex ones become real, with a last dim of size 2.

    Returns:
        The outputs in the model's order, on the CPU.
    """
    from onnx.reference import ReferenceEvaluator

    tensors = zip(model.graph.input, inputs, strict=True)
    feeds = {given.name: TorchTensor(weights.as_real(torch.as_tensor(value)).detach().cpu()).numpy() for given, value in tensors}
    return [as_tensor(np.asarray(each)) for each in ReferenceEvaluator(model).run(None, feeds)]


def as_tensor(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """The tensor with the memory of an array."""
    # NOTE: numpy lacks bfloat16 and the eight-bit floats, which ml_dtypes registers. torch knows them by their bits.
    return torch.from_numpy(array.view(f"u{array.itemsize}")).view(to_torch_dtype(ir.DataType.from_numpy(array.dtype)))
