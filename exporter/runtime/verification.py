"""Runs the exported model in ONNX Runtime, compares it with eager PyTorch, and reports what differs."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import onnx_ir as ir
import torch

from onnxplain import weights
from onnxplain.diagnostics import DiagnosticContext, Evidence, Location, described_error
from onnxplain.passes import Prepared
from onnxplain.request import DimNames, Request, flat_inputs, signature_of
from onnxplain.rules import (
    AttributeChanged,
    ConstraintViolated,
    DimsFixed,
    EagerFailed,
    HostValueBaked,
    KernelMissing,
    MutationDropped,
    NotRun,
    OutputsNotCompared,
    RuntimeRejected,
    SizesNotCompared,
    SpecializedDynamicDim,
    StateKept,
)
from onnxplain.source import locations, volatile_calls

from . import eager, other_sizes, sessions
from .comparison import compare, distances, tolerances
from .differences import Differing
from .messages import Messages
from .random_outputs import random_outputs

if TYPE_CHECKING:
    import onnxruntime as ort

_Result = TypeVar("_Result")

_SEEDS = (1, 2)
_RUNS = 3
"""How often the program runs to see whether kernels give other results in each run."""

_RANDOM = "they depend on random numbers of the exported model"
_VARIES = "eager PyTorch gives different numbers in each run"
_NO_NUMBERS = "eager PyTorch gives nothing but NaN or infinity for the example"
_SIGNS = "they depend on the signs of vectors, which are not unique"


@dataclasses.dataclass(frozen=True)
class VerifiedOutput:
    """How an output of the exported model compares with eager PyTorch.

    Attributes:
        name: Its name in the exported model.
        absolute: The largest difference of an element; None if it was not compared.
        relative: The largest difference of an element from a number other than 0, divided by that number; None if it was not compared.
        not_compared: Why it was not compared; empty if it was.
    """

    name: str
    absolute: float | None = None
    relative: float | None = None
    not_compared: str = ""


@dataclasses.dataclass(frozen=True)
class Verification:
    """How the exported model compares with eager PyTorch.

    Attributes:
        outputs: The outcome for each output, over all sizes of the inputs.
        sizes: The sizes of the dynamic dims at which the outputs were compared beside those of the example, by the names of the dims.
        refused: Those at which they could not be compared, since the program, the model or ONNX Runtime takes no such inputs.
    """

    outputs: tuple[VerifiedOutput, ...]
    sizes: tuple[Mapping[str, int], ...] = ()
    refused: tuple[Mapping[str, int], ...] = ()


@dataclasses.dataclass(frozen=True)
class _Verifier:
    """What a comparison needs, for any inputs.

    Attributes:
        context: The context.
        model: The exported model, without functions.
        prepared: The program that it was made from.
        path: Where the model was saved, if it was.
        write: As for `session`.
        random: For each output that depends on random numbers of the exported model, the place of a draw.
        messages: Reads ONNX Runtime's log.
        reasons: Why outputs, by index, cannot be compared. It grows.
    """

    context: DiagnosticContext
    model: ir.Model
    prepared: Prepared
    path: pathlib.Path | None
    write: sessions.WriteModel
    random: Sequence[Evidence | None]
    messages: Messages
    reasons: dict[int, str]

    @property
    def names(self) -> list[str]:
        """The names of the outputs."""
        return [value.name or "" for value in self.model.graph.outputs]

    def compared_if_it_runs(self, session: ort.InferenceSession, request: Request, notes: Sequence[str]) -> list[_Outcome] | None:
        """As `compared`; None if ONNX Runtime refuses the inputs, as the program does."""
        inputs = flat_inputs(self.prepared.program, request.args, request.kwargs, signature_of(request.model))
        try:
            with self.messages.read(drop=True):
                sessions.run(session, inputs)
        except Exception:  # noqa: BLE001  the exceptions of ONNX Runtime have no common base class but Exception
            return None
        return self.compared(session, request, notes)

    def compared(self, session: ort.InferenceSession, request: Request, notes: Sequence[str] = ()) -> list[_Outcome] | None:
        """How each output compares for the inputs of `request`; None if ONNX Runtime has no kernel. Reports those that differ.

        Args:
            session: The session of the exported model.
            request: The export, with these inputs.
            notes: What a finding adds. With notes the inputs are not the user's, and None also says that the model refuses them.
        """
        inputs = flat_inputs(self.prepared.program, request.args, request.kwargs, signature_of(request.model))
        actual = _explained(self.context, self.model, self.path, self.messages, lambda: sessions.run(session, inputs), notes)
        if actual is None:
            return None
        again: Sequence[torch.Tensor] | None
        if notes:
            expected = again = eager.outputs_or_none(self.prepared.program, request)
        else:
            expected, again = _run_eager(self.context, self.prepared.program, request)
        if expected is None:
            return None
        found = [compare(got, want, tolerance) for got, want, tolerance in zip(actual, expected, tolerances(self.model.graph), strict=True)]
        differing = [index for index, each in enumerate(found) if each.differs and index not in self.reasons]
        if not notes:
            # NOTE: NaN equals NaN, whatever made it.
            same = set(range(len(expected))) - {*differing, *self.reasons}
            self.reasons.update({index: _NO_NUMBERS for index in sorted(same) if _has_no_numbers(expected[index])})
        self.tell_state(request, expected, again)
        if differing:
            self.reasons.update(_reasons(self.prepared, request, expected, differing))
            differing = [index for index in differing if index not in self.reasons]
        if differing:
            place, names = self.place(request), self.names
            differing = Differing(
                self.context, self.model, self.prepared, self.write, request, inputs, names, actual, expected, found, place, notes
            ).report(differing)
        return [
            _Outcome(each.difference, *distances(got, want), index in differing)
            for index, (each, got, want) in enumerate(zip(found, actual, expected, strict=True))
        ]

    def tell_state(self, request: Request, first: Sequence[torch.Tensor], second: Sequence[torch.Tensor] | None) -> None:
        """Reports the outputs that differ in a second run with the same random numbers, unless findings tell of state, or of a clock."""
        if first is second or any(map(self.context.reported, (AttributeChanged, MutationDropped, HostValueBaked))):
            return
        kept = [
            index
            for index, each in enumerate(first)
            if index not in self.reasons and (second is None or len(second) != len(first) or compare(second[index], each).differs)
        ]
        if kept:
            # NOTE: kernels of GPUs may choose another one of equal elements in each run, as that of `median` does.
            runs = eager.runs_of_program(self.prepared.program, request, _RUNS)
            kept = [index for index in kept if not any(compare(each[index], runs[0][index]).differs for each in runs[1:])]
        if kept:
            self.context.report(
                StateKept(outputs=tuple(self.names[index] for index in kept)), at=locations.module_definition(request.model)
            )

    def takes_untold(self, request: Request, sizes: str) -> bool:
        """Whether the model takes inputs whose sizes the program refuses, although no finding tells that the graph assumes other sizes."""
        rules = (ConstraintViolated, SpecializedDynamicDim, DimsFixed)
        if any(self.context.reported(each) or self.context.options.level_of(each) is None for each in rules):
            self.context.event(
                f"The outputs were not compared with {sizes}: the program refuses these sizes, and findings tell its assumptions."
            )
            return False
        return eager.outputs_or_none(self.prepared.program, request) is not None

    def place(self, request: Request) -> Evidence | Location | None:
        """The place of a finding without a node."""
        return _volatile_call(self.prepared) or locations.module_definition(request.model)

    def tell_not_compared(self, request: Request) -> None:
        """Reports the outputs that cannot be compared."""
        for reason in dict.fromkeys(self.reasons.values()):
            group = sorted(index for index, why in self.reasons.items() if why == reason)
            drawn = next((at for index in group if (at := self.random[index]) is not None), None)
            rule = OutputsNotCompared(outputs=tuple(self.names[index] for index in group), reason=reason)
            self.context.report(rule, at=drawn or self.place(request))


@dataclasses.dataclass(frozen=True)
class _Outcome:
    difference: float
    absolute: float
    relative: float
    is_wrong: bool


def verify(
    context: DiagnosticContext,
    model: ir.Model,
    flat: ir.Model,
    prepared: Prepared,
    path: pathlib.Path | None,
    request: Request,
    dim_names: DimNames,
    write: sessions.WriteModel,
) -> Verification:
    """Compares the outputs for the example inputs and, if dims are dynamic, for inputs of other sizes.

    Reports each output that differs, at the first node whose value differs, and each that cannot be compared.

    Args:
        context: The context.
        model: The exported model.
        flat: The same model without functions: its nodes tell their places.
        prepared: The program that it was made from.
        path: Where the model was saved, if it was.
        request: The export.
        dim_names: The names of dims.
        write: As for `session`.

    Returns:
        The outcome for each output.
    """
    drawn = random_outputs(flat.graph)
    reasons = {index: _RANDOM for index, at in enumerate(drawn) if at is not None}
    messages = Messages(context, flat, path)
    verifier = _Verifier(context, flat, prepared, path, write, drawn, messages, reasons)
    missing = weights.names_without_data(model)
    if missing:
        context.report(NotRun(names=tuple(missing)), at=request.caller)
        return _without_outcome(verifier, "weights have no data")
    session = _explained(context, flat, path, messages, lambda: sessions.session(model, path, messages.make, write=write))
    first = None if session is None else verifier.compared(session, request)
    if session is None or first is None:
        # NOTE: there is a finding about the kernel.
        return _without_outcome(verifier, "ONNX Runtime cannot run the model")
    outcomes, told, refused = [first], list[Mapping[str, int]](), list[Mapping[str, int]]()
    if not any(each.is_wrong for each in first):
        for other in other_sizes.requests(prepared.program, request, dim_names):
            reason = other.reason if isinstance(other, other_sizes.Unfit) else "the model takes no inputs of these sizes"
            named = (
                other.sizes if isinstance(other, other_sizes.Unfit) else {dim_names.text(key): size for key, size in other.sizes.items()}
            )
            listed, more = sizes_text(named), None
            notes = (f"The sizes of the inputs were {listed}.",)
            if isinstance(other, other_sizes.Resized) and other.is_taken:
                more = verifier.compared(session, other.request, notes)
            elif isinstance(other, other_sizes.Resized) and verifier.takes_untold(other.request, listed):
                more = verifier.compared_if_it_runs(session, other.request, notes)
            if more is not None:
                outcomes.append(more)
            elif not isinstance(request.verify_sizes, int):
                rule = SizesNotCompared(sizes=tuple(f"{name} = {size}" for name, size in named.items()), reason=reason)
                context.report(rule, at=request.caller)
            (refused if more is None else told).append(named)
    verifier.tell_not_compared(request)
    return _summary(context, verifier, outcomes, told, refused)


def difference_text(output: VerifiedOutput) -> str:
    """How far an output that was compared is apart, such as `logits 1.2e-07 (relative 3.4e-06)`."""
    return f"{output.name} {output.absolute:.2g} (relative {output.relative:.2g})"


def sizes_text(sizes: Mapping[str, int]) -> str:
    """Sizes of dims, such as `batch = 4, length = 7`."""
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def _without_outcome(verifier: _Verifier, reason: str) -> Verification:
    return Verification(tuple(VerifiedOutput(name, not_compared=reason) for name in verifier.names))


def _summary(
    context: DiagnosticContext,
    verifier: _Verifier,
    outcomes: Sequence[Sequence[_Outcome]],
    sizes: Sequence[Mapping[str, int]],
    refused: Sequence[Mapping[str, int]],
) -> Verification:
    """The worst of the outcomes for each output."""
    names, reasons = verifier.names, verifier.reasons
    outputs = tuple(
        VerifiedOutput(name, not_compared=reasons[index])
        if index in reasons
        else VerifiedOutput(name, max(each[index].absolute for each in outcomes), max(each[index].relative for each in outcomes))
        for index, name in enumerate(names)
    )
    compared = [each for each in outputs if not each.not_compared]
    if compared:
        count = f"{len(compared)} of {len(names)}" if reasons else f"{len(names)}"
        also = "".join(f", also with {sizes_text(each)}" for each in sizes)
        apart = "; ".join(map(difference_text, compared))
        context.event(f"{count} outputs were compared with eager PyTorch{also}. Their largest differences: {apart}.")
    if refused:
        context.event(f"The outputs were not compared with {'; '.join(map(sizes_text, refused))}: the model takes no such inputs.")
    return Verification(outputs, tuple(sizes), tuple(refused))


def _reasons(prepared: Prepared, request: Request, expected: Sequence[torch.Tensor], differing: Sequence[int]) -> dict[int, str]:
    """The reason for each of the outputs `differing` that cannot be compared."""
    # NOTE: the random numbers of the first run were put back, so another seed shows whether the outputs depend on them. A second one
    # does where the first draws almost the same number, or is the one that the user's script began with.
    reasons: dict[int, str] = {}
    for seed in _SEEDS:
        again = eager.outputs(prepared.program, request, seed=seed)
        reasons |= {index: _VARIES for index in differing if compare(again[index], expected[index]).differs}
    left = [index for index in differing if index not in reasons]
    if left:
        other = eager.outputs_with_other_signs(prepared.program, request)
        reasons |= {index: _SIGNS for index in left if compare(other[index], expected[index]).differs}
    return reasons


def _has_no_numbers(tensor: torch.Tensor) -> bool:
    if not tensor.numel() or not (tensor.is_floating_point() or tensor.is_complex()):
        return False
    # NOTE: PyTorch has no kernel for the eight-bit floats.
    return not bool((tensor.float() if tensor.itemsize == 1 else tensor).isfinite().any())


def _explained(
    context: DiagnosticContext,
    model: ir.Model,
    path: pathlib.Path | None,
    messages: Messages,
    run: Callable[[], _Result],
    notes: Sequence[str] = (),
) -> _Result | None:
    """The result of `run`, which calls ONNX Runtime; None, and a finding, if it has no kernel for a node."""
    try:
        with messages.read(notes):
            return run()
    except Exception as error:
        # NOTE: the exceptions of ONNX Runtime have no common base class but Exception.
        at = locations.at_onnx_node(str(error), model)
        if (missing := _missing_kernel(error, model)) is not None:
            context.report(missing, at=at)
            return None
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        if path is not None:
            # NOTE: the folder has a different name in each run, and a finding must stay the same.
            first = first.replace(f"{path.parent}/", "")
        raise context.fail(RuntimeRejected(error=first), at=at, notes=notes, cause=error) from error


def _missing_kernel(error: Exception, model: ir.Model) -> KernelMissing | None:
    """The finding about a node that ONNX Runtime does not implement, if the type of `error` says so."""
    if type(error).__name__ != "NotImplemented" or not type(error).__module__.startswith("onnxruntime."):
        return None
    node = locations.onnx_node(str(error), model)
    if node is None:
        return None
    dtypes = dict.fromkeys(value.dtype.name for value in (*node.inputs, *node.outputs) if value is not None and value.dtype is not None)
    return KernelMissing(operator=node.op_type, dtypes=tuple(dtypes))


def _run_eager(
    context: DiagnosticContext, program: torch.export.ExportedProgram, request: Request
) -> tuple[list[torch.Tensor], list[torch.Tensor] | None]:
    try:
        return eager.outputs_of_two_runs(program, request)
    except Exception as error:
        # NOTE: the user's model runs here, and may raise anything.
        at = locations.at_exception(error, request.model if isinstance(request.model, torch.nn.Module) else None)
        at = at if at.location is not None else Evidence(locations.module_definition(request.model))
        raise context.fail(EagerFailed(error=described_error(error)), at=at, cause=error) from error


def _volatile_call(prepared: Prepared) -> Evidence | None:
    """Where the model asks for the phase or for the time: the answer is different now, and so is what the model computes."""
    ran = volatile_calls.frames(prepared.program)
    asked = [*volatile_calls.phases(ran), *volatile_calls.clocks(ran)]
    return Evidence(asked[0].place.saying("the answer differs from the one during capture")) if asked else None
