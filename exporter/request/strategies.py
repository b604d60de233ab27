"""The ways to capture a model that an export may try: onnxplain's by name, or the user's extractors."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import torch

from onnxplain.diagnostics import InvalidArgument

STRATEGIES = ("non-strict", "strict", "draft")
"""Capture strategies in the order in which they are tried."""


@runtime_checkable
class FXGraphExtractor(Protocol):
    """Your way to capture a model. Pass it among `strategies`; the export tries it in that order.

    An exception that it raises becomes a finding, and so does a program that does not take the example inputs. The export then tries the
    next strategy, and fails if all fail.

    Attributes:
        name: Its name in the log, different from onnxplain's names.
    """

    name: str

    def generate_fx(
        self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
    ) -> torch.export.ExportedProgram:
        """Captures `model`.

        Args:
            model: The model. A function comes as a module that has it as `forward`.
            args: Positional example inputs.
            kwargs: Keyword example inputs.
            dynamic_shapes: As `torch.export.export` takes it.

        Returns:
            The program, with the inputs and outputs that `model` has.
        """


def checked_strategies(strategies: object) -> tuple[str | FXGraphExtractor, ...]:
    """The option `strategies` as a tuple. Raises `InvalidArgument`."""
    chosen = tuple(strategies) if isinstance(strategies, list | tuple) else (strategies,)
    for each in chosen:
        own = isinstance(each, FXGraphExtractor) and isinstance(getattr(each, "name", None), str) and each.name not in STRATEGIES
        if not own and each not in STRATEGIES:
            expected = f"expected names from {STRATEGIES}, or objects with another name and generate_fx"
            raise InvalidArgument(f"strategies: {expected}, got {each!r}")
    if not chosen:
        raise InvalidArgument("strategies: expected at least one, got none")
    return chosen
