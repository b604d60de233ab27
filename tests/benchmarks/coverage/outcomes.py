"""One sample: exported, run in ONNX Runtime and compared with eager PyTorch."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import signal
from collections.abc import Iterator, Sequence
from typing import Any

import torch

import onnxplain

from .cases import Pair, Sample, leaves, samples
from .comparison import Outcome, difference, first_line


@dataclasses.dataclass(frozen=True)
class Result:
    """The outcome of a sample.

    Attributes:
        outcome: As `Outcome.value`.
        cause: The ids of the findings, or the first line of the error.
        detail: The rest that helps to find the cause.
    """

    outcome: str
    cause: str = ""
    detail: str = ""


class _Slow(BaseException):
    """The time limit of a sample has passed. No `except Exception` on the way may hold it."""


@dataclasses.dataclass(frozen=True)
class Selection:
    """Which samples to take, and how to export them.

    Attributes:
        count: How many samples of a pair.
        seed: Makes the samples random ones; None stands for the first ones.
        seconds: The time limit of a sample.
        dynamic: Whether the dims of the first input are dynamic; the results are compared at other sizes as well.
        theirs: Whether torch.onnx.export exports them.
        opset: The opset of the exported models, if not onnxplain's default.
    """

    count: int = 2
    seed: int | None = None
    seconds: int = 60
    dynamic: bool = False
    theirs: bool = False
    opset: int | None = None


def measure(pair: Pair, selection: Selection) -> list[Result]:
    """The results of the selected samples of a pair."""
    results: list[Result] = []
    try:
        for sample in samples(pair, selection.count, selection.seed, with_dims=selection.dynamic):
            results.append(_result(pair, sample, selection))
    except Exception as error:  # noqa: BLE001  generators of samples raise anything
        results.append(Result(Outcome.NO_SAMPLE.value, first_line(error)))
    return results


def _result(pair: Pair, sample: Sample, selection: Selection) -> Result:
    try:
        wanted, other = (_eager(sample, sample.inputs, seed) for seed in (1, 2))
    except Exception as error:  # noqa: BLE001  operators raise anything
        return Result(Outcome.NO_SAMPLE.value, first_line(error))
    repeats = pair.has_values and not any(difference(each, first) for each, first in zip(other, wanted, strict=True))
    try:
        with _limit(selection.seconds):
            made = _theirs(sample) if selection.theirs else _ours(sample, selection)
            if isinstance(made, Result):
                return made
            result = _compared(*made, sample, sample.inputs, wanted, repeats)
            if not selection.dynamic or result.outcome != Outcome.OK.value:
                return result
            return _at_other_sizes(*made, sample, repeats)
    except _Slow:
        return Result(Outcome.SLOW.value)


def _compared(
    program: Any, findings: str, sample: Sample, inputs: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor], compares_values: bool
) -> Result:
    try:
        got = list(program(*_copied(inputs)))
    except Exception as error:  # noqa: BLE001  ONNX Runtime's errors have no common class
        return Result(Outcome.NO_KERNEL.value, first_line(error.__cause__ or error), findings)
    problem = _problem(got, wanted, sample, inputs, compares_values=compares_values)
    if not problem:
        return Result(Outcome.OK.value)
    return Result((Outcome.TOLD if findings else Outcome.DIFFERENT).value, findings or problem, problem)


_CHANGES = (3, 1, -1, -2)
"""What is added to the size of each dynamic dim."""


def _at_other_sizes(program: onnxplain.ONNXProgram, findings: str, sample: Sample, compares_values: bool) -> Result:
    """The first result that is not right at other sizes that eager PyTorch accepts."""
    first, *others = sample.inputs
    free = [dim for dim, size in enumerate(program.model.graph.inputs[0].shape or ()) if not isinstance(size, int)]
    if not free:
        return Result(Outcome.FIXED.value, findings)
    sizes = []
    for change in _CHANGES:
        try:
            inputs = (_resized(first, free, change), *others)
            wanted = _eager(sample, inputs, 1)
        except Exception:  # noqa: BLE001  operators raise anything
            continue
        sizes.append(str(tuple(inputs[0].shape)))
        result = _compared(program, findings, sample, inputs, wanted, compares_values)
        if result.outcome != Outcome.OK.value:
            return dataclasses.replace(result, detail=f"at {sizes[-1]} for {tuple(first.shape)}: {result.detail}")
    return Result(Outcome.OK.value, "" if sizes else "at no other size", " ".join(sizes))


def _resized(value: torch.Tensor, dims: Sequence[int], change: int) -> torch.Tensor:
    """`value` with other sizes. Its elements repeat, so that positions stay valid."""
    for dim in dims:
        size = value.shape[dim]
        value = value.index_select(dim, torch.arange(max(size + change, 0)) % max(size, 1))
    return value


def _ours(sample: Sample, selection: Selection) -> Any:
    first, *others = sample.inputs if selection.dynamic else [torch.empty(())]
    shapes = {"tensors": (dict.fromkeys(range(first.ndim), torch.export.Dim.AUTO), *(None for _ in others))} if selection.dynamic else None
    try:
        program = onnxplain.export(sample.module, _copied(sample.inputs), dynamic_shapes=shapes, opset_version=selection.opset)
    except onnxplain.ExportFailed as error:
        worst = [each for each in error.log.findings if each.level is onnxplain.Level.ERROR]
        ids = sorted({each.rule.id for each in worst})
        outcome = Outcome.INTERNAL if "OXP0001" in ids else Outcome.INVALID if "OXP5002" in ids else Outcome.REFUSED
        return Result(outcome.value, " ".join(ids), " | ".join(dict.fromkeys(each.message for each in worst))[:400])
    except Exception as error:  # noqa: BLE001  anything else is a defect, which is what this looks for
        return Result(Outcome.INTERNAL.value, first_line(error))
    told = sorted({each.rule.id for each in program.diagnostics.findings if each.level is not onnxplain.Level.NOTE})
    return program, " ".join(told)


def _theirs(sample: Sample) -> Any:
    try:
        program = torch.onnx.export(sample.module, _copied(sample.inputs), dynamo=True, verbose=False, report=False, verify=False)
    except Exception as error:  # noqa: BLE001  theirs raises anything
        return Result(Outcome.REFUSED.value, first_line(error))
    return program, ""


def _eager(sample: Sample, inputs: Sequence[torch.Tensor], seed: int) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    results = leaves(sample.module(*_copied(inputs)))
    return [torch.as_tensor(each) for each in results if not isinstance(each, str | torch.dtype | torch.device | None)]


def _copied(inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Copies, since some operators write to their inputs."""
    return tuple(each.clone() for each in inputs)


