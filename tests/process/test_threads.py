"""Exports beside other code: in several threads, within each other, failing and interrupted. None of them changes torch."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import logging
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
import torch_state
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode

import onnxplain
from onnxplain.torch_internals.patching import Slot, wrapped

Load = Callable[..., ModuleType]
THREADS = 8


class Recurrent(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.layer = torch.nn.Linear(width, width)
        self.rnn = torch.nn.GRU(width, width, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.rnn(self.layer(x))[0] + self.width
        return result


class Branching(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x


@pytest.fixture
def torch_stays() -> Iterator[None]:
    """Loads the modules that torch loads late, and compares torch before and after a test."""
    check(Recurrent(2))
    with pytest.raises(onnxplain.ExportFailed):
        onnxplain.export(Branching(), (torch.ones(2),), control_flow="report")
    before = torch_state.state()
    yield
    assert torch_state.changes(before, torch_state.state()) == []


def in_threads(work: Callable[[int], None]) -> None:
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001  the main thread raises what the threads raise
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def check(model: Recurrent) -> None:
    """Exports with two dynamic dims, and compares on other sizes."""
    compare(model, *expected(model))


def expected(model: Recurrent) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(3, 5, model.width)
    with torch.no_grad():
        return x, model(x)


def compare(model: Recurrent, x: torch.Tensor, result: torch.Tensor) -> None:
    program = onnxplain.export(model, (torch.randn(2, 4, model.width),), dynamic_shapes=({0: "batch", 1: "time"},))
    np.testing.assert_allclose(program(x)[0].numpy(), result.numpy(), atol=1e-4)


@pytest.mark.usefixtures("torch_stays")
def test_threads_export_models_of_their_own() -> None:
    in_threads(lambda number: check(Recurrent(number + 2)))


@pytest.mark.usefixtures("torch_stays")
def test_threads_export_the_same_model() -> None:
    # torch.export exchanges a model's parameters while it runs, so no other thread can call the same model meanwhile.
    model = Recurrent(5)
    example = expected(model)
    in_threads(lambda number: compare(model, *example))


@pytest.mark.usefixtures("torch_stays")
def test_threads_succeed_beside_others_that_fail() -> None:
    def work(number: int) -> None:
        if number % 2:
            return check(Recurrent(number))
        with pytest.raises(onnxplain.ExportFailed) as failed:
            onnxplain.export(Branching(), (torch.ones(3),), control_flow="report")
        assert [finding.rule.id for finding in failed.value.findings] == ["OXP1001"]
        return None

    in_threads(work)


@pytest.mark.usefixtures("torch_stays")
def test_other_threads_speak_as_usual(capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder) -> None:
    # A library that none of the user's files called: only the thread shows that it is not torch.
    said, ready = threading.Event(), threading.Event()
    code = compile("print('said', file=sys.stderr); warnings.warn('warned'); logger.error('logged')", "<string>", "exec")
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logger = logging.getLogger("torch._dynamo")
    logger.addHandler(handler)

    def other() -> None:
        ready.wait(60)
        exec(code, {"sys": sys, "warnings": warnings, "logger": logger})
        said.set()

    class Waiting(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            ready.set()
            assert said.wait(60)
            return x + 1

    thread = threading.Thread(target=other)
    thread.start()
    try:
        program = onnxplain.export(Waiting(), (torch.ones(2),), strategies=("non-strict",))
    finally:
        thread.join()
        logger.removeHandler(handler)
    # torch's own handler may write the record there as well (torch 2.15).
    assert capsys.readouterr().err.startswith("said\n")
    assert [str(each.message) for each in recwarn if str(each.message) == "warned"] == ["warned"]
    assert [record.getMessage() for record in records] == ["logged"]
    assert not any(event.text in ("said", "UserWarning: warned", "torch._dynamo: logged") for event in program.diagnostics.events)


@pytest.mark.usefixtures("torch_stays")
def test_other_threads_call_onnxscript_as_usual() -> None:
    import onnxscript
    from onnxscript import evaluator, opset18
    from onnxscript.values import Opset

    usual, eager, found = evaluator.default(), onnxscript.tensor.Tensor, list[Any]()

    def other() -> None:
        for size in (2, 5_000):
            found.append(opset18.Mul(np.full(size, 3, np.float32), np.full(size, 2, np.float32)))
        found.append(evaluator.default())
        found.append(hasattr(Opset("com.example", 1), "Twice"))

    def translation(x: Any) -> Any:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return opset18.Sin(Opset("com.example", 1).Twice(x))

    program = onnxplain.export(torch.sin, (torch.ones(2),), custom_translation_table={torch.ops.aten.sin.default: translation})
    assert [node.op_type for node in program.model.graph] == ["Twice", "Sin"]
    small, large, asked, has_any = found
    assert isinstance(small, eager)
    assert isinstance(large, eager)
    assert (small.value == 6).all()
    assert (large.value == 6).all()
    assert (asked, has_any) == (usual, False)


@pytest.mark.usefixtures("torch_stays")
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_translation_that_ends_leaves_onnxscript_as_it_was(error: type[BaseException]) -> None:
    from onnxscript import evaluator
    from onnxscript.values import Opset

    before = evaluator.default()

    def translation(x: Any) -> Any:
        raise error

    with pytest.raises((onnxplain.ExportFailed, KeyboardInterrupt)):
        onnxplain.export(torch.sin, (torch.ones(2),), custom_translation_table={torch.ops.aten.sin.default: translation})
    assert evaluator.default() is before
    assert not hasattr(Opset("com.example", 1), "Twice")


def test_a_translation_may_choose_who_evaluates() -> None:
    from onnxscript import evaluator, opset18

    def translation(x: Any) -> Any:
        with evaluator.default_as(evaluator.ORTEvaluator()):
            two = opset18.Add(np.float32([1]), np.float32([1]))
        return opset18.Mul(x, two.value)

    program = onnxplain.export(torch.sin, (torch.ones(2),), custom_translation_table={torch.ops.aten.sin.default: translation})
    assert [node.op_type for node in program.model.graph] == ["Mul"]
    torch.testing.assert_close(program(torch.ones(2))[0], torch.full((2,), 2.0))


@pytest.mark.usefixtures("torch_stays")
def test_an_export_within_an_export_is_refused(load: Load, marked: Callable[..., list[int]]) -> None:
    source = """
        from concurrent.futures import ThreadPoolExecutor

        import torch

        import onnxplain


        class Inner(torch.nn.Module):
            def forward(self, x):
                return x + 1


        def inner():
            onnxplain.export(Inner(), (torch.ones(2),))  # here


        class Outer(torch.nn.Module):
            def forward(self, x):
                inner()
                return x


        class Pooled(torch.nn.Module):
            def forward(self, x):
                ThreadPoolExecutor(1).submit(inner).result(20)
                return x


        def hook(module, args):
            inner()


        def translation(x):
            inner()
            return x
    """
    module = load(source)
    hooked = module.Inner()
    hooked.register_forward_pre_hook(module.hook)
    for model in (module.Outer(), module.Pooled(), hooked):
        with pytest.raises(onnxplain.ExportFailed) as failed:
            onnxplain.export(model, (torch.ones(2),))
        (finding,) = failed.value.findings
        assert (finding.rule.id, finding.location and finding.location.line) == ("OXP1005", marked("here")[0])
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(module.Inner(), (torch.ones(2),), custom_translation_table={torch.ops.aten.add.Tensor: module.translation})
    assert [finding.rule.id for finding in failed.value.findings] == ["OXP3002"]


def test_after_an_export_is_refused_another_may_begin() -> None:
    def calling(x: torch.Tensor) -> torch.Tensor:
        with contextlib.suppress(onnxplain.OnnxExporterError):
            onnxplain.export(Recurrent(2), (torch.randn(1, 2, 2),))
        return x + 1

    onnxplain.export(calling, (torch.ones(2),), strategies=("non-strict",))
    check(Recurrent(2))


@pytest.mark.usefixtures("torch_stays")
def test_interrupts_of_the_model() -> None:
    class Interrupted(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise KeyboardInterrupt

    for strategy in ("non-strict", "draft"):
        with pytest.raises(KeyboardInterrupt):
            onnxplain.export(Interrupted(), (torch.ones(2),), strategies=(strategy,))
    check(Recurrent(2))


@pytest.mark.usefixtures("torch_stays")
def test_an_interrupt_that_cleaning_up_replaces_by_an_error() -> None:
    class Interrupted(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            try:
                raise KeyboardInterrupt
            finally:
                raise AssertionError("Trying to pop empty mode stack")

    with pytest.raises(KeyboardInterrupt):
        onnxplain.export(Interrupted(), (torch.ones(2),))
    check(Recurrent(2))


@pytest.mark.usefixtures("torch_stays")
def test_an_interrupt_between_a_change_of_torch_s_and_its_undoing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    # TorchDynamo calls it after it has replaced a function of torch.fx and before the `try` that puts it back.
    with monkeypatch.context() as patches:
        patches.setattr("torch._dynamo.convert_frame.setup_compile_debug", interrupt)
        with pytest.raises(KeyboardInterrupt):
            onnxplain.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),), strategies=("strict",))
    check(Recurrent(2))


@pytest.mark.usefixtures("torch_stays")
def test_an_error_between_a_change_of_torch_s_and_its_undoing(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[Exception] = []

    def fail() -> None:
        failed.append(RuntimeError())
        raise failed[-1]

    with monkeypatch.context() as patches:
        patches.setattr("torch._dynamo.convert_frame.setup_compile_debug", fail)
        onnxplain.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),), strategies=("strict", "non-strict"))
    assert failed
    check(Recurrent(2))


@pytest.mark.usefixtures("torch_stays")
def test_an_interrupt_while_a_tracer_undoes_its_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = ("_PatchedFnSetItem", "_PatchedFnDel", "_PatchedFnSetAttr")
    for kind in kinds:
        reverted: list[object] = []

        def revert(self: object, reverted: list[object] = reverted) -> None:
            reverted.append(self)
            raise KeyboardInterrupt

        # torch forgets a change before it undoes the change.
        with monkeypatch.context() as patches:
            patches.setattr(f"torch.fx._symbolic_trace.{kind}.revert", revert)
            with contextlib.suppress(KeyboardInterrupt):
                onnxplain.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),), strategies=("non-strict",))
        assert reverted or kind == "_PatchedFnDel"
    check(Recurrent(2))


@pytest.mark.usefixtures("torch_stays")
@pytest.mark.parametrize(
    ("owner", "caller"),
    [
        (contextlib.ExitStack, "proxy_tensor.py"),
        (torch.overrides.TorchFunctionMode, ""),
        (FakeTensorMode, ""),
        (ProxyTorchDispatchMode, "contextlib.py"),
        (torch.no_grad, ""),
        (torch.inference_mode, ""),
    ],
)
def test_an_interrupt_while_a_mode_of_torch_ends(owner: type[Any], caller: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, model, interrupted = owner.__exit__, torch.nn.Linear(2, 2), list[bool]()

    def end(self: object, *raised: object) -> object:
        if interrupted or not inspect.stack()[1].filename.endswith(caller):
            return usual(self, *raised)
        interrupted.append(True)
        raise KeyboardInterrupt

    with monkeypatch.context() as patches:
        patches.setattr(owner, "__exit__", end)
        with pytest.raises(KeyboardInterrupt):
            onnxplain.export(model, (torch.ones(1, 2),), strategies=("non-strict",))
    check(Recurrent(2))


@pytest.mark.usefixtures("torch_stays")
def test_an_interrupt_while_an_option_of_torch_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    options = type(importlib.import_module("torch._dynamo.config"))
    usual, interrupted = options.__setattr__, list[object]()

    def put(self: object, name: str, value: object) -> None:
        if name == "run_gc_after_compile" and value and not interrupted:
            interrupted.append(value)
            raise KeyboardInterrupt
        usual(self, name, value)

    with monkeypatch.context() as patches:
        patches.setattr(options, "__setattr__", put)
        with pytest.raises(KeyboardInterrupt):
            onnxplain.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
    assert interrupted
    check(Recurrent(2))


def test_a_model_may_set_the_default_device() -> None:
    class Setting(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            torch.set_default_device("cpu")
            return x + 1

    before = len(torch.overrides._get_current_function_mode_stack())
    try:
        onnxplain.export(Setting(), (torch.ones(2),), strategies=("non-strict",))
        assert len(torch.overrides._get_current_function_mode_stack()) == before + 1
    finally:
        torch.set_default_device(None)
    assert len(torch.overrides._get_current_function_mode_stack()) == before


INTERRUPTED = """
import random
import signal
import sys
import time
import traceback

