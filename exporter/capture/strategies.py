"""The ways to capture a model, each one call of torch.export."""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch

from onnxplain import process
from onnxplain.diagnostics import InvalidArgument
from onnxplain.request import FXGraphExtractor, Request, containers, fitted, signature_of
from onnxplain.torch_internals import (
    called_functions,
    config,
    ctc_loss,
    data_checks,
    data_free_code,
    dynamo,
    fake_kernels,
    fixed_matrices,
    float_division,
    function_caches,
    generated_code,
    gradients,
    host_arrays,
    input_free_values,
    keyword_inputs,
    known_weights,
    leftover_hooks,
    loop_gradients,
    min_max,
    modules,
    opaque_objects,
    packed_sequences,
    paddings,
    patching,
    pooling_sizes,
    recurrent_shapes,
    resizing,
    rounded_quotients,
    shape_env,
    size_arguments,
    size_conversions,
    size_numbers,
    size_texts,
    sizes_from_data,
    sizes_of_one,
    tensor_data,
    torchvision_boxes,
    tracing,
    truths_of_sizes,
)

from .observe import idle_truths, named_functions, required_truths
from .observe.fitted_sizes import FittedSizes
from .observe.frames import Frames
from .observe.idle_branches import IdleBranches


class CaptureStrategy(Protocol):
    """One way to capture a model.

    Attributes:
        name: Its name in the option `strategies`.
        is_survey: True if the example's data decides what it captures, so that it only serves to find places.
    """

    name: str
    is_survey: bool

    def __call__(self, model: torch.nn.Module, request: Request, frames: Frames) -> torch.export.ExportedProgram:
        """Captures `model` with the inputs of `request`. Raises torch's exceptions."""


class NonStrict:
    """Runs `forward` in Python on fake tensors and records the operators. Other Python code just runs."""

    name = "non-strict"
    is_survey = False

    def __call__(self, model: torch.nn.Module, request: Request, frames: Frames) -> torch.export.ExportedProgram:
        """See `CaptureStrategy`."""
        with frames.on_nodes(), generated_code.deferred():
            return _export(model, request, strict=False)


class Strict:
    """Lets TorchDynamo interpret the bytecode of `forward`, and so see the values that Python decides by."""

    name = "strict"
    is_survey = False

    def __call__(
        self,
        model: torch.nn.Module,
        request: Request,
        frames: Frames,  # noqa: ARG002  the strategies have one signature
    ) -> torch.export.ExportedProgram:
        """See `CaptureStrategy`. TorchDynamo writes whole stacks on the nodes by itself."""
        # NOTE: TorchDynamo then calls the function, whose answer depends on the thread, and does not look into it.
        torch.compiler.assume_constant_result(process.is_in_onnx_export)
        return _export(model, request, strict=True)


class BelowAutograd:
    """Like `NonStrict`, but records what runs below autograd, including the operators of backward passes, for models that differentiate."""

    name = "below autograd"
    is_survey = False

    def __call__(self, model: torch.nn.Module, request: Request, frames: Frames) -> torch.export.ExportedProgram:
        """See `CaptureStrategy`."""
        with frames.on_nodes(), generated_code.deferred():
            return _export(model, request, strict=False, below_autograd=True)


class Draft:
    """Lets the example's data make data-dependent decisions, so that one capture meets all of them.

    It does what `torch.export.draft_export` does, without its trace files, its console text and its cost. A graph in which the
    example's data decided anything is wrong for other data, so it only serves to find the places.
    """

    name = "draft"
    is_survey = True

    def __call__(self, model: torch.nn.Module, request: Request, frames: Frames) -> torch.export.ExportedProgram:
        """See `CaptureStrategy`."""
        # NOTE: read in torch 2.11, 2.13 and 2.15, export/_draft_export.py. Without this option it is the non-strict strategy.
        with (
            frames.on_nodes(),
            config.switched_on(config.REAL_TENSORS),
            host_arrays.from_example(frames.note_array),
            fake_kernels.inferred(frames.note_inferred),
        ):
            return _export(model, request, strict=False)


class UnfitProgram(Exception):
    """The result of an `FXGraphExtractor` is not a program of the model.

    Attributes:
        generate_fx: The method that made it.
    """

    def __init__(self, generate_fx: Callable[..., Any], problem: str) -> None:
        super().__init__(problem)
        self.generate_fx = generate_fx


class _Extractor:
    """The user's extractor as a strategy."""

    is_survey = False

    def __init__(self, extractor: FXGraphExtractor) -> None:
        self.name = extractor.name
        self._extractor = extractor

    def __call__(self, model: torch.nn.Module, request: Request, frames: Frames) -> torch.export.ExportedProgram:
        """See `CaptureStrategy`."""
        with frames.on_nodes(), process.capturing():
            program = self._extractor.generate_fx(model, request.args, dict(request.kwargs), request.shapes.for_torch())
        generate_fx = self._extractor.generate_fx
        if not isinstance(program, torch.export.ExportedProgram):
            raise UnfitProgram(generate_fx, f"expected an ExportedProgram, got {type(program).__name__}")
        try:
            fitted(program, request.args, request.kwargs, signature_of(model))
        except InvalidArgument as error:
            raise UnfitProgram(generate_fx, f"the program does not take the example inputs; {error}") from error
        return program


