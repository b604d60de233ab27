"""Where the user wrote an argument of an export: followed back from the call, or the only place that fits."""

from __future__ import annotations

import ast
import importlib
import pathlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from marks import IS_3_11, needs_columns

from onnxplain.diagnostics import Location, Region
from onnxplain.request import DEFAULT_OPSET, STRATEGIES, DynamicShapes, Request
from onnxplain.source import call_sites
from onnxplain.source.call_sites import SourceExpression

Load = Callable[..., ModuleType]
Marked = Callable[..., list[int]]

# NOTE: before Python 3.11 only the line of a call is known, so each call has its line.
CALL = """
from onnxplain.source import locations


def call(*args, **options):
    return locations.callers()[1:]
"""

WAYS = {
    "keyword": ("def run():\n    return call(1, spacing=2)  # here", "2"),
    "name": ("def run():\n    pitch = 1\n    pitch = 2  # here\n    return call(spacing=pitch)", "2"),
    "the name is assigned again below": (
        "def run():\n    pitch = 2  # here\n    places = call(spacing=pitch)\n    pitch = 3\n    return places",
        "2",
    ),
    "the name is assigned by the call": ("def run():\n    pitch = 2  # here\n    pitch = call(spacing=pitch)\n    return pitch", "2"),
    "several targets": ("def run():\n    first = pitch = [2]  # here\n    return call(spacing=pitch)", "[2]"),
    "name of the module": ("PITCH = 1\nPITCH = 2  # here\ndef run():\n    return call(spacing=PITCH)", "2"),
    "other functions have other names": (
        "pitch = 2  # here\ndef other():\n    pitch = 3\nclass Other:\n    pitch = 4\ndef run():\n    return call(spacing=pitch)",
        "2",
    ),
    "local before the module's": ("pitch = 1\ndef run():\n    pitch = 2  # here\n    return call(spacing=pitch)", "2"),
    "within a block of the module": ("if True:\n    pitch = 2  # here\ndef run():\n    return call(spacing=pitch)", "2"),
    "entry of a dict": ("def run():\n    sizes = {'other': 1, 'pitch': 2}  # here\n    return call(spacing=sizes['pitch'])", "2"),
    "entry that is set later": (
        "def run():\n    sizes = {'pitch': 1}\n    sizes['other'] = 3\n"
        "    sizes['pitch'] = 2  # here\n    return call(spacing=sizes['pitch'])",
        "2",
    ),
    "entry of another dict": (
        "def run():\n    sizes = dict(other=1, pitch=2)  # here\n"
        "    others = {}\n    others['pitch'] = 3\n    return call(spacing=sizes['pitch'])",
        "2",
    ),
    "dict of a class": (
        "class Config:\n    sizes = {'pitch': 2}\ndef run():\n    return call(spacing=Config.sizes['pitch'])  # here",
        "Config.sizes['pitch']",
    ),
    "dict literal of options": ("def run():\n    return call(**{'spacing': 2})  # here", "2"),
    "options with a name": ("def run():\n    options = {'spacing': 2}  # here\n    return call(**options)", "2"),
    "options that change": (
        "def run():\n    options = dict(spacing=1)\n    options['spacing'] = 2  # here\n    return call(**options)",
        "2",
    ),
    "first of several options": (
        "def run():\n    one = {'spacing': 2}  # here\n    other = {'width': 1}\n    return call(**one, **other)",
        "2",
    ),
    "parameter by position": ("def inner(model, pitch):\n    return call(spacing=pitch)\ndef run():\n    return inner(1, 2)  # here", "2"),
    "parameter by keyword": (
        "def inner(model, pitch):\n    return call(spacing=pitch)\ndef run():\n    return inner(pitch=2, model=1)  # here",
        "2",
    ),
    "positional only": ("def inner(model, /, pitch):\n    return call(spacing=pitch)\ndef run():\n    return inner(1, 2)  # here", "2"),
    "keyword only": ("def inner(*, pitch):\n    return call(spacing=pitch)\ndef run():\n    return inner(pitch=2)  # here", "2"),
    "two functions": (
        "def inner(pitch):\n    return call(spacing=pitch)\ndef outer(step):\n    return inner(step)\n"
        "def run():\n    step = 2  # here\n    return outer(step)",
        "2",
    ),
    "method": (
        "class Exporter:\n    def inner(self, pitch):\n        return call(spacing=pitch)\n"
        "def run():\n    return Exporter().inner(2)  # here",
        "2",
    ),
    "class method": (
        "class Exporter:\n    @classmethod\n    def inner(cls, pitch):\n        return call(spacing=pitch)\n"
        "def run():\n    return Exporter.inner(2)  # here",
        "2",
    ),
    "method that is called by its class": (
        "class Exporter:\n    def inner(self, pitch):\n        return call(spacing=pitch)\n"
        "inner = Exporter.inner\ndef run():\n    return inner(None, 2)  # here",
        "2",
    ),
    "function of a module": (
        "import types\ndef inner(model, pitch):\n    return call(spacing=pitch)\n"
        "tools = types.SimpleNamespace(inner=inner)\ndef run():\n    return tools.inner(1, 2)  # here",
        "2",
    ),
    "starred": (
        "def inner(model, pitch):\n    return call(spacing=pitch)\ndef run():\n    first = (1,)\n    return inner(*first, 2)",
        None,
    ),
    "default": ("def inner(model, pitch=2):  # here\n    return call(spacing=pitch)\ndef run():\n    return inner(1)", "2"),
    "second of three defaults": (
        "def inner(a, b=1, pitch=2, c=3):  # here\n    return call(spacing=pitch)\ndef run():\n    return inner(1)",
        "2",
    ),
    "default of keyword only": (
        "def inner(*, model, width=1, pitch=2):  # here\n    return call(spacing=pitch)\ndef run():\n    return inner(model=1)",
        "2",
    ),
    "keyword only behind any number": (
        "def inner(*models, pitch=2):  # here\n    return call(spacing=pitch)\ndef run():\n    return inner(5, 6)",
        "2",
    ),
    "options that are handed on": (
        "def inner(**options):\n    return call(1, **options)\ndef outer(**more):\n    return inner(**more)\n"
        "def run():\n    return outer(spacing=2)  # here",
        "2",
    ),
    "options that are not given": ("def inner(**options):\n    return call(1, **options)\ndef run():\n    return inner(width=2)", None),
    "options that are kept": ("def inner(**options):\n    return call(1)\ndef run():\n    return inner(spacing=2)", None),
    "other options": (
        "def inner(**options):\n    more = {'spacing': 3}  # here\n    return call(1, **more)\ndef run():\n    return inner(spacing=2)",
        "3",
    ),
    "not given": ("def run():\n    return call(1, 2, width=3)", None),
    "imported": ("from sys import maxsize\ndef run():\n    return call(spacing=maxsize)", None),
    "no call": (
        "class Exporter:\n    def __getitem__(self, args):\n        return call(spacing=args)\ndef run():\n    return Exporter()[7], (3,)",
        None,
    ),
}


