"""onnxscript while a context changes what its operators and decorators do: other threads get the originals."""

from __future__ import annotations

import threading
from typing import Any

from onnxscript.function_libs.torch_lib import registration

from onnxplain.torch_internals.onnxscript_calls import torchlib_decorated_by


def test_the_decorator_of_torchlib_is_this_thread_s_alone() -> None:
    original, others = registration.torch_op, registration.Registry()

    def function(x: Any) -> Any:
        return x

    def other() -> None:
        registration.torch_op("aten::other", registry=others, trace_only=True)(function)

    named: list[Any] = []
    with torchlib_decorated_by(lambda name, **options: named.append((name, options)) or (lambda decorated: decorated)):  # type: ignore[func-returns-value]
        assert registration.torch_op("aten::mine", complex=True)(function) is function
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert named == [("aten::mine", {"complex": True})]
    assert "aten::other" in others
    assert registration.torch_op is original
