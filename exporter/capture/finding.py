"""A finding before it is reported, and the places and texts that all findings need."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import torch

from onnxplain.diagnostics import Evidence, Fix, Rule, chain, message_of, type_name
from onnxplain.request import InputDim, Request
from onnxplain.source import locations
from onnxplain.torch_internals import dynamo


@dataclasses.dataclass(frozen=True)
class Finding:
    """A finding to report.

    Attributes:
        rule: The rule.
        at: Its place.
        notes: Additional facts.
        fixes: The fixes to offer.
        final: True if no other strategy can do better, because the fault is in the model or in the call.
        blocking: False if the export can go on with a program.
        negligible: True if it need not be reported when the export goes on with a program.
        own_cause: False if another capture than the one that failed made it, so that the exception is not its cause.
        certain: Sizes of dims for which a rewritten copy must do the same, because the model has separate code for them.
    """

    rule: Rule
    at: Evidence
    notes: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    final: bool = False
    blocking: bool = True
    negligible: bool = False
    own_cause: bool = True
    certain: tuple[Mapping[InputDim, int], ...] = ()

    def for_users(self) -> Finding:
        """The finding with code to look at instead of edits of files that are not the user's."""
        foreign = [any(not locations.is_users(edit.file) for edit in fix.edits) for fix in self.fixes]
        if not any(foreign):
            return self
        shown = (
            dataclasses.replace(fix, edits=(), snippet=fix.edits[0].as_snippet()) if outside else fix
            for fix, outside in zip(self.fixes, foreign, strict=True)
        )
        return dataclasses.replace(self, fixes=tuple(shown))

    @property
    def place(self) -> tuple[str, int | None]:
        """File and line."""
        location = self.at.location
        return (location.file, location.line) if location else ("", None)


def fallback(request: Request) -> Evidence:
    """The place of a finding without a known line in the user's code: the model's `forward`, or else the call."""
    model = request.model
    definition = None if isinstance(model, torch.export.ExportedProgram) else locations.module_definition(model)
    return Evidence(definition or request.caller)


def headline(error: BaseException) -> str:
    """The type and the first line of an exception."""
    lines: Sequence[str] = [line for line in message_of(error).splitlines() if line.strip()]
    return f"{type_name(error)}: {lines[0].strip()}" if lines else type_name(error)


def module_of(request: Request) -> torch.nn.Module | None:
    """The model if it is a module; None if it is a function."""
    return request.model if isinstance(request.model, torch.nn.Module) else None


def graph_break_type(error: BaseException) -> str:
    """TorchDynamo's name for the code that it cannot trace; empty for other errors."""
    return next(filter(None, map(dynamo.graph_break_type, chain(error))), "")
