"""The user's whole Python stack, for every FX node and every guard, while torch traces non-strictly.

torch keeps only the frames named `forward` (2.13, fx/proxy.py, `_record_forward_stack_traces_only`), so a helper's line is lost there.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import torch

from onnxplain import where
from onnxplain.diagnostics import Location
from onnxplain.diagnostics.source import line_text


class Frames:
    """Reads stacks from the innermost frame out to where it was entered; as a context manager, writes them on every FX node.

    Everything is cached by code object and instruction: a model's lines run once for each of its layers.
    """

    def __init__(self) -> None:
        self._boundary: types.FrameType | None = None
        # NOTE: by id, because code objects hash slowly, and equal ones may come from different files; `_codes` keeps them alive.
        self._codes: dict[int, tuple[types.CodeType, bool]] = {}
        self._places: dict[tuple[int, int], Location] = {}
        self._texts: dict[tuple[int, int], str] = {}

    def __enter__(self) -> Frames:
        self._boundary = sys._getframe(1)
        # NOTE: every tracer's nodes pass through TracerBase.create_node (read in torch 2.11, 2.13 and 2.15, fx/proxy.py).
        self._create_node = getattr(torch.fx.proxy.TracerBase, "create_node", None)
        if self._create_node is not None:
            torch.fx.proxy.TracerBase.create_node = self._wrapped(self._create_node)  # type: ignore[method-assign]
        return self

    def __exit__(self, *exception: object) -> None:
        if self._create_node is not None:
            torch.fx.proxy.TracerBase.create_node = self._create_node  # type: ignore[method-assign]
        self._boundary = None

    def stack(self) -> tuple[Location, ...]:
        """The frames that are not torch's between the caller and where this was entered, outermost first."""
        return tuple(self._place(frame) for frame in self.live())

    def live(self) -> list[types.FrameType]:
        """The same as frames, whose locals can be looked at."""
        frames: list[types.FrameType] = []
        frame: types.FrameType | None = sys._getframe(1)
        codes, boundary = self._codes, self._boundary
        while frame is not None and frame is not boundary:
            code = frame.f_code
            known = codes.get(id(code))
            if known is None:
                known = codes[id(code)] = (code, where.origin(code.co_filename) is not where.Origin.INTERNAL)
            if known[1]:
                frames.append(frame)
            frame = frame.f_back
        frames.reverse()
        return frames

    def _wrapped(self, create_node: Any) -> Any:
        def create_node_with_stack(tracer: Any, kind: str, *args: Any, **kwargs: Any) -> torch.fx.Node:
            # NOTE: torch's own stack is poorer, and finding the source of every frame again for every node is slow.
            tracer.record_stack_traces = False
            node: torch.fx.Node = create_node(tracer, kind, *args, **kwargs)
            # NOTE: torch.export refuses programs whose placeholders or outputs have a stack. A stack that the node has already is
            # TorchDynamo's, from inside a branch of torch.cond and the like: it goes on where ours ends.
            if kind not in ("placeholder", "output") and (trace := self._trace()):
                node.meta["stack_trace"] = trace + (node.meta.get("stack_trace") or "")
            return node

        return create_node_with_stack

    def _trace(self) -> str:
        """The stack as text, in the form of a traceback, which `where.at_node` reads."""
        texts = self._texts
        parts = []
        for frame in self.live():
            key = (id(frame.f_code), frame.f_lasti)
            if key not in texts:
                texts[key] = _traceback_text(self._place(frame))
            parts.append(texts[key])
        return "".join(parts)

    def _place(self, frame: types.FrameType) -> Location:
        key = (id(frame.f_code), frame.f_lasti)
        if key not in self._places:
            self._places[key] = where.location(frame.f_code, frame.f_lasti, frame.f_lineno)
        return self._places[key]


def _traceback_text(place: Location) -> str:
    region = place.region
    if region is None:
        return ""
    text = line_text(place.file, region.line)
    shown = [f'File "{place.file}", line {region.line}, in {place.function}', f"  {text.strip()}"]
    if region.column is not None:
        # NOTE: a traceback's carets end with the line; what goes on below it is cut.
        end = region.end_column if region.end_column and region.last_line == region.line else len(text.rstrip()) + 1
        indent = len(text) - len(text.lstrip())
        shown.append(" " * (2 + region.column - 1 - indent) + "^" * max(1, end - region.column))
    return "".join(f"  {line}\n" for line in shown)
