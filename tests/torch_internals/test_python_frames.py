"""Python's frames and code objects: which ones, which lines, which names."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from marks import IS_3_11

from onnxplain.torch_internals import code_objects, python_frames

HERE = __file__


def asks() -> tuple[types.FrameType | None, types.FrameType | None, list[types.FrameType]]:
    return python_frames.current(), python_frames.current(1), python_frames.stack(None)


def outer() -> tuple[types.FrameType | None, types.FrameType | None, list[types.FrameType]]:
    return asks()


def test_frames_above() -> None:
    caller, above, frames = outer()
    assert caller is not None
    assert above is inspect.currentframe()
    assert caller.f_code is outer.__code__
    assert [frame.f_code.co_name for frame in frames[:2]] == ["outer", "test_frames_above"]
    assert frames[-1].f_back is None
    assert python_frames.current(10_000) is None
    assert python_frames.caller_of(caller) is above
    assert list(python_frames.outward(caller))[:2] == [caller, above]
    assert list(python_frames.outward(None)) == []


def asks_until(until: types.FrameType | None) -> list[types.FrameType]:
    return python_frames.stack(until)


def test_a_stack_ends_below_a_frame() -> None:
    def between() -> list[types.FrameType]:
        return asks_until(inspect.currentframe().f_back)  # type: ignore[union-attr]

    assert [frame.f_code.co_name for frame in between()] == ["between"]


def test_the_caller_outside() -> None:
    frame = inspect.currentframe()
    assert frame is not None
    outside = python_frames.caller_outside(frame, lambda file: file == HERE)
    assert outside is not None
    assert outside.f_code.co_filename != HERE
    assert python_frames.caller_outside(frame, lambda file: True) is None


def test_frames_of_a_traceback() -> None:
    def fails(value: int) -> None:
        raise KeyError(value)

    with pytest.raises(KeyError) as caught:
        fails(3)
    entries = list(python_frames.of_traceback(caught.value))
    frame, instruction, line = entries[-1]
    assert [entry[0].f_code.co_name for entry in entries] == ["test_frames_of_a_traceback", "fails"]
    assert line == fails.__code__.co_firstlineno + 1
    assert python_frames.variables(frame)["value"] == 3
    assert python_frames.evaluate("value + 1", frame) == 4
    assert python_frames.entry_of(frame) == (frame, instruction, line)
    assert list(python_frames.of_traceback(KeyError())) == []


def watched(found: list[tuple[str, str, int]]) -> Callable[[types.FrameType, str], None]:
    return lambda frame, event: found.append((event, frame.f_code.co_name, frame.f_lineno - frame.f_code.co_firstlineno))


def two_lines() -> int:
    x = 1
    return x + 1


LINES = [("call", "two_lines", 0), ("line", "two_lines", 1), ("line", "two_lines", 2), ("return", "two_lines", 2)]


def of_here(file: str) -> bool:
    return file == HERE


def test_each_line_of_wanted_files() -> None:
    before = sys.gettrace()
    inner: list[tuple[str, str, int]] = []
    outer: list[tuple[str, str, int]] = []
    unwanted: list[tuple[str, str, int]] = []
    with python_frames.each_line(watched(outer), of_here):
        two_lines()
        with python_frames.each_line(watched(unwanted), lambda file: False), python_frames.each_line(watched(inner), of_here):
            two_lines()
        two_lines()
    assert sys.gettrace() is before
    two_lines()
    assert inner == LINES
    assert [each for each in outer if each[1] == "two_lines"] == LINES * 3
    assert unwanted == []


def test_an_exception_of_a_watch_is_raised_at_the_line() -> None:
    def stop(frame: types.FrameType, event: str) -> None:
        if event == "line" and frame.f_code is two_lines.__code__:
            raise TimeoutError

    with pytest.raises(TimeoutError) as caught, python_frames.each_line(stop, of_here):
        two_lines()
    *_, (frame, _, line) = (each for each in python_frames.of_traceback(caught.value) if each[0].f_code is two_lines.__code__)
    assert line == two_lines.__code__.co_firstlineno + 1
    assert frame.f_code is two_lines.__code__


class Called:
    def __call__(self) -> None: ...


@functools.wraps(two_lines)
def decorated() -> int:
    return two_lines()


def test_codes_of_functions() -> None:
    assert code_objects.code_of(decorated) is two_lines.__code__
    assert code_objects.code_of_own(decorated) is decorated.__code__
    assert code_objects.code_of(len) is None
    assert code_objects.code_of_own(len) is None
    assert code_objects.code_of_call(functools.partial(two_lines)) is two_lines.__code__
    assert code_objects.code_of_call(Called()) is Called.__call__.__code__
    assert code_objects.code_of_call(3) is None
    assert code_objects.key_of(two_lines.__code__) == (HERE, "two_lines", code_objects.first_line(two_lines))


def test_lines_and_columns() -> None:
    code = two_lines.__code__
    # NOTE: before Python 3.11, no instruction belongs to the line with `def`.
    assert set(code_objects.lines_of(code)) == {code.co_firstlineno + each for each in range(0 if IS_3_11 else 1, 3)}
    (compiled,) = code_objects.compiled("\n\ndef f(a, b):\n    return (a +\n        b)\n", "model.py")
    assert compiled.co_filename == "model.py"
    found = {code_objects.position(compiled, each) for each in range(0, len(compiled.co_code), 2)}
    expected = (4, 5, 12, 9) if IS_3_11 else (None,) * 4
    assert expected in found
    assert code_objects.position(compiled, 10_000) == (None,) * 4
    assert code_objects.position(compiled, -1) == code_objects.position(compiled, 0)


def test_functions_inside_functions_are_compiled_as_well() -> None:
    source = "def f():\n    def g():\n        return lambda: 1\n    return g\n"
    assert [each.co_name for each in code_objects.compiled(source, "model.py")] == ["f", "g", "<lambda>"]
    with pytest.raises(SyntaxError):
        list(code_objects.compiled("def", "model.py"))


def stores(thing: Any, other: Any) -> None:
    thing.count = other.first = 1
    local = thing.read
    del local


def reads() -> Any:
    return lambda: (HERE, len)


def test_attributes_and_global_names_in_code() -> None:
    assert code_objects.stored_attributes(stores.__code__) == {"count", "first"}
    assert code_objects.stored_attributes(two_lines.__code__) == set()
    assert code_objects.loaded_names(reads.__code__) == {"HERE", "len"}
    assert code_objects.loaded_names(two_lines.__code__) == set()


def closing(start: int) -> Callable[..., tuple[int, ...]]:
    def closed(x: int = 1, *, y: int = 2) -> tuple[int, ...]:
        """Sums."""
        return (start, x, y, late)

    closed.mark = 5  # type: ignore[attr-defined]
    iterator: Iterator[Any] = iter([closed])
    found: Callable[..., tuple[int, ...]] = next(iterator)
    if start < 0:
        late = 0
    return found


def test_copies_of_functions() -> None:
    function = closing(3)
    assert isinstance(function, types.FunctionType)
    assert code_objects.named_outside(function) == {"start": 3}
    made = code_objects.bare_copy(function, None, {"__builtins__": __builtins__})
    assert code_objects.named_outside(made) == {}
    code_objects.name_outside(made, {"start": 4, "late": 6})
    assert made() == (4, 1, 2, 6)
    assert (made.__qualname__, made.__module__, made.__doc__) == (function.__qualname__, function.__module__, "Sums.")
    assert vars(made) == {"mark": 5}
    assert code_objects.named_outside(function) == {"start": 3}
    with pytest.raises(ValueError, match="two_lines"):
        code_objects.bare_copy(function, two_lines.__code__, {})
    assert code_objects.bare_copy(two_lines, stores.__code__, {}).__code__ is stores.__code__  # type: ignore[arg-type]