def request_of(callers: tuple[Location, ...], model: Any = torch.relu, args: tuple[Any, ...] = ()) -> Request:
    """The request of an export of `model` that `callers` called."""
    return Request(
        model=model,
        args=args,
        kwargs={},
        shapes=DynamicShapes.parse(None, model, args, {}),
        input_names=(),
        output_names=(),
        opset_version=DEFAULT_OPSET,
        strategies=STRATEGIES,
        destination=None,
        external_data=None,
        export_params=True,
        keep_initializers_as_inputs=False,
        optimize=True,
        verify=False,
        control_flow="report",
        callers=callers,
    )


def caller(module: ModuleType) -> tuple[Location, ...]:
    """The stack of the call in the function `run`."""
    returned = module.run()
    places: tuple[Location, ...] = returned if isinstance(returned[0], Location) else returned[0]
    return places


@pytest.mark.parametrize(("source", "text"), WAYS.values(), ids=WAYS)
def test_the_value_is_followed_to_the_place_that_wrote_it(load: Load, marked: Marked, source: str, text: str | None) -> None:
    if "Exporter().inner" in source and not IS_3_11:
        pytest.skip("Python 3.10 does not tell which of two calls in a line it runs")
    module = load(CALL + "\n" + source + "\n")
    written = call_sites.argument(request_of(caller(module)), "spacing")
    assert (written and written.text) == text
    assert ([] if written is None else [written.place.line]) == marked("here")


