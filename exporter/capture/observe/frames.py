"""The user's whole Python stack: on every FX node of a non-strict capture, and at the moments that decide about a capture.

torch keeps only the frames named `forward` (2.13, fx/proxy.py, `_record_forward_stack_traces_only`), so a helper's line is lost there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import types
from collections.abc import Iterator, Sequence

import torch

from onnxplain.diagnostics import Location, line_text
from onnxplain.process import Stopped, Stopwatch
from onnxplain.source import locations
from onnxplain.torch_internals import python_frames, torch_frames, tracing
from onnxplain.torch_internals.operators import ITEMS, OpOverload
from onnxplain.torch_internals.python_frames import Entry
from onnxplain.torch_internals.python_values import is_a

from .numbers_from_data import makes_numbers
from .replays import Call


@dataclasses.dataclass(frozen=True)
class Site:
    """What the innermost frame outside torch was doing.

    Attributes:
        stack: The frames outside torch, outermost first.
        asking: The place that asked for the data: the innermost one, which may be within torch.
        asks_truth_of_tensor: True if Python asked for the truth of a tensor, as `if` does.
        tensors: Names of the frame's local variables that hold tensors; None if that is not known.
        numbers: Names of the local variables that hold integers.
    """

    stack: tuple[Location, ...]
    asking: Location | None
    asks_truth_of_tensor: bool
    tensors: frozenset[str] | None
    numbers: frozenset[str] = frozenset()


def stoppable(file: str) -> bool:
    """Whether a run of the model may be stopped at the lines of `file`: the model's files, and code that torch generated from them."""
    return not locations.is_internal(file) or tracing.is_generated(file)


class Frames:
    """Reads the stack between the innermost frame and the frame that entered this context.

    Everything is cached by code object and instruction, since the same lines run for each of a model's layers.

    Args:
        most: The seconds after which a capture is stopped.
    """

    def __init__(self, most: float = math.inf) -> None:
        self._most = most
        self._stopwatch = Stopwatch()
        self._arrays: list[Site] = []
        self._inferred: list[tuple[OpOverload, tuple[Location, ...]]] = []
        self._boundary: types.FrameType | None = None
        self._newest: torch.fx.Node | None = None
        # NOTE: by id, because code objects hash slowly, and different files may have equal ones; `_codes` keeps them alive.
        self._codes: dict[int, tuple[types.CodeType, bool, bool]] = {}
        self._places: dict[tuple[int, int], Location] = {}
        self._texts: dict[tuple[int, int], str] = {}

    def __enter__(self) -> Frames:
        self._boundary = python_frames.current()
        return self

    def __exit__(self, *exception: object) -> None:
        self._boundary = None

    def stack(self) -> tuple[Location, ...]:
        """The frames outside torch, outermost first."""
        return tuple(self._place(frame) for frame in self._others_than_torchs())

    def python_asks(self) -> bool:
        """Whether the innermost frame outside torch itself needs a size as a Python number or bool, and not an operator that it calls."""
        return locations.python_asks(python_frames.stack(self._boundary))

    def operator(self) -> Call | None:
        """The operator that Python called and torch is running, with its arguments; None if Python asks, for example with `.item()`."""
        outermost: torch_frames.Calling | None = None
        for frame in python_frames.outward(python_frames.current()):
            if not _is_internal(frame):
                break
            calling = torch_frames.operator_at_work(frame)
            # NOTE: an operator calls the operators that it consists of; the graph may have only the outermost one.
            if calling is not None and (outermost is None or isinstance(calling[0], OpOverload)):
                outermost = calling
        return None if outermost is None or outermost[0] in ITEMS else Call(*outermost)

    def operator_makes_number(self) -> bool:
        """Whether the operator that Python called makes a Python number of a size, which then is in the graph."""
        inner = list(itertools.takewhile(_is_internal, python_frames.outward(python_frames.current())))
        if not any(map(torch_frames.makes_number, inner)):
            return False
        return not (torch_frames.computes_fake_values(inner) or any(map(torch_frames.records, inner)))

    def site(self) -> Site:
        """What the innermost frame outside torch is doing."""
        return site_of([python_frames.entry_of(frame) for frame in reversed(python_frames.stack(self._boundary))])

    def note_array(self) -> None:
        """Notes that the innermost frame outside torch makes a numpy array of a tensor."""
        self._arrays.append(self.site())

    def arrays(self) -> tuple[Site, ...]:
        """The sites that `note_array` noted."""
        return tuple(self._arrays)

    def note_inferred(self, operator: OpOverload) -> None:
        """Notes that the innermost frame outside torch called an operator without a fake kernel."""
        self._inferred.append((operator, self.stack()))

    def inferred(self) -> tuple[tuple[OpOverload, tuple[Location, ...]], ...]:
        """The operators that `note_inferred` noted, each with the stack."""
        return tuple(self._inferred)

    def read_inputs(self) -> tuple[int, ...]:
        """The inputs and weights that decide the numbers and sizes made from data: their places from the end, 1 for the last."""
        if self._newest is None:
            return ()
        nodes = list(self._newest.graph.nodes)
        inputs = [node for node in nodes if node.op == "placeholder"]
        known, left = set[torch.fx.Node](), list(filter(makes_numbers, nodes))
        while left:
            node = left.pop()
            if node not in known:
                known.add(node)
                left += node.all_input_nodes
        return tuple(len(inputs) - place for place, node in enumerate(inputs) if node in known)

    @contextlib.contextmanager
    def on_nodes(self) -> Iterator[None]:
        """Writes the stack on every new FX node, as `stack_trace`, in the form that `locations.at_node` reads.

        Raises:
            Stopped: The capture takes too long.
        """

        def write(node: torch.fx.Node, kind: str) -> None:
            # NOTE: torch.export refuses programs whose placeholders or outputs have a stack. If the node already has a stack, torch copied
            # it from a node that it traces again, and that stack continues ours.
            self._stop_late()
            self._newest = node
            if kind not in ("placeholder", "output") and (trace := self._trace()):
                node.meta["stack_trace"] = trace + (node.meta.get("stack_trace") or "")

        def on_line(frame: types.FrameType, event: str) -> None:
            del frame
            if event != "return":
                self._stop_late()

        # NOTE: a loop that never ends need not make nodes.
        lines = python_frames.each_line(on_line, stoppable) if math.isfinite(self._most) else contextlib.nullcontext()
        with tracing.each_new_node(write), lines:
            yield

    def _stop_late(self) -> None:
        if self._stopwatch.is_beyond(self._most):
            raise Stopped(f"it ran longer than {self._most:.1f} s")

    def _trace(self) -> str:
        texts, parts = self._texts, []
        for frame in self._others_than_torchs(generated=True):
            key = (id(frame.f_code), frame.f_lasti)
            if key not in texts:
                texts[key] = (
                    _stack_of_generated(frame) if tracing.is_generated(frame.f_code.co_filename) else _traceback_text(self._place(frame))
                )
            parts.append(texts[key])
        return "".join(parts)

    def _others_than_torchs(self, *, generated: bool = False) -> list[types.FrameType]:
        frames: list[types.FrameType] = []
        codes = self._codes
        for frame in python_frames.stack(self._boundary):
            code = frame.f_code
            known = codes.get(id(code))
            if known is None:
                known = codes[id(code)] = (code, not locations.is_internal_code(code), tracing.is_generated(code.co_filename))
            if known[1] or (generated and known[2]):
                frames.append(frame)
        frames.reverse()
        return frames

    def _place(self, frame: types.FrameType) -> Location:
        key = (id(frame.f_code), frame.f_lasti)
        if key not in self._places:
            self._places[key] = locations.location(*python_frames.entry_of(frame))
        return self._places[key]


