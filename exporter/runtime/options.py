"""The user's options for running a model in ONNX Runtime."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onnxplain.diagnostics import InvalidArgument

if TYPE_CHECKING:
    # NOTE: an export that is not verified does not load ONNX Runtime.
    import onnxruntime as ort


@dataclasses.dataclass(frozen=True, kw_only=True)
class ONNXRuntimeOptions:
    """How ONNX Runtime runs a model: `program(*args, options=ONNXRuntimeOptions(...))`.

    Attributes:
        session_options: An `onnxruntime.SessionOptions`, or a sequence of one.
        execution_providers: Names of providers, or (name, options), the preferred one first; None is the CPU.
        execution_provider_options: Options for each of `execution_providers`, in their order.

    Raises:
        InvalidArgument: An option has the wrong type, there are several `session_options`, the number of `execution_provider_options`
            differs from that of the providers, options are given in both places, or the installed ONNX Runtime lacks a provider.
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
        if not isinstance(self.execution_providers, list | tuple | None):
            raise InvalidArgument(f"execution_providers: expected a list of names, got {self.execution_providers!r}")
        known = ort.get_available_providers()
        for each in self.execution_providers or ():
            # NOTE: ONNX Runtime itself would go on without the provider that it lacks.
            match each:
                case str(name) | (str(name), Mapping()) if name in known:
                    continue
            raise InvalidArgument(f"execution_providers: expected names out of {known}, each alone or with a dict of options, got {each!r}")
        if self.execution_provider_options is not None:
            _check_provider_options(self.execution_providers or (), self.execution_provider_options)

    def make(self, model: str | bytes) -> ort.InferenceSession:
        """A session with these options, for the path or the bytes of a model."""
        import onnxruntime as ort

        given = self.session_options
        options = next(iter(given), None) if isinstance(given, list | tuple) else given
        return ort.InferenceSession(
            model,
            options or considerate(),
            providers=list(self.execution_providers or ("CPUExecutionProvider",)),
            provider_options=self.execution_provider_options,
            # NOTE: otherwise ONNX Runtime prints that a provider failed, and runs on the CPU.
            enable_fallback=0,
        )


def _check_provider_options(providers: Sequence[object], options: Sequence[object]) -> None:
    if twice := [each for each in providers if not isinstance(each, str)]:
        raise InvalidArgument(f"execution_provider_options: expected options in one place, got {twice[0]!r} in execution_providers as well")
    if not isinstance(options, list | tuple) or not all(isinstance(each, Mapping) for each in options):
        raise InvalidArgument(f"execution_provider_options: expected a list of dicts, got {options!r}")
    if len(options) != len(providers):
        raise InvalidArgument(f"execution_provider_options: expected as many as execution_providers ({len(providers)}), got {len(options)}")


def considerate() -> ort.SessionOptions:
    """Options of a session that prints nothing and takes no processor time between its runs."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    # NOTE: errors are raised. Everything else that it logs would reach the user's terminal unasked.
    options.log_severity_level = 4
    # NOTE: after a run its threads would look for more work without a pause, for 50 ms and more, on cores that others need.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return options
