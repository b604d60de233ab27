"""Attributes and global lists, dicts and sets that `forward` changes: the exported model keeps nothing from one run to the next."""

from __future__ import annotations

from collections.abc import Iterator

from onnxplain.capture.finding import Finding
from onnxplain.diagnostics import Evidence
from onnxplain.rules import AttributeChanged

from .finished import Finished


def findings(finished: Finished) -> Iterator[Finding]:
    """The user's lines that change one."""
    for name, place in finished.attempt.attributes.changes(finished.frames, finished.again):
        yield Finding(AttributeChanged(attribute=name), Evidence(place))