def _is_internal(frame: types.FrameType) -> bool:
    return locations.is_internal_code(frame.f_code)


def site_of(entries: Sequence[Entry]) -> Site:
    """What the innermost frame outside torch was doing. `entries` are ordered from the outermost."""
    others = [number for number, (frame, _, _) in enumerate(entries) if not locations.is_internal_code(frame.f_code)]
    if not others:
        return Site((), None, False, frozenset())
    innermost = others[-1]
    asked = [number for number in range(innermost + 1, len(entries)) if torch_frames.asks_for_truth(entries[number][0])]
    asking = entries[asked[0] - 1] if asked else entries[innermost]
    if torch_frames.stands_for_python(asking[0]):
        asking = entries[innermost]
    variables = python_frames.variables(entries[innermost][0])
    return Site(
        tuple(locations.location(*entries[number]) for number in others),
        locations.location(*asking),
        bool(asked),
        frozenset(name for name, value in variables.items() if is_a(value, torch.Tensor)),
        frozenset(name for name, value in variables.items() if type(value) in (int, torch.SymInt)),
    )


def _stack_of_generated(frame: types.FrameType) -> str:
    """The stack of the FX node of the line of generated code that `frame` is at."""
    node = tracing.node_of_generated(frame)
    return str(node.meta.get("stack_trace") or "") if node is not None else ""


def _traceback_text(place: Location) -> str:
    region = place.region
    if region is None:
        return ""
    text = line_text(place.file, region.line)
    shown = [f'File "{place.file}", line {region.line}, in {place.function}', f"  {text.strip()}"]
    if region.column is not None:
        # NOTE: a traceback's carets end with the line, so the rest of a longer expression is cut.
        end = region.end_column if region.end_column and region.last_line == region.line else len(text.rstrip()) + 1
        indent = len(text) - len(text.lstrip())
        shown.append(" " * (2 + region.column - 1 - indent) + "^" * max(1, end - region.column))
    return "".join(f"  {line}\n" for line in shown)
