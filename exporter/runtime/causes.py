"""Tells why the exported model computes an operator otherwise than PyTorch: each cause by a computation that it alone explains."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence

import onnx_ir as ir
import torch

from . import sessions
from .comparison import compare, is_rounding
from .parts import Part
from .standard import by_reference, in_double

_HALF_MAX = torch.finfo(torch.float16).max
_SAME_IN_DOUBLE = 1e-6
"""How far two computations in float64 may be apart: the weights and constants of both may have been rounded to float32."""
_NO_STANDARD = (
    "ONNX's reference evaluator cannot compute these operators, or not in time: a fault of ONNX Runtime's kernel would look the same."
)
_PRECISION = {torch.float64: 53, torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}


class Cause(enum.Enum):
    """Why a result differs."""

    TRANSLATION = "the translation computes something else"
    PROMOTION = "the translation computes in another dtype"
    OVERFLOW = "a float16 overflows on one side"
    KERNEL = "ONNX Runtime computes something else than the ONNX standard"
    OPTIMIZER = "ONNX Runtime's graph optimizations change the result"


@dataclasses.dataclass(frozen=True)
class Scene:
    """One operator whose result differs, and the values before it in the exported model.

    Attributes:
        model: The exported model.
        part: The ONNX nodes that compute the result; None if it is not known which ones do.
        values: The values that the part takes.
        got: The result of the exported model.
        own: The result of PyTorch for the same values.
        exact: The result of PyTorch for the same values in float64, if PyTorch can compute it.
        limit: How far a result may be from `own` to count as the same.
        overflowed: Whether an overflow of float16 in PyTorch comes before.
        write: As for `session`.
    """

    model: ir.Model
    part: Part | None
    values: Mapping[ir.Value, torch.Tensor]
    got: torch.Tensor
    own: torch.Tensor
    exact: torch.Tensor | None
    limit: float
    overflowed: bool
    write: sessions.WriteModel

    def is_same(self, result: torch.Tensor) -> bool:
        """Whether a result is that of PyTorch, but for rounding."""
        again = compare(result, self.own)
        return again.difference <= self.limit or (self.exact is not None and is_rounding(result, self.own, self.exact))


@dataclasses.dataclass(frozen=True)
class Answer:
    """A cause, and what shows it.

    Attributes:
        cause: The cause.
        dtype: The dtype that the exported model computes in, for `PROMOTION`.
        shown: Sentences on the computations that tell the cause apart from others.
    """

    cause: Cause
    dtype: str = ""
    shown: tuple[str, ...] = ()


def cause_of(scene: Scene) -> Answer:
    """The cause of a difference."""
    got, own = scene.got, scene.own
    if got.shape != own.shape:
        return Answer(Cause.TRANSLATION, shown=(f"The result has the shape {list(got.shape)} instead of {list(own.shape)}.",))
    if got.dtype is not own.dtype:
        wrong = compare(got.to(own.dtype), own).difference > scene.limit
        dtype = str(got.dtype).removeprefix("torch.")
        return Answer(Cause.TRANSLATION if wrong else Cause.PROMOTION, dtype, (f"The result has the dtype '{dtype}'.",))
    wide = None if scene.part is None else _formula_in_double(scene, scene.part)
    if _is_overflow(scene, wide):
        return Answer(Cause.OVERFLOW)
    standard = None if scene.part is None else by_reference(scene.part, scene.model, scene.values)
    if (answer := _of_runtime(scene, standard)) is not None:
        return answer
    answer = _of_translation(scene, wide)
    return answer if standard is not None else dataclasses.replace(answer, shown=(*answer.shown, _NO_STANDARD))


def _of_runtime(scene: Scene, standard: Sequence[torch.Tensor] | None) -> Answer | None:
    """The answer, if ONNX Runtime is to blame: other runs of the same ONNX operators give PyTorch's result."""
    if scene.part is None:
        return None
    try:
        plain = scene.part.run(scene.model, scene.values, scene.write, optimized=False)[scene.part.outputs[0]]
    except Exception:  # noqa: BLE001  the exceptions of ONNX Runtime have no common base class but Exception
        return None
    if scene.is_same(plain):
        return Answer(Cause.OPTIMIZER, shown=("With ONNX Runtime's graph optimizations disabled, the result is PyTorch's.",))
    if standard is None or not scene.is_same(standard[0]):
        return None
    shown = "ONNX's reference evaluator gives PyTorch's result; ONNX Runtime differs with its graph optimizations and without them."
    return Answer(Cause.KERNEL, shown=(shown,))


