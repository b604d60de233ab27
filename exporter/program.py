"""The result of an export."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import onnx
import onnx_ir as ir
import torch
from torch.export.graph_signature import ConstantArgument, InputKind

from onnxplain.diagnostics import InvalidArgument, Log

from . import files, runtime
from . import weights as model_weights
from .optimize import clean_up

if TYPE_CHECKING:
    import onnxruntime as ort


class ONNXProgram:
    """An exported model with what it was made of and the log of how.

    Attributes:
        model: The model as onnx_ir; change it as you like.
        exported_program: What torch.export captured.
        diagnostics: Everything that the export reported.
    """

    def __init__(self, model: ir.Model, exported_program: torch.export.ExportedProgram, diagnostics: Log) -> None:
        self.model = model
        self.exported_program = exported_program
        self.diagnostics = diagnostics
        self._session: ort.InferenceSession | None = None

    def __repr__(self) -> str:
        graph = self.model.graph
        nodes = sum(1 for _ in graph.all_nodes())
        return f"ONNXProgram({self.diagnostics.subject!r}, opset {self.model.opset_imports.get('')}, {nodes} nodes)"

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[torch.Tensor]:
        """Runs the model in ONNX Runtime.

        Args:
            *args: As for the PyTorch model.
            **kwargs: As for the PyTorch model.

        Returns:
            The outputs as a flat sequence of tensors on the CPU.
        """
        if self._session is None:
            self.initialize_inference_session()
        assert self._session is not None
        return runtime.run(self._session, flat_inputs(self.exported_program, args, kwargs))

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
        model_weights.apply(self.model, state_dict, self.exported_program.state_dict, strict=strict)
        self.release()

    def save(
        self,
        destination: str | os.PathLike[str],
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
        weights: Literal["copy", "reference"] = "copy",
    ) -> None:
        """Saves the model. The file appears whole or not at all.

        Without the weights, or with the weights as inputs, they have the names and layouts of the PyTorch model's state dict.

        Args:
            destination: The file.
            include_initializers: False leaves the weights out.
            keep_initializers_as_inputs: Lists the weights among the graph's inputs, too.
            external_data: True writes the weights to `<destination>.data`, False never does, None does above 2 GiB.
            weights: "copy" writes them, those of files in one pass; "reference" leaves those of files (see `apply_weights`) where they are
                and refers to them: the files have to be in the folder of `destination`, or in one within.

        Raises:
            InvalidArgument: `destination` is no path or cannot be written, or `external_data` is False above 2 GiB, or weights have no
                data, or cannot be referred to.
        """
        path = files.checked_path("destination", destination)
        if weights not in ("copy", "reference"):
            raise InvalidArgument(f"weights: expected 'copy' or 'reference', got {weights!r}")
        flags = {"include_initializers": include_initializers, "keep_initializers_as_inputs": keep_initializers_as_inputs}
        for name, flag in {**flags, "external_data": external_data}.items():
            if not isinstance(flag, bool) and (name in flags or flag is not None):
                raise InvalidArgument(f"{name}: expected a bool{'' if name in flags else ' or None'}, got {flag!r}")
        if external_data is False and weights == "reference":
            raise InvalidArgument("external_data: expected True or None with weights='reference', which is external data, got False")
        if weights == "reference" and not model_weights.files_of(self.model):
            raise InvalidArgument("weights: expected 'copy', got 'reference', but no weight lies in a file: give apply_weights a path")
        if include_initializers:
            model_weights.check_data(self.model, "include_initializers: expected False, got True")
        for file in (path, path.with_name(f"{path.name}.data")):
            if file.exists() and any(file.samefile(used) for used in model_weights.files_of(self.model)):
                raise InvalidArgument(f"destination: expected another file than those with the weights, got {str(file)!r}")
        references = path.absolute().parent if weights == "reference" and include_initializers else None
        size = 0 if references is not None or not include_initializers else model_weights.total_bytes(self.model)
        if external_data is False and size > model_weights.PROTOBUF_LIMIT:
            raise InvalidArgument("external_data: expected True or None for a model above 2 GiB, got False")
        try:
            with files.Staging(path) as staging:
                assert staging.path is not None
                files.write(
                    self.model,
                    staging.path,
                    include_initializers=include_initializers,
                    keep_initializers_as_inputs=keep_initializers_as_inputs,
                    external_data=external_data,
                    references=references,
                )
                staging.commit()
        except OSError as error:
            reason = error.strerror or error
            raise InvalidArgument(f"destination: expected a file that can be written, got {str(path)!r} ({reason})") from error

    def save_diagnostics(self, destination: str | os.PathLike[str]) -> None:
        """Saves the log as SARIF 2.1.0.

        Raises:
            InvalidArgument: `destination` is no path, or its folder does not exist.
        """
        from onnxplain.diagnostics import sarif

        sarif.write(self.diagnostics, files.checked_path("destination", destination))

    def initialize_inference_session(self, initializer: Callable[[str | bytes], ort.InferenceSession] | None = None) -> None:
        """Makes the ONNX Runtime session that calls use.

        Args:
            initializer: Makes a session from a path or a serialized model; None makes one for the CPU.

        Raises:
            InvalidArgument: Weights have no data; see `apply_weights`.
        """
        model_weights.check_data(self.model, "model: expected weights with data")
        self._session = runtime.session(self.model, make=initializer)

    def release(self) -> None:
        """Drops the ONNX Runtime session and its memory; the next call makes a new one."""
        self._session = None


def flat_inputs(program: torch.export.ExportedProgram, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The tensors (and dynamic numbers) among the inputs, in the order of the exported graph's inputs.

    Raises:
        InvalidArgument: The inputs have another structure than those of the export.
    """
    order = program.call_spec.in_spec.child(1).context if program.call_spec.in_spec is not None else list(kwargs)
    if set(order) != set(kwargs):
        raise InvalidArgument(f"kwargs: expected {sorted(order)}, got {sorted(kwargs)}")
    leaves = torch.utils._pytree.tree_leaves((tuple(args), {name: kwargs[name] for name in order}))
    specs = [spec for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    if len(leaves) != len(specs):
        raise InvalidArgument(f"args: expected {len(specs)} values, as in the export, got {len(leaves)}")
    return [leaf for leaf, spec in zip(leaves, specs, strict=True) if not isinstance(spec.arg, ConstantArgument)]
