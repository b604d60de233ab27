"""Code of a model that exits, raises what `except Exception` does not catch, or raises while an export looks at it."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import signal
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
import warm

import onnxplain

Load = Callable[..., ModuleType]
Marked = Callable[..., list[int]]

SOURCE = """
import asyncio
import signal
import sys
import time

import torch
from torch import nn

ARMED = []


class TextExits(Exception):
    def __str__(self):
        sys.exit(0)


class NoClass(Exception):
    @property
    def __class__(self):
        raise RuntimeError("NoClass")  # NoClass


class Nameless(type):
    @property
    def __name__(cls):
        raise RuntimeError("no name")


class NoName(Exception, metaclass=Nameless):
    pass


class NoCause(Exception):
    @property
    def __cause__(self):
        raise RuntimeError("no cause")


class OddContext(Exception):
    __context__ = 5


class NoTraceback(BaseException):
    @property
    def __traceback__(self):
        raise RuntimeError("no traceback")


class Own(BaseException):
    pass


KINDS = {
    "TextExits": TextExits,
    "NoClass": NoClass,
    "NoName": NoName,
    "NoCause": NoCause,
    "OddContext": OddContext,
    "NoTraceback": NoTraceback,
    "Own": Own,
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "KeyboardInterrupt": KeyboardInterrupt,
}


