"""One architecture: exported, run in ONNX Runtime at the example's sizes and at others, and compared with eager PyTorch."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
import zoo

import onnxplain
from benchmarks.architectures import COVERAGE
from benchmarks.coverage.comparison import Outcome, difference, first_line
from onnxplain.diagnostics import Diagnostic
from onnxplain.request import containers
from onnxplain.torch_internals import pytree

_ROUNDING = 0.02
"""How far four times the rounding error of eager PyTorch may be. What is further off is another result."""


@dataclasses.dataclass(frozen=True)
class Trial:
    """An architecture, and how it is exported.

    Attributes:
        family: Its family in `COVERAGE`.
        name: Its name there.
        dynamic: With dynamic sizes.
        theirs: With torch.onnx.export.
    """

    family: str
    name: str
    dynamic: bool = False
    theirs: bool = False


@dataclasses.dataclass(frozen=True)
class Result:
    """The outcome of a trial.

    Attributes:
        outcome: As `Outcome.value`.
        rules: The ids of the findings.
        message: The first line of the first finding or of the error, or how the results differ.
        line: Where the first finding is, as `file:line`.
    """

    outcome: str
    rules: str = ""
    message: str = ""
    line: str = ""


Run = Callable[..., Sequence[torch.Tensor]]


def trials(families: Sequence[str], names: Sequence[str]) -> list[Trial]:
    """Every architecture, static, and those that take other sizes with dynamic sizes."""
    return [
        Trial(family, name, dynamic)
        for family in families or COVERAGE
        for name, architecture in COVERAGE[family].items()
        if not names or name in names
        for dynamic in ([False, True] if architecture.given.other else [False])
    ]


def run(trial: Trial) -> Result:
    """Exports and compares. Runs in a process that may end with it."""
    architecture = COVERAGE[trial.family][trial.name]
    try:
        torch.manual_seed(0)
        model = architecture.model().eval()
        zoo.randomize(model)
        sizes = [{}, architecture.given.other] if trial.dynamic else [{}]
        inputs = [architecture.given.make(**each) for each in sizes]
        wanted = [_eager(model, each, seed=1) for each in inputs]
        again = _eager(model, inputs[0], seed=2)
    except Exception as error:  # noqa: BLE001  models raise anything
        return Result(Outcome.NO_SAMPLE.value, message=first_line(error))
    repeats = not any(difference(one, other) for one, other in zip(again, wanted[0], strict=True))
    shapes = dynamic_shapes(model, *inputs) if trial.dynamic else None
    made = (_theirs if trial.theirs else _ours)(model, inputs[0], shapes)
    if isinstance(made, Result):
        return made
    program, told = made
    for given, eager, size in zip(inputs, wanted, sizes, strict=True):
        try:
            got = list(program(*given.args, **given.kwargs))
            apart = _problem(got, eager, compares_values=repeats)
            # NOTE: eager PyTorch may be the one whose rounding errors add up.
            if apart and repeats and _is_no_further(got, eager, _exact(model, given)):
                continue
        except Exception as error:  # noqa: BLE001  ONNX Runtime's errors have no common class
            return told or Result(Outcome.NO_KERNEL.value, message=first_line(error.__cause__ or error))
        if apart:
            at = " ".join(f"{name}={value}" for name, value in size.items())
            return told or Result(Outcome.DIFFERENT.value, message=f"{apart} at {at or 'the example'}")
    return Result(Outcome.OK.value)


def dynamic_shapes(model: torch.nn.Module, example: zoo.Inputs, other: zoo.Inputs) -> dict[str, Any]:
    """The axes in which the inputs differ are dynamic. By the names of the parameters of `forward`."""
    signature = inspect.signature(model.forward)
    named = [signature.bind(*each.args, **each.kwargs).arguments for each in (example, other)]
    return {name: _axes(value, named[1][name]) for name, value in named[0].items()}


def _axes(value: Any, other: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return {axis: torch.export.Dim.DYNAMIC for axis, size in enumerate(value.shape) if size != other.shape[axis]}
    if isinstance(value, list | tuple):
        return type(value)(_axes(each, its) for each, its in zip(value, other, strict=True))
    if isinstance(value, dict):
        return {key: _axes(each, other[key]) for key, each in value.items()}
    return None


def _ours(model: torch.nn.Module, inputs: zoo.Inputs, shapes: dict[str, Any] | None) -> Any:
    try:
        program = onnxplain.export(model, inputs.args, kwargs=inputs.kwargs, dynamic_shapes=shapes)
    except onnxplain.ExportFailed as error:
        worst = [each for each in error.log.findings if each.level is onnxplain.Level.ERROR]
        ids = {each.rule.id for each in worst}
        outcome = Outcome.INTERNAL if "OXP0001" in ids else Outcome.INVALID if "OXP5002" in ids else Outcome.REFUSED
        return _result(outcome, worst)
    except Exception as error:  # noqa: BLE001  anything else is a defect, which is what this looks for
        return Result(Outcome.INTERNAL.value, message=first_line(error))
    told = [each for each in program.diagnostics.findings if each.level is not onnxplain.Level.NOTE]
    return program, _result(Outcome.TOLD, told) if told else None


def _result(outcome: Outcome, findings: Sequence[Diagnostic]) -> Result:
    first = findings[0]
    at = first.location
    # NOTE: the results do not say where the machine keeps its packages.
    place = f"{at.file.split('site-packages/')[-1]}:{at.line}" if at and at.file else ""
    return Result(outcome.value, " ".join(sorted({each.rule.id for each in findings})), first.message.splitlines()[0][:300], place)


def _theirs(model: torch.nn.Module, inputs: zoo.Inputs, shapes: dict[str, Any] | None) -> Any:
    options: dict[str, Any] = {"dynamo": True, "verbose": False, "report": False, "verify": False}
    try:
        program = torch.onnx.export(model, inputs.args, kwargs=dict(inputs.kwargs), dynamic_shapes=shapes, **options)
    except Exception as error:  # noqa: BLE001  theirs raises anything
        return Result(Outcome.REFUSED.value, message=first_line(error))
    return program, None


def _eager(model: torch.nn.Module, inputs: zoo.Inputs, seed: int) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    # NOTE: an export registers the classes of the outputs. Without that, pytree takes a cache for a leaf without tensors.
    hook = model.register_forward_hook(lambda _module, _args, outputs: containers.register(outputs))
    try:
        return inputs.outputs_of(model)
    finally:
        hook.remove()


def _exact(model: torch.nn.Module, given: zoo.Inputs) -> Sequence[torch.Tensor]:
    """The results of eager PyTorch in double precision; none if the model does not run in it."""

    def wide(value: Any) -> Any:
        return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    args, kwargs = pytree.tree_map(wide, (given.args, dict(given.kwargs)))
    try:
        return _eager(copy.deepcopy(model).double(), zoo.Inputs(args, kwargs), seed=1)
    except Exception:  # noqa: BLE001  models raise anything
        return ()


def _is_no_further(got: Sequence[torch.Tensor], eager: Sequence[torch.Tensor], exact: Sequence[torch.Tensor]) -> bool:
    """Whether each result is about as near to that in double precision as eager PyTorch's, which is off by rounding."""
    if not len(got) == len(eager) == len(exact) or any(one.dtype != other.dtype for one, other in zip(got, eager, strict=True)):
        return False
    near = [each.to(like.dtype) for each, like in zip(exact, eager, strict=True)]
    errors = [(difference(mine, best), difference(its, best)) for mine, its, best in zip(got, eager, near, strict=True)]
    return all(mine <= 4 * its < _ROUNDING for mine, its in errors)


def _problem(got: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor], *, compares_values: bool) -> str:
    """How the results differ; empty if they are equal."""
    if len(got) != len(wanted):
        return f"{len(got)} results instead of {len(wanted)}"
    for mine, eager in zip(got, wanted, strict=True):
        if mine.dtype != eager.dtype:
            return f"dtype {mine.dtype} instead of {eager.dtype}"
        if mine.shape != eager.shape:
            return f"shape {tuple(mine.shape)} instead of {tuple(eager.shape)}"
        if compares_values and (apart := difference(mine, eager)):
            return f"{apart:.2g} apart"
    return ""
