"""The lock of an export, the flag that a model can ask, and garbage collection."""

from __future__ import annotations

import contextlib
import contextvars
import gc
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as TimedOut

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
    begin = threading.Event()

    def other() -> None:
        begin.wait(60)
        with exporting():
            order.append("other")

    thread = threading.Thread(target=other)
    thread.start()
    with exporting():
        with pytest.raises(OnnxExporterError), exporting():
            pass
        begin.set()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "other"]
    with contextlib.suppress(KeyError), exporting():
        raise KeyError
    with exporting():
        order.append("again")
    assert order[-1] == "again"


def attempt() -> str:
    try:
        with exporting():
            return "began"
    except OnnxExporterError:
        return "refused"


def in_thread(work: Callable[[], str]) -> str:
    """What `work` returns in a thread; `waits` if it does not end."""
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(5)
    return found[0] if found else "waits"


def in_pool(work: Callable[[], str]) -> str:
    pool = ThreadPoolExecutor(1)
    try:
        return in_used_pool(pool, work)
    finally:
        pool.shutdown(wait=False)


def in_used_pool(pool: ThreadPoolExecutor, work: Callable[[], str]) -> str:
    try:
        return pool.submit(work).result(5)
    except TimedOut:
        return "waits"


def test_what_others_start_during_an_export_waits_for_it() -> None:
    begin, found = threading.Event(), list[str]()
    inner = threading.Thread(target=lambda: found.append(attempt()))

    def other() -> None:
        begin.wait(60)
        inner.start()

    thread = threading.Thread(target=other)
    thread.start()
    with exporting():
        begin.set()
        thread.join()
        inner.join(0.2)
        assert found == []
    inner.join()
    assert found == ["began"]


STARTS = {
    "a thread": lambda: in_thread(attempt),
    "a pool": lambda: in_pool(attempt),
    "a thread's thread": lambda: in_thread(lambda: in_thread(attempt)),
    "a thread's pool": lambda: in_thread(lambda: in_pool(attempt)),
    "a pool's thread": lambda: in_pool(lambda: in_thread(attempt)),
    "another context": lambda: contextvars.Context().run(attempt),
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_what_an_export_starts_may_not_export(start: Callable[[], str]) -> None:
    before = threading.Thread.start, ThreadPoolExecutor.submit
    with exporting():
        assert start() == "refused"
    assert (threading.Thread.start, ThreadPoolExecutor.submit) == before
    assert start() == "began"


def test_jobs_of_a_pool_that_was_there_before() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert in_used_pool(pool, attempt) == "began"
        with exporting():
            assert in_used_pool(pool, attempt) == "refused"
            assert list(pool.map(lambda _: attempt(), range(2), timeout=5)) == ["refused", "refused"]
        assert in_used_pool(pool, attempt) == "began"


def test_jobs_of_others_wait_although_an_export_started_the_thread_of_their_pool() -> None:
    begin, jobs = threading.Event(), list[Future[str]]()

    def other() -> None:
        begin.wait(60)
        jobs.append(pool.submit(attempt))

    thread = threading.Thread(target=other)
    thread.start()
    with ThreadPoolExecutor(1) as pool:
        with exporting():
            assert in_used_pool(pool, attempt) == "refused"
            begin.set()
            thread.join()
            assert wait(jobs, timeout=0.2).not_done
        assert jobs[0].result(60) == "began"


def test_what_an_export_started_may_export_after_it() -> None:
    begin, found = threading.Event(), list[str]()

    def other() -> None:
        begin.wait(60)
        found.append(attempt())

    thread = threading.Thread(target=other)
    with exporting():
        thread.start()
    begin.set()
    thread.join()
    assert found == ["began"]


def test_what_an_earlier_export_started_waits_for_a_later_one() -> None:
    begin, found = threading.Event(), list[str]()

    def other() -> None:
        begin.wait(60)
        found.append(attempt())

    thread = threading.Thread(target=other)
    with exporting():
        thread.start()
    with exporting():
        begin.set()
        thread.join(0.2)
        assert found == []
    thread.join()
    assert found == ["began"]


def test_a_patch_of_others_stays_over_ours() -> None:
    start = threading.Thread.start
    try:
        with exporting():
            ours, seen = threading.Thread.start, list[threading.Thread]()

            def theirs(thread: threading.Thread) -> None:
                seen.append(thread)
                ours(thread)

            threading.Thread.start = theirs  # type: ignore[method-assign]
            assert in_thread(attempt) == "refused"
        assert in_thread(attempt) == "began"
        assert len(seen) == 2
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]


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
