"""The lock of an export, the flag that a model can ask, and garbage collection."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Iterator

import pytest

from onnxplain.diagnostics import OnnxExporterError
from onnxplain.process import capturing, exporting, is_in_onnx_export, without_collection


def test_a_model_can_ask_whether_it_is_captured() -> None:
    others: list[bool] = []
    assert is_in_onnx_export() is False
    with capturing():
        assert is_in_onnx_export() is True
        thread = threading.Thread(target=lambda: others.append(is_in_onnx_export()))
        thread.start()
        thread.join()
        with contextlib.suppress(KeyError), capturing():
            raise KeyError
        assert is_in_onnx_export() is True
    assert is_in_onnx_export() is False
    assert others == [False]


def test_one_export_at_a_time() -> None:
    order: list[str] = []

    def other() -> None:
        with exporting():
            order.append("other")

    thread = threading.Thread(target=other)
    with exporting():
        with pytest.raises(OnnxExporterError), exporting():
            pass
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "other"]
    with contextlib.suppress(KeyError), exporting():
        raise KeyError
    with exporting():
        order.append("again")
    assert order[-1] == "again"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_may_export() -> None:
    with exporting():
        child = os.fork()
        if child == 0:
            # NOTE: the child must not go on with the tests.
            code = 1
            try:
                with exporting():
                    code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def collection() -> Iterator[None]:
    before = gc.isenabled()
    yield
    (gc.enable if before else gc.disable)()


@pytest.mark.usefixtures("collection")
@pytest.mark.parametrize("enabled", [True, False])
def test_the_last_to_leave_restores_garbage_collection(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    first, second = without_collection(), without_collection()
    states = []
    for step in (first.__enter__, second.__enter__):
        step()
        states.append(gc.isenabled())
    for each in (first, second):
        each.__exit__(None, None, None)
        states.append(gc.isenabled())
    assert states == [False, False, False, enabled]
    with without_collection():
        assert not gc.isenabled()
    assert gc.isenabled() is enabled
