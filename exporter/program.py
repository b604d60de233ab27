"""The result of an export."""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np
import onnx
import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import TorchTensor, from_torch_dtype, to_torch_dtype

from onnxplain.diagnostics import InvalidArgument, Log, OnnxExporterError
from onnxplain.torch_internals import pytree
from onnxplain.torch_internals.fake_tensors import has_no_data

from . import runtime, storage
from . import weights as model_weights
from .optimize import clean_up
from .request import flat_inputs
from .runtime import ONNXRuntimeOptions

if TYPE_CHECKING:
    import onnxruntime as ort

_NAME = re.compile(r"[A-Za-z_]\w*")
"""A name of a dim, alone or in an expression such as `2*batch + 1`."""


class ONNXProgram:
    """An exported model with what it was made of and the log of how.

    Attributes:
        model: The model as onnx_ir; change it as you like.
        exported_program: What torch.export captured.
        diagnostics: Everything that the export reported.
    """

    def __init__(
        self,
        model: ir.Model,
        exported_program: torch.export.ExportedProgram,
        diagnostics: Log,
        forward: inspect.Signature | None = None,
    ) -> None:
        self.model = model
        self.exported_program = exported_program
        self.diagnostics = diagnostics
        self._forward = forward
        self._session: ort.InferenceSession | None = None
        self._chosen: tuple[ONNXRuntimeOptions, ort.InferenceSession] | None = None

    def __repr__(self) -> str:
        graph = self.model.graph
        nodes = sum(1 for _ in graph.all_nodes())
        return f"ONNXProgram({self.diagnostics.subject!r}, opset {self.model.opset_imports.get('')}, {nodes} nodes)"

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[torch.Tensor]:
        """Runs the model in ONNX Runtime.

        Args:
            *args: As for the PyTorch model.
            **kwargs: As for the PyTorch model. `options`, if that is an `ONNXRuntimeOptions`, is how to run it; or else it runs on the
                CPU, or in the session that `initialize_inference_session` made.

        Returns:
            The outputs as a flat sequence of tensors on the CPU.

        Raises:
            InvalidArgument: The inputs have another structure, dtype or shape than the model takes, or weights have no data.
            OnnxExporterError: ONNX Runtime cannot run the model; its exception is the cause.
        """
        options = kwargs.pop("options") if isinstance(kwargs.get("options"), ONNXRuntimeOptions) else None
        inputs = self._inputs(args, kwargs)
        if options is not None:
            if self._chosen is None or self._chosen[0] != options:
                self._chosen = (options, self._made(options.make))
            return _run(self._chosen[1], inputs)
        if self._session is None:
            self.initialize_inference_session()
        assert self._session is not None
        return _run(self._session, inputs)

    def call_reference(self, *args: Any, **kwargs: Any) -> Sequence[torch.Tensor]:
        """Runs the model in ONNX's reference evaluator: slow, in NumPy, to tell a fault of the model from one of a runtime.

        Args:
            *args: As for the PyTorch model.
            **kwargs: As for the PyTorch model.

        Returns:
            The outputs as a flat sequence of tensors on the CPU.

        Raises:
            InvalidArgument: The inputs have another structure, dtype or shape than the model takes.
        """
        from onnx.reference import ReferenceEvaluator

        tensors = zip(self.model.graph.inputs, self._inputs(args, kwargs), strict=True)
        feeds = {value.name or "": TorchTensor(runtime.as_real(tensor).detach().cpu()).numpy() for value, tensor in tensors}
        return [_to_torch(np.asarray(each)) for each in ReferenceEvaluator(self.model_proto).run(None, feeds)]

    def compute_values(
        self, value_names: Sequence[str], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Sequence[torch.Tensor]:
        """Computes values of the graph by their names, inner ones included, in ONNX Runtime. The model stays as it is.

        Args:
            value_names: Names of values of the main graph.
            args: As for the PyTorch model.
            kwargs: As for the PyTorch model.

        Returns:
            The values in the order of `value_names`, as tensors on the CPU.

        Raises:
            InvalidArgument: There is no value of a name, the inputs have another structure, dtype or shape than the model takes, or weights
                have no data.
            OnnxExporterError: ONNX Runtime cannot run the model; its exception is the cause.
        """
        is_sequence = isinstance(value_names, Sequence) and not isinstance(value_names, str)
        if not is_sequence or not all(isinstance(name, str) for name in value_names):
            raise InvalidArgument(f"value_names: expected a sequence of names, got {value_names!r}")
        if not isinstance(args, list | tuple):
            raise InvalidArgument(f"args: expected a tuple, got {args!r}")
        if not isinstance(kwargs, Mapping | None):
            raise InvalidArgument(f"kwargs: expected a dict, got {kwargs!r}")
        graph = self.model.graph
        computed = (value for node in graph for value in node.outputs)
        values = {value.name: value for value in (*graph.inputs, *graph.initializers.values(), *computed)}
        if unknown := [name for name in value_names if name not in values]:
            nearest = difflib.get_close_matches(unknown[0], [name for name in values if name], n=3, cutoff=0)
            raise InvalidArgument(f"value_names: expected names of values of the graph, such as {nearest}, got {unknown[0]!r}")
        inputs = self._inputs(args, kwargs or {})
        if not value_names:
            return []
        outputs = list(graph.outputs)
        graph.outputs[:] = [values[name] for name in dict.fromkeys(value_names)]
        try:
            session = self._made()
        finally:
            graph.outputs[:] = outputs
        found = dict(zip((each.name for each in session.get_outputs()), _run(session, inputs), strict=True))
        return [found[name] for name in value_names]

    def adapt_torch_inputs_to_onnx(self, *model_args: Any, model_with_state_dict: Any = None, **model_kwargs: Any) -> Sequence[Any]:
        """The inputs of the PyTorch model as those of the exported one: flat, without constants, complex tensors as real ones.

        Args:
            *model_args: As for the PyTorch model.
            model_with_state_dict: Has no meaning here: weights are never among the inputs.
            **model_kwargs: As for the PyTorch model.

        Raises:
            InvalidArgument: The inputs have another structure, dtype or shape than the model takes.
        """
        del model_with_state_dict
        return tuple(_real(each) for each in self._inputs(model_args, model_kwargs))

    def adapt_torch_outputs_to_onnx(self, model_outputs: Any, model_with_state_dict: Any = None) -> Sequence[Any]:
        """The outputs of the PyTorch model as those of the exported one: flat, without None and strings, complex tensors as real ones.

        Args:
            model_outputs: What the PyTorch model returned.
            model_with_state_dict: Has no meaning here: buffers are never among the outputs.
        """
        del model_with_state_dict
        return [_real(each) for each in pytree.tree_leaves(model_outputs) if not isinstance(each, str | None)]

    @property
    def model_signature(self) -> torch.export.ExportGraphSignature:
        """Which input and output of the captured program is what. Those of the exported model are its user inputs and user outputs."""
        signature: torch.export.ExportGraphSignature = self.exported_program.graph_signature
        return signature

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model as a protobuf message. Fails above 2 GiB, as protobuf does: use `save` there.

        Raises:
            InvalidArgument: Weights have no data; see `apply_weights`.
        """
        model_weights.check_data(self.model, "model: expected weights with data")
        return ir.to_proto(self.model)

    def optimize(self) -> None:
        """Cleans up the graph, as an export with `optimize=True` has done already."""
        clean_up(self.model)
        self.release()

    def rename_axes(self, rename_mapping: Mapping[str | ir.SymbolicDim, str]) -> None:
        """Gives dynamic dims other names, in every shape of the model, also where they are part of an expression such as `2*s1`.

        Args:
            rename_mapping: Names of dims, whole expressions, or dims of the model such as `program.model.graph.inputs[0].shape[0]`, each
                with its new name. Two that get the same name are from then on said to be equal.

        Raises:
            InvalidArgument: `rename_mapping` is no mapping of that kind, or the model has no such dim. Nothing has been renamed then.
        """
        if not isinstance(rename_mapping, Mapping):
            raise InvalidArgument(f"rename_mapping: expected a mapping of names to names, got {rename_mapping!r}")
        values = _values(self.model)
        known = {str(dim) for value in values for dim in value.shape or () if isinstance(dim, ir.SymbolicDim) and dim.value is not None}
        known |= {name for text in known for name in _NAME.findall(text)}
        names: dict[str, str] = {}
        for dim, name in rename_mapping.items():
            old = dim.value if isinstance(dim, ir.SymbolicDim) else dim
            if not isinstance(old, str) or old not in known:
                raise InvalidArgument(f"rename_mapping: expected dynamic dims of the model ({', '.join(sorted(known))}), got {dim!r}")
            if not isinstance(name, str) or not name:
                raise InvalidArgument(f"rename_mapping[{old!r}]: expected a name, got {name!r}")
            names[old] = name
        for value in values:
            if value.shape is not None and any(isinstance(dim, ir.SymbolicDim) for dim in value.shape):
                value.shape = ir.Shape([_renamed(dim, names) for dim in value.shape])
        self.release()

    def apply_weights(self, state_dict: Mapping[str, torch.Tensor] | str | os.PathLike[str], *, strict: bool = True) -> None:
        """Gives the model its weights, or other ones. All of them fit, or nothing changes.

        Args:
            state_dict: Tensors by their names in the PyTorch model's state dict; or the path of a `.safetensors` file, of the
                `.safetensors.index.json` of several, or of a state dict that `torch.save` wrote. Files are read where and while data is
                needed, and have to stay as they are until then.
            strict: Whether all weights have to be given, and nothing else. False replaces those that are given.

        Raises:
            InvalidArgument: Names, shapes or dtypes do not fit; the text lists them. Or the file cannot be read.
        """
        storage.apply(self.model, state_dict, self.exported_program.state_dict, strict=strict)
        self.release()

    def save(
        self,
        destination: str | os.PathLike[str] | BinaryIO,
        *,
        include_initializers: bool | None = None,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
        weights: Literal["copy", "reference"] = "copy",
        model_state: Mapping[str, torch.Tensor] | str | os.PathLike[str] | None = None,
        model_state_dict: Mapping[str, torch.Tensor] | str | os.PathLike[str] | None = None,
    ) -> None:
        """Saves the model. The file appears whole or not at all.

        Without the weights, or with the weights as inputs, they have the names and layouts of the PyTorch model's state dict.

        Args:
            destination: The file: its path, or a file that is open for bytes.
            include_initializers: False leaves the weights out. None includes them, but of a model that was made in fake mode and was
                given none: that is saved with its weights as inputs.
            keep_initializers_as_inputs: Lists the weights among the graph's inputs, too.
            external_data: True writes the weights to `<destination>.data`, False never does, None does above 2 GiB.
            weights: "copy" writes them, those of files in one pass; "reference" leaves those of files (see `apply_weights`) where they are
                and refers to them: the files have to be in the folder of `destination`, or in one within.
            model_state: What `apply_weights` is called with before, as torch.onnx from 2.3 to 2.5 had it.
            model_state_dict: The same, as torch.onnx before 2.3 had it.

        Raises:
            InvalidArgument: `destination` is no file or cannot be written, or is no path where there is external data, or `external_data`
                is False above 2 GiB, or weights have no data, or cannot be referred to.
        """
        if model_state is not None and model_state_dict is not None:
            raise InvalidArgument("model_state_dict: expected None beside model_state, got another state")
        state = model_state if model_state is not None else model_state_dict
        if state is not None:
            self.apply_weights(state)
        storage.save_program(
            self.model,
            destination,
            include_initializers=include_initializers,
            keep_initializers_as_inputs=keep_initializers_as_inputs,
            external_data=external_data,
            weights=weights,
        )

    def save_diagnostics(self, destination: str | os.PathLike[str]) -> None:
        """Saves the log as SARIF 2.1.0. The file appears whole or not at all.

        Args:
            destination: The path of the file; folders above it are made. Graphs that findings lead through are saved as text in a folder
                beside it, `<destination without its suffix>.graphs`.

        Raises:
            InvalidArgument: `destination` is no path, or something is there that is no file, or it cannot be written.
        """
        from onnxplain.diagnostics import sarif

        path = storage.checked_path("destination", destination)
        try:
            sarif.write(self.diagnostics, path)
        except OSError as error:
            raise storage.not_written("destination", str(path), error) from error

    def initialize_inference_session(self, initializer: Callable[[str | bytes], ort.InferenceSession] | None = None) -> None:
        """Makes the ONNX Runtime session that calls use.

        Args:
            initializer: Makes a session from a path or a serialized model; None makes one for the CPU.

        Raises:
            InvalidArgument: `initializer` is not callable or makes something else, or weights have no data; see `apply_weights`.
            OnnxExporterError: ONNX Runtime refuses the model; its exception is the cause. What else `initializer` raises goes through.
        """
        if not (initializer is None or callable(initializer)):
            raise InvalidArgument(f"initializer: expected a function of a path or of bytes, got {initializer!r}")
        session = self._made(initializer)
        if not (hasattr(session, "run_with_ort_values") and hasattr(session, "get_inputs")):
            raise InvalidArgument(f"initializer: expected a function that makes an InferenceSession, got {session!r} from it")
        self._session = session

    def release(self) -> None:
        """Drops the ONNX Runtime sessions and their memory; the next call makes a new one."""
        self._session = None
        self._chosen = None

    def _made(self, make: runtime.Make | None = None) -> ort.InferenceSession:
        """A session for the model as it is."""
        model_weights.check_data(self.model, "model: expected weights with data")
        with _explained():
            return runtime.session(self.model, make=make, write=functools.partial(storage.write, external_data=True))

    def _inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The inputs of the exported model, each checked against its dtype and shape."""
        inputs = flat_inputs(self.exported_program, args, kwargs, self._forward)
        sizes: dict[str, tuple[int, str]] = {}
        for value, given in zip(self.model.graph.inputs, inputs, strict=False):
            if not isinstance(given, torch.Tensor | bool | int | float | complex):
                raise InvalidArgument(f"{value.name}: expected {_described(value)}, got {given!r}")
            if isinstance(given, torch.Tensor) and (unfit := _unfit(given)):
                raise InvalidArgument(f"{value.name}: expected {_described(value)} in memory, got {unfit} tensor")
            tensor = runtime.as_real(given)
            dtype, shape = from_torch_dtype(tensor.dtype), tuple(tensor.shape)
            fits = value.dtype in (None, dtype) and (value.shape is None or len(value.shape) == len(shape))
            for dim, size in zip(value.shape or (), shape, strict=False):
                if isinstance(dim, int):
                    fits = fits and dim == size
                elif fits and dim.value is not None:
                    known, where = sizes.setdefault(dim.value, (size, value.name or ""))
                    if known != size:
                        raise InvalidArgument(f"{value.name}: expected {dim.value} == {known}, as in {where}, got {size}")
            if not fits:
                raise InvalidArgument(f"{value.name}: expected {_described(value)}, got {dtype.name}{list(shape)}")
        return inputs


def _run(session: ort.InferenceSession, inputs: Sequence[Any]) -> list[torch.Tensor]:
    with _explained():
        return runtime.run(session, inputs)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """ONNX Runtime's exceptions as ours: they have no base class of their own."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith("onnxruntime."):
            raise
        raise OnnxExporterError(f"ONNX Runtime cannot run the model: {error}") from error


def _unfit(tensor: torch.Tensor) -> str:
    """What keeps a tensor from being an input, if anything does."""
    if has_no_data(tensor):
        return "a meta or fake"
    if tensor.is_nested or tensor.is_quantized or tensor.layout is not torch.strided:
        return "a nested, quantized or sparse"
    return ""


def _described(value: ir.Value) -> str:
    shape = "" if value.shape is None else f"[{', '.join(str(dim) for dim in value.shape)}]"
    return f"{'a tensor' if value.dtype is None else value.dtype.name}{shape}"


def _real(value: Any) -> Any:
    return runtime.as_real(value) if isinstance(value, torch.Tensor) else value


def _to_torch(array: np.ndarray[Any, Any]) -> torch.Tensor:
    dtype = to_torch_dtype(ir.DataType.from_numpy(array.dtype))
    if array.dtype.kind == "V":
        # bfloat16 and the eight-bit floats, which numpy lacks
        return torch.from_numpy(array.view(f"u{array.itemsize}")).view(dtype)
    return torch.from_numpy(array)


def _values(model: ir.Model) -> list[ir.Value]:
    """Every value of the model, those of inner graphs included."""
    graphs = (model.graph, *model.graph.subgraphs())
    held = [value for graph in graphs for value in (*graph.inputs, *graph.initializers.values())]
    return [*held, *(value for node in model.graph.all_nodes() for value in node.outputs)]


def _renamed(dim: int | ir.SymbolicDim, names: Mapping[str, str]) -> int | str | None:
    if isinstance(dim, int) or dim.value is None:
        return dim if isinstance(dim, int) else None
    return names.get(dim.value) or _NAME.sub(lambda name: names.get(name[0], name[0]), dim.value)
