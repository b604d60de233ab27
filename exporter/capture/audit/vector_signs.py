"""Singular vectors and eigenvectors, whose signs are not unique."""

from __future__ import annotations

from collections.abc import Iterator

from onnxplain.capture.finding import Finding
from onnxplain.registry import qualified_name
from onnxplain.rules import VectorSigns
from onnxplain.source import locations

from .finished import Finished

_VECTORS = {
    **dict.fromkeys(("aten::linalg_eigh", "aten::_linalg_eigh"), (1,)),
    **dict.fromkeys(("aten::svd", "aten::linalg_svd", "aten::_linalg_svd"), (0, 2)),
}
"""The results that are vectors, by operator."""


def findings(finished: Finished) -> Iterator[Finding]:
    """A finding for each operator whose vectors the program uses."""
    for node in finished.nodes:
        vectors = _VECTORS.get(qualified_name(node.target), ())
        if any(user.users and user.args[1] in vectors for user in node.users if qualified_name(user.target) == "_operator::getitem"):
            yield Finding(VectorSigns(operator=qualified_name(node.target)), locations.at_node(node))
