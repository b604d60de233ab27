"""Resizing of images, signals and volumes, with the places and sizes that PyTorch computes.

Both PyTorch and ONNX Runtime compute in single precision which element is nearest, but the former multiplies by n / m, and the latter
divides by m / n. Of 28 elements resized to 4, they choose different ones.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.recording import op

from . import translates

_LONGEST = 1 << 16
"""Up to which size a factor is tried where the size is dynamic."""
_NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


@translates("aten::upsample_nearest1d.vec", "aten::upsample_nearest2d.vec", "aten::upsample_nearest3d.vec")
def upsample_nearest_by_factors(
    input: ir.Value, output_size: Sequence[int | ir.Value] | None = None, scale_factors: Sequence[float] | None = None
) -> Any:
    """aten::upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor.

    `input` (N, C, ...). Its spatial dims get the sizes of `output_size`, or their own times `scale_factors`, rounded down. Element i is
    element floor(i * n / m), or floor(i / factor), of the input.
    """
    return _nearest(input, output_size, scale_factors or [None] * (len(_shape(input)) - 2))


@translates("aten::upsample_nearest1d")
def upsample_nearest1d(self: ir.Value, output_size: Sequence[int | ir.Value], scales: float | None = None) -> Any:
    """aten::upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor. As the overload above."""
    return _nearest(self, output_size, [scales])


@translates("aten::upsample_nearest2d")
def upsample_nearest2d(
    self: ir.Value, output_size: Sequence[int | ir.Value], scales_h: float | None = None, scales_w: float | None = None
) -> Any:
    """aten::upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, ...) -> Tensor. As the overload above."""
    return _nearest(self, output_size, [scales_h, scales_w])


@translates("aten::upsample_nearest3d")
def upsample_nearest3d(
    self: ir.Value,
    output_size: Sequence[int | ir.Value],
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Any:
    """aten::upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, ...) -> Tensor. As the overload above."""
    return _nearest(self, output_size, [scales_d, scales_h, scales_w])


@translates("aten::upsample_linear1d.vec", "aten::upsample_bilinear2d.vec", "aten::upsample_trilinear3d.vec")
def upsample_linear(
    input: ir.Value,
    output_size: Sequence[int | ir.Value] | None,
    align_corners: bool,
    scale_factors: Sequence[float] | None = None,
) -> Any:
    """aten::upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor.

    `input` (N, C, ...). Its spatial dims get the sizes of `output_size`, or their own times `scale_factors`, rounded down. Each element is
    interpolated between the nearest ones in each dim; with `align_corners`, those at the ends stay.
    """
    return _interpolated("linear", input, output_size, align_corners, scale_factors)


@translates("aten::upsample_bicubic2d.vec")
def upsample_bicubic2d(
    input: ir.Value,
    output_size: Sequence[int | ir.Value] | None,
    align_corners: bool,
    scale_factors: Sequence[float] | None = None,
) -> Any:
    """aten::upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor.

    As `upsample_linear`, by cubic convolution of the four nearest elements in each dim, with the coefficient -0.75.
    """
    return _interpolated("cubic", input, output_size, align_corners, scale_factors, cubic_coeff_a=-0.75)


def _nearest(value: ir.Value, output_size: Sequence[int | ir.Value] | None, factors: Sequence[float | None]) -> Any:
    sizes = _shape(value)[2:]
    known = [factor for factor in factors if factor is not None]
    if output_size is None:
        # NOTE: ONNX Runtime copies what stays as large as it is, though the elements are others.
        special = any(1 < factor < 2 or _multiple(sizes, factor) for factor in known)
        if not special and all(_may_multiply(size, factor) for size, factor in zip(sizes, known, strict=True)):
            return op.Resize(value, None, [1.0, 1.0, *known], **_NEAREST)
        output_size = [_multiplied(value, axis, factor) for axis, factor in enumerate(known, 2)]
    elif not known and all(_may_divide(size, wanted) for size, wanted in zip(sizes, output_size, strict=True)):
        return op.Resize(value, None, None, _whole(value, output_size), **_NEAREST)
    result: Any = value
    # NOTE: the last dim first: along it, ONNX Runtime copies single elements, and images mostly grow.
    for axis, size, wanted, factor in reversed(list(zip(itertools.count(2), sizes, output_size, factors, strict=False))):
        if isinstance(size, int) and isinstance(wanted, int):
            whole = _multiple(sizes, factor)
            places: Any = _places(size, wanted, whole if whole and wanted == whole * size else factor)
        else:
            length = op.Squeeze(op.Shape(value, start=axis, end=axis + 1))
            step = _step(factor) if factor else op.Div(_single(length), _single(wanted))
            if whole := _multiple(sizes, factor):
                step = op.Where(op.Equal(wanted, op.Mul(length, whole)), _step(whole), step)
            steps = op.Mul(_single(op.Range(0, wanted, 1)), step)
            places = op.Min(op.Cast(steps, to=int(ir.DataType.INT64)), op.Sub(length, 1))
        result = op.Gather(result, places, axis=axis)
    return result


def _interpolated(
    mode: str,
    value: ir.Value,
    output_size: Sequence[int | ir.Value] | None,
    align_corners: bool,
    factors: Sequence[float] | None,
    **attributes: Any,
) -> Any:
    attributes |= {"mode": mode, "coordinate_transformation_mode": "align_corners" if align_corners else "half_pixel"}
    if factors is None:
        assert output_size is not None
        return op.Resize(value, None, None, _whole(value, output_size), **attributes)
    scales: list[Any] = [1.0, 1.0]
    for axis, (size, factor) in enumerate(zip(_shape(value)[2:], factors, strict=True), 2):
        agree = _sizes_agree(size if isinstance(size, int) else None, factor)
        scale = factor if agree else _nudged(value, axis, factor)
        # NOTE: PyTorch copies along a dim that stays as long as it is.
        scales.append(_unless_same(value, axis, factor, scale) if mode == "linear" and 1 < factor < 2 else scale)
    return op.Resize(value, None, scales, **attributes)


def _unless_same(value: ir.Value, axis: int, factor: float, scale: Any) -> Any:
    """`scale`; 1 if `factor` leaves the size as it is."""
    size, wanted = _shape(value)[axis], _multiplied(value, axis, factor)
    if isinstance(size, int):
        return 1.0 if size == wanted else scale
    length = op.Squeeze(op.Shape(value, start=axis, end=axis + 1))
    return op.Where(op.Equal(wanted, length), _single(1.0), scale if isinstance(scale, ir.Value) else _single(scale))


def _shape(value: ir.Value) -> list[Any]:
    assert value.shape is not None
    return list(value.shape)


def _whole(value: ir.Value, spatial: Sequence[int | ir.Value]) -> Any:
    """The shape of the result, whose first two dims are those of `value`."""
    first: list[Any] = _shape(value)[:2]
    if all(isinstance(each, int) for each in first):
        return [*first, *spatial]
    return op.Concat(op.Shape(value, start=0, end=2), [*spatial], axis=0)


def _single(value: Any) -> Any:
    return op.Cast(value, to=int(ir.DataType.FLOAT)) if isinstance(value, ir.Value) else np.float32(value)


def _step(factor: float) -> Any:
    """The distance of new elements, in old ones, in the single precision in which PyTorch computes places."""
    return np.float32(1.0 / factor)


def _multiple(sizes: Sequence[Any], factor: float | None) -> int:
    """The whole factor by which PyTorch's kernel for images resizes where it gives the same size as `factor`; 0 if there is none."""
    # NOTE: aten/src/ATen/native/UpSample.h, `nearest_idx`. The kernels of signals and of most volumes do not.
    return int(factor) if factor and len(sizes) == 2 and 1 < factor < 3 and factor != 2 else 0


