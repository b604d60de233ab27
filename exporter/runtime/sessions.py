"""ONNX Runtime with torch tensors: sessions, and runs that keep dtypes that numpy lacks."""

from __future__ import annotations

import dataclasses
import pathlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import from_torch_dtype, to_torch_dtype

from onnxplain import weights
from onnxplain.diagnostics import InvalidArgument

if TYPE_CHECKING:
    # NOTE: an export that is not verified need not load it.
    import onnxruntime as ort

_BY_BITS = {1: torch.uint8, 2: torch.uint16}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ONNXRuntimeOptions:
    """How ONNX Runtime runs a model: `program(*args, options=ONNXRuntimeOptions(...))`.

    Attributes:
        session_options: An `onnxruntime.SessionOptions`, or a sequence of one.
        execution_providers: Names of providers, or (name, options), the preferred one first; None is the CPU.
        execution_provider_options: Options for each of `execution_providers`, in their order.

    Raises:
        InvalidArgument: An option has the wrong type, there is more than one `session_options`, there are not as many
            `execution_provider_options` as providers, they are given in both places, or a name is no provider of this ONNX Runtime.
    """

    session_options: ort.SessionOptions | Sequence[ort.SessionOptions] | None = None
    execution_providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None
    execution_provider_options: Sequence[Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        import onnxruntime as ort

        given = self.session_options
        chosen = tuple(given) if isinstance(given, list | tuple) else () if given is None else (given,)
        if len(chosen) > 1 or not all(isinstance(each, ort.SessionOptions) for each in chosen):
            raise InvalidArgument(f"session_options: expected one onnxruntime.SessionOptions, got {given!r}")
        providers, options = self.execution_providers, self.execution_provider_options
        if not isinstance(providers, list | tuple | None):
            raise InvalidArgument(f"execution_providers: expected a list of names, got {providers!r}")
        known = ort.get_available_providers()
        for each in providers or ():
            # NOTE: ONNX Runtime itself would go on without a provider that it does not have.
            match each:
                case str(name) | (str(name), Mapping()) if name in known:
                    continue
            raise InvalidArgument(f"execution_providers: expected names out of {known}, each alone or with a dict of options, got {each!r}")
        if options is None:
            return
        if twice := [each for each in providers or () if not isinstance(each, str)]:
            raise InvalidArgument(
                f"execution_provider_options: expected options in one place, got {twice[0]!r} in execution_providers, too"
            )
        if not isinstance(options, list | tuple) or not all(isinstance(each, Mapping) for each in options):
            raise InvalidArgument(f"execution_provider_options: expected a list of dicts, got {options!r}")
        if len(options) != len(providers or ()):
            raise InvalidArgument(
                f"execution_provider_options: expected as many as execution_providers ({len(providers or ())}), got {len(options)}"
            )

    def make(self, model: str | bytes) -> ort.InferenceSession:
        """A session as these options want it, for the path or the bytes of a model."""
        import onnxruntime as ort

        given = self.session_options
        options = next(iter(given), None) if isinstance(given, list | tuple) else given
        providers = list(self.execution_providers or ("CPUExecutionProvider",))
        return ort.InferenceSession(
            model,
            options or _quiet(),
            providers=providers,
            provider_options=self.execution_provider_options,
            # NOTE: it would print that a provider failed, and run on the CPU.
            enable_fallback=0,
        )


Make: TypeAlias = "Callable[[str | bytes], ort.InferenceSession]"
"""Makes a session from the path of a model, or from its bytes."""


Write: TypeAlias = "Callable[[ir.Model, pathlib.Path], None]"
"""Writes a model to a file, its weights to files of their own beside it."""


def session(model: ir.Model, path: pathlib.Path | None = None, make: Make | None = None, *, write: Write) -> ort.InferenceSession:
    """A session for a saved model, or for one in memory.

    Args:
        model: The model.
        path: Where it was saved, if it was.
        make: Makes the session; None makes one on the CPU.
        write: Writes a model that is too large for one message, if it was not saved.
    """
    make = make or _on_cpu
    if path is not None:
        return make(str(path))
    if weights.total_bytes(model) < weights.PROTOBUF_LIMIT // 2:
        return make(ir.to_proto(model).SerializeToString())
    with tempfile.TemporaryDirectory() as folder:
        saved = pathlib.Path(folder) / "model.onnx"
        write(model, saved)
        return make(str(saved))


def _on_cpu(model: str | bytes) -> ort.InferenceSession:
    import onnxruntime as ort

    return ort.InferenceSession(model, _quiet(), providers=["CPUExecutionProvider"])


def _quiet() -> ort.SessionOptions:
    import onnxruntime as ort

    options = ort.SessionOptions()
    # NOTE: errors are raised; what else it logs would go to the user's terminal unasked.
    options.log_severity_level = 4
    return options


def run(runtime: ort.InferenceSession, inputs: Sequence[torch.Tensor | float | bool]) -> list[torch.Tensor]:
    """Runs `inputs` in the order of the session's inputs; returns the outputs in its order. Complex tensors go in as real ones.

    Raises:
        InvalidArgument: There are more or fewer inputs than the model has (a ValueError).
    """
    names = [each.name for each in runtime.get_inputs()]
    if len(inputs) != len(names):
        raise InvalidArgument(f"inputs: expected {len(names)} ({', '.join(names)}), got {len(inputs)}")
    feeds: Mapping[str, ort.OrtValue] = {name: _to_ort(value) for name, value in zip(names, inputs, strict=True)}
    return [_to_torch(value) for value in runtime.run_with_ort_values(None, feeds)]


def as_real(value: torch.Tensor | complex) -> torch.Tensor:
    """A value as the tensor that the exported model takes for it: complex ones are real, with a last dim of size 2."""
    tensor = value if isinstance(value, torch.Tensor) else torch.tensor(value)
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _to_ort(value: torch.Tensor | float | bool) -> ort.OrtValue:
    import onnxruntime as ort

    tensor = as_real(value).detach().cpu().contiguous()
    try:
        return ort.OrtValue.ortvalue_from_numpy(tensor.numpy())
    except TypeError:
        # bfloat16 and the eight-bit floats, which numpy lacks
        bits = tensor.view(_BY_BITS[tensor.element_size()]).numpy()
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, int(from_torch_dtype(tensor.dtype)))


def _to_torch(value: ort.OrtValue) -> torch.Tensor:
    dtype = to_torch_dtype(ir.DataType(value.element_type()))
    if dtype in (torch.bfloat16,) or (dtype.itemsize == 1 and dtype.is_floating_point):
        return torch.utils.dlpack.from_dlpack(value).view(dtype)
    return torch.from_numpy(value.numpy())
