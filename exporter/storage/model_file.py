"""Writes a model to a file. The weights go into the file, into a second file beside it, or stay in the files where they are."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator, Sequence

import onnx_ir as ir

from onnxplain import weights
from onnxplain.diagnostics import InvalidArgument

from . import single_file
from .paths import data_file

_SMALL = 256
"""The largest weight that stays in the model's file, in bytes: it may be a shape, which readers look at."""


def write(
    model: ir.Model,
    path: pathlib.Path,
    *,
    include_initializers: bool = True,
    keep_initializers_as_inputs: bool = False,
    external_data: bool | None = None,
    references: pathlib.Path | None = None,
) -> None:
    """Writes the model to `path`.

    Args:
        model: The model; it does not change.
        path: The file. External data goes to `<name>.data` beside it.
        include_initializers: False leaves out the weights that a state dict provides, and those without data.
        keep_initializers_as_inputs: Whether these weights are also inputs of the graph.
        external_data: True writes the weights as external data, False never does, None does if one file cannot hold them.
        references: The folder that the model will be in. The model then refers to the weights that already lie in files there.
            None copies all weights.

    Raises:
        InvalidArgument: The model cannot refer to a weight.
        OSError: A file cannot be written.
    """
    if not include_initializers or keep_initializers_as_inputs:
        # NOTE: whoever provides the weights has those of the state dict, by its names and in its layouts.
        model = weights.with_original_weights(model, lambda _: True)
    elif references is not None:
        model = weights.with_original_weights(model, weights.is_stored)
    values = weights.in_state_dict(model)
    with contextlib.ExitStack() as stack:
        if not include_initializers:
            stack.enter_context(weights.set_aside(model, values, as_inputs=keep_initializers_as_inputs))
        elif keep_initializers_as_inputs:
            # NOTE: the model is a copy here.
            model.graph.inputs.extend(values)
        if references is not None:
            _refer(model, references)
        large = [value for value in weights.of(model) if weights.size_of(value) > _SMALL]
        if large and (external_data or (external_data is None and weights.total_bytes(model) > weights.PROTOBUF_LIMIT)):
            tensors = [value.const_value for value in large if value.const_value is not None]
            outside = ir.external_data.convert_tensors_to_external(tensors, path.parent, data_file(path).name)
            stack.enter_context(_exchanged(large, outside))
        single_file.write(model, path)


@contextlib.contextmanager
def _exchanged(values: Sequence[ir.Value], tensors: Sequence[ir.TensorProtocol]) -> Iterator[None]:
    """Gives initializers other tensors; gives them their own back at the end."""
    before = [value.const_value for value in values]
    try:
        for value, tensor in zip(values, tensors, strict=True):
            value.const_value = tensor
        yield
    finally:
        for value, known in zip(values, before, strict=True):
            value.const_value = known


def _refer(model: ir.Model, folder: pathlib.Path) -> None:
    """Turns the weights that lie in files into external data there. `model` is a copy that nobody else has."""
    for value in weights.of(model):
        stored = value.const_value.stored if isinstance(value.const_value, weights.Weight) else None
        if stored is None or stored.nbytes == 0:
            continue
        location = _location(stored.path, folder)
        if not stored.is_contiguous:
            raise InvalidArgument(f"weights: expected 'copy', got 'reference': {value.name!r} does not lie in one piece in {location!r}")
        tensor = value.const_value
        assert tensor is not None
        shape, name = ir.Shape(tensor.shape.numpy()), value.name or ""
        value.const_value = ir.ExternalTensor(location, stored.offset, stored.nbytes, tensor.dtype, shape=shape, name=name, base_dir=folder)


def _location(file: pathlib.Path, folder: pathlib.Path) -> str:
    """The path from a model's folder to a file with weights.

    ONNX Runtime 1.31 and onnx 1.23 read external data only below the model's folder, after they follow links. onnx refuses a file with
    several hard links.

    Raises:
        InvalidArgument: A reader of ONNX would refuse the file.
    """
    real, base = file.resolve(), folder.resolve()
    if not real.is_relative_to(base):
        raise InvalidArgument(
            f"weights: expected 'copy', got 'reference': {str(real)!r} is not in the model's folder {str(base)!r}, and readers of ONNX "
            "follow no other path; save the model beside the weights"
        )
    if real.stat().st_nlink > 1:
        raise InvalidArgument(
            f"weights: expected 'copy', got 'reference': {str(real)!r} has several hard links, which readers of ONNX refuse"
        )
    return real.relative_to(base).as_posix()
