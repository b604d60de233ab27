"""Finds the place in the user's sources that an FX node, a Python frame or an exception comes from.

The user's innermost line comes first. Files of the standard library, torch and onnxplain are never shown. Files of installed packages are
shown beside the user's line, or if the stack has no file of the user.
"""

from __future__ import annotations

import enum
import functools
import inspect
import itertools
import os
import pathlib
import re
import sys
import sysconfig
import traceback
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import onnx_ir as ir
import torch

import onnxplain.diagnostics
import onnxplain.rules
from onnxplain.diagnostics import Evidence, Location, Region, Step, attribute, line_text
from onnxplain.torch_internals import code_objects, dynamo, python_effects, python_frames, torch_frames
from onnxplain.torch_internals.modules import named_modules

from .module_calls import module_path

FX_NODE = "fx_node"
"""The key of the FX node in the `meta` of ONNX nodes, and of values that are its whole result. It is not saved."""


FUNCTION = "function"
"""The key of a function's name, with its domain, in the `meta` of the ONNX nodes that a translation made which stays a function."""


CALL = "module_call"
"""The key of the module call in the `meta` of the ONNX nodes that call its function."""


CAPTURED_AS = "captured_as"
"""The key of the captured FX node's name in the `meta` of the nodes that it was decomposed to."""


class Origin(enum.Enum):
    """The owner of a source file."""

    USER = "the user's"
    LIBRARY = "an installed package's"
    INTERNAL = "that of Python, torch or onnxplain, or of a package that they run on"


_PACKAGE_FOLDERS = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
_OUR_NEEDS = re.compile(_PACKAGE_FOLDERS.pattern + r"(?:mpmath|onnx|onnx_ir|onnxscript|sympy)[/\\]")
"""Packages that torch and onnxplain run on, and that are no part of a model."""


def _folders(*paths: str) -> tuple[str, ...]:
    return tuple(path + os.sep for path in paths)


_OUR_FOLDERS = _folders(str(pathlib.Path(__file__).parents[1]), *onnxplain.diagnostics.__path__, *onnxplain.rules.__path__)
_TORCH_FOLDERS = _folders(*torch.__path__)
_PYTHON_FOLDERS = _folders(*(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "scripts")))

_CALLERS = 10
"""The number of lines that are kept of the user's stack above an export."""

_FRAME = re.compile(r'\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)')
_CARETS = re.compile(r"\s*[~^]+\s*")
_OVERLOAD = re.compile(r"\w+\.\w+\.\w+")


_TYPED = ("<stdin>", "<string>")
"""Python's names for the file of code from its prompt, and of code that `exec` and `python -c` run."""
_GENERATED = frozenset(
    {"<module>", "<lambda>", "__init__", "__new__", "__repr__", "__hash__", "__setattr__", "__delattr__", "__replace__"}
    | {"__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__create_fn__", "___make_guard_fn", "guard"}
)
"""Functions that Python's `dataclass` and `namedtuple`, TorchDynamo's guards and expressions of torch have in the file `<string>`."""


@functools.lru_cache(maxsize=4096)
def origin(file: str) -> Origin:
    """The owner of `file`. Names in angle brackets stand for generated code without an owner, except for what a user typed or executes."""
    if file in _TYPED or file.startswith("<ipython-input"):
        return Origin.USER
    # NOTE: torch's passes sign their nodes as `torch/fx/passes/runtime_assert.py` (2.13), without a folder.
    if file.startswith(("<", "torch/", *_OUR_FOLDERS, *_TORCH_FOLDERS)) or _OUR_NEEDS.search(file):
        return Origin.INTERNAL
    if _PACKAGE_FOLDERS.search(file):
        return Origin.LIBRARY
    return Origin.INTERNAL if is_standard_library(file) else Origin.USER


def owner(file: str, function: str) -> Origin:
    """The owner of a function in `file`."""
    return Origin.INTERNAL if file == "<string>" and function in _GENERATED else origin(file)


def is_internal_code(code: types.CodeType) -> bool:
    """Whether `code` is Python's, torch's or onnxplain's."""
    return owner(code.co_filename, code.co_name) is Origin.INTERNAL


def is_users_code(code: types.CodeType) -> bool:
    """Whether `code` is the user's."""
    return owner(code.co_filename, code.co_name) is Origin.USER


def is_users(file: str) -> bool:
    """Whether `file` is the user's."""
    return origin(file) is Origin.USER


