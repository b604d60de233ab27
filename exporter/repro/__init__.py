"""A script of its own that fails as an export did: small enough to attach to an issue, without the user's data."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import torch

from onnxplain.diagnostics import DiagnosticContext, Log
from onnxplain.process import Budget
from onnxplain.request import Request

from . import trial
from .script import Script, failing
from .values import Unknown

_LARGEST = 2**30


def source(context: DiagnosticContext, request: Request, log: Log, translations: Mapping[Any, Any], budget: Budget) -> str:
    """The text of a script that fails with the first finding of `log`, at the same line of source.

    It holds the parts of the user's sources that the model needs, a description of the model, inputs, and the call of the export. It was
    run once, in an empty folder; whether it fails as it should is an event of the log, and if not, a comment at its head.

    What is in it of the user's: source, names and Python values of attributes, configurations and inputs. What is not: weights, and the
    numbers in the inputs; see `values.example` for the few that are kept.

    Args:
        context: Where events go.
        request: The export that failed.
        log: What it reported.
        translations: Its `custom_translation_table`.
        budget: How long the script may run.

    Returns:
        Python source; empty where there can be none, which an event explains.
    """
    model = request.model
    if isinstance(model, torch.export.ExportedProgram):
        context.event("No script was written: an ExportedProgram has no source.", logging.WARNING)
        return ""
    try:
        made = Script(request, log, translations)
    except Unknown as unknown:
        context.event(f"No script was written: the source of the model is not at hand{unknown}.", logging.WARNING)
        return ""
    size = sum(each.nbytes for each in model.parameters()) if isinstance(model, torch.nn.Module) else 0
    if size > _LARGEST:
        remark = f"This script was not tried out: the model has {size / 2**30:.1f} GiB of weights."
    else:
        remark = trial.difference(made.text(), failing(log), budget)
    if remark:
        context.event(remark, logging.WARNING)
    else:
        context.event(f"A script that fails with {failing(log).rule.id}, too, was written and tried out.")
    return made.text(remark)
