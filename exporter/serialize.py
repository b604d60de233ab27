"""The model as a protobuf message and as files. Files appear whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from types import TracebackType

import onnx
import onnx_ir as ir
from onnx_ir.tensor_adapters import TorchTensor

from onnxplain.diagnostics import Confidence, DiagnosticContext, Fix
from onnxplain.rules import CheckerRejected, NeedsExternalData, WriteFailed

from . import where
from .options import Request

PROTOBUF_LIMIT = 2**31 - 1
"""Bytes that one protobuf message can have."""

_SMALL = 1024
"""Bytes up to which a weight stays in the message that the checker sees: it may be a shape."""


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
        if self._folder is None:
            self._folder = pathlib.Path(tempfile.mkdtemp(prefix=".onnxplain-", dir=self.destination.parent))
        return self._folder / self.destination.name

    def commit(self, context: DiagnosticContext | None = None) -> None:
        """Moves the files to their destination, the model last: it refers to the others. `context` gets to know what was written."""
        if self._folder is None or self.destination is None:
            return
        name = self.destination.name
        for staged in sorted(self._folder.iterdir(), key=lambda path: path.name == name):
            final = self.destination.with_name(staged.name)
            staged.replace(final)
            if context is not None:
                context.wrote(final, "resultFile", _sha256(final))


def serialize(context: DiagnosticContext, model: ir.Model, staging: Staging, request: Request) -> None:
    """Checks the model and writes it where `staging` says."""
    check(context, model)
    if request.destination is None:
        return
    size = weight_bytes(model) if request.export_params else 0
    if request.external_data is False and size > PROTOBUF_LIMIT:
        outside = Fix("Let the weights have a file of their own, beside the model.", Confidence.SAFE, snippet="external_data=True")
        raise context.fail(NeedsExternalData(size=size, limit=PROTOBUF_LIMIT), at=request.caller, fixes=[outside])
    try:
        path = staging.path
        assert path is not None
        write(
            model,
            path,
            include_initializers=request.export_params,
            keep_initializers_as_inputs=request.keep_initializers_as_inputs,
            external_data=request.external_data,
        )
    except OSError as error:
        raise _write_failed(context, request, error) from error


def save(context: DiagnosticContext, staging: Staging, request: Request) -> None:
    """Moves what `serialize` wrote to its destination; the last thing an export does."""
    try:
        staging.commit(context)
    except OSError as error:
        raise _write_failed(context, request, error) from error


def _write_failed(context: DiagnosticContext, request: Request, error: OSError) -> Exception:
    rule = WriteFailed(path=str(request.destination), error=f"{type(error).__name__}: {error.strerror or error}")
    return context.fail(rule, at=request.caller, cause=error)


def check(context: DiagnosticContext, model: ir.Model) -> None:
    """Runs the ONNX checker, shape inference included, without the weights' data."""
    weights = [value for value in model.graph.initializers.values() if is_weight(value) and _bytes(value) > _SMALL]
    with weights_apart(model, weights, as_inputs=True):
        message = ir.to_proto(model)
    try:
        onnx.checker.check_model(message, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        first = str(error).strip().splitlines()[0]
        raise context.fail(CheckerRejected(error=first), at=where.at_onnx_node(str(error), model), cause=error) from error


def write(
    model: ir.Model,
    path: pathlib.Path,
    *,
    include_initializers: bool = True,
    keep_initializers_as_inputs: bool = False,
    external_data: bool | None = None,
) -> None:
    """Writes the model to `path`.

    Args:
        model: What to write; it is the same afterwards.
        path: The file. Weights in a file of their own go to `<name>.data` beside it.
        include_initializers: False leaves the weights out.
        keep_initializers_as_inputs: Lists the weights among the graph's inputs, too.
        external_data: True writes the weights to a file of their own, False never does, None does when one file cannot hold them.
    """
    weights = [value for value in model.graph.initializers.values() if is_weight(value)]
    size = weight_bytes(model) if include_initializers else 0
    outside = external_data if external_data is not None else size > PROTOBUF_LIMIT
    with contextlib.ExitStack() as stack:
        if not include_initializers:
            stack.enter_context(weights_apart(model, weights, as_inputs=keep_initializers_as_inputs))
        elif keep_initializers_as_inputs:
            model.graph.inputs.extend(weights)
            stack.callback(lambda: [model.graph.inputs.pop() for _ in weights])
        ir.save(model, path, external_data=f"{path.name}.data" if outside and include_initializers else None)


@contextlib.contextmanager
def weights_apart(model: ir.Model, weights: list[ir.Value], *, as_inputs: bool) -> Iterator[None]:
    """The model without these weights for a while; as graph inputs if asked."""
    graph = model.graph
    inputs = len(graph.inputs)
    initializers = dict(graph.initializers)
    try:
        for value in weights:
            graph.initializers.pop(value.name)  # type: ignore[arg-type]
        if as_inputs:
            graph.inputs.extend(weights)
        yield
    finally:
        while len(graph.inputs) > inputs:
            graph.inputs.pop()
        graph.initializers.clear()
        for value in initializers.values():
            graph.register_initializer(value)


def is_weight(value: ir.Value) -> bool:
    """True for parameters and buffers, False for constants that the graph needs."""
    return isinstance(value.const_value, TorchTensor)


def weight_bytes(model: ir.Model) -> int:
    """Bytes of all weights together."""
    return sum(_bytes(value) for value in model.graph.initializers.values() if is_weight(value))


def _bytes(value: ir.Value) -> int:
    return value.const_value.nbytes if value.const_value is not None else 0


def _sha256(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        if hasattr(hashlib, "file_digest"):
            return str(hashlib.file_digest(file, "sha256").hexdigest())
        digest = hashlib.sha256()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
        return digest.hexdigest()
