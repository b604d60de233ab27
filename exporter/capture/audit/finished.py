"""A successful capture, the input of the checks in this folder."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator

import torch

from onnxplain.capture.attempts import Attempt
from onnxplain.capture.observe.frames import Frames
from onnxplain.diagnostics import Location
from onnxplain.process import Budget, BudgetSpent, Stopwatch
from onnxplain.request import Request
from onnxplain.source import locations, volatile_calls
from onnxplain.torch_internals import size_texts


@dataclasses.dataclass(frozen=True)
class Finished:
    """A capture whose program is the result of the stage.

    Attributes:
        request: The export.
        program: The program.
        attempt: The attempt that made it, with its observations.
        model: The model, as a module.
        budget: Limits further captures; None if the export succeeds with the program.
    """

    request: Request
    program: torch.export.ExportedProgram
    attempt: Attempt
    model: torch.nn.Module
    budget: Budget | None = None

    @functools.cached_property
    def frames(self) -> tuple[Location, ...]:
        """The user's frames that made the program."""
        return tuple(volatile_calls.frames(self.program))

    @property
    def nodes(self) -> Iterator[torch.fx.Node]:
        """The nodes of the program, also of its inner graphs: those of branches, loops and `torch.no_grad()`."""
        for module in self.program.graph_module.modules():
            if isinstance(module, torch.fx.GraphModule):
                yield from module.graph.nodes

    def again(self) -> torch.export.ExportedProgram:
        """Captures the model once more, in the same way.

        Raises:
            BudgetSpent: The budget has no time for it.
            Stopped: It took too long.
        """
        most = math.inf if self.budget is None else self.budget.seconds
        if self.budget is not None and not self.budget.has(self.attempt.seconds):
            raise BudgetSpent
        spelling = size_texts.watched(lambda file: not locations.is_internal(file), lambda: None, lambda: None)
        stopwatch = Stopwatch()
        try:
            with self.attempt.setting(), spelling:
                return self.attempt.strategy(self.model, self.attempt.request, Frames(most))
        finally:
            if self.budget is not None:
                self.budget.spend(stopwatch.seconds)