def _of_translation(scene: Scene, wide: _Wide | None) -> Answer:
    """The answer, if the translation is to blame: in float64, the formula and the dtypes fall apart."""
    if wide is None:
        return Answer(Cause.TRANSLATION)
    if not wide.is_right:
        return Answer(Cause.TRANSLATION, shown=("In float64, the result differs as well.",))
    lower = _lower_dtype(scene)
    if lower:
        return Answer(Cause.PROMOTION, lower, ("In float64, the same ONNX operators give PyTorch's result.",))
    return Answer(Cause.TRANSLATION, shown=("In float64, the same ONNX operators give PyTorch's result: they lose digits.",))


@dataclasses.dataclass(frozen=True)
class _Wide:
    """A part, computed in float64: whether the result is PyTorch's, and the largest finite value on the way."""

    is_right: bool
    largest: float


def _formula_in_double(scene: Scene, part: Part) -> _Wide | None:
    """The part in float64; None if PyTorch or ONNX's reference evaluator cannot compute that."""
    exact = scene.exact
    if exact is None:
        return None
    found: _Wide | None = None
    for integers in (False, True):
        results = in_double(part, scene.model, scene.values, integers=integers)
        if results is None or results[-1].shape != exact.shape:
            continue
        is_right = compare(results[-1].double(), exact.double()).difference <= _SAME_IN_DOUBLE
        found = _Wide(is_right, max(map(_largest, [*results, exact])))
        if is_right:
            return found
    return found


def _is_overflow(scene: Scene, wide: _Wide | None) -> bool:
    """Whether only one side has infinities or NaN, and float16 is too small for a value on the way."""
    if torch.equal(scene.got.isfinite(), scene.own.isfinite()):
        # NOTE: ONNX Runtime may keep a value in float32 where the model has float16.
        return False
    if scene.overflowed:
        return True
    dtypes = {scene.own.dtype, *(each.dtype for each in _intermediate(scene))}
    return torch.float16 in dtypes and wide is not None and wide.largest > _HALF_MAX


def _lower_dtype(scene: Scene) -> str:
    """The dtype of lowest precision that the part computes in, if PyTorch's is higher; empty if it is not."""
    expected = _PRECISION.get(scene.own.dtype, 64)
    narrow = [each.dtype for each in _intermediate(scene) if _bits(each.dtype) < expected]
    if narrow:
        return str(min(narrow, key=_bits)).removeprefix("torch.")
    # NOTE: an operator whose result is a float computes in integers.
    whole = [each.dtype for each in _intermediate(scene) if not each.dtype.is_floating_point and each.dtype is not torch.bool]
    return str(whole[0]).removeprefix("torch.") if whole and scene.own.is_floating_point() else ""


def _intermediate(scene: Scene) -> Sequence[torch.Tensor]:
    """The values within the part that depend on its inputs, as ONNX Runtime computes them; none if it cannot show them."""
    part = scene.part
    if part is None:
        return ()
    depend = set(part.inputs)
    for node in part.nodes:
        if any(value in depend for value in node.inputs):
            depend |= set(node.outputs)
    shown = [value for node in part.nodes for value in node.outputs if value in depend and value not in part.outputs and value.name]
    if not shown:
        return ()
    try:
        return list(dataclasses.replace(part, outputs=tuple(shown)).run(scene.model, scene.values, scene.write, optimized=False).values())
    except Exception:  # noqa: BLE001  the exceptions of ONNX Runtime have no common base class but Exception
        return ()


def _bits(dtype: torch.dtype) -> int:
    """The binary digits of the numbers of a dtype that are exact."""
    if dtype is torch.bool or dtype.is_complex:
        return 64
    return _PRECISION.get(dtype) or (torch.iinfo(dtype).bits if not dtype.is_floating_point else 4)


def _largest(tensor: torch.Tensor) -> float:
    finite = tensor[tensor.isfinite()].double().abs()
    return float(finite.max()) if finite.numel() else 0.0
