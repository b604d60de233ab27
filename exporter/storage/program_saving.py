"""`ONNXProgram.save`: decides what is written, and raises `InvalidArgument` if it cannot be written."""

from __future__ import annotations

import functools
import io
import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable
from typing import BinaryIO, Literal

import onnx_ir as ir

from onnxplain import weights as model_weights
from onnxplain.diagnostics import InvalidArgument

from . import model_file, paths
from .paths import data_file
from .staging import Staging


def save_program(
    model: ir.Model,
    destination: str | os.PathLike[str] | BinaryIO,
    *,
    include_initializers: bool | None,
    keep_initializers_as_inputs: bool,
    external_data: bool | None,
    weights: Literal["copy", "reference"],
) -> None:
    """Saves `model`. The arguments and the exceptions are those of `ONNXProgram.save`."""
    _check_types(include_initializers, keep_initializers_as_inputs, external_data, weights)
    if include_initializers is None and model_weights.lacks_all_data(model):
        include_initializers, keep_initializers_as_inputs = False, True
    include = include_initializers is not False
    refer = weights == "reference" and include
    if weights == "reference":
        _check_references(model, external_data)
    if include:
        model_weights.check_data(model, f"include_initializers: expected False, got {include_initializers}")
    is_large = include and not refer and model_weights.total_bytes(model) > model_weights.PROTOBUF_LIMIT
    if external_data is False and is_large:
        raise InvalidArgument("external_data: expected True or None for a model above 2 GiB, got False")
    write = functools.partial(
        model_file.write,
        model,
        include_initializers=include,
        keep_initializers_as_inputs=keep_initializers_as_inputs,
        external_data=external_data,
    )
    if isinstance(destination, str | os.PathLike):
        path = paths.checked_path("destination", destination)
        if external_data is not False and os.path.lexists(data_file(path)):
            # NOTE: what is no regular file must not be replaced.
            paths.checked_path("destination", data_file(path))
        _check_apart(path, model)
        _write_to_path(functools.partial(write, references=path.absolute().parent if refer else None), path)
        return
    if not hasattr(destination, "write"):
        raise InvalidArgument(f"destination: expected a path or a file that is open for bytes, got {destination!r}")
    if external_data or refer or is_large:
        raise InvalidArgument(f"destination: expected a path for a model with external data, got {destination!r}")
    _write_to_file(write, destination)


def _check_types(include_initializers: object, keep_initializers_as_inputs: object, external_data: object, weights: object) -> None:
    if weights not in ("copy", "reference"):
        raise InvalidArgument(f"weights: expected 'copy' or 'reference', got {weights!r}")
    if not isinstance(keep_initializers_as_inputs, bool):
        raise InvalidArgument(f"keep_initializers_as_inputs: expected a bool, got {keep_initializers_as_inputs!r}")
    for name, flag in {"include_initializers": include_initializers, "external_data": external_data}.items():
        if not isinstance(flag, bool | None):
            raise InvalidArgument(f"{name}: expected a bool or None, got {flag!r}")


def _check_references(model: ir.Model, external_data: bool | None) -> None:
    if external_data is False:
        raise InvalidArgument("external_data: expected True or None with weights='reference', which is external data, got False")
    if not model_weights.files_of(model):
        raise InvalidArgument("weights: expected 'copy', got 'reference', but no weight lies in a file: give apply_weights a path")


def _check_apart(path: pathlib.Path, model: ir.Model) -> None:
    """Makes sure that no file with weights would be overwritten."""
    for file in (path, data_file(path)):
        if any(_is_same(file, used) for used in model_weights.files_of(model)):
            raise InvalidArgument(f"destination: expected another file than those with the weights, got {str(file)!r}")


def _write_to_path(write: Callable[[pathlib.Path], None], path: pathlib.Path) -> None:
    try:
        with Staging(path) as staging:
            assert staging.path is not None
            write(staging.path)
            staging.commit()
    except OSError as error:
        raise paths.not_written("destination", str(path), error) from error


def _write_to_file(write: Callable[[pathlib.Path], None], destination: BinaryIO) -> None:
    """Writes to an open file, once the whole model has been written to a temporary one."""
    if isinstance(destination, io.TextIOBase):
        raise InvalidArgument(f"destination: expected a path or a binary file, got the text file {destination!r}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            draft = pathlib.Path(folder) / "model.onnx"
            write(draft)
            with draft.open("rb") as source:
                _copy(source, destination)
    except OSError as error:
        raise paths.not_written("destination", repr(destination), error) from error


def _copy(source: BinaryIO, destination: BinaryIO) -> None:
    try:
        shutil.copyfileobj(source, destination)
    except (TypeError, ValueError) as error:
        # NOTE: a closed file raises ValueError, a file for text TypeError.
        raise paths.not_written("destination", repr(destination), error) from error


def _is_same(file: pathlib.Path, other: pathlib.Path) -> bool:
    try:
        return file.samefile(other)
    except OSError:
        # NOTE: usually, nothing is at `file` yet. What else there may be wrong with it is found when it is written.
        return False
