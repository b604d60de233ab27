"""The user's whole Python stack: on every FX node while torch traces non-strictly, and at the moments that decide over a capture.

torch keeps only the frames named `forward` (2.13, fx/proxy.py, `_record_forward_stack_traces_only`), so a helper's line is lost there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch

from onnxplain.diagnostics import Location
from onnxplain.diagnostics.source import line_text
from onnxplain.source import locations

from .replays import Call

# NOTE: every tracer makes its nodes in TracerBase.create_node (read in torch 2.11, 2.13 and 2.15, fx/proxy.py).
_TRACER: Any = getattr(torch.fx.proxy, "TracerBase", None)

Entry = tuple[types.FrameType, int, int]
"""A frame with its instruction and its line."""


@dataclasses.dataclass(frozen=True)
class Site:
    """What the innermost frame that is not torch's was doing.

    Attributes:
        stack: The frames that are not torch's, outermost first.
        asking: Where the data was asked for: its innermost place, or inside of torch.
        asks_truth_of_tensor: True if Python wanted to know whether a tensor is true, as `if` does.
        tensors: Names of the frame's local variables that hold tensors; None if that is not known.
        numbers: Names of those that hold integers.
    """

    stack: tuple[Location, ...]
    asking: Location | None
    asks_truth_of_tensor: bool
    tensors: frozenset[str] | None
    numbers: frozenset[str] = frozenset()


class Frames:
    """Reads the stack between the innermost frame and the frame that entered this.

    Everything is cached by code object and instruction: the same lines run for each of a model's layers.
    """

    def __init__(self) -> None:
        self._boundary: types.FrameType | None = None
        # NOTE: by id, because code objects hash slowly, and equal ones may come from different files; `_codes` keeps them alive.
        self._codes: dict[int, tuple[types.CodeType, bool, bool]] = {}
        self._places: dict[tuple[int, int], Location] = {}
        self._texts: dict[tuple[int, int], str] = {}

    def __enter__(self) -> Frames:
        self._boundary = sys._getframe(1)
        return self

    def __exit__(self, *exception: object) -> None:
        self._boundary = None

    def stack(self) -> tuple[Location, ...]:
        """The frames that are not torch's, outermost first."""
        return tuple(self._place(frame) for frame in self._others_than_torchs())

    def python_asks(self) -> bool:
        """Whether the innermost of them needs a size as a Python number or bool by itself, and not an operator that it called."""
        inner: types.FrameType | None = None
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and frame is not self._boundary:
            if locations.origin(frame.f_code.co_filename) is not locations.Origin.INTERNAL:
                return inner is not None and isinstance(inner.f_locals.get("self"), torch.SymInt | torch.SymFloat | torch.SymBool)
            inner, frame = frame, frame.f_back
        return False

    def operator(self) -> Call | None:
        """The operator at work inside of torch, with its arguments; None if Python asks."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and locations.origin(frame.f_code.co_filename) is locations.Origin.INTERNAL:
            # NOTE: torch's dispatch and TorchDynamo's `run_node` have these variables (torch 2.11 to 2.15).
            known = frame.f_locals
            node = known.get("node")
            called = node.target if isinstance(node, torch.fx.Node) else known.get("func")
            called = getattr(torch.Tensor, called, None) if isinstance(called, str) else called
            if callable(called) and isinstance(known.get("args"), tuple) and isinstance(known.get("kwargs"), dict):
                return Call(called, known["args"], known["kwargs"])
            frame = frame.f_back
        return None

    def site(self) -> Site:
        """What the innermost of them is doing."""
        entries: list[Entry] = []
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and frame is not self._boundary:
            entries.append((frame, frame.f_lasti, frame.f_lineno))
            frame = frame.f_back
        return site_of(entries[::-1])

    @contextlib.contextmanager
    def on_nodes(self) -> Iterator[None]:
        """Writes the stack on every FX node that is made meanwhile, as `stack_trace`, in the form that `where.at_node` reads."""
        create_node = getattr(_TRACER, "create_node", None)
        if create_node is None:
            yield
            return

        def create_node_with_stack(tracer: Any, kind: str, *args: Any, **kwargs: Any) -> torch.fx.Node:
            if type(tracer).__module__.startswith("torch._dynamo"):
                # NOTE: TorchDynamo, which also traces the branches of torch.cond, writes whole stacks by itself.
                return cast(torch.fx.Node, create_node(tracer, kind, *args, **kwargs))
            # NOTE: torch's own stack is poorer, and slow: it looks up the source of every frame for every node.
            tracer.record_stack_traces = False
            node: torch.fx.Node = create_node(tracer, kind, *args, **kwargs)
            # NOTE: torch.export refuses programs whose placeholders or outputs have a stack. A stack that the node has already was
            # copied from a node that is traced again: it goes on where ours ends.
            if kind not in ("placeholder", "output") and (trace := self._trace()):
                node.meta["stack_trace"] = trace + (node.meta.get("stack_trace") or "")
            return node

        _TRACER.create_node = create_node_with_stack
        try:
            yield
        finally:
            _TRACER.create_node = create_node

    def _trace(self) -> str:
        texts, parts = self._texts, []
        for frame in self._others_than_torchs(generated=True):
            key = (id(frame.f_code), frame.f_lasti)
            if key not in texts:
                texts[key] = _stack_of_generated(frame) if _is_generated(frame.f_code) else _traceback_text(self._place(frame))
            parts.append(texts[key])
        return "".join(parts)

    def _others_than_torchs(self, *, generated: bool = False) -> list[types.FrameType]:
        frames: list[types.FrameType] = []
        frame: types.FrameType | None = sys._getframe(1)
        codes, boundary = self._codes, self._boundary
        while frame is not None and frame is not boundary:
            code = frame.f_code
            known = codes.get(id(code))
            if known is None:
                theirs = locations.origin(code.co_filename) is not locations.Origin.INTERNAL
                known = codes[id(code)] = (code, theirs, _is_generated(code))
            if known[1] or (generated and known[2]):
                frames.append(frame)
            frame = frame.f_back
        frames.reverse()
        return frames

    def _place(self, frame: types.FrameType) -> Location:
        key = (id(frame.f_code), frame.f_lasti)
        if key not in self._places:
            self._places[key] = locations.location(frame.f_code, frame.f_lasti, frame.f_lineno)
        return self._places[key]


def site_of(entries: Sequence[Entry]) -> Site:
    """What the innermost frame of `entries`, outermost first, that is not torch's was doing."""
    others = [
        number for number, entry in enumerate(entries) if locations.origin(entry[0].f_code.co_filename) is not locations.Origin.INTERNAL
    ]
    if not others:
        return Site((), None, False, frozenset())
    innermost = others[-1]
    # NOTE: a torch function mode (torch 2.11 to 2.15, torch/overrides.py) is called with the function that Python asked for.
    asked = [number for number in range(innermost + 1, len(entries)) if entries[number][0].f_locals.get("func") is torch.Tensor.__bool__]
    asking = entries[asked[0] - 1] if asked else entries[innermost]
    variables = entries[innermost][0].f_locals
    return Site(
        tuple(_place(entries[number]) for number in others),
        _place(asking),
        bool(asked),
        frozenset(name for name, value in variables.items() if isinstance(value, torch.Tensor)),
        frozenset(name for name, value in variables.items() if type(value) in (int, torch.SymInt)),
    )


def _place(entry: Entry) -> Location:
    frame, instruction, line = entry
    return locations.location(frame.f_code, instruction, line)


def _is_generated(code: types.CodeType) -> bool:
    return code.co_filename.startswith("<eval_with_key>")


def _stack_of_generated(frame: types.FrameType) -> str:
    """The stack of the FX node whose line of generated code `frame` is at.

    TorchDynamo turns a branch of torch.cond into a graph, which then runs as Python instead of the user's lines.
    """
    # NOTE: read in torch 2.11, 2.13 and 2.15, fx/graph.py: `_lineno_map` leads from a line below the `def` to the index of a node.
    graph_module = frame.f_locals.get("self")
    index = (getattr(graph_module, "_lineno_map", None) or {}).get(frame.f_lineno - frame.f_code.co_firstlineno)
    if not isinstance(graph_module, torch.fx.GraphModule) or index is None:
        return ""
    node = next(itertools.islice(graph_module.graph.nodes, index, None), None)
    return str(node.meta.get("stack_trace") or "") if node is not None else ""


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
