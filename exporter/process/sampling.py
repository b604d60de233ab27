"""Looks at what a thread runs, a thousand times in a second. The thread runs as fast as before, other than under a profiler."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from onnxplain.diagnostics import OwnProcess
from onnxplain.torch_internals import python_frames
from onnxplain.torch_internals.put_back import put_back

_INTERVAL = 0.001
"""Seconds from one look to the next, as far as the thread lets others run. Code outside of Python may keep it from that for longer."""

Take = Callable[[Sequence[python_frames.Look], float], None]
"""Called with the frames of the thread, innermost first, and the seconds since the last call. It runs in another thread."""


class Sampler(threading.Thread):
    """Looks at a thread until it is stopped. It writes nothing, and starts no process.

    Args:
        thread: The identifier of the thread.
        take: Called at each look.
    """

    def __init__(self, thread: int, take: Take) -> None:
        super().__init__(name="onnxplain.sampler", daemon=True)
        self._process = OwnProcess()
        self._thread = thread
        self._take = take
        self._stopped = threading.Event()

    def run(self) -> None:
        """Looks at the thread."""
        last = time.perf_counter()
        while not self._stopped.wait(_INTERVAL):
            looks = python_frames.of_thread(self._thread)
            now = time.perf_counter()
            if looks:
                self._take(looks, now - last)
            # NOTE: a frame keeps all that its function knows.
            del looks
            last = now

    def stop(self) -> None:
        """Ends the thread. In a process that the model has forked, the thread is not there, and it may hold a lock for ever."""
        if self._process.is_here:
            self._stopped.set()
            self.join()


@contextlib.contextmanager
def sampled(take: Take) -> Iterator[None]:
    """While it is open, calls `take` for what this thread runs."""
    # NOTE: as with any second thread, a process that native code forks, and not Python's `os.fork`, may wait for ever: for Python's global
    # lock, which the sampler has at that moment.
    sampler, interval = Sampler(threading.get_ident(), take), sys.getswitchinterval()
    with put_back(lambda: sys.setswitchinterval(interval)):
        # NOTE: a thread that runs Python gives way to another after 5 ms, unless told otherwise.
        sys.setswitchinterval(_INTERVAL / 2)
        sampler.start()
        try:
            yield
        finally:
            sampler.stop()
