"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from types import TracebackType

import onnx_ir as ir

from onnxplain.diagnostics import DiagnosticContext, InvalidArgument

from . import onefile, weights

_SMALL = 256
"""Bytes up to which a weight stays in the model's file: it may be a shape, which readers look at."""


class Staging:
    """Files of one export while it is not known yet whether it succeeds: in a folder beside the destination, moved there by `commit`.

    Args:
        destination: Where the model will be; None keeps it in memory.
    """

    def __init__(self, destination: pathlib.Path | None) -> None:
        self.destination = destination
        self._folder: pathlib.Path | None = None

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def path(self) -> pathlib.Path | None:
        """Where to write the model; None when it stays in memory. Weights in files of their own go to the same folder."""
        if self.destination is None:
            return None
        self.open()
        assert self._folder is not None
        return self._folder / self.destination.name

    def open(self) -> None:
        """Makes the folder, if there is a destination. Raises OSError where nothing can be written."""
        if self.destination is not None and self._folder is None:
            self._folder = pathlib.Path(tempfile.mkdtemp(prefix=".onnxplain-", dir=self.destination.parent))

    def commit(self, context: DiagnosticContext | None = None) -> None:
        """Moves the files to their destination, the model last: it refers to the others. `context` gets to know what was written."""
        if self._folder is None or self.destination is None:
            return
        name = self.destination.name
        for staged in sorted(self._folder.iterdir(), key=lambda path: path.name == name):
            final = self.destination.with_name(staged.name)
            staged.replace(final)
            if context is not None:
                context.wrote(final, "resultFile", sha256(final))


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
        model: What to write; it is the same afterwards.
        path: The file. Weights in a file of their own go to `<name>.data` beside it.
        include_initializers: False leaves the weights out: what state dicts have.
        keep_initializers_as_inputs: Lists the weights among the graph's inputs, too.
        external_data: True writes the weights to a file of their own, False never does, None does when one file cannot hold them.
        references: The folder that the model will be in; weights in files there are referred to where they are. None copies them.

    Raises:
        InvalidArgument: Weights are to be referred to that cannot be.
    """
    if not include_initializers or keep_initializers_as_inputs:
        # NOTE: who gives the weights does so by the names and the layouts of the state dict.
        model = weights.restored(model, lambda _: True)
    elif references is not None:
        model = weights.restored(model, weights.is_stored)
    values = weights.state(model)
    with contextlib.ExitStack() as stack:
        if not include_initializers:
            stack.enter_context(weights.apart(model, values, as_inputs=keep_initializers_as_inputs))
        elif keep_initializers_as_inputs:
            model.graph.inputs.extend(values)
            stack.callback(lambda: [model.graph.inputs.pop() for _ in values])
        if references is not None:
            _refer(model, references)
        large = [value for value in weights.of(model) if weights.size_of(value) > _SMALL]
        if large and (external_data or (external_data is None and weights.total_bytes(model) > weights.PROTOBUF_LIMIT)):
            tensors = [value.const_value for value in large]
            outside = ir.external_data.convert_tensors_to_external(tensors, path.parent, f"{path.name}.data")  # type: ignore[arg-type]
            stack.enter_context(_exchanged(large, outside))
        onefile.write(model, path)


@contextlib.contextmanager
def _exchanged(values: Sequence[ir.Value], tensors: Sequence[ir.TensorProtocol]) -> Iterator[None]:
    """Other data of initializers for a while."""
    before = [value.const_value for value in values]
    try:
        for value, tensor in zip(values, tensors, strict=True):
            value.const_value = tensor
        yield
    finally:
        for value, known in zip(values, before, strict=True):
            value.const_value = known


def _refer(model: ir.Model, folder: pathlib.Path) -> None:
    """Makes weights that lie in files external data there. `model` is a copy, and stays so."""
    for value in weights.of(model):
        stored = value.const_value.stored if isinstance(value.const_value, weights.Weight) else None
        if stored is None or stored.nbytes == 0:
            continue
        location = _reachable(stored.path, folder)
        if not stored.is_contiguous:
            raise InvalidArgument(f"weights: expected 'copy', got 'reference': {value.name!r} does not lie in one piece in {location!r}")
        tensor = value.const_value
        assert tensor is not None
        shape, name = ir.Shape(tensor.shape.numpy()), value.name or ""
        value.const_value = ir.ExternalTensor(location, stored.offset, stored.nbytes, tensor.dtype, shape=shape, name=name, base_dir=folder)


def _reachable(file: pathlib.Path, folder: pathlib.Path) -> str:
    """The way from a model's folder to a file with its weights.

    ONNX Runtime 1.31 and onnx 1.23 read external data from the model's folder and those in it only, whatever links say; onnx reads none
    that has a second name.
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


def checked_path(argument: str, value: object, *, make_folder: bool = False) -> pathlib.Path:
    """The path of the file to write that `value` leads to, by links, too; makes its folder if asked.

    Raises:
        InvalidArgument: `value` is no path, or something is there that is no regular file. The text names `argument`.
    """
    if not isinstance(value, str | os.PathLike):
        raise InvalidArgument(f"{argument}: expected a path, got {value!r}")
    path = pathlib.Path(value)
    try:
        path = path.resolve() if path.is_symlink() else path
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = stat.S_IFREG
    except (OSError, RuntimeError, ValueError) as error:
        # NOTE: a name that is too long, links that lead back to themselves (a RuntimeError before Python 3.13), a NUL.
        raise not_written(argument, str(path), error) from error
    if not stat.S_ISREG(mode):
        raise InvalidArgument(f"{argument}: expected a file, got the {'folder' if stat.S_ISDIR(mode) else 'pipe or device'} {str(path)!r}")
    if make_folder:
        checked_folder(argument, path.parent)
    return path


def checked_folder(argument: str, value: object) -> pathlib.Path:
    """`value` as a folder to write to, made if it is not there. Raises `InvalidArgument` that names `argument`."""
    if not isinstance(value, str | os.PathLike):
        raise InvalidArgument(f"{argument}: expected a path, got {value!r}")
    folder = pathlib.Path(value)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"{argument}: expected a folder that can be written to, got {str(folder)!r} ({_why(error)})") from error
    return folder


def not_written(argument: str, path: str, error: Exception) -> InvalidArgument:
    """What to raise when a file could not be written."""
    return InvalidArgument(f"{argument}: expected a file that can be written, got {path!r} ({_why(error)})")


def _why(error: Exception) -> object:
    return getattr(error, "strerror", None) or error


def sha256(path: pathlib.Path) -> str:
    """The hash of a file, in hex."""
    with path.open("rb") as file:
        if hasattr(hashlib, "file_digest"):
            return str(hashlib.file_digest(file, "sha256").hexdigest())
        digest = hashlib.sha256()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
        return digest.hexdigest()
