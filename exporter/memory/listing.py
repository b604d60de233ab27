"""A memory estimate as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnxplain.diagnostics import visible

from .records import MemoryEstimate, Step, readable

_TENSORS = 10
_ROWS = 20
_BAR = 30
_WIDTH = 120
"""The most tensors and rows of the timeline, and the longest bar and line."""


def listing(found: MemoryEstimate) -> str:
    """The peak, the tensors that make it, and the timeline, one line each. Texts come from the model, so nothing in them is trusted."""
    return "".join(f"{visible(line)[:_WIDTH].rstrip()}\n" for line in _lines(found))


def headline(found: MemoryEstimate) -> str:
    """The peak and the node that runs then."""
    if not found.steps:
        return "The model has no operators, so its activations take no memory."
    step = found.steps[found.at]
    return f"peak {readable(found.peak)}, at operator {found.at + 1} of {len(found.steps)}: {_told(step)}"


def _lines(found: MemoryEstimate) -> Iterator[str]:
    yield headline(found)
    yield f"beside it: weights {readable(found.weights)}, inputs {readable(found.inputs)}"
    if found.sizes:
        yield f"for the sizes {', '.join(f'{name}={size}' for name, size in found.sizes.items())}"
    if found.unknown:
        yield f"tensors whose size depends on data count as empty: {len(found.unknown)}, such as {found.unknown[0]}"
    large = [tensor for tensor in found.tensors if tensor.size * 100 >= found.peak and tensor.size]
    if large:
        yield ""
        yield "tensors at the peak:"
    for tensor in large[:_TENSORS]:
        growth = f", grows with {tensor.growth}" if tensor.growth else ""
        yield f"{readable(tensor.size):>10}  {tensor.dtype.lower()}{tensor.shape} {tensor.origin.place}{growth}"
    if len(large) > _TENSORS:
        yield f"            and {len(large) - _TENSORS} more"
    if len(found.steps) > 1:
        yield ""
        yield "timeline:" if len(found.steps) <= _ROWS else f"timeline, the highest of each {_length(found.steps)} operators:"
        for step in _rows(found.steps):
            bar = "#" * round(_BAR * step.live / max(1, found.peak))
            yield f"{readable(step.live):>10}  {bar:{_BAR}}  {_told(step)}"


def _length(steps: Sequence[Step]) -> int:
    return -(-len(steps) // _ROWS)


def _rows(steps: Sequence[Step]) -> list[Step]:
    length = _length(steps)
    return [max(steps[start : start + length], key=lambda step: step.live) for start in range(0, len(steps), length)]


def _told(step: Step) -> str:
    return f"{step.origin.operator}{f', {step.origin.place}' if step.origin.place != step.origin.operator else ''}"
