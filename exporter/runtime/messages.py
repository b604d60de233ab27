"""What ONNX Runtime logs while it loads and runs a model: each of its warnings becomes a finding."""

from __future__ import annotations

import contextlib
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import onnx_ir as ir

from onnxplain.diagnostics import DiagnosticContext, Evidence
from onnxplain.process import errors_read, errors_readable
from onnxplain.rules import RuntimeWarned
from onnxplain.source import locations

from .options import ONNXRuntimeOptions, considerate

if TYPE_CHECKING:
    import onnxruntime as ort

_ID = "onnxplain-verify"
"""Names our session in the records of ONNX Runtime."""
_WARNING = 2
# NOTE: read in ONNX Runtime 1.31: `2026-01-31 12:00:00.123456789 [W:onnxruntime:ID, file.cc:12 Function] Text`, with colours around it.
_BEGIN = r"(?:\x1b\[[\d;]*m)?\d{4}-\d\d-\d\d [\d:.]+ \[([VIWEF]):onnxruntime:"
_ANY = _BEGIN.replace("([VIWEF])", "[VIWEF]")
_RECORD = re.compile(
    rf"{_BEGIN}[^\n]*?, (\S+) [^\n\]]*\] (.*?)(?:\x1b\[m\n?|(?={_ANY})|\Z)",
    re.DOTALL,
)
_OF_VALUE = re.compile(r"\boutput:? '?([^\s']+)")


class Messages:
    """Reads ONNX Runtime's log during a verification.

    Python gives no access to its logger: it writes to standard error, past `sys.stderr`. So standard error is a file while ONNX Runtime
    works, and everything else that comes there is passed on. With other threads in the process, which may write or start a process at
    that moment, ONNX Runtime stays silent instead.

    Args:
        context: The context.
        model: The exported model.
        path: Where the model was saved, if it was.
    """

    def __init__(self, context: DiagnosticContext, model: ir.Model, path: pathlib.Path | None) -> None:
        self._context = context
        self._model = model
        self._path = path
        self._told: set[tuple[str, str]] = set()
        self._is_listening = errors_readable()
        if not self._is_listening:
            context.event("Other threads run in this process, so the warnings of ONNX Runtime were not read.")

    def make(self, model: str | bytes) -> ort.InferenceSession:
        """A session on the CPU that logs warnings if somebody reads them."""
        if not self._is_listening:
            return ONNXRuntimeOptions().make(model)
        options = considerate()
        options.log_severity_level = _WARNING
        options.logid = _ID
        return ONNXRuntimeOptions(session_options=options).make(model)

    @contextlib.contextmanager
    def read(self, notes: Sequence[str] = (), *, drop: bool = False) -> Iterator[None]:
        """Around a call of ONNX Runtime: reports what it warns of meanwhile.

        Args:
            notes: What a finding adds.
            drop: Whether to report nothing.
        """
        if not self._is_listening:
            yield
            return
        found: list[tuple[str, str, str]] = []

        def take(text: str) -> str:
            found.extend(_RECORD.findall(text))
            return _RECORD.sub("", text)

        with errors_read(take):
            yield
        # NOTE: not after an exception, which says the same.
        for level, where, text in () if drop else found:
            if level in "WEF":
                self._report(where, text.strip(), notes)

    def _report(self, where: str, text: str, notes: Sequence[str]) -> None:
        at = self._place(text)
        key = where, str(at.location if at is not None else "")
        if key not in self._told:
            self._told.add(key)
            if self._path is not None:
                # NOTE: the folder has a different name in each run, and a finding must stay the same.
                text = text.replace(f"{self._path.parent}/", "")
            self._context.report(RuntimeWarned(warning=text), at=at, notes=notes)

    def _place(self, text: str) -> Evidence | None:
        """The place of the node that a message names, or whose output it names."""
        if (at := locations.at_onnx_node(text, self._model)) is not None:
            return at
        names = set(_OF_VALUE.findall(text))
        nodes = (node for node in self._model.graph.all_nodes() if any(value.name in names for value in node.outputs))
        return next((at for node in nodes if (at := locations.at_onnx_node(node.name or " ", self._model)) is not None), None)