class Raises(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        raise KINDS[self.kind]("said")  # Raises


class Adds(nn.Module):
    def forward(self, x):
        return x + 1


class ExitsWhenLookedAt(Adds):
    def __getattribute__(self, name):
        if ARMED:
            sys.exit(0)  # ExitsWhenLookedAt
        return super().__getattribute__(name)


class RaisesWhenLookedAt(Adds):
    def __getattribute__(self, name):
        if ARMED:
            raise RuntimeError("do not look")  # RaisesWhenLookedAt
        return super().__getattribute__(name)


class ExitsWhenUsed(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *args, **kwargs):
        sys.exit(0)  # ExitsWhenUsed


class Sleeps(nn.Module):
    def forward(self, x):
        ARMED.append(True)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            pass
        return x


def on_alarm(number, frame):
    raise Own("alarm")


def text_exits():
    return Raises("TextExits"), (torch.ones(2),)


def exits_when_looked_at():
    model = ExitsWhenLookedAt()
    ARMED.append(True)
    return model, (torch.ones(2),)


def exits_when_used():
    return Adds(), (torch.ones(2).as_subclass(ExitsWhenUsed),)


def raises_own():
    raise Own("said")  # build


def raises_generator_exit():
    raise GeneratorExit("said")
"""
X = torch.ones(2)


@pytest.fixture
def models(load: Load) -> ModuleType:
    return load(SOURCE)


@pytest.mark.parametrize(
    "kind", ["TextExits", "NoClass", "NoName", "NoCause", "OddContext", "NoTraceback", "Own", "GeneratorExit", "CancelledError"]
)
def test_whatever_forward_raises_is_a_finding_at_its_line(kind: str, models: ModuleType, marked: Marked, tmp_path: pathlib.Path) -> None:
    sarif = tmp_path / "log.sarif"
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(models.Raises(kind), (X,), sarif=sarif)
    first = failed.value.findings[0]
    assert first.rule.id == "OXP1005"
    assert first.location is not None
    # NOTE: Python's `contextlib` asks for the class of an exception on its way.
    assert [first.location.line] == marked("NoClass" if kind == "NoClass" else "Raises")
    assert kind in str(failed.value)
    assert json.loads(sarif.read_text(encoding="utf-8"))["runs"][0]["results"][0]["ruleId"] == "OXP1005"


def test_an_interrupt_by_the_model_stays_one(models: ModuleType) -> None:
    with pytest.raises(KeyboardInterrupt):
        onnxplain.export(models.Raises("KeyboardInterrupt"), (X,))


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="the system has no alarms")
def test_what_a_signal_handler_of_the_program_raises_stays_what_it_is(models: ModuleType) -> None:
    before = signal.signal(signal.SIGALRM, models.on_alarm)
    threading.Thread(target=_when_armed, args=(models, lambda: os.kill(os.getpid(), signal.SIGALRM))).start()
    try:
        with pytest.raises(models.Own):
            onnxplain.export(models.Sleeps(), (X,))
    finally:
        signal.signal(signal.SIGALRM, before)


def test_what_another_thread_puts_into_the_model_stays_what_it_is(models: ModuleType) -> None:
    here = ctypes.c_ulong(threading.get_ident())

    def cancel() -> None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(here, ctypes.py_object(models.KINDS["CancelledError"]))

    threading.Thread(target=_when_armed, args=(models, cancel)).start()
    with pytest.raises(models.KINDS["CancelledError"]):
        onnxplain.export(models.Sleeps(), (X,))


def _when_armed(models: ModuleType, act: Callable[[], Any]) -> None:
    while not models.ARMED:
        time.sleep(0.01)
    time.sleep(0.1)
    act()


@pytest.mark.parametrize("name", ["ExitsWhenLookedAt", "RaisesWhenLookedAt"])
def test_a_model_that_cannot_be_looked_at_is_refused(name: str, models: ModuleType, marked: Marked) -> None:
    model = getattr(models, name)()
    models.ARMED.append(True)
    with pytest.raises(onnxplain.InvalidArgument, match=f":{marked(name)[0]}"):
        onnxplain.export(model, (X,))


def test_an_input_that_exits_is_refused(models: ModuleType, marked: Marked) -> None:
    with pytest.raises(onnxplain.InvalidArgument, match=f":{marked('ExitsWhenUsed')[0]}"):
        onnxplain.export(models.Adds(), (X.as_subclass(models.ExitsWhenUsed),))


def test_inputs_that_contain_themselves_are_refused(models: ModuleType) -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(onnxplain.InvalidArgument, match="args"):
        onnxplain.export(models.Adds(), (endless,))
    deep: Any = X
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(onnxplain.InvalidArgument, match="args"):
        onnxplain.export(models.Adds(), (deep,))


@pytest.mark.parametrize("name", ["", "a\udcff"])
def test_parts_that_onnx_cannot_name_are_refused(name: str, models: ModuleType) -> None:
    model = torch.nn.Sequential(models.Adds())
    model[0]._parameters[name] = torch.nn.Parameter(torch.tensor([48213.5]))
    with pytest.raises(onnxplain.InvalidArgument, match="'0'") as refused:
        onnxplain.export(model, (X,))
    assert "48213" not in str(refused.value)


def test_a_submodule_that_is_none_is_refused(models: ModuleType) -> None:
    model = models.Adds()
    model._modules["n"] = "text"
    with pytest.raises(onnxplain.InvalidArgument, match="'n'"):
        onnxplain.export(model, (X,))


def test_a_file_of_weights_that_the_model_cannot_name_is_refused(models: ModuleType, tmp_path: pathlib.Path) -> None:
    with pytest.raises(onnxplain.InvalidArgument, match=r"^f: "):
        onnxplain.export(models.Adds(), (X,), f=f"{tmp_path}/\udcff.onnx", external_data=True)


@pytest.mark.parametrize(
    ("target", "code", "told"),
    [
        ("text_exits", 1, "OXP1005"),
        ("exits_when_looked_at", 2, "__getattribute__"),
        ("exits_when_used", 2, "__torch_function__"),
        ("raises_own", 2, "Own: said"),
        ("raises_generator_exit", 2, "GeneratorExit: said"),
    ],
)
def test_the_command_reports_no_success(target: str, code: int, told: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "models.py").write_text(SOURCE, encoding="utf-8")
    with warm.started(tmp_path, ("-m", "onnxplain", "export", f"models.py:{target}")) as process:
        process.join(120)
    output = (tmp_path / "out.txt").read_text(encoding="utf-8")
    assert process.exitcode == code, output
    assert told in output
    assert not list(tmp_path.glob("*.onnx"))