ALL: dict[str, CaptureStrategy] = {strategy.name: strategy for strategy in (NonStrict(), BelowAutograd(), Strict(), Draft())}
"""Every strategy of onnxplain by its name."""


def of(each: str | FXGraphExtractor) -> CaptureStrategy:
    """The strategy that a user names or brings."""
    return ALL[each] if isinstance(each, str) else _Extractor(each)


def as_module(model: Callable[..., Any]) -> torch.nn.Module:
    """`model` as the module that torch.export needs, with the signature that the user wrote."""
    if isinstance(model, torch.nn.Module):
        return model
    module = torch.nn.Module()
    if isinstance(owner := getattr(model, "__self__", None), torch.nn.Module):
        # NOTE: this makes the weights of a method parameters with names, and not constants.
        module.add_module("model", owner)
    # NOTE: torch.export reads the signature and the code object of `forward`; builtins and objects with `__call__` lack one of them.
    module.forward = model if isinstance(model, types.FunctionType | types.MethodType) else _forwarding(model)
    return module


def _forwarding(function: Callable[..., Any]) -> Callable[..., Any]:
    def forward(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    with contextlib.suppress(ValueError):
        forward.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]  # functions have it, their type does not
    return forward


@contextlib.contextmanager
def _outputs_registered(model: torch.nn.Module) -> Iterator[None]:
    """While it is open, each run of `model` registers the classes of its outputs before torch.export takes them apart."""
    hook = model.register_forward_hook(lambda _module, _args, outputs: containers.register(outputs))
    try:
        yield
    finally:
        hook.remove()


@functools.cache
def _load() -> None:
    with process.without_collection():
        tracing.load()


@contextlib.contextmanager
def _for_python(model: torch.nn.Module) -> Iterator[None]:
    """While it is open, what Python runs for a capture is patched. TorchDynamo would trace the hook and the patches."""
    inner = [module for _, module in modules.named_modules(model)]
    classes = dict.fromkeys(cls for module in inner for cls in type(module).__mro__)
    functions = named_functions.reached(map(vars, [*inner, *classes]))
    branches, required = IdleBranches(), required_truths.answers(__file__)
    with (
        _outputs_registered(model),
        data_free_code.left_out(),
        data_checks.left_out(),
        input_free_values.known(),
        min_max.of_several_sizes(),
        packed_sequences.padded(),
        ctc_loss.made_of_others(),
        tensor_data.followed(),
        torchvision_boxes.at_once(),
        size_arguments.taken(),
        called_functions.replaced(required),
        # NOTE: TorchDynamo would ask for the model's code.
        sizes_from_data.taken_for_large(),
        size_numbers.kept(),
        rounded_quotients.of_ints(),
        size_texts.comparisons_equal_truths(),
        truths_of_sizes.answered(idle_truths.answers(), branches.truth, FittedSizes().truth, required=required),
        paddings.reduced(branches.modulus),
        modules.idle_conversions(),
        size_conversions.classes_kept(functions),
        # NOTE: last, since it looks at what the others have replaced.
        patching.reached_by_import(functions),
    ):
        yield


@contextlib.contextmanager
def _deciding_about_sizes() -> Iterator[None]:
    """While it is open, torch decides about sizes as exports need it."""
    with (
        shape_env.without_asserts(),
        shape_env.deciding_more(),
        shape_env.without_checks_of_quotients(),
        shape_env.without_unsolved_constraints(),
        sizes_of_one.not_taken_for_granted(),
        # NOTE: with this option, an example of size 1 does not fix a dynamic dim.
        config.switched_on(config.SIZE_ONE),
    ):
        yield


def _export(model: torch.nn.Module, request: Request, *, strict: bool, below_autograd: bool = False) -> torch.export.ExportedProgram:
    _load()
    with (
        process.capturing(),
        recurrent_shapes.by_shape(),
        fake_kernels.present(),
        resizing.to_any_size(),
        pooling_sizes.of_any_size(),
        fixed_matrices.required(),
        float_division.of_python(),
        loop_gradients.left_out(),
        known_weights.known(model),
        leftover_hooks.removed(model),
        function_caches.left_without_fakes(model),
        keyword_inputs.beside_others(),
        opaque_objects.enums_as_constants(),
        _deciding_about_sizes(),
        config.switched_off(config.COLLECTION),
        dynamo.guards_untimed(),
        contextlib.nullcontext() if strict else modules.new_buffers_as_attributes(model),
        contextlib.nullcontext() if strict else _for_python(model),
    ):
        shapes = request.shapes.for_torch()
        if below_autograd:
            return gradients.export(model, request.args, dict(request.kwargs), shapes)
        return torch.export.export(
            model,
            request.args,
            dict(request.kwargs),
            dynamic_shapes=shapes,
            strict=strict,
            # NOTE: with this argument, torch does not refuse models with relations between sizes that a Dim cannot state.
            prefer_deferred_runtime_asserts_over_guards=True,
        )