import torch
import torch_state

import onnxplain

class Model(torch.nn.Module):
    def __init__(self, fails):
        super().__init__()
        self.fails = fails
        self.layer = torch.nn.GRU(4, 4)

    def forward(self, x):
        x = self.layer(x)[0]
        if self.fails and x.sum() > 0:
            return x + 1
        return x

def export(fails):
    return onnxplain.export(Model(fails), (torch.randn(2, 3, 4),), verify=True, dynamic_shapes=({0: "time"},))

def interrupt(_, frame):
    # NOTE: an exception within a dispatch mode may end the process in C++: torch (2.13) restores the mode in a destructor.
    while frame is not None:
        if frame.f_code.co_name == "__torch_dispatch__":
            signal.setitimer(signal.ITIMER_REAL, 0.002)
            return
        frame = frame.f_back
    raise KeyboardInterrupt

def main():
    export(False)
    try:
        export(True)
    except onnxplain.ExportFailed:
        pass
    started = time.perf_counter()
    export(False)
    duration = time.perf_counter() - started
    before = torch_state.state()
    signal.signal(signal.SIGALRM, interrupt)
    numbers, interrupted = random.Random(0), 0
    for number in range(200):
        if interrupted == 8:
            break
        try:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, numbers.uniform(0.0, duration)))
            where = "the export ended"
            export(number % 2 == 1)
        except KeyboardInterrupt:
            where = traceback.format_exc()
            interrupted += 1
        except onnxplain.ExportFailed:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        changed = torch_state.changes(before, torch_state.state())
        if changed:
            sys.exit(f"{number}: {changed}, {where}")
    export(False)
    print(interrupted)

