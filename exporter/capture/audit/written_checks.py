"""Run-time checks that the user's code writes: `torch._check`, `assert`, `if ..: raise`. The exported model does not do them."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator, Sequence

from onnxplain.capture.finding import Finding
from onnxplain.capture.observe.guards import Guards
from onnxplain.diagnostics import Evidence, Location
from onnxplain.registry import qualified_name
from onnxplain.rules import CheckLeftOut
from onnxplain.source import locations, syntax

from .finished import Finished

TENSOR_CHECKS = frozenset({"aten::_assert_async", "aten::_assert_async.msg"})
"""The operators that check that a tensor is true."""
_OF_A_CONDITION = frozenset(
    {
        *("_assert", "_assert_async", "_check", "_check_index", "_check_not_implemented", "_check_tensor_all", "_check_type"),
        *("_check_value", "_check_with"),
    }
)
"""Functions of torch that check their condition."""
_OF_A_NUMBER = frozenset({"_check_is_size"})
"""Functions of torch that check that a number may be a size."""
_WRAPS_DEPRECATED = "typing_extensions.py"
"""The file through which torch calls its deprecated functions."""


@dataclasses.dataclass(frozen=True)
class WrittenCheck:
    """A check in the user's code.

    Attributes:
        condition: The source text of what it checks.
        place: Its place.
        is_statement: Whether it is an `assert` or an `if`, and not a call.
    """

    condition: str
    place: Location
    is_statement: bool

    @property
    def finding(self) -> Finding:
        """The finding that the exported model does not do it."""
        return Finding(CheckLeftOut(check=self.condition), Evidence(self.place), blocking=False)


def written_check(stack: Sequence[Location]) -> WrittenCheck | None:
    """The check in which the innermost frame outside torch is, if that frame is the user's."""
    frames = [frame for frame in stack if not (locations.is_internal(frame.file) or frame.file.endswith(_WRAPS_DEPRECATED))]
    place = frames[-1] if frames else None
    if place is None or place.region is None or not locations.is_users(place.file):
        return None
    for node in syntax.around(place.file, place.region):
        if isinstance(node, ast.Assert):
            return WrittenCheck(syntax.text(place.file, node.test), place, is_statement=True)
        if isinstance(node, ast.If) and syntax.only_raises(node) and place.region.line <= (node.test.end_lineno or 0):
            return WrittenCheck(f"not ({syntax.text(place.file, node.test)})", place, is_statement=True)
        if isinstance(node, ast.Call) and node.args and syntax.last_name(node.func) in _OF_A_CONDITION:
            return WrittenCheck(syntax.text(place.file, _condition(node)), place, is_statement=False)
        if isinstance(node, ast.Call) and syntax.last_name(node.func) in _OF_A_NUMBER:
            return WrittenCheck(syntax.text(place.file, node), place, is_statement=False)
    return None


def findings(finished: Finished) -> Iterator[Finding]:
    """A finding for each check that the captured program has or assumes. A check that is always true is gone without one."""
    yield from of_sizes(finished.attempt.guards)
    for node in finished.nodes:
        if qualified_name(node.target) in TENSOR_CHECKS and (check := written_check(locations.stack_of(node))) is not None:
            yield check.finding


def of_sizes(guards: Guards) -> Iterator[Finding]:
    """A finding for each check of sizes and numbers that a capture met."""
    sizes = guards.symbols.all()
    for guard in guards.made:
        check = written_check(guard.stack)
        # NOTE: a statement about sizes of the inputs is one of the assumptions about dims, which have findings; one by data is not.
        if check is not None and not (check.is_statement and guard.relation.free_symbols <= sizes):
            yield check.finding


def _condition(call: ast.Call) -> ast.expr:
    # NOTE: the first argument of `torch._check_with` is the type of the exception.
    return call.args[1] if syntax.last_name(call.func) == "_check_with" and len(call.args) > 1 else call.args[0]
