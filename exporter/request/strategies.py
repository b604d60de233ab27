"""Which ways to capture a model an export may try: by name, or brought by the user."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import torch

from onnxplain.diagnostics import InvalidArgument

STRATEGIES = ("non-strict", "strict", "draft")
"""Capture strategies in the order in which they are tried."""


@runtime_checkable
class FXGraphExtractor(Protocol):
    """A way to capture a model that a user brings: pass it among `strategies`, where it stands in line with those of onnxplain.

    What it raises becomes a finding, and so does a program that does not take the example inputs. The next strategy is tried then; if all
    fail, so does the export.

    Attributes:
        name: What the log calls it. None of onnxplain's names.
    """

    name: str

    def generate_fx(
        self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
    ) -> torch.export.ExportedProgram:
        """Captures `model`.

        Args:
            model: The model; a function is the `forward` of a module.
            args: Positional example inputs.
            kwargs: Keyword example inputs.
            dynamic_shapes: As `torch.export.export` takes it.

        Returns:
            The program, with the inputs and outputs that `model` has.
        """


def checked_strategies(strategies: object) -> tuple[str | FXGraphExtractor, ...]:
    """`strategies` as the option of that name takes them. Raises `InvalidArgument`."""
    chosen = tuple(strategies) if isinstance(strategies, list | tuple) else (strategies,)
    for each in chosen:
        own = isinstance(each, FXGraphExtractor) and isinstance(getattr(each, "name", None), str) and each.name not in STRATEGIES
        if not own and each not in STRATEGIES:
            expected = f"expected names out of {STRATEGIES}, or objects with another name and generate_fx"
            raise InvalidArgument(f"strategies: {expected}, got {each!r}")
    if not chosen:
        raise InvalidArgument("strategies: expected at least one, got none")
    return chosen
