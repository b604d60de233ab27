"""torchlib imported with another decorator: other threads get the original, and nothing of the import stays."""

from __future__ import annotations

import pathlib
import sys
import textwrap
from typing import Any

import pytest
from onnxscript.function_libs.torch_lib import registration

from onnxplain.torch_internals.onnxscript_calls import import_torchlib

_OPS = """
    import threading

    from onnxscript.function_libs.torch_lib import registration

    others = registration.Registry()


    def function(x):
        return x


    def other():
        registration.torch_op("aten::other", registry=others, trace_only=True)(function)


    assert registration.torch_op("aten::mine", complex=True)(function) is function
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert "aten::other" in others
"""


@pytest.mark.parametrize("fails", [False, True])
def test_the_decorator_of_torchlib_is_this_thread_s_alone(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    original = registration.torch_op
    (tmp_path / "like_torchlib").mkdir()
    (tmp_path / "like_torchlib" / "ops.py").write_text(textwrap.dedent(_OPS) + ("1 / 0\n" if fails else ""), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    named: list[Any] = []

    def decorator(name: str, **options: Any) -> Any:
        named.append((name, options))
        return lambda decorated: decorated

    if fails:
        with pytest.raises(ZeroDivisionError):
            import_torchlib("like_torchlib.ops", decorator)
    else:
        import_torchlib("like_torchlib.ops", decorator)
    assert named == [("aten::mine", {"complex": True})]
    assert registration.torch_op is original
    assert "like_torchlib.ops" not in sys.modules
    assert not hasattr(sys.modules["like_torchlib"], "ops")