def _problem(
    got: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor], sample: Sample, inputs: Sequence[torch.Tensor], *, compares_values: bool
) -> str:
    """How the results for some inputs differ; empty if they are equal."""
    if len(got) != len(wanted):
        return f"{len(got)} results instead of {len(wanted)}"
    got = [_complex(mine) if eager.is_complex() and not mine.is_complex() else mine for mine, eager in zip(got, wanted, strict=True)]
    for mine, eager in zip(got, wanted, strict=True):
        if mine.dtype != eager.dtype:
            return f"dtype {mine.dtype} instead of {eager.dtype}"
        if mine.shape != eager.shape:
            return f"shape {tuple(mine.shape)} instead of {tuple(eager.shape)}"
    if not compares_values or not (apart := _apart(got, wanted, sample, inputs)):
        return ""
    # NOTE: eager PyTorch may be the one that overflows, or whose rounding errors add up.
    exact = _exact(wanted, sample, inputs)
    return f"{apart:.2g} apart" if exact is None or _apart(got, exact, sample, inputs) else ""


def _apart(got: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor], sample: Sample, inputs: Sequence[torch.Tensor]) -> float:
    """The first distance that is not within the tolerance, otherwise 0."""
    compared = zip(sample.compared(got, inputs), sample.compared(wanted, inputs), strict=True)
    return next(filter(None, (difference(mine, other) for mine, other in compared)), 0.0)


def _exact(wanted: Sequence[torch.Tensor], sample: Sample, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
    """The results of eager PyTorch in double precision, rounded to the dtypes of `wanted`; None if it has none of their shapes."""

    def wide(value: torch.Tensor) -> torch.Tensor:
        return value.to(torch.complex128) if value.is_complex() else value.double() if value.is_floating_point() else value

    try:
        module = copy.deepcopy(sample.module).double()
        found = _eager(dataclasses.replace(sample, module=module), [wide(each) for each in inputs], 1)
    except Exception:  # noqa: BLE001  operators raise anything
        return None
    if [each.shape for each in found] != [each.shape for each in wanted]:
        return None
    return [each.to(like.dtype) for each, like in zip(found, wanted, strict=True)]


def _complex(parts: torch.Tensor) -> torch.Tensor:
    return torch.view_as_complex(parts.contiguous()) if parts.ndim and parts.shape[-1] == 2 else parts


@contextlib.contextmanager
def _limit(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _Slow

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