def in_package(file: str) -> str:
    """The path of a file below the folder of installed packages; empty if it is not there."""
    return _PACKAGE_FOLDERS.split(file)[-1] if _PACKAGE_FOLDERS.search(file) else ""


def is_torchs(file: str) -> bool:
    """Whether `file` belongs to torch."""
    return file.startswith(_TORCH_FOLDERS)


def is_ours(file: str) -> bool:
    """Whether `file` belongs to onnxplain."""
    return file.startswith(_OUR_FOLDERS)


def is_internal(file: str) -> bool:
    """Whether `file` is Python's, torch's or onnxplain's."""
    return origin(file) is Origin.INTERNAL


def python_asks(frames: Iterable[types.FrameType]) -> bool:
    """Whether the first of `frames`, innermost first, that is not internal asks for a size as a Python number or bool.

    The answer is False if the frame calls an operator that asks.
    """
    inner: types.FrameType | None = None
    for frame in frames:
        if not is_internal_code(frame.f_code):
            return inner is not None and torch_frames.asks_for_number(inner)
        # NOTE: Python's own code, such as `statistics.median`, asks for its caller.
        asks_for_caller = inner is not None and torch_frames.asks_for_number(inner) and is_standard_library(frame.f_code.co_filename)
        if not (asks_for_caller or torch_frames.stands_for_python(frame)):
            inner = frame
    return False


def is_standard_library(file: str) -> bool:
    """Whether `file` belongs to Python itself."""
    return file.startswith(_PYTHON_FOLDERS) and not _PACKAGE_FOLDERS.search(file)


def source_files(model: Any) -> set[str]:
    """The files that define the classes of the model's modules, or the function, and the user's files that the program has imported."""
    if isinstance(model, torch.nn.Module):
        classes = {id(cls): cls for cls in (type(module) for _, module in named_modules(model))}
        forwards = (vars(base).get("forward") for cls in classes.values() for base in cls.__mro__)
        codes = [code_objects.code_of(forward) for forward in forwards if forward is not None]
    else:
        codes = [code_objects.code_of_call(model)]
    # NOTE: an entry may be no module, and a module may import others when it is asked for an attribute that it lacks.
    imported = (getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values()))
    return {code.co_filename for code in codes if code is not None} | {
        file for file in imported if isinstance(file, str) and is_users(file)
    }


def at_node(node: torch.fx.Node) -> Evidence:
    """The line that made `node`, the module it belongs to, and its path through the graphs.

    Args:
        node: A node of an exported program, before or after decomposition. torch or `onnxplain.capture` wrote its `stack_trace`.
    """
    evidence = at_stack(stack_of(node), module_path(node))
    steps = tuple(_steps(node, evidence.location))
    return replace(evidence, code_flow=steps, node=node)


def stack_of(node: torch.fx.Node) -> tuple[Location, ...]:
    """All frames that made `node`, outermost first."""
    return in_trace(node.meta.get("stack_trace") or "")


def at_onnx_node(message: str, model: ir.Model) -> Evidence | None:
    """The place of the ONNX node that a message of the checker or the runtime names."""
    node = onnx_node(message, model)
    made_from = None if node is None else node.meta.get(FX_NODE)
    return None if made_from is None else at_node(made_from)


def onnx_node(message: str, model: ir.Model) -> ir.Node | None:
    """The ONNX node that a message of the checker or the runtime names. Only the message contains the name."""
    graphs = (model.graph, *(function.graph for function in model.functions.values()))
    named = [node for graph in graphs for node in graph.all_nodes() if node.name and node.name in message]
    return max(named, key=lambda node: len(node.name or ""), default=None)


def at_exception(error: BaseException, model: torch.nn.Module | None = None) -> Evidence:
    """The user's innermost line in the traceback of `error`.

    Args:
        error: The exception. If torch raised it from another exception, the deeper stack counts.
        model: The model that ran, in which the path of the failing submodule is found.
    """
    return at_stack(_frames_of(error), _failing_module(error, model) if model is not None else "")


def summarized(frame: traceback.FrameSummary) -> Location:
    """The place of a frame summary of `traceback`."""
    line = frame.lineno or 1
    column, end, end_column = (getattr(frame, name, None) for name in ("colno", "end_lineno", "end_colno"))
    if column is None or end_column is None:
        return Location(frame.filename, Region(line), frame.name)
    return Location(frame.filename, Region.from_utf8(frame.filename, line, column, end or line, end_column), frame.name)


