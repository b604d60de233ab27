"""Explains entries of `dynamic_axes` that do not fit the inputs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxplain.capture.finding import Finding
from onnxplain.diagnostics import Confidence, Edit, Fix, Region
from onnxplain.request import MisfitAxes, Request, WrongEntry, shapes_source
from onnxplain.rules import DynamicShapesMismatch
from onnxplain.source import call_sites, locations, syntax
from onnxplain.source.call_sites import SourceExpression


def faults(request: Request) -> Iterator[Finding]:
    """A finding for each key and each value of `dynamic_axes` that does not fit, at its place."""
    given = request.misfit_axes
    if given is None:
        return
    written = call_sites.argument(request, "dynamic_axes", lambda node: isinstance(node, ast.Dict) and None not in node.keys)
    for entry in given.wrong:
        place = None if written is None else _place(written, entry)
        at = call_sites.at(place or written or call_sites.argument(request, "dynamic_axes"), request)
        rule = DynamicShapesMismatch(expected=entry.expected, actual=entry.actual)
        yield Finding(rule, at, fixes=tuple(_fixes(given, entry, written, place)), final=True)


def _fixes(given: MisfitAxes, entry: WrongEntry, written: SourceExpression | None, place: SourceExpression | None) -> Iterator[Fix]:
    confidence = Confidence.SAFE if entry.certain else Confidence.GUESS
    if entry.right is None and not entry.is_name:
        return
    description = "Use the name of the input." if entry.is_name else "List the axes that vary, or name them."
    if entry.right is None:
        description = "Leave the entry out: no input has this name, and the dims of outputs follow from those of the inputs."
    if written is None or place is None or not locations.is_users(written.file):
        yield Fix(description, confidence, snippet=f"dynamic_axes = {shapes_source.expression(given.fitting(), {})}")
    elif entry.right is None:
        yield Fix(description, confidence, edits=(_without(written, entry),))
    else:
        yield Fix(description, confidence, edits=place.replaced(shapes_source.expression(entry.right, {})))


def _items(written: SourceExpression) -> list[tuple[ast.expr, ast.expr]]:
    assert isinstance(written.node, ast.Dict)
    keys = filter(None, written.node.keys)
    return list(zip(keys, written.node.values, strict=True))


def _place(written: SourceExpression, entry: WrongEntry) -> SourceExpression | None:
    """The key or the value of `entry` in the dict; None if it is not written there."""
    found = [pair for pair in _items(written) if isinstance(pair[0], ast.Constant) and pair[0].value == entry.key]
    return SourceExpression(written.file, found[0][0 if entry.is_name else 1]) if len(found) == 1 else None


def _without(written: SourceExpression, entry: WrongEntry) -> Edit:
    """The edit that removes `entry` from the dict, with the comma before it, or behind it if it is the first."""
    items = _items(written)
    number = next(number for number, (key, _) in enumerate(items) if isinstance(key, ast.Constant) and key.value == entry.key)
    key, value = (syntax.region(written.file, node) for node in items[number])
    if number:
        before = syntax.region(written.file, items[number - 1][1])
        return Edit(written.file, Region(before.last_line, before.end_column, value.last_line, value.end_column), "")
    end = syntax.region(written.file, items[1][0]) if len(items) > 1 else None
    last = (value.last_line, value.end_column) if end is None else (end.line, end.column)
    return Edit(written.file, Region(key.line, key.column, *last), "")
