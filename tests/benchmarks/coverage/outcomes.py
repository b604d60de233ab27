"""One sample: exported, run in ONNX Runtime and compared with eager PyTorch."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

import onnxplain

from .cases import Pair, leaves, samples

_TOLERANCES = {torch.float64: 1e-6, torch.float32: 2e-4, torch.float16: 2e-2}
"""How large `|got - want| / (1 + |want|)` may be."""


class Outcome(enum.Enum):
    """What became of a sample."""

    OK = "ok"
    REFUSED = "refused"
    INTERNAL = "internal error"
    INVALID = "invalid model"
    NO_KERNEL = "not run by ONNX Runtime"
    TOLD = "different, with a finding"
    DIFFERENT = "silently different"
    SLOW = "too slow"
    CRASHED = "crashed"
    NO_SAMPLE = "not run by eager PyTorch"


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


def measure(pair: Pair, count: int, seconds: int, *, theirs: bool) -> list[Result]:
    """The results of the first samples of a pair."""
    export = _theirs if theirs else _ours
    results: list[Result] = []
    try:
        for module, inputs in samples(pair, count):
            results.append(_result(pair, module, inputs, seconds, export))
    except Exception as error:  # noqa: BLE001  generators of samples raise anything
        results.append(Result(Outcome.NO_SAMPLE.value, _line(error)))
    return results


Exporter = Callable[[torch.nn.Module, tuple[torch.Tensor, ...]], "Result | tuple[Callable[..., Sequence[torch.Tensor]], str]"]


def _result(pair: Pair, module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], seconds: int, export: Exporter) -> Result:
    try:
        wanted, other = (_eager(module, inputs, seed) for seed in (1, 2))
    except Exception as error:  # noqa: BLE001  operators raise anything
        return Result(Outcome.NO_SAMPLE.value, _line(error))
    repeats = pair.has_values and not any(_difference(each, first) for each, first in zip(other, wanted, strict=True))
    try:
        with _limit(seconds):
            made = export(module, _copied(inputs))
            if isinstance(made, Result):
                return made
            run, findings = made
            try:
                got = list(run(*_copied(inputs)))
            except Exception as error:  # noqa: BLE001  ONNX Runtime's errors have no common class
                return Result(Outcome.NO_KERNEL.value, _line(error.__cause__ or error), findings)
    except _Slow:
        return Result(Outcome.SLOW.value)
    problem = _problem(got, wanted, compares_values=repeats)
    if not problem:
        return Result(Outcome.OK.value)
    return Result((Outcome.TOLD if findings else Outcome.DIFFERENT).value, findings or problem, problem)


def _ours(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> Any:
    try:
        program = onnxplain.export(module, inputs)
    except onnxplain.ExportFailed as error:
        worst = [each for each in error.log.findings if each.level is onnxplain.Level.ERROR]
        ids = sorted({each.rule.id for each in worst})
        outcome = Outcome.INTERNAL if "OXP0001" in ids else Outcome.INVALID if "OXP5002" in ids else Outcome.REFUSED
        return Result(outcome.value, " ".join(ids), " | ".join(dict.fromkeys(each.message for each in worst))[:400])
    except Exception as error:  # noqa: BLE001  anything else is a defect, which is what this looks for
        return Result(Outcome.INTERNAL.value, _line(error))
    told = sorted({each.rule.id for each in program.diagnostics.findings if each.level is not onnxplain.Level.NOTE})
    return program, " ".join(told)


def _theirs(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> Any:
    try:
        program = torch.onnx.export(module, inputs, dynamo=True, verbose=False, report=False, verify=False)
    except Exception as error:  # noqa: BLE001  theirs raises anything
        return Result(Outcome.REFUSED.value, _line(error))
    return program, ""


def _eager(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], seed: int) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    results = leaves(module(*_copied(inputs)))
    return [torch.as_tensor(each) for each in results if not isinstance(each, str | torch.dtype | torch.device | None)]


def _copied(inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Copies, since some operators write to their inputs."""
    return tuple(each.clone() for each in inputs)


def _problem(got: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor], *, compares_values: bool) -> str:
    """How the results differ; empty if they are equal."""
    if len(got) != len(wanted):
        return f"{len(got)} results instead of {len(wanted)}"
    for mine, eager in zip(got, wanted, strict=True):
        eager = torch.view_as_real(eager.resolve_conj()) if eager.is_complex() and not mine.is_complex() else eager
        if mine.dtype != eager.dtype:
            return f"dtype {mine.dtype} instead of {eager.dtype}"
        if mine.shape != eager.shape:
            return f"shape {tuple(mine.shape)} instead of {tuple(eager.shape)}"
        if compares_values and (apart := _difference(mine, eager)):
            return f"{apart:.2g} apart"
    return ""


def _difference(got: torch.Tensor, wanted: torch.Tensor) -> float:
    """The largest distance; 0 within the tolerance, infinite for other shapes and where only one is NaN or infinite."""
    if got.shape != wanted.shape:
        return float("inf")
    if not got.numel():
        return 0.0
    got, wanted = (torch.view_as_real(each.resolve_conj()) if each.is_complex() else each for each in (got, wanted))
    if got.layout is not torch.strided or wanted.layout is not torch.strided:
        got, wanted = got.to_dense(), wanted.to_dense()
    left, right = got.detach().double(), wanted.detach().double()
    apart = torch.where((left == right) | (left.isnan() & right.isnan()), 0.0, (left - right).abs() / (1 + right.abs()))
    worst = float(apart.nan_to_num(nan=float("inf"), posinf=float("inf")).max())
    return worst if worst > _TOLERANCES.get(wanted.dtype, 0.0) else 0.0


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:300]


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