def at_stack(frames: Iterable[Location], module: str = "") -> Evidence:
    """The user's innermost line among `frames`, outermost first, or a library's line if none is the user's."""
    stack = [frame for frame in frames if owner(frame.file, frame.function) is not Origin.INTERNAL]
    if not stack:
        return Evidence(Location("", module=module) if module else None)
    users = [frame for frame in stack if origin(frame.file) is Origin.USER]
    place = users[-1] if users else stack[-1]
    inside = () if place is stack[-1] else (stack[-1].saying("inside the library"),)
    return Evidence(replace(place, module=module), tuple(stack), related=inside)


def raised_by_user(error: BaseException) -> Location | None:
    """The user's line that raised `error` within onnxplain; None if that was no code of the user, or a signal handler of the program."""
    if not issubclass(type(error), (Exception, SystemExit)) and not python_frames.is_raised_in(error, is_users):
        return None
    frames = _own_frames(error)
    called = any(frame.file.startswith(_OUR_FOLDERS) for frame in frames)
    innermost = frames[-1] if called and not python_frames.is_from_signal(error) else None
    return innermost if innermost is not None and is_users(innermost.file) else None


def callers() -> tuple[Location, ...]:
    """The user's lines that called onnxplain, innermost first; empty if there are none, as for the command line."""
    users = (frame for frame in python_frames.outward(python_frames.current()) if is_users_code(frame.f_code))
    return tuple(location(*python_frames.entry_of(frame)) for frame in itertools.islice(users, _CALLERS))


def user_speaks(above: int = 0) -> bool:
    """Whether the innermost frame outside the standard library (`warnings`, `logging`) is the model's code.

    Args:
        above: How many frames above the caller the search begins.
    """
    frames = (frame.f_code.co_filename for frame in python_frames.outward(python_frames.current(above)))
    others = (file for file in frames if not is_standard_library(file) and file not in python_effects.PASSED_THROUGH)
    innermost = next(others, None)
    return innermost is not None and is_users(innermost)


def module_definition(model: torch.nn.Module | Callable[..., Any]) -> Location | None:
    """The `def` line of the model's `forward`, or of a function; the class line if `forward` is torch's; None if both are torch's."""
    if isinstance(model, torch.jit.ScriptModule):
        return None
    forward = type(model).forward if isinstance(model, torch.nn.Module) else model
    code = code_objects.code_of(forward)
    if code is not None and origin(code.co_filename) is not Origin.INTERNAL:
        return _definition(code.co_filename, code.co_firstlineno, code.co_name, "def ")
    return class_definition(type(model))


def last_return(model: torch.nn.Module | Callable[..., Any]) -> Location | None:
    """The last `return` of the model's `forward`, or of a function; the `def` line if its source is not available."""
    forward = type(model).forward if isinstance(model, torch.nn.Module) else model
    definition = module_definition(model)
    try:
        lines, first = inspect.getsourcelines(inspect.unwrap(forward))
    except (OSError, TypeError):
        return definition
    returns = [first + number for number, text in enumerate(lines) if text.lstrip().startswith("return")]
    return replace(definition, region=Region(returns[-1])) if definition is not None and returns else definition


def class_definition(cls: type) -> Location | None:
    """The `class` line of `cls`, unless it is torch's or Python's, or its source is not available."""
    try:
        file = inspect.getsourcefile(cls)
        line = inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        return None
    if file is None or origin(file) is Origin.INTERNAL:
        return None
    return _definition(file, line, cls.__name__, "class ")


def location(frame: types.FrameType, instruction: int, line: int | None) -> Location:
    """The place of a frame, or of an entry of a traceback, with columns if Python knows them (3.11 and later)."""
    code = frame.f_code
    start, end, column, end_column = code_objects.position(code, instruction)
    # NOTE: columns are counted in the source text, which generated code may lack.
    if start and end and column is not None and end_column is not None and line_text(code.co_filename, start):
        return Location(code.co_filename, Region.from_utf8(code.co_filename, start, column, end, end_column), code.co_name)
    return Location(code.co_filename, Region(line) if line else None, code.co_name)


def definition_of(function: Any) -> Location | None:
    """The line where a function begins; None for functions that are not written in Python."""
    code = code_objects.code_of(function)
    return None if code is None else Location(code.co_filename, Region(code.co_firstlineno), code.co_name)


