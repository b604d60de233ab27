"""Tells where the time of an export goes: by stage, and by line of the model's code."""

from __future__ import annotations

import dataclasses
import logging
import pathlib
import types
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from onnxplain.diagnostics import PROFILE, DiagnosticContext, ExportFailed, Log, line_text, privacy_of, shown_path, visible

from .process import sampled
from .program import ONNXProgram
from .source import locations
from .torch_internals import code_objects, dynamo, python_frames
from .torch_internals.modules import named_modules
from .torch_internals.operators import OpOverload

_ROWS = 20
_WIDTH, _PLACE, _CODE = 160, 40, 50
_SHORTEST = 0.0005
"""The most lines, the longest texts, and the seconds that would be shown as 0.000."""
_LINES, _TORCH, _OURS = _OWNERS = ("your lines", "torch", "onnxplain")

_Line = tuple[str, int]
"""A file and the number of a line."""


@dataclasses.dataclass
class _Time:
    """The seconds of a line.

    Attributes:
        own: Those in which no line that it calls ran.
        whole: Those with all that it calls.
        code: The code that the line is in.
    """

    code: types.CodeType
    own: float = 0.0
    whole: float = 0.0


def profiled(context: DiagnosticContext, model: Any, run: Callable[[], ONNXProgram]) -> ONNXProgram:
    """Runs an export and attaches a profile to its log, also if the export fails.

    Args:
        context: The context of the export.
        model: The model.
        run: The export.
    """
    profile = _Profile(context, model)

    def log(program: ONNXProgram | None = None) -> Log:
        context.attach(PROFILE, lambda: _told(context, profile, program), logging.CRITICAL)
        return context.log()

    try:
        with sampled(profile.take):
            program = run()
    except ExportFailed as failed:
        failed.log = log()
        raise
    program.diagnostics = log(program)
    return program


class _Profile:
    """What an export was seen to run.

    Args:
        context: It knows the stage.
        model: The model.

    Attributes:
        stages: The seconds by stage and owner.
        lines: The lines of the user's files, and of those that define the classes of the model's modules.
    """

    def __init__(self, context: DiagnosticContext, model: Any) -> None:
        self.stages: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.lines: dict[_Line, _Time] = {}
        self._context = context
        self._files = {each for each in locations.source_files(model) if not locations.is_internal(each)}
        self._owners: dict[tuple[str, str], str] = {}
        self._modules = _modules(model)

    def take(self, looks: Sequence[python_frames.Look], seconds: float) -> None:
        """Counts a look at the frames of the export, innermost first, for so many seconds."""
        seen: dict[_Line, None] = {}
        owner = ""
        for each in looks:
            # NOTE: those above wait for the export all the time.
            if each.code is profiled.__code__:
                break
            code, line = dynamo.interpreted(each) or (each.code, each.line)
            found = self.owner(code.co_filename, code.co_name)
            if found != _LINES:
                owner = owner or found
            elif line:
                self.lines.setdefault((code.co_filename, line), _Time(code))
                seen[code.co_filename, line] = None
        for index, place in enumerate(seen):
            self.lines[place].own += seconds if index == 0 else 0
            self.lines[place].whole += seconds
        self.stages[self._context.running, _LINES if seen else owner or _OURS] += seconds

    def owner(self, file: str, function: str) -> str:
        """Who owns a function; empty for those of Python and of packages that define no modules."""
        if (file, function) not in self._owners:
            users = file in self._files or locations.owner(file, function) is locations.Origin.USER
            others = _TORCH if locations.is_torchs(file) else _OURS if locations.is_ours(file) else ""
            self._owners[file, function] = _LINES if users else others
        return self._owners[file, function]

    def modules_of(self, code: types.CodeType) -> Sequence[str]:
        """The paths of the modules of which code is a method."""
        return self._modules.get(code, ())


def _modules(model: Any) -> Mapping[types.CodeType, Sequence[str]]:
    """The paths of the model's modules by the code of their methods."""
    found: defaultdict[types.CodeType, list[str]] = defaultdict(list)
    paths: defaultdict[type, list[str]] = defaultdict(list)
    for path, module in named_modules(model) if isinstance(model, torch.nn.Module) else ():
        paths[type(module)].append(path)
    for cls, each in paths.items():
        for code in _methods(cls):
            found[code] += each
    return found


def _methods(cls: type) -> frozenset[types.CodeType]:
    """The code of the methods of a class."""
    functions = (each for base in cls.__mro__ for each in vars(base).values() if isinstance(each, types.FunctionType))
    codes = (code_objects.code_of(each) for each in functions)
    return frozenset(code for code in codes if code is not None and not locations.is_internal_code(code))


