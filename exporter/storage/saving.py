"""`ONNXProgram.save`: what is asked for is checked, then written, whole or not at all."""

from __future__ import annotations

import io
import os
import pathlib
import shutil
import tempfile
from typing import Any, BinaryIO, Literal

import onnx_ir as ir

from onnxplain import weights as model_weights
from onnxplain.diagnostics import InvalidArgument

from . import model_file, paths
from .staging import Staging


def save(
    model: ir.Model,
    destination: str | os.PathLike[str] | BinaryIO,
    *,
    include_initializers: bool | None,
    keep_initializers_as_inputs: bool,
    external_data: bool | None,
    weights: Literal["copy", "reference"],
) -> None:
    """Saves `model` as `ONNXProgram.save` says."""
    if weights not in ("copy", "reference"):
        raise InvalidArgument(f"weights: expected 'copy' or 'reference', got {weights!r}")
    if not isinstance(keep_initializers_as_inputs, bool):
        raise InvalidArgument(f"keep_initializers_as_inputs: expected a bool, got {keep_initializers_as_inputs!r}")
    for name, flag in {"include_initializers": include_initializers, "external_data": external_data}.items():
        if not isinstance(flag, bool | None):
            raise InvalidArgument(f"{name}: expected a bool or None, got {flag!r}")
    if include_initializers is None and model_weights.is_hollow(model):
        include_initializers, keep_initializers_as_inputs = False, True
    include = include_initializers is not False
    referred = weights == "reference" and include
    if external_data is False and weights == "reference":
        raise InvalidArgument("external_data: expected True or None with weights='reference', which is external data, got False")
    if weights == "reference" and not model_weights.files_of(model):
        raise InvalidArgument("weights: expected 'copy', got 'reference', but no weight lies in a file: give apply_weights a path")
    if include:
        model_weights.check_data(model, f"include_initializers: expected False, got {include_initializers}")
    size = model_weights.total_bytes(model) if include and not referred else 0
    if external_data is False and size > model_weights.PROTOBUF_LIMIT:
        raise InvalidArgument("external_data: expected True or None for a model above 2 GiB, got False")
    options: dict[str, Any] = {
        "include_initializers": include,
        "keep_initializers_as_inputs": keep_initializers_as_inputs,
        "external_data": external_data,
    }
    if not isinstance(destination, str | os.PathLike) and hasattr(destination, "write"):
        if external_data or referred or size > model_weights.PROTOBUF_LIMIT:
            raise InvalidArgument(f"destination: expected a path for a model with external data, got {destination!r}")
        _save_to_file(model, destination, options)
        return
    if not isinstance(destination, str | os.PathLike):
        raise InvalidArgument(f"destination: expected a path or a file that is open for bytes, got {destination!r}")
    path = paths.checked_path("destination", destination)
    for file in (path, path.with_name(f"{path.name}.data")):
        if any(_is_same(file, used) for used in model_weights.files_of(model)):
            raise InvalidArgument(f"destination: expected another file than those with the weights, got {str(file)!r}")
    try:
        with Staging(path) as staging:
            assert staging.path is not None
            model_file.write(model, staging.path, **options, references=path.absolute().parent if referred else None)
            staging.commit()
    except OSError as error:
        raise paths.not_written("destination", str(path), error) from error


def _save_to_file(model: ir.Model, destination: BinaryIO, options: dict[str, Any]) -> None:
    """Saves to an open file; nothing gets there if the model cannot be made."""
    if isinstance(destination, io.TextIOBase):
        raise InvalidArgument(f"destination: expected a path or a binary file, got the text file {destination!r}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            draft = pathlib.Path(folder) / "model.onnx"
            model_file.write(model, draft, **options)
            with draft.open("rb") as source:
                _copy(source, destination)
    except OSError as error:
        raise paths.not_written("destination", repr(destination), error) from error


def _copy(source: BinaryIO, destination: BinaryIO) -> None:
    try:
        shutil.copyfileobj(source, destination)
    except (TypeError, ValueError) as error:
        # NOTE: a closed file raises ValueError, one that takes text TypeError.
        raise paths.not_written("destination", repr(destination), error) from error


def _is_same(file: pathlib.Path, other: pathlib.Path) -> bool:
    try:
        return file.samefile(other)
    except OSError:
        return False
