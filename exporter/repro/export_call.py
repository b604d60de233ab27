"""The keywords of the export that a script repeats: those that differ from the default and matter to the failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onnxplain.diagnostics import DiagnosticOptions, Log
from onnxplain.request import CONTROL_FLOW, DEFAULT_OPSET, STRATEGIES, VERIFY_SIZES, Request

from .expression import Expression, Items, Ref, Text, call, literal

_Data = Callable[[Any, str], Expression]
"""Writes a Python value; the text is its name."""


def keywords_of(
    request: Request,
    log: Log,
    stage: str,
    translations: Mapping[Any, Any],
    write_input: _Data,
    write: _Data,
    *,
    try_fixes: bool,
) -> dict[str, Expression]:
    """The keywords of `onnxplain.export`.

    Args:
        request: The export.
        log: The log of the export.
        stage: The stage that failed.
        translations: The `custom_translation_table` of the export.
        write_input: Writes an example input.
        write: Writes an option.
        try_fixes: Whether the export might try fixes.
    """
    keywords: dict[str, Expression] = {}
    if request.kwargs:
        items = tuple((f"{literal(name).text}: ", write_input(value, name)) for name, value in request.kwargs.items())
        keywords["kwargs"] = Items(None, ("{", "}"), items)
    if request.misfit_axes is not None:
        keywords["dynamic_axes"] = write(dict(request.misfit_axes.given), "dynamic_axes")
    elif request.shapes.given is not None:
        keywords["dynamic_shapes"] = write(request.shapes.given, "dynamic_shapes")
    if translations:
        pairs = [Items(None, ("(", ")"), (("", Ref(key)), ("", _translation(value)))) for key, value in translations.items()]
        keywords["custom_translation_table"] = call(Text("dict"), Items(None, ("[", "]"), tuple(("", pair) for pair in pairs)))
    # NOTE: strategies that the user wrote stay with the user.
    strategies = tuple(each for each in request.strategies if isinstance(each, str))
    saved = stage in ("open", "serialize", "save")
    given = {
        "f": "repro.onnx" if saved and request.destination is not None else None,
        "input_names": list(request.input_names) or None,
        "output_names": list(request.output_names) or None,
        "opset_version": None if request.opset_version == DEFAULT_OPSET else request.opset_version,
        "strategies": None if strategies in (STRATEGIES, ()) else strategies,
        "control_flow": None if request.control_flow == CONTROL_FLOW[0] else request.control_flow,
        "try_fixes": None if try_fixes else False,
        "functions": None if request.functions is None else "modules",
        "optimize": None if request.optimize is True else request.optimize,
        "verify": True if stage == "verify" else None,
        "verify_sizes": request.verify_sizes if stage == "verify" and request.verify_sizes != VERIFY_SIZES else None,
        "external_data": request.external_data if saved else None,
        "export_params": None if request.export_params else False,
        "keep_initializers_as_inputs": request.keep_initializers_as_inputs or None,
    }
    keywords |= {name: write(value, name) for name, value in given.items() if value is not None}
    if chosen := _diagnostic_options(log.options, write):
        keywords["diagnostic_options"] = call(Text("onnxplain.DiagnosticOptions"), keywords=chosen)
    return keywords


def _diagnostic_options(options: DiagnosticOptions, write: _Data) -> dict[str, Expression]:
    default = DiagnosticOptions()
    names = ("warnings_as_errors", "levels", "select", "ignore")
    changed = {name: getattr(options, name) for name in names if getattr(options, name) != getattr(default, name)}
    return {name: write(dict(value) if name == "levels" else value, name) for name, value in changed.items()}


def _translation(value: Any) -> Expression:
    if isinstance(value, list | tuple):
        return Items(None, ("[", "]"), tuple(("", _translation(each)) for each in value))
    # NOTE: onnxscript keeps the Python function in the attribute `function` (0.7).
    return Ref(getattr(value, "function", value))