def _places(size: int, wanted: int, factor: float | None) -> Any:
    """Which element of `size` each of the `wanted` ones is."""
    step = _step(factor) if factor else np.float32(size) / np.float32(wanted)
    return np.minimum((np.arange(wanted, dtype=np.float32) * step).astype(np.int64), size - 1)


def _may_divide(size: Any, wanted: Any) -> bool:
    """Whether a Resize to a size chooses the same elements."""
    if not (isinstance(size, int) and isinstance(wanted, int) and size and wanted):
        return False
    theirs = (np.arange(wanted, dtype=np.float32) / (np.float32(wanted) / np.float32(size))).astype(np.int64)
    return bool((np.minimum(theirs, size - 1) == _places(size, wanted, None)).all())


def _may_multiply(size: Any, factor: float) -> bool:
    """Whether a Resize by a factor has the same size and chooses the same elements."""
    most = size if isinstance(size, int) else None
    return _sizes_agree(most, factor) and _places_agree(_LONGEST if most is None else int(most * factor), factor)


@functools.cache
def _places_agree(wanted: int, factor: float) -> bool:
    index = np.arange(wanted, dtype=np.float32)
    return bool((np.floor(index * _step(factor)) == np.floor(index / np.float32(factor))).all())


@functools.cache
def _sizes_agree(size: int | None, factor: float) -> bool:
    """Whether the product of a size and a factor, rounded down, is the same in single precision; for every size if it is None.

    Of one size, it must also be the same with the factor alone in single precision: so ONNX infers the shape.
    """
    sizes, single = np.arange(_LONGEST) if size is None else np.array([size]), np.float32(factor)
    wanted = np.floor(sizes * factor)
    inferred = [] if size is None else [np.floor(sizes * np.float64(single))]
    return all(bool((wanted == each).all()) for each in [np.floor(sizes.astype(np.float32) * single), *inferred])


def _multiplied(value: ir.Value, axis: int, factor: float) -> Any:
    """The size of a dim of the result. PyTorch computes it in double precision."""
    size = _shape(value)[axis]
    if isinstance(size, int):
        return int(size * factor)
    length = op.Cast(op.Squeeze(op.Shape(value, start=axis, end=axis + 1)), to=int(ir.DataType.DOUBLE))
    return op.Cast(op.Mul(length, np.float64(factor)), to=int(ir.DataType.INT64))


def _nudged(value: ir.Value, axis: int, factor: float) -> Any:
    """`factor` in single precision, or the number next to it with which ONNX Runtime computes the size that PyTorch computes."""
    single = np.float32(factor)
    smaller, larger = (np.nextafter(single, np.float32(limit)) for limit in (0, np.inf))
    size = _shape(value)[axis]
    if isinstance(size, int):
        return smaller if np.floor(np.float32(size) * single) > int(size * factor) else larger
    wanted = op.Cast(_multiplied(value, axis, factor), to=int(ir.DataType.FLOAT))
    found = op.Floor(op.Mul(_single(op.Squeeze(op.Shape(value, start=axis, end=axis + 1))), single))
    return op.Where(op.Greater(found, wanted), smaller, op.Where(op.Less(found, wanted), larger, single))