def test_a_default_is_in_the_file_of_its_function(load: Load, marked: Marked, tmp_path: pathlib.Path) -> None:
    helper = load(CALL + "\ndef inner(model, pitch=2):  # here\n    return call(spacing=pitch)\n", "helper")
    module = load("\nhelper = None\n\n\ndef run():\n    return helper.inner(1)\n")
    vars(module)["helper"] = helper
    written = call_sites.argument(request_of(caller(module)), "spacing")
    assert written is not None
    assert (written.file, written.place.line, written.text) == (str(tmp_path / "helper.py"), *marked("here", "helper"), "2")


def test_a_value_that_does_not_fit_is_no_place(load: Load) -> None:
    request = request_of(caller(load(CALL + "\ndef run():\n    return call(spacing=2)\n")))
    seen = []

    def matches(node: ast.expr) -> bool:
        seen.append(node)
        return False

    assert call_sites.argument(request, "spacing", matches) is None
    assert len(seen) == 1


def test_a_call_in_an_unknown_file_tells_nothing() -> None:
    assert call_sites.argument(request_of((Location("nowhere.py"),)), "spacing") is None
    assert call_sites.argument(request_of((Location("nowhere.py", Region(3)),)), "spacing") is None


FUNCTIONS = {
    "all": ("def target():  # def\n    shapes = {0: 'n'}  # here\n    return Model(), (X,), {}, shapes", "{0: 'n'}"),
    "an unused assignment": (
        "def target():  # def\n    shapes = ({0: 'n'},)  # here\n    x = 1\n    return Model(), (X,), {}, shapes",
        "({0: 'n'},)",
    ),
    "fewer": ("def target():  # def\n    return Model(), (X,), {}", None),
    "two returns": ("def target():  # def\n    if X:\n        return Model(), (X,), {}, None\n    return Model(), (X,), {}, 3", None),
    "a name of the module": ("SHAPES = None\ndef target():  # def\n    return Model(), (X,), {}, SHAPES", None),
    "the model": ("def target():  # def\n    return Model()", None),
}