main()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that interrupt on this system")
def test_interrupts_at_any_time(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(textwrap.dedent(INTERRUPTED), encoding="utf-8")
    paths = {"PYTHONPATH": str(pathlib.Path(torch_state.__file__).parent)}

    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, env={**os.environ, **paths}, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) == 8


class Owner:
    @staticmethod
    def method(value: int) -> int:
        return value


def test_patches_are_left_in_any_order() -> None:
    original = Owner.method
    slot = Slot(Owner, "method")
    first = wrapped(slot, lambda function, value: function(value) + 10)
    second = wrapped(slot, lambda function, value: function(value) + 100)
    first.__enter__()
    assert Owner.method(1) == 11
    second.__enter__()
    assert Owner.method(1) == 101
    first.__exit__(None, None, None)
    assert Owner.method(1) == 101
    second.__exit__(None, None, None)
    assert Owner.method is original


def test_a_patch_is_this_thread_s_alone() -> None:
    seen: list[int] = []
    with wrapped(Slot(Owner, "method"), lambda function, value: function(value) + 10):
        thread = threading.Thread(target=lambda: seen.append(Owner.method(1)))
        thread.start()
        thread.join()
        assert Owner.method(1) == 11
    assert seen == [1]


def test_a_patch_over_ours_keeps_nothing_of_it() -> None:
    original: Any = Owner.method
    with wrapped(Slot(Owner, "method"), lambda function, value: function(value) + 10):
        kept = Owner.method
        Owner.method = lambda value: kept(value) + 1000  # type: ignore[method-assign, assignment, misc]
        assert Owner.method(1) == 1011
    assert Owner.method(1) == 1001
    Owner.method = kept  # type: ignore[method-assign]
    with wrapped(Slot(Owner, "method"), lambda function, value: function(value) + 10):
        assert Owner.method(1) == 11
    assert Owner.method(1) == 1
    Owner.method = original  # type: ignore[method-assign]
