"""What torch writes on the console during an export becomes events; what the model writes stays there."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import logs
import pytest

from onnxplain.diagnostics import DiagnosticContext, DiagnosticOptions
from onnxplain.process import kept, user_heard
from onnxplain.source.locations import user_speaks


@pytest.fixture
def context() -> DiagnosticContext:
    return logs.context(DiagnosticOptions(verbosity_level=logging.DEBUG))


def events(context: DiagnosticContext) -> list[tuple[str, int]]:
    return [(event.text.rstrip("."), event.level) for event in context.log().events]


def torchs(code: str) -> Callable[..., Any]:
    """The function `f` of `code`, as if torch had it."""
    import torch

    scope: dict[str, Any] = {"sys": sys, "warnings": warnings}
    exec(compile(code, torch.__file__, "exec"), scope)
    return scope["f"]  # type: ignore[no-any-return]


WRITE = torchs("def f(text):\n    return sys.stderr.write(text)\n")
WARN = torchs("def f(text, category):\n    warnings.warn(text, category)\n")


def test_prints(context: DiagnosticContext, capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stderr
    with kept(context, user_speaks):
        assert WRITE(" torch \n") == 8
        assert WRITE("\n") == 1
        assert sys.stderr.write("model\n") == 6
        assert sys.stderr.encoding == before.encoding
    assert sys.stderr is before
    assert capsys.readouterr().err == "model\n"
    assert events(context) == [("torch", logging.DEBUG)]


def test_who_prints_is_heard(context: DiagnosticContext, capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[int] = []
    with kept(context, user_speaks), user_heard(lambda frame: heard.append(frame.f_lineno)):
        sys.stdout.write("model")
        thread = threading.Thread(target=lambda: sys.stdout.write(", another"))
        thread.start()
        thread.join()
    sys.stdout.write(", behind")
    assert capsys.readouterr().out == "model, another, behind"
    assert heard == [test_who_prints_is_heard.__code__.co_firstlineno + 3]


def test_who_warns_is_heard(context: DiagnosticContext, recwarn: pytest.WarningsRecorder) -> None:
    heard: list[types.FrameType] = []
    with kept(context, user_speaks), user_heard(heard.append):
        warnings.simplefilter("always")
        WARN("torch", UserWarning)
        warnings.warn("model", UserWarning, stacklevel=1)
    assert [str(each.message) for each in recwarn] == ["model"]
    (frame,) = heard
    assert test_who_warns_is_heard.__code__ in [each.f_code for each, _ in traceback.walk_stack(frame)]


def test_a_stream_that_outlives_the_export_filters_nothing(context: DiagnosticContext, capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stderr
    with kept(context, user_speaks):
        ours = sys.stderr
    sys.stderr = ours
    try:
        WRITE("later\n")
    finally:
        sys.stderr = before
    assert capsys.readouterr().err == "later\n"
    assert events(context) == []


def test_a_stream_that_the_model_puts_there_stays(context: DiagnosticContext) -> None:
    before = sys.stderr
    try:
        with kept(context, user_speaks):
            sys.stderr = sys.stdout
        assert sys.stderr is sys.stdout
    finally:
        sys.stderr = before


def test_a_nested_use_changes_nothing(context: DiagnosticContext) -> None:
    inner = logs.context(DiagnosticOptions(verbosity_level=logging.DEBUG))
    with kept(context, user_speaks):
        outer: TextIO = sys.stderr
        with kept(inner, user_speaks):
            assert sys.stderr is outer
            WRITE("torch")
        assert sys.stderr is outer
    assert (len(events(context)), events(inner)) == (1, [])


def test_another_thread_has_its_own(context: DiagnosticContext, capsys: pytest.CaptureFixture[str]) -> None:
    with kept(context, user_speaks):
        thread = threading.Thread(target=WRITE, args=("thread\n",))
        thread.start()
        thread.join()
    assert capsys.readouterr().err == "thread\n"
    assert events(context) == []


@pytest.mark.parametrize(
    ("text", "category", "level"),
    [
        ("slow", UserWarning, logging.WARNING),
        ("slow", RuntimeWarning, logging.WARNING),
        ("RNN._flat_weights was assigned", UserWarning, logging.DEBUG),
        ("old", FutureWarning, logging.DEBUG),
        ("old", DeprecationWarning, logging.DEBUG),
    ],
)
def test_warnings(context: DiagnosticContext, recwarn: pytest.WarningsRecorder, text: str, category: type[Warning], level: int) -> None:
    with kept(context, user_speaks):
        warnings.simplefilter("always")
        WARN(text, category)
        warnings.warn("model", UserWarning, stacklevel=1)
    assert [str(each.message) for each in recwarn] == ["model"]
    assert events(context) == [(f"{category.__name__}: {text}", level)]


class Records(logging.Handler):
    """Keeps the messages of the records that it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


NAMES = ("torch.nn.some_layer", "torchvision.models", "our.own")


@pytest.fixture
def handlers() -> Iterator[dict[str, list[Records]]]:
    """Two handlers for each of some loggers."""
    made = {name: [Records(), Records()] for name in (*NAMES, "torch.__trace")}
    for name, each in made.items():
        for handler in each:
            logging.getLogger(name).addHandler(handler)
    yield made
    for name, each in made.items():
        for handler in each:
            logging.getLogger(name).removeHandler(handler)


def test_log_records(context: DiagnosticContext, handlers: dict[str, list[Records]]) -> None:
    with kept(context, user_speaks):
        for name in NAMES:
            logging.getLogger(name).error("first %s", name)
            logging.getLogger(name).error("second")
        assert not [each for each in logging.getLogger("torch.__trace").handlers if isinstance(each, Records)]
    assert [each.messages for each in handlers[NAMES[0]]] == [[], []]
    for name in NAMES[1:]:
        assert [each.messages for each in handlers[name]] == [[f"first {name}", "second"]] * 2
    # Each record is one event, although there are two handlers.
    assert events(context) == [(f"{NAMES[0]}: first {NAMES[0]}", logging.DEBUG), (f"{NAMES[0]}: second", logging.DEBUG)]
    assert [each for each in logging.getLogger("torch.__trace").handlers if isinstance(each, Records)] == handlers["torch.__trace"]
    logging.getLogger(NAMES[0]).error("after")
    assert [each.messages for each in handlers[NAMES[0]]] == [["after"], ["after"]]


def test_the_logs_that_the_user_asked_torch_for(
    context: DiagnosticContext, handlers: dict[str, list[Records]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_LOGS", "dynamo")
    with kept(context, user_speaks):
        logging.getLogger(NAMES[0]).error("shown")
    assert [each.messages for each in handlers[NAMES[0]]] == [["shown"], ["shown"]]
    assert events(context) == []


def test_log_records_of_another_thread(context: DiagnosticContext, handlers: dict[str, list[Records]]) -> None:
    with kept(context, user_speaks):
        thread = threading.Thread(target=logging.getLogger(NAMES[0]).error, args=("thread",))
        thread.start()
        thread.join()
    assert [each.messages for each in handlers[NAMES[0]]] == [["thread"], ["thread"]]
    assert events(context) == []