@functools.lru_cache(maxsize=4096)
def in_trace(trace: str) -> tuple[Location, ...]:
    """The frames in the text of a traceback: `File "f", line n, in g`, then the code, then carets below the part that ran."""
    lines = trace.splitlines()
    frames = []
    for text, code, carets in itertools.zip_longest(lines, lines[1:], lines[2:], fillvalue=""):
        if found := _FRAME.fullmatch(text):
            region = _underlined(found["file"], int(found["line"]), code, carets)
            frames.append(Location(found["file"], region, found["function"]))
    return tuple(frames)


def _underlined(file: str, line: int, code: str, carets: str) -> Region:
    text = line_text(file, line)
    if not text or not _CARETS.fullmatch(carets) or text.strip() != code.strip():
        return Region(line)
    # NOTE: a traceback shows the code without its indentation, so columns are counted from the first character in both.
    shift = (len(text) - len(text.lstrip())) - (len(code) - len(code.lstrip())) + 1
    start = len(carets) - len(carets.lstrip()) + shift
    return Region(line, start, line, start + len(carets.strip()))


def _steps(node: torch.fx.Node, place: Location | None) -> Iterator[Step]:
    """The steps from the user's call to the node."""
    present = str(node.target)
    name, operator = _exported_as(node)
    if place is not None and place.region:
        function = node.meta.get("torch_fn")
        yield Step(f"the source calls {function[1].rpartition('.')[2]}" if function else "the source line")
    if node.op == "call_function" and operator != present:
        yield Step(f"captured as {operator} (FX node {name})", "captured", name)
        yield Step(f"decomposed to {present} (FX node {node.name})", "prepared", node.name)
    elif node.op == "call_function":
        yield Step(f"captured as {present} (FX node {node.name})", "captured", node.name)
    else:
        yield Step(f"{node.op} {present} (FX node {node.name})", "captured", node.name)
    yield Step("", "onnx", node.name)


def _exported_as(node: torch.fx.Node) -> tuple[str, str]:
    """Name and operator of the captured node from which `node` was decomposed."""
    name, operator = node.meta.get(CAPTURED_AS, node.name), str(node.meta.get("original_aten") or node.target)
    sources = node.meta.get("from_node")
    while sources:
        if _OVERLOAD.fullmatch(sources[0].target):
            name, operator = sources[0].name, sources[0].target
        sources = sources[0].from_node
    return name, operator


def _frames_of(error: BaseException) -> tuple[Location, ...]:
    own = _own_frames(error)
    raised_by_user = bool(own) and owner(own[-1].file, own[-1].function) is not Origin.INTERNAL
    deeper = attribute(error, "__cause__") or (None if attribute(error, "__suppress_context__") else attribute(error, "__context__"))
    shown = [frame for frame in own if owner(frame.file, frame.function) is not Origin.INTERNAL]
    if raised_by_user or deeper is None:
        return tuple(shown)
    below = _frames_of(deeper)
    # NOTE: the traceback of a cause begins at the frame that caught it, which may already be in the outer stack.
    shared = shown.index(below[0]) if below and below[0] in shown else len(shown)
    return (*shown[:shared], *below)


def _own_frames(error: BaseException) -> list[Location]:
    frames = [location(*entry) for entry in python_frames.of_traceback(error)]
    # NOTE: the caller of onnxplain is not the code that failed within it.
    ours = next((number for number, frame in enumerate(frames) if frame.file.startswith(_OUR_FOLDERS)), 0)
    return [*frames[ours:], *map(summarized, dynamo.interpreted_frames(error))]


def _failing_module(error: BaseException, model: torch.nn.Module) -> str:
    """The path of the innermost submodule of `model` whose method was running."""
    paths = {id(module): path for path, module in named_modules(model)}
    running = [paths[id(module)] for module in torch_frames.modules_running(error) if id(module) in paths]
    return running[-1] if running else ""


def _definition(file: str, line: int, name: str, keyword: str) -> Location:
    # NOTE: a decorated definition begins at its first decorator.
    for number in range(line, line + 100):
        text = line_text(file, number)
        if text.lstrip().removeprefix("async ").startswith(keyword):
            start = len(text) - len(text.lstrip()) + 1
            return Location(file, Region(number, start, number, len(text.rstrip()) + 1), name)
    return Location(file, Region(line), name)
