"""Tests that only refuse: `assert (x > 0).all()`, or `if lengths.min() < 1: raise ...`. Code goes on where they pass."""

from __future__ import annotations

import ast
import itertools
import types
from collections.abc import Callable, Iterator

from onnxplain.source import locations, syntax
from onnxplain.torch_internals import code_objects, python_frames


def answers(capturing: str) -> Callable[[types.FrameType], bool | None]:
    """Tells the truth that a frame must get for what it asks in such a test; None for other tests, and where code catches the refusal.

    Args:
        capturing: The file that calls the model.
    """
    required_by = python_frames.once_per_instruction(_required)

    def answer(frame: types.FrameType) -> bool | None:
        required = required_by(frame)
        return None if required is None or _is_caught(frame, capturing) else required

    return answer


def _required(frame: types.FrameType) -> bool | None:
    place = locations.location(*python_frames.entry_of(frame))
    # NOTE: Python 3.10 tells only the line.
    if place.region is None or place.region.column is None or not syntax.refuses(place):
        return None
    test = syntax.test_at(place)
    owner = next(each for each in reversed(syntax.around(place.file, place.region)) if isinstance(each, ast.Assert | ast.If))
    parts = [] if test is None else list(_parts(test, truth=isinstance(owner, ast.Assert)))
    inside = [truth for part, truth in parts if syntax.covers(syntax.region(place.file, part), place.region)]
    if inside:
        return inside[0]
    # NOTE: Python 3.11 gives the jump after each part the place of the whole statement.
    number, count = code_objects.jump_at(frame.f_code, frame.f_lasti)
    return parts[number][1] if number < count == len(parts) else None


def _parts(test: ast.expr, *, truth: bool) -> Iterator[tuple[ast.expr, bool | None]]:
    """The parts of `test` of which Python asks the truth, in order, with what it must be for `test` to be `truth`.

    None stands for a part without which another one may decide.
    """
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _parts(operand, truth=not truth)
        case ast.BoolOp(op=operator, values=values):
            decides = isinstance(operator, ast.And) is truth
            for value in values:
                yield from ((part, each if decides else None) for part, each in _parts(value, truth=truth))
        case ast.Compare(ops=[_, *others]) if others:
            yield from ((test, True if truth else None) for _ in test.ops)
        case ast.IfExp() | ast.NamedExpr() | ast.Lambda():
            yield test, None
        case _:
            yield test, truth


def _is_caught(frame: types.FrameType, capturing: str) -> bool:
    """Whether a caller goes on where the test refuses."""
    frames = itertools.takewhile(lambda each: each.f_code.co_filename != capturing, python_frames.outward(frame))
    outside = (each for each in frames if not locations.is_internal_code(each.f_code))
    return any(syntax.is_tried(locations.location(*python_frames.entry_of(each))) for each in outside)
