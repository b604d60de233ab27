"""Attributes and global lists, dicts and sets that `forward` changes. The exported model keeps no state between runs."""

from __future__ import annotations

from collections.abc import Iterator

from onnxplain.capture.finding import Finding
from onnxplain.capture.rewrite import caches
from onnxplain.diagnostics import Evidence
from onnxplain.rules import AttributeChanged

from .finished import Finished


def findings(finished: Finished) -> Iterator[Finding]:
    """A finding for each of the user's lines that changes one."""
    for name, place in finished.attempt.attributes.changes(finished.frames, finished.again):
        # NOTE: of a private name, nobody else sees that the exported model leaves a cache as it is.
        if not (name.startswith("_") and caches.fills(place)):
            yield Finding(AttributeChanged(attribute=name), Evidence(place))
