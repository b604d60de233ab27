"""The model without any capture: what it computes or raises, and what an expression is when it comes to a line."""

from __future__ import annotations

import contextlib
import random
import types
from typing import Any

import torch

from onnxplain.diagnostics import Location
from onnxplain.request import Request
from onnxplain.torch_internals import python_frames, pytree


def holds(request: Request, place: Location, test: str) -> bool | None:
    """As `truth_of`, for a place."""
    return None if place.line is None else truth_of(request, place.file, place.line, test)


def truth_of(request: Request, file: str, line: int, test: str) -> bool | None:
    """What the expression `test` is for the example when the model first comes to that line; None if it does not, or if that raises."""
    found: list[bool] = []

    def on_line(frame: types.FrameType, event: str) -> None:
        if event == "line" and frame.f_lineno == line and not found:
            with contextlib.suppress(Exception):
                found.append(bool(python_frames.evaluate(test, frame)))

    with python_frames.each_line(on_line, lambda each: each == file):
        error_of(request)
    return found[0] if found else None


def error_of(request: Request) -> Exception | None:
    """What the model raises without any capture; None if it runs. What it changes is put back."""
    try:
        result(request)
    except Exception as error:
        return error
    return None


def result(request: Request) -> Any:
    """What the model computes without any capture, with random numbers that are always the same. What it changes is put back."""
    model: Any = request.model
    args, kwargs = pytree.tree_map_only(torch.Tensor, torch.clone, (request.args, dict(request.kwargs)))
    buffers = list(model.buffers()) if isinstance(model, torch.nn.Module) else []
    saved = [buffer.clone() for buffer in buffers]
    pythons = random.getstate()
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        random.seed(0)
        try:
            return model(*args, **kwargs)
        finally:
            random.setstate(pythons)
            for buffer, value in zip(buffers, saved, strict=True):
                buffer.copy_(value)
