"""One capture with one strategy, watched."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable
from contextlib import AbstractContextManager

import torch

from onnxplain import process
from onnxplain.diagnostics import DiagnosticContext, interruption
from onnxplain.request import Request
from onnxplain.source import locations, syntax
from onnxplain.torch_internals import dynamo, gradients, pytree, size_texts
from onnxplain.torch_internals.python_values import is_a

from .finding import headline
from .observe.attributes import Attributes
from .observe.frames import Frames
from .observe.guard_watch import GuardWatch
from .observe.guards import Guards
from .observe.host_values import Draws
from .observe.reads import Reads, holds_tensors
from .observe.side_effects import SideEffects
from .strategies import BelowAutograd, CaptureStrategy, NonStrict

Setting = Callable[[], AbstractContextManager[None]]


@dataclasses.dataclass(frozen=True)
class Attempt:
    """The result of one strategy, and what was observed meanwhile.

    Attributes:
        strategy: The strategy.
        request: The request that it captured.
        program: The program from torch.export; None if it raised an exception.
        error: The exception.
        seconds: The work that it took, in seconds.
        guards: torch's decisions about sizes.
        draws: The random numbers that Python drew.
        attributes: The model's attributes before the capture.
        reads: The tensors that Python read.
        effects: The lines that printed, logged, warned or wrote a file.
        differentiates: Whether the model computed gradients.
        spells_sizes: Whether the model's code made texts of symbolic sizes, other than messages, or failed and asked for a size's hash.
        setting: What was open around the strategy, beside what only observes.
    """

    strategy: CaptureStrategy
    request: Request
    program: torch.export.ExportedProgram | None
    error: Exception | None
    seconds: float
    guards: Guards
    draws: Draws
    attributes: Attributes
    reads: Reads
    effects: SideEffects
    differentiates: bool
    spells_sizes: bool
    setting: Setting = contextlib.nullcontext


_RUN_PYTHON = (NonStrict.name, BelowAutograd.name)
"""The strategies that call the model."""


def attempt(
    context: DiagnosticContext, strategy: CaptureStrategy, model: torch.nn.Module, request: Request, most: float = math.inf
) -> Attempt:
    """Captures `model`. Raises only what is not an `Exception`, such as KeyboardInterrupt, or Stopped after more than `most` seconds."""
    context.event(f"Capturing with the strategy {strategy.name}.")
    stopwatch, program, error = process.Stopwatch(), None, None
    tensors = [leaf for leaf in pytree.tree_leaves((request.args, dict(request.kwargs))) if is_a(leaf, torch.Tensor)]
    computed: list[bool] = []
    texts: list[bool] = []
    hashes: list[bool] = []
    effects = SideEffects()
    with Frames(most) as frames:
        watch, draws, attributes, reads = (
            GuardWatch(frames, restarts=strategy.name != NonStrict.name),
            Draws(),
            Attributes(model),
            Reads(frames.stack),
        )
        # NOTE: TorchDynamo would trace the mode itself, and the mode makes each function of torch a little slower.
        python = strategy.name != "strict"
        reading = reads if python and holds_tensors(model) else contextlib.nullcontext()
        noticing = gradients.noticed(lambda: computed.append(True)) if python else contextlib.nullcontext()
        spelling = size_texts.watched(
            lambda file: not locations.is_internal(file), lambda: texts.append(not _tells(frames)), lambda: hashes.append(True)
        )
        try:
            with (
                dynamo.marks_kept(tensors),
                process.exits_as_errors(locations.is_users),
                process.kept(context, locations.user_speaks),
                watch.watched(),
                reading,
                noticing,
                spelling if python else contextlib.nullcontext(),
                effects.watched() if python else contextlib.nullcontext(),
                # NOTE: a user's strategy may trace the hook.
                model.register_forward_hook(lambda *_: attributes.note()) if strategy.name in _RUN_PYTHON else contextlib.nullcontext(),
            ):
                program = strategy(model, request, frames)
        except Exception as raised:  # noqa: BLE001  the user's model runs here, and may raise anything
            if (stopped := interruption(raised)) is not None:
                raise stopped from None
            error = raised
            context.event(f"The strategy {strategy.name} failed: {headline(raised)}")
        finally:
            if program is None:
                attributes.put_back()
    if program is not None:
        context.event(f"The strategy {strategy.name} captured {len(program.graph.nodes)} nodes.")
    spells = any(texts) or (program is None and any(hashes))
    seconds, guards = stopwatch.seconds, watch.guards()
    return Attempt(strategy, request, program, error, seconds, guards, draws, attributes, reads, effects, bool(computed), spells)


def _tells(frames: Frames) -> bool:
    """Whether the innermost frame outside torch only makes a message."""
    stack = frames.stack()
    return bool(stack) and syntax.is_message(stack[-1])
