"""The result of an export."""

from __future__ import annotations

import contextlib
import difflib
import functools
import html
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import onnx
import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import from_torch_dtype

from onnxplain.diagnostics import InvalidArgument, Log, OnnxExporterError, visible
from onnxplain.torch_internals import pytree
from onnxplain.torch_internals.fake_tensors import has_no_data

from . import runtime, storage
from . import weights as model_weights
from .graph_views import signature
from .memory import MemoryEstimate, bound, dims_of, estimate
from .optimize import clean_up
from .request import example_shapes, flat_inputs, is_dense
from .runtime import ONNXRuntimeOptions, Profile, Verification

if TYPE_CHECKING:
    import onnxruntime as ort

_NAME = re.compile(r"[A-Za-z_]\w*")
"""The name of a dim, alone or in an expression such as `2*batch + 1`."""


class ONNXProgram:
    """An exported model, the program that it was made from, and the log of the export.

    Attributes:
        model: The model as onnx_ir; change it as you like.
        exported_program: The program that torch.export captured.
        diagnostics: The log: everything that the export reported.
        verification: How the outputs compare with eager PyTorch; None if the export did not verify the model.
    """

    def __init__(
        self,
        model: ir.Model,
        exported_program: torch.export.ExportedProgram,
        diagnostics: Log,
        forward: inspect.Signature | None = None,
        verification: Verification | None = None,
    ) -> None:
        self.model = model
        self.exported_program = exported_program
        self.diagnostics = diagnostics
        self.verification = verification
        self._forward = forward
        self._session: ort.InferenceSession | None = None
        self._chosen: tuple[ONNXRuntimeOptions, ort.InferenceSession] | None = None

    def __repr__(self) -> str:
        nodes = sum(1 for _ in self.model.graph.all_nodes())
        functions = f", {len(self.model.functions)} functions" if self.model.functions else ""
        return f"ONNXProgram({self.diagnostics.subject!r}, opset {self.model.opset_imports.get('')}, {nodes} nodes{functions})"

    def _repr_html_(self) -> str:
        items = "".join(f"<li><code>{html.escape(each)}</code></li>" for each in signature(self.model.graph))
        return f"<p><strong>{html.escape(visible(repr(self)))}</strong></p><ul>{items}</ul>{self.diagnostics._repr_html_()}"

    def _repr_markdown_(self) -> str:
        from onnxplain.diagnostics import markdown

        items = "".join(f"- {markdown.code(each)}\n" for each in signature(self.model.graph))
        return f"{markdown.prose(repr(self))}\n\n{items}\n{self.diagnostics._repr_markdown_()}"

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[torch.Tensor]:
        """Runs the model in ONNX Runtime.

        Args:
            *args: As for the PyTorch model.
            **kwargs: As for the PyTorch model. If `options` is an `ONNXRuntimeOptions`, it says how to run the model. Otherwise the model
                runs in the session that `initialize_inference_session` made, or on the CPU.

        Returns:
            The outputs as a flat sequence of tensors on the CPU.

        Raises:
            InvalidArgument: The model does not take inputs of this structure, dtype or shape, or weights have no data.
            OnnxExporterError: ONNX Runtime cannot run the model; its exception is the cause.
        """
        options = kwargs.pop("options") if isinstance(kwargs.get("options"), ONNXRuntimeOptions) else None
        inputs = self._inputs(args, kwargs)
        if options is not None:
            if self._chosen is None or self._chosen[0] != options:
                self._chosen = (options, self._new_session(options.make))
            return _run(self._chosen[1], inputs)
        if self._session is None:
            self.initialize_inference_session()
        assert self._session is not None
        return _run(self._session, inputs)

    def call_reference(self, *args: Any, **kwargs: Any) -> Sequence[torch.Tensor]:
        """Runs the model in ONNX's reference evaluator, which is slow. It tells a fault of the model from a fault of a runtime.

        Args:
            *args: As for the PyTorch model.
            **kwargs: As for the PyTorch model.

        Returns:
            The outputs as a flat sequence of tensors on the CPU.

        Raises:
            InvalidArgument: The model does not take inputs of this structure, dtype or shape, or weights have no data.
        """
        inputs = self._inputs(args, kwargs)
        return runtime.run_reference(self.model_proto, inputs)

    def compute_values(
        self, value_names: Sequence[str], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Sequence[torch.Tensor]:
        """Computes values of the graph in ONNX Runtime: inputs, weights and the results of nodes. The model does not change.

        Args:
            value_names: The names of values of the main graph.
            args: As for the PyTorch model.
            kwargs: As for the PyTorch model.

        Returns:
            The values in the order of `value_names`, as tensors on the CPU.

        Raises:
            InvalidArgument: The graph has no value of a name, the model does not take inputs of this structure, dtype or shape, or weights
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
            session = self._new_session()
        finally:
            graph.outputs[:] = outputs
        found = dict(zip((each.name for each in session.get_outputs()), _run(session, inputs), strict=True))
        return [found[name] for name in value_names]

    def adapt_torch_inputs_to_onnx(self, *model_args: Any, model_with_state_dict: Any = None, **model_kwargs: Any) -> Sequence[Any]:
        """The inputs of the exported model for inputs of the PyTorch model: flat, without constants, complex tensors as real ones.

        Args:
            *model_args: As for the PyTorch model.
            model_with_state_dict: Ignored: weights are never among the inputs.
            **model_kwargs: As for the PyTorch model.

        Raises:
            InvalidArgument: The model does not take inputs of this structure, dtype or shape.
        """
        del model_with_state_dict
        return tuple(_real(each) for each in self._inputs(model_args, model_kwargs))

    def adapt_torch_outputs_to_onnx(self, model_outputs: Any, model_with_state_dict: Any = None) -> Sequence[Any]:
        """The outputs of the exported model for outputs of the PyTorch model: flat, without None and strings, complex tensors as real ones.

        Args:
            model_outputs: The outputs of the PyTorch model.
            model_with_state_dict: Ignored: buffers are never among the outputs.
        """
        del model_with_state_dict
        return [_real(each) for each in pytree.tree_leaves(model_outputs) if not isinstance(each, str | None)]

    @property
    def model_signature(self) -> torch.export.ExportGraphSignature:
        """The signature of the captured program. Its user inputs and user outputs are those of the exported model."""
        signature: torch.export.ExportGraphSignature = self.exported_program.graph_signature
        return signature

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model as a protobuf message. Protobuf fails above 2 GiB: use `save` there.

        Raises:
            InvalidArgument: Weights have no data; see `apply_weights`.
        """
        model_weights.check_data(self.model, "model: expected weights with data")
        return ir.to_proto(self.model)

    def memory(self, **sizes: int) -> MemoryEstimate:
        """Estimates the memory that the activations take in ONNX Runtime on the CPU, from the shapes alone.

        Args:
            **sizes: The sizes of dynamic dims, by their names; those of the example inputs for all others.

        Raises:
            InvalidArgument: The model has no dynamic dim of a name, or a size is not a whole number, or there is no example.
        """
        known = dims_of(self.model)
        for name, size in sizes.items():
            if name not in known or isinstance(size, bool) or not isinstance(size, int) or size < 0:
                raise InvalidArgument(f"sizes: expected sizes of dynamic dims ({', '.join(known)}), got {name}={size!r}")
        names = (value.name or "" for value in self.model.graph.inputs)
        shapes = example_shapes(self.exported_program, (), {}, self._forward)
        found = {**bound(self.model, dict(zip(names, shapes, strict=False))), **sizes}
        if missing := [name for name in known if name not in found]:
            raise InvalidArgument(f"sizes: expected a size for each dynamic dim without an example, got none for {', '.join(missing)}")
        return estimate(self.model, found)

    def profile(self, *args: Any, **kwargs: Any) -> Profile:
        """Tells where time and memory go in three runs by ONNX Runtime on the CPU after a first one: by operator, by line and by module.

        Args:
            *args: As for the PyTorch model.
            **kwargs: As for the PyTorch model.

        Raises:
            InvalidArgument: The model does not take inputs of this structure, dtype or shape, or weights have no data.
            OnnxExporterError: ONNX Runtime cannot run the model; its exception is the cause.
        """
        inputs = self._inputs(args, kwargs)
        model_weights.check_data(self.model, "model: expected weights with data")
        with _explained():
            return runtime.profile(self.model, inputs, runs=3, write=functools.partial(storage.write, external_data=True))

    def optimize(self) -> None:
        """Cleans up the graph, unless it calls functions. An export with `optimize=True` has already done so."""
        clean_up(self.model)
        self.release()

    def rename_axes(self, rename_mapping: Mapping[str | ir.SymbolicDim, str]) -> None:
        """Renames dynamic dims in every shape of the model, and inside expressions such as `2*s1`.

        Args:
            rename_mapping: The new name for each dim. A dim is given by its name, by a whole expression, or as an object of the model
                such as `program.model.graph.inputs[0].shape[0]`. Dims with the same new name must be equal from then on.

        Raises:
            InvalidArgument: `rename_mapping` is no such mapping, or the model has no such dim. No dim has been renamed then.
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
        """Gives the model new weights. Either all of them fit, or nothing changes.

        Args:
            state_dict: Tensors by their names in the PyTorch model's state dict; or the path of a `.safetensors` file, of the
                `.safetensors.index.json` of several, or of a state dict that `torch.save` wrote. Files are read only when their data is
                needed, and must not change until then.
            strict: Whether `state_dict` has to contain all weights and nothing else. False replaces the weights that it contains.

        Raises:
            InvalidArgument: Names, shapes or dtypes do not fit; the message lists them. Or the file cannot be read.
        """
        model_weights.apply(self.model, state_dict, self.exported_program.state_dict, strict=strict)
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
        """Saves the model. The file appears whole or not at all; external data is a file before it.

        If the weights are left out, or are inputs, they have the names and layouts of the PyTorch model's state dict.

        Args:
            destination: The file: its path, or a file that is open for bytes.
            include_initializers: False leaves the weights out. None includes them, unless the model was made in fake mode and has not
                been given weights: then they become inputs of the saved model.
            keep_initializers_as_inputs: Whether the weights are also inputs of the graph.
            external_data: True writes the weights to `<destination>.data`, False never does, None does above 2 GiB.
            weights: "copy" writes all weights. "reference" leaves weights that lie in files (see `apply_weights`) where they are, and the
                model refers to them: the files have to be in the folder of `destination`, or below it.
            model_state: Passed to `apply_weights` first; the name of that argument in torch.onnx from 2.3 to 2.5.
            model_state_dict: The same; the name of that argument in torch.onnx before 2.3.

        Raises:
            InvalidArgument: `destination` is no file or cannot be written, or is no path although there is external data; `external_data`
                is False above 2 GiB; or weights have no data, or the model cannot refer to them.
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
            destination: The path of the file; missing folders are made. Graphs that findings refer to are saved as text in a folder
                beside it, `<destination without its suffix>.graphs`.

        Raises:
            InvalidArgument: `destination` is no path, leads to something that is no file, or cannot be written.
        """
        from onnxplain.diagnostics import sarif

        path = storage.checked_path("destination", destination)
        try:
            sarif.write(self.diagnostics, path)
        except OSError as error:
            raise storage.not_written("destination", str(path), error) from error

    def initialize_inference_session(self, initializer: Callable[[str | bytes], ort.InferenceSession] | None = None) -> None:
        """Makes the ONNX Runtime session that calls of the program use.

        Args:
            initializer: Makes a session from a path or a serialized model; None makes one for the CPU.

        Raises:
            InvalidArgument: `initializer` is not callable or makes something else, or weights have no data; see `apply_weights`.
            OnnxExporterError: ONNX Runtime refuses the model; its exception is the cause. Other exceptions of `initializer` pass.
        """
        if not (initializer is None or callable(initializer)):
            raise InvalidArgument(f"initializer: expected a function of a path or of bytes, got {initializer!r}")
        session = self._new_session(initializer)
        if not (hasattr(session, "run_with_ort_values") and hasattr(session, "get_inputs")):
            raise InvalidArgument(f"initializer: expected a function that makes an InferenceSession, got {session!r} from it")
        self._session = session

    def release(self) -> None:
        """Drops the ONNX Runtime sessions and frees their memory. The next call makes a new session."""
        self._session = None
        self._chosen = None

    def _new_session(self, make: runtime.MakeSession | None = None) -> ort.InferenceSession:
        model_weights.check_data(self.model, "model: expected weights with data")
        with _explained():
            return runtime.session(self.model, make=make, write=functools.partial(storage.write, external_data=True))

    def _inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The inputs of the exported model, after a check of their dtypes and shapes."""
        inputs = flat_inputs(self.exported_program, args, kwargs, self._forward)
        sizes: dict[str, tuple[int, str]] = {}
        for value, given in zip(self.model.graph.inputs, inputs, strict=False):
            if not isinstance(given, torch.Tensor | bool | int | float | complex):
                raise InvalidArgument(f"{value.name}: expected {_described(value)}, got {given!r}")
            if isinstance(given, torch.Tensor) and (unfit := _unfit(given)):
                raise InvalidArgument(f"{value.name}: expected {_described(value)} in memory, got {unfit} tensor")
            tensor = model_weights.as_real(torch.as_tensor(given))
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
    """Raises an exception of ONNX Runtime as the cause of an `OnnxExporterError`."""
    try:
        yield
    except Exception as error:
        # NOTE: the exceptions of ONNX Runtime have no common base class but Exception.
        if not type(error).__module__.startswith("onnxruntime."):
            raise
        raise OnnxExporterError(f"ONNX Runtime cannot run the model: {error}") from error


def _unfit(tensor: torch.Tensor) -> str:
    """The kind of tensor that cannot be an input; an empty text for all others."""
    if has_no_data(tensor):
        return "a meta or fake"
    if not is_dense(tensor):
        return "a nested, quantized or sparse"
    return ""


def _described(value: ir.Value) -> str:
    shape = "" if value.shape is None else f"[{', '.join(str(dim) for dim in value.shape)}]"
    return f"{'a tensor' if value.dtype is None else value.dtype.name}{shape}"


def _real(value: Any) -> Any:
    return model_weights.as_real(value) if isinstance(value, torch.Tensor) else value


def _values(model: ir.Model) -> list[ir.Value]:
    """Every value of the model, including those of subgraphs."""
    owners = (model.graph, *(function.graph for function in model.functions.values()))
    graphs = [*owners, *(inner for each in owners for inner in each.subgraphs())]
    given = [value for graph in graphs for value in (*graph.inputs, *graph.initializers.values())]
    return [*given, *(value for each in owners for node in each.all_nodes() for value in node.outputs)]


def _renamed(dim: int | ir.SymbolicDim, names: Mapping[str, str]) -> int | str | None:
    if isinstance(dim, int) or dim.value is None:
        return dim if isinstance(dim, int) else None
    return names.get(dim.value) or _NAME.sub(lambda name: names.get(name[0], name[0]), dim.value)