@pytest.mark.parametrize(("source", "text"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_what_the_target_of_the_command_line_returns(load: Load, marked: Marked, source: str, text: str | None) -> None:
    file = str(load("X = 1\n" + source + "\n").__file__)
    request = request_of((Location(file, Region(marked("def")[0])),))
    written = call_sites.argument(request, "dynamic_shapes")
    assert (written and written.text) == text
    assert ([] if written is None else [written.place.line]) == marked("here")
    assert call_sites.argument(request, "spacing") is None


@pytest.mark.parametrize(("name", "text"), [("model", "Model()"), ("args", "(X,)"), ("kwargs", "{'y': 1}"), ("dynamic_shapes", "None")])
def test_the_order_of_what_a_target_returns(load: Load, name: str, text: str) -> None:
    file = str(load("X = 1\ndef target():\n    return Model(), (X,), {'y': 1}, None\n").__file__)
    written = call_sites.argument(request_of((Location(file, Region(2)),)), name)
    assert written is not None
    assert written.text == text


ELSEWHERE = {
    "a dict": ("configuration = {'other': 1, 'spacing': 2}  # here", "2"),
    "a dict of keywords": ("configuration = dict(other=1, spacing=2)  # here", "2"),
    "a variable": ("spacing = 2  # here\nother = 3", "2"),
    "an entry": ("configuration = {}\nconfiguration['other'] = 1\nconfiguration['spacing'] = 2  # here", "2"),
    "an argument of another call": ("def other(**options):\n    pass\nother(spacing=2)", None),
    "two places": ("spacing = 2\nconfiguration = {'spacing': 3}", None),
    "another value": ("spacing = 'wide'", None),
}


@needs_columns
@pytest.mark.parametrize(("source", "text"), ELSEWHERE.values(), ids=ELSEWHERE)
@pytest.mark.parametrize(
    "run",
    ["def run():\n    return call(**build())", "def run(spacing=None):\n    return call(spacing=spacing)"],
    ids=["options of a function", "the caller is not known"],
)
def test_the_only_place_that_fits(load: Load, marked: Marked, source: str, text: str | None, run: str) -> None:
    module = load(CALL + "\ndef build():\n    return {}\n" + run + "\n" + source + "\n")
    request = request_of(caller(module)[:1])
    written = call_sites.argument(request, "spacing", lambda node: isinstance(call_sites.literal(node), int))
    assert (written and written.text) == text
    assert ([] if written is None else [written.place.line]) == marked("here")


@pytest.mark.parametrize("calls", [0, 1], ids=["no caller", "a parameter with another name"])
def test_a_value_that_the_same_name_does_not_lead_to_is_not_searched(load: Load, calls: int) -> None:
    module = load(CALL + "\ndef run(pitch=None):\n    return call(spacing=pitch)\nspacing = 2\npitch = 3\n")
    request = request_of(caller(module)[:calls], model=module.call)
    assert call_sites.argument(request, "spacing") is None


MODEL = """
import torch


class Inner(torch.nn.Module):
    def forward(self, x):
        return x


class Outer(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


class Batch:
    pass
"""


def calls(request: Request, *names: str, **options: Any) -> list[tuple[str, int | None]]:
    """The file and the line of the only call of a function with one of `names`."""
    written = call_sites.call_of(request, *names, **options)
    return [] if written is None else [(pathlib.Path(written.file).stem, written.place.line)]


def test_calls_are_searched_in_the_files_of_the_export(load: Load, marked: Marked) -> None:
    inner = load(MODEL + "\n\ndef make():\n    return tools.spaced_out(1)  # here\n", "inner")
    outer = load(MODEL, "outer")
    data = load(MODEL + "\n\ndef make():\n    return spaced_in(2)  # here\n", "data")
    request = request_of((), outer.Outer(inner.Inner()), (data.Batch(),))
    assert calls(request, "spaced_out") == [("inner", *marked("here", "inner"))]
    assert calls(request, "spaced_in") == [("data", *marked("here", "data"))]
    assert calls(request, "spaced") == []
    # The first of the files that has any counts alone.
    assert calls(request, "spaced_in", "spaced_out") == [("inner", *marked("here", "inner"))]
    assert calls(request, "spaced_in", "spaced_out", matches=lambda call: call_sites.literal(call.args[0]) == 2) == [
        ("data", *marked("here", "data"))
    ]


def test_calls_are_searched_in_all_files_if_those_of_the_export_have_none(load: Load, marked: Marked) -> None:
    load("def make():\n    return spaced_far(1)  # here\n", "far")
    request = request_of((), load(MODEL).Inner())
    assert calls(request, "spaced_far") == [("far", *marked("here", "far"))]
    load("def make():\n    return spaced_far(2)\n", "further")
    assert calls(request, "spaced_far") == []


def test_imported_files_come_before_others(load: Load, marked: Marked) -> None:
    far = load("def make():\n    return spaced_far(1)  # here\n", "far")
    between = load(f"from {far.__name__} import make\n", "between")
    further = load("def make():\n    return spaced_far(2)\n", "further")
    for line in (f"import {far.__name__}", f"import {between.__name__} as other", f"from {between.__name__} import make"):
        request = request_of((), load(f"{line}\n{MODEL}").Inner())
        assert calls(request, "spaced_far") == [("far", *marked("here", "far"))]
    both = f"import {far.__name__}, {further.__name__}\n{MODEL}"
    assert calls(request_of((), load(both).Inner()), "spaced_far") == []


@pytest.mark.parametrize(
    "line", ["from .sizes import make", "from . import sizes", "import spaced_package.sizes", "from spaced_package import sizes"]
)
def test_calls_are_searched_in_other_files_of_a_package(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    folder = tmp_path / "spaced_package"
    folder.mkdir()
    (tmp_path / "elsewhere.py").write_text("def make():\n    return spaced_far(2)\n", encoding="utf-8")
    for name, text in {"__init__": "", "sizes": "def make():\n    return spaced_far(1)\n", "model": f"{line}\n{MODEL}"}.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    try:
        importlib.import_module("elsewhere")
        model = importlib.import_module("spaced_package.model")
        assert calls(request_of((), model.Inner()), "spaced_far") == [("sizes", 2)]
    finally:
        for name in sys.modules.keys() - before:
            del sys.modules[name]


def test_calls_in_the_file_of_a_function_and_of_the_caller(load: Load, marked: Marked) -> None:
    model = load("def model(x):\n    return x\n\n\ndef make():\n    return spaced_model(1)  # here\n", "plain")
    module = load("def make():\n    return spaced_caller(1)  # here\n", "caller")
    load("def make():\n    return spaced_model(2), spaced_caller(2)\n", "others")
    request = request_of((Location(str(module.__file__), Region(1)),), model.model)
    assert calls(request, "spaced_model") == [("plain", *marked("here", "plain"))]
    assert calls(request, "spaced_caller") == [("caller", *marked("here", "caller"))]


STEPS = """
import torch


class Steps(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


class NoForward(torch.nn.Module):
    @torch.jit.export
    def step(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


def make():
    return spaced_step(1)  # here
"""


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_calls_in_the_file_of_a_scripted_module(load: Load, marked: Marked) -> None:
    module = load(STEPS, "steps")
    load("def make():\n    return spaced_step(2)\n", "others")
    scripted, bare = torch.jit.script(module.Steps()), torch.jit.script(module.NoForward())
    assert calls(request_of((), scripted), "spaced_step") == [("steps", *marked("here", "steps"))]
    assert calls(request_of((), torch.nn.Sequential(scripted)), "spaced_step") == [("steps", *marked("here", "steps"))]
    # Its graph does not exist, so its source is not known.
    assert calls(request_of((), torch.nn.Sequential(bare)), "spaced_step") == []


def test_a_captured_program_has_the_file_of_its_caller(load: Load, marked: Marked) -> None:
    module = load("def make():\n    return spaced_program(1)  # here\n", "exports")
    load("def make():\n    return spaced_program(2)\n", "others")
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    request = request_of((Location(str(module.__file__), Region(1)),), program)
    assert calls(request, "spaced_program") == [("exports", *marked("here", "exports"))]


def expression(module: ModuleType, text: str) -> SourceExpression:
    """The expression of the file with that text."""
    file = str(module.__file__)
    tree = ast.parse(pathlib.Path(file).read_text(encoding="utf-8"))
    return next(SourceExpression(file, node) for node in ast.walk(tree) if isinstance(node, ast.expr) and ast.unparse(node) == text)


def test_an_expression_has_a_place_a_text_and_an_edit(load: Load) -> None:
    module = load("def make():\n    é = make(1).wide\n    return make(\n        2\n    )\nmaker = lambda: make(3)\n")
    first, second, third = (expression(module, f"make({number})") for number in (1, 2, 3))
    assert (first.place.function, first.place.region) == ("make", Region(2, 9, 2, 16))
    assert (third.place.function, third.place.region) == ("", Region(6, 17, 6, 24))
    assert first.followed_by(".wide")
    assert not first.followed_by("wide")
    assert not third.followed_by(".")
    assert second.text == "make(2)"
    (edit,) = second.replaced("3")
    assert (edit.file, edit.region, edit.replacement) == (str(module.__file__), Region(3, 12, 5, 6), "3")


def test_evidence_names_the_call_beside_the_value(load: Load) -> None:
    written = expression(load("make = lambda: made(1)\n"), "made(1)")
    called, other = Location("model.py", Region(7)), Location("model.py", Region(8))
    at = call_sites.at(written, request_of((called,)), other)
    assert (at.location, [place.line for place in at.related]) == (written.place, [8, 7])
    at = call_sites.at(None, request_of((called,)), other)
    assert (at.location, at.related) == (called, (other,))
    at = call_sites.at(written, request_of(()))
    assert (at.location, at.related) == (written.place, ())


@pytest.mark.parametrize(("text", "value"), [("(1, 'a')", (1, "a")), ("make()", None), ("[x]", None), ("-2", -2)])
def test_literals(text: str, value: Any) -> None:
    assert call_sites.literal(ast.parse(text, mode="eval").body) == value


def test_a_value_of_another_file_is_no_value_of_this_export(load: Load) -> None:
    load("spacing = 2\n", "unrelated")
    module = load(CALL + "\ndef build():\n    return {}\n\n\ndef run():\n    return call(**build())\n")
    assert call_sites.argument(request_of(caller(module)), "spacing") is None


@needs_columns
def test_a_value_of_an_imported_file_may_be_meant(load: Load, marked: Marked) -> None:
    settings = load("spacing = 2  # here\n", "settings")
    module = load(f"import {settings.__name__}\n{CALL}\n\ndef build():\n    return {{}}\n\n\ndef run():\n    return call(**build())\n")
    written = call_sites.argument(request_of(caller(module)), "spacing")
    assert written is not None
    assert (pathlib.Path(written.file).stem, written.place.line) == ("settings", *marked("here", "settings"))
