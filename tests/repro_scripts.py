"""Scripts of exports that fail, without an export: the finding is made up."""

from __future__ import annotations

import contextlib
import linecache
import pathlib
import sys
import types
from typing import Any

from logs import context

import onnxplain
from onnxplain import repro
from onnxplain.diagnostics import DiagnosticOptions, Log
from onnxplain.process import Budget
from onnxplain.request import DEFAULT_OPSET, STRATEGIES, DynamicShapes, Request
from onnxplain.rules import UserCodeRaised


def written(
    model: Any,
    args: tuple[Any, ...] = (),
    *,
    stage: str = "capture",
    kwargs: dict[str, Any] | None = None,
    dynamic_shapes: Any = None,
    diagnostic_options: DiagnosticOptions | None = None,
    table: dict[Any, Any] | None = None,
    **options: Any,
) -> tuple[str, Log]:
    """The script of an export that failed in `stage`, and the log of the script."""
    export = context(diagnostic_options)
    with contextlib.suppress(onnxplain.ExportFailed), export.stage(stage):
        raise export.fail(UserCodeRaised(error="made up"))
    defaults: dict[str, Any] = {
        "input_names": (),
        "output_names": (),
        "opset_version": DEFAULT_OPSET,
        "strategies": STRATEGIES,
        "destination": None,
        "external_data": None,
        "export_params": True,
        "keep_initializers_as_inputs": False,
        "optimize": True,
        "verify": False,
        "control_flow": "rewrite",
    }
    parsed = DynamicShapes.parse(dynamic_shapes, model, args, kwargs or {})
    request = Request(model=model, args=args, kwargs=kwargs or {}, shapes=parsed, callers=(), **(defaults | options))
    own = context()
    with own.stage("repro"):
        script = repro.source(own, request, export.log(), table or {}, Budget())
    return script, own.log()


def made_by(script: str, folder: pathlib.Path) -> dict[str, Any]:
    """The names that a script binds before it exports."""
    module, path = types.ModuleType("repro"), folder / "repro.py"
    sys.modules["repro"] = module
    path.write_text(script, encoding="utf-8")
    linecache.checkcache(str(path))
    try:
        exec(compile(script.partition("\nonnxplain.export(")[0], str(path), "exec"), vars(module))
    finally:
        del sys.modules["repro"]
    return vars(module)
