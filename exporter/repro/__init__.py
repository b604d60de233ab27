"""A script that fails as an export did, small enough for an issue and without the user's data."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import torch

from onnxplain.diagnostics import Diagnostic, DiagnosticContext, Log
from onnxplain.process import Budget
from onnxplain.request import Request
from onnxplain.torch_internals import modules

from . import minimise, trial
from .expression import Unknown
from .live_objects import looked_at
from .script import Script, failing

_LARGEST = 2**30
"""The largest model whose script is tried out, in bytes of weights."""


def source(context: DiagnosticContext, request: Request, log: Log, translations: Mapping[Any, Any], budget: Budget) -> str:
    """The text of a script that fails with the first failing finding of `log`, at the same line of source.

    The script contains the parts of the user's sources that the model needs, statements that make the model and its inputs, and the call
    of the export. What the failure does not need is taken out, as long as the budget lasts. It is run in an empty folder. An event of the
    log tells whether it fails as it should; if it does not, or if it may be longer than it has to be, so does a comment at the top.

    Of the user's data, the script contains source, names, and the Python values of attributes, configurations and inputs. It contains
    neither weights nor the numbers in the inputs; `values.example` names the few that are kept. Placeholders stand for strings that may
    tell something about the user; `strings.is_public` names those that do not. If the script fails as it should only with the strings,
    which takes a second run, it quotes them, and its head and an event list the attributes.

    Args:
        context: Gets the events.
        request: The export that failed.
        log: The log of the export.
        translations: The `custom_translation_table` of the export.
        budget: How long scripts may run.

    Returns:
        Python source; an empty text if there can be no script, and an event with the reason.
    """
    model = request.model
    if isinstance(model, torch.export.ExportedProgram):
        context.event("No script was written: an ExportedProgram has no source.", logging.WARNING)
        return ""
    try:
        with looked_at(""):
            return _tried_out(context, request, log, translations, budget)
    except Unknown as unknown:
        context.event(f"No script was written, because the model has no source that can be copied: {unknown}.", logging.WARNING)
        return ""


def _tried_out(context: DiagnosticContext, request: Request, log: Log, translations: Mapping[Any, Any], budget: Budget) -> str:
    """The script, once its trial is in the events of `context`. Raises `Unknown` if there is none."""
    model, made = request.model, Script(request, log, translations, try_fixes=budget.is_allowed)
    tensors = modules.named_tensors(model) if isinstance(model, torch.nn.Module) else ()
    size = sum(tensor.nbytes for _, tensor in tensors)
    if size > _LARGEST:
        remark = f"This script was not tried out: the model has {size / 2**30:.1f} GiB of weights."
        context.event(remark, logging.WARNING)
        return made.text(made.body(), remark)
    return _proven(context, made, failing(log), budget)


def _proven(context: DiagnosticContext, made: Script, finding: Diagnostic, budget: Budget) -> str:
    """The script as short as it gets, once a run has shown that it fails alike. It quotes strings if it needs them."""
    remarks = []
    for quotes in (False, True) if made.places else (False,):
        made.quotes_strings = quotes
        text, told, remark = _shortest(made, finding, budget)
        if not remark:
            context.event(f"A script that also fails with {finding.rule.id} was written and tried out.{told}")
            if quotes:
                context.event(f"The script needs, and quotes, the strings in {', '.join(made.places)}.", logging.WARNING)
            return text
        remarks.append(remark)
    made.quotes_strings = False
    context.event(remarks[0], logging.WARNING)
    return made.text(made.body(), remarks[0])


def _shortest(made: Script, finding: Diagnostic, budget: Budget) -> tuple[str, str, str]:
    """The script, shorter if possible; what was done to it; and how its end differs from that of the export."""
    body = made.body()
    short = minimise.minimised(body, finding, budget)
    before, after = body.count("\n"), short.text.count("\n")
    told = f" {before - after} of its {before} lines were taken out in {short.runs} runs." if after < before else ""
    text = made.text(short.text, short.remark, is_shorter=short.text != body)
    return text, told, "" if short.is_proven else trial.difference(text, finding, budget)