def _told(context: DiagnosticContext, profile: _Profile, program: ONNXProgram | None) -> str:
    lines = [*_stages(context.log(), profile.stages), "", *_lines(context, profile, program)]
    return "".join(f"{visible(line)[:_WIDTH].rstrip()}\n" for line in lines)


def _stages(log: Log, seen: Mapping[tuple[str, str], float]) -> Iterator[str]:
    """The stages in the order in which they ran. What was seen of each is a share of its time, which the log knows."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for stage in log.stages:
        seconds[stage.name] += stage.seconds
    total, parts = sum(seconds.values()), dict.fromkeys(_OWNERS, 0.0)
    yield f"{'stage':12}  seconds  share  {_LINES:>10}  {_TORCH:>8}  {_OURS:>9}"
    for name, whole in seconds.items():
        looks = sum(seen.get((name, owner), 0.0) for owner in _OWNERS)
        found = {owner: whole * seen.get((name, owner), 0.0) / looks if looks else 0.0 for owner in _OWNERS}
        parts = {owner: parts[owner] + found[owner] for owner in _OWNERS}
        if whole >= _SHORTEST:
            yield _stage(name, whole, found, total)
    yield _stage("all", total, parts, total)


def _stage(name: str, seconds: float, parts: Mapping[str, float], total: float) -> str:
    texts = {owner: f"{parts[owner]:.3f}" if parts[owner] >= _SHORTEST else "" for owner in _OWNERS}
    share = f"{seconds / total if total else 0:.0%}"
    return f"{name:12}  {seconds:7.3f}  {share:>5}  {texts[_LINES]:>10}  {texts[_TORCH]:>8}  {texts[_OURS]:>9}"


def _lines(context: DiagnosticContext, profile: _Profile, program: ONNXProgram | None) -> Iterator[str]:
    """The lines that take the most time, and what the others take."""
    operators = None if program is None else _operators(profile, program.exported_program)
    total = sum(profile.stages.values())
    ordered = sorted(profile.lines.items(), key=lambda each: (-each[1].own, -each[1].whole))
    shown = [each for each in ordered if each[1].whole >= _SHORTEST][:_ROWS]
    rest = [time for place, time in ordered if (place, time) not in shown]

    def row(own: float, time: str, made: str, text: str) -> str:
        return f"{own:7.3f}  {own / total if total else 0:>5.0%}  {time:>7}  {'' if operators is None else f'{made:>9}  '}{text}"

    yield f"    own  share     time  {'' if operators is None else 'operators  '}line"
    for (file, number), time in shown:
        made = "" if operators is None else str(operators[file, number])
        yield row(time.own, f"{time.whole:.3f}", made, _text(context, file, number, profile.modules_of(time.code)))
    if rest:
        yield row(sum(time.own for time in rest), "", "", f"{len(rest)} other line{'s' if len(rest) > 1 else ''}")
    for owner in (_TORCH, _OURS):
        seconds = sum(each for (_, who), each in profile.stages.items() if who == owner)
        yield row(seconds, "", "", f"{owner}, outside of these lines")
    yield ""
    yield "own: seconds without those of other lines; time: with all that the line calls; onnxplain: with ONNX Runtime"
    if operators is not None:
        yield "operators: how many the line makes in the captured graph"


def _text(context: DiagnosticContext, file: str, number: int, modules: Sequence[str]) -> str:
    """The place of a line, its code, and the module that it belongs to, or the first of several."""
    place, text = f"{_path(context.folder, file)}:{number}", line_text(file, number).strip()
    place = place if len(place) <= _PLACE else f"...{place[3 - _PLACE :]}"
    code = f": {text}" if len(text) <= _CODE else f": {text[: _CODE - 3]}..."
    more = f" and {len(modules) - 1} more" if len(modules) > 1 else ""
    return f"{place}{code if text else ''}{f'  in {modules[0]}{more}' if modules and modules[0] else ''}"


def _path(folder: pathlib.Path | None, file: str) -> str:
    """The path of a file: within its package, below the checkout, or its name alone."""
    if folder is None or file.startswith("<"):
        return shown_path(file)
    return locations.in_package(file) or privacy_of(folder).path(file, folder)


def _operators(profile: _Profile, program: torch.export.ExportedProgram) -> Counter[_Line]:
    """How many operators of the captured program each line makes."""
    found: Counter[_Line] = Counter()
    graphs = (each.graph for each in program.graph_module.modules() if isinstance(each, torch.fx.GraphModule))
    for node in (node for graph in graphs for node in graph.nodes if isinstance(node.target, OpOverload)):
        stack = [frame for frame in locations.stack_of(node) if profile.owner(frame.file, frame.function) == _LINES]
        if stack:
            found[stack[-1].file, stack[-1].line or 0] += 1
    return found
