"""Patches of functions: who gets the wrapper, and what is there afterwards, in whatever order patches end."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from onnxplain.torch_internals.patching import Slot, wrapped
from onnxplain.torch_internals.put_back import put_back, put_back_all


class Owner:
    @staticmethod
    def double(x: int) -> int:
        """Twice x."""
        return 2 * x


ORIGINAL = Owner.double


@pytest.fixture(autouse=True)
def the_original_is_back() -> Any:
    yield
    assert Owner.double is ORIGINAL


def plus_one(original: Any, x: int) -> int:
    return int(original(x)) + 1


def negative(original: Any, x: int) -> int:
    return -int(original(x))


def slot() -> Slot:
    return Slot(Owner, "double")


def test_the_last_one_opened_counts_and_calls_the_original() -> None:
    with wrapped(slot(), plus_one):
        assert Owner.double(3) == 7
        assert Owner.double.__doc__ == "Twice x."
        with wrapped(slot(), negative):
            assert Owner.double(3) == -6
        assert Owner.double(3) == 7
    assert Owner.double(3) == 6


def test_they_end_in_any_order() -> None:
    one, other = contextlib.ExitStack(), contextlib.ExitStack()
    one.enter_context(wrapped(slot(), plus_one))
    other.enter_context(wrapped(slot(), negative))
    one.close()
    assert Owner.double(3) == -6
    other.close()
    assert Owner.double is ORIGINAL


def test_one_wrapper_given_twice_counts_until_both_end() -> None:
    with wrapped(slot(), plus_one):
        with wrapped(slot(), plus_one):
            assert Owner.double(3) == 7
        assert Owner.double(3) == 7


def test_another_thread_gets_the_original() -> None:
    found: list[int] = []
    with wrapped(slot(), negative):
        thread = threading.Thread(target=lambda: found.append(Owner.double(3)))
        thread.start()
        thread.join()
    assert found == [6]


def test_a_thread_may_end_before_or_after_another() -> None:
    entered, leave, found = threading.Event(), threading.Event(), list[int]()

    def other() -> None:
        with wrapped(slot(), negative):
            entered.set()
            leave.wait(60)
            found.append(Owner.double(3))

    thread = threading.Thread(target=other)
    with wrapped(slot(), plus_one):
        thread.start()
        assert entered.wait(60)
        assert Owner.double(3) == 7
    assert Owner.double(3) == 6
    leave.set()
    thread.join()
    assert found == [-6]


def test_a_dispatcher_that_other_code_restores_passes_calls_on() -> None:
    with wrapped(slot(), plus_one):
        kept = Owner.double
        Owner.double = staticmethod(lambda x: 100 * x)  # type: ignore[method-assign, assignment]
    assert Owner.double(3) == 300
    Owner.double = staticmethod(kept)  # type: ignore[method-assign, assignment]
    assert Owner.double(3) == 6
    with wrapped(slot(), negative):
        assert Owner.double(3) == -6
    assert Owner.double is ORIGINAL


def test_put_back_undoes_once_and_after_an_exception() -> None:
    done: list[str] = []
    with put_back(lambda: done.append("outer")):
        with pytest.raises(KeyError), put_back(lambda: done.append("inner")):
            raise KeyError
        assert done == ["inner"]
        put_back_all()
        assert done == ["inner", "outer"]
        put_back_all()
        assert done == ["inner", "outer"]
    assert done == ["inner", "outer", "outer"]
    put_back_all()
    assert done == ["inner", "outer", "outer"]


def test_put_back_all_begins_with_the_last() -> None:
    done: list[int] = []
    with put_back(lambda: done.append(1)), put_back(lambda: done.append(2)):
        put_back_all()
    assert done == [2, 1, 2, 1]


def test_an_outer_change_is_undone_after_inner_ones_that_an_interrupt_left() -> None:
    state = ["first"]

    def changed(value: str) -> contextlib.AbstractContextManager[None]:
        @contextlib.contextmanager
        def change() -> Iterator[None]:
            before = state[0]
            with put_back(lambda: state.__setitem__(0, before)):
                state[0] = value
                yield

        return change()

    with changed("second"):
        left = changed("third")
        left.__enter__()
    # `left` restores "second", which must not come after the end of "second".
    assert state == ["first"]
    put_back_all()
    assert state == ["first"]
    left.__exit__(None, None, None)
