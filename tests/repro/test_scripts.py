"""Scripts of exports that fail in any stage, with any option: what they take from the user's files, and how they call the export."""

from __future__ import annotations

import ast
import importlib
import pathlib
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import onnxscript
import pytest
import torch
from onnxscript import opset20 as op
from repro_scripts import made_by, written

from onnxplain.diagnostics import DiagnosticOptions, Level, Log
from onnxplain.repro import trial

pytestmark = pytest.mark.usefixtures("whole_scripts")
Load = Callable[..., types.ModuleType]


@pytest.fixture(autouse=True)
def trials(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The scripts that were tried out. None is run: each seems to fail alike."""
    tried: list[str] = []
    monkeypatch.setattr(trial, "difference", lambda script, finding, budget: tried.append(script) or "")
    return tried


def events(log: Log) -> list[str]:
    return [event.text for event in log.events if event.stage == "repro"]


def head(script: str) -> str:
    """The comments at the top."""
    return script.partition("\n\n")[0]


def keywords(script: str) -> dict[str, str]:
    """The keywords of the call of the export, as source."""
    call = ast.parse(script).body[-1]
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    assert [ast.unparse(each) for each in call.value.args] == ["model", "args"]
    return {each.arg or "**": ast.unparse(each.value) for each in call.value.keywords}


@pytest.fixture
def importable(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., types.ModuleType]]:
    """Writes modules whose names begin with `lab_` to a folder, and imports the last of them."""

    def write(folder: str = "", **sources: str) -> types.ModuleType:
        root = tmp_path / folder
        monkeypatch.syspath_prepend(root)
        for name, source in sources.items():
            path = root.joinpath(*name.split("__"))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".py").write_text(source, encoding="utf-8")
        importlib.invalidate_caches()
        return importlib.import_module(name.replace("__", "."))

    yield write
    for name in [name for name in sys.modules if name.startswith("lab_")]:
        del sys.modules[name]


NET = """
import torch


class Net(torch.nn.Module):
    def forward(self, x, *rest, **named):
        return x * 2


def translated(x):
    return x


def other(x):
    return x
"""


def test_a_captured_program_has_no_source(trials: list[str]) -> None:
    script, log = written(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)))
    assert (script, trials) == ("", [])
    assert len(events(log)) == 1


def test_a_model_without_source_has_no_script(trials: list[str]) -> None:
    scope: dict[str, Any] = {}
    exec("import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n", scope)
    script, log = written(scope["Net"]())
    assert (script, trials) == ("", [])
    assert len(events(log)) == 1


def test_a_large_model_is_not_tried_out(load: Load, trials: list[str]) -> None:
    module = load(NET)
    for rows, runs in ((2**13, 1), (2**13 + 1, 0)):
        model = module.Net()
        # It takes as many bytes as its elements seem to take, which are one.
        model.weight = torch.nn.Parameter(torch.zeros(1, 1).expand(rows, 2**15))
        trials.clear()
        script, log = written(model)
        assert (len(trials), "NOTE" in head(script)) == (runs, not runs)
        assert len(events(log)) == 1
        assert ("1.0 GiB" in events(log)[0]) == (not runs)


class Extractor:
    name = "the user's"

    def generate_fx(self, *_: Any) -> Any:
        raise NotImplementedError


FILE = pathlib.Path("somewhere/model.onnx")
NOTE = DiagnosticOptions(levels={"OXP1": Level.NOTE})
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "none": ({}, {}),
    "names": ({"input_names": ("a",), "output_names": ("b", "c")}, {"input_names": "['a']", "output_names": "['b', 'c']"}),
    "opset": ({"opset_version": 18}, {"opset_version": "18"}),
    "strategies": ({"strategies": ("strict",)}, {"strategies": "('strict',)"}),
    "the user's strategy": ({"strategies": (Extractor(),)}, {}),
    "the user's strategy among others": ({"strategies": (Extractor(), "draft")}, {"strategies": "('draft',)"}),
    "control_flow": ({"control_flow": "report"}, {"control_flow": "'report'"}),
    "optimize": ({"optimize": False}, {"optimize": "False"}),
    "export_params": ({"export_params": False}, {"export_params": "False"}),
    "keep_initializers_as_inputs": ({"keep_initializers_as_inputs": True}, {"keep_initializers_as_inputs": "True"}),
    "verify": ({"verify": True}, {}),
    "verify that failed": ({"verify": True, "stage": "verify"}, {"verify": "True"}),
    "a file": ({"destination": FILE, "external_data": True}, {}),
    **{
        f"a file in the stage {stage}": (
            {"destination": FILE, "external_data": False, "stage": stage},
            {"f": "'repro.onnx'", "external_data": "False"},
        )
        for stage in ("open", "serialize", "save")
    },
    "no file": ({"external_data": True, "stage": "serialize"}, {"external_data": "True"}),
    "levels": (
        {"diagnostic_options": NOTE},
        {"diagnostic_options": "onnxplain.DiagnosticOptions(levels={'OXP1': onnxplain.Level['NOTE']})"},
    ),
    "warnings": (
        {"diagnostic_options": DiagnosticOptions(warnings_as_errors=True, verbosity_level=10)},
        {"diagnostic_options": "onnxplain.DiagnosticOptions(warnings_as_errors=True)"},
    ),
    "select and ignore": (
        {"diagnostic_options": DiagnosticOptions(select=("OXP1",), ignore=("OXP1007",))},
        {"diagnostic_options": "onnxplain.DiagnosticOptions(select=('OXP1',), ignore=('OXP1007',))"},
    ),
    "shapes": (
        {"args": (torch.ones(2),), "dynamic_shapes": {"x": {0: "n"}}},
        {"dynamic_shapes": "{'x': {0: 'n'}}"},
    ),
    "keywords": ({"args": (torch.ones(2),), "kwargs": {"a": 1, "if": None}}, {"kwargs": "kwargs"}),
}


@pytest.mark.parametrize(("options", "expected"), OPTIONS.values(), ids=OPTIONS)
def test_options_that_the_failure_may_need(load: Load, tmp_path: pathlib.Path, options: dict[str, Any], expected: dict[str, str]) -> None:
    script, _ = written(load(NET).Net(), **options)
    assert keywords(script) == expected
    assert made_by(script, tmp_path).get("kwargs", {}) == options.get("kwargs", {})


def test_translations_of_the_user(load: Load, tmp_path: pathlib.Path) -> None:
    module = load(NET)

    @onnxscript.script(onnxscript.values.Opset("repro", 1), default_opset=op)
    def scripted(x):  # type: ignore[no-untyped-def]
        return op.Abs(x)

    table = {torch.ops.aten.sin.default: module.translated, torch.ops.aten.cos: [module.other, scripted], torch.relu: (module.other,)}
    script, _ = written(module.Net(), table=table)
    made = made_by(script, tmp_path)
    found = eval(keywords(script)["custom_translation_table"], made)
    assert found == {
        torch.ops.aten.sin.default: made["translated"],
        torch.ops.aten.cos: [made["other"], made["scripted"]],
        torch.relu: [made["other"]],
    }
    assert isinstance(made["scripted"], onnxscript.OnnxFunction)


LIBRARY = """
import torch


class Config:
    def __init__(self, **given):
        self.given = given
        if "attention" in given:
            self._attn_implementation = given["attention"]

    def to_diff_dict(self):
        return {**self.given, "_name_or_path": "/home/me/secret", "transformers_version": "5.0"}

    @classmethod
    def from_dict(cls, given, attn_implementation=None):
        return cls(**given, **({"made_with": attn_implementation} if attn_implementation else {}))


class Model(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.fc = torch.nn.Linear(2, 2)

    def save_pretrained(self):
        pass

    def forward(self, x):
        return self.fc(x)


class Diffuser(Model):
    @classmethod
    def from_config(cls, config):
        return cls({**config, "made": True})


class Unsaved(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.fc = torch.nn.Linear(2, 2)
"""

HOLDER = """
import torch


class Net(torch.nn.Module):
    def __init__(self, inner, config=None):
        super().__init__()
        self.inner, self.config = inner, config

    def forward(self, x):
        return self.inner(x) if self.config is None else x
"""


def test_models_that_a_library_makes_from_a_configuration(
    load: Load, tmp_path: pathlib.Path, importable: Callable[..., types.ModuleType]
) -> None:
    library, module = importable("site-packages", lab_models=LIBRARY), load(HOLDER)

    def made(inner: Any, config: Any = None) -> tuple[str, Any]:
        script, _ = written(module.Net(inner, config))
        assert "secret" not in script
        return script, made_by(script, tmp_path)["model"]

    script, model = made(library.Model(library.Config(size=3)))
    assert "lab_models.Model(" in script
    assert model.inner.config.given == {"size": 3}
    assert model.inner.fc.weight.dtype is torch.float32

    _, model = made(library.Model(library.Config(attention="eager")).half())
    assert model.inner.config.given == {"attention": "eager", "made_with": "eager"}
    assert model.inner.fc.weight.dtype is torch.float16

    mixed = library.Model(library.Config())
    mixed.fc.weight, mixed.fc.bias = (
        torch.nn.Parameter(each.data.to(dtype)) for each, dtype in zip(mixed.fc.parameters(), (torch.float16, torch.float64), strict=True)
    )
    assert ".to(" not in made(mixed)[0]

    script, model = made(library.Diffuser({"size": 3, "_class_name": "Private"}))
    assert "lab_models.Diffuser.from_config(" in script
    assert model.inner.config == {"size": 3, "made": True}

    for inner in (library.Model(library.Config(size=object())), library.Unsaved(library.Config(size=3)), library.Model(None)):
        script, model = made(inner)
        assert "make(lab_models." in "".join(script.split())
        assert type(model.inner) is type(inner)
        assert model.inner.fc.weight.shape == (2, 2)

    _, model = made(torch.nn.ReLU(), library.Config(attention="eager"))
    assert model.config.given == {"attention": "eager", "made_with": "eager"}


PARTS = """
import math

import torch

GAIN = 3


def scaled(x):
    return x * GAIN


class Layer(torch.nn.Module):
    def forward(self, x):
        return scaled(x) + math.pi
"""

IMPORTS = {
    "lab_a": "import lab_parts\n\n\ndef step(x):\n    return lab_parts.scaled(x) + lab_parts.GAIN\n",
    "lab_b": "import lab_parts as p\n\n\ndef step(x):\n    return p.scaled(x) + p.GAIN\n",
    "lab_c": "from lab_parts import scaled, GAIN as gain\n\n\ndef step(x):\n    return scaled(x) + gain\n",
    "lab_d": "try:\n    from lab_parts import scaled, GAIN\nexcept ImportError:\n    pass\n\n\ndef step(x):\n    return scaled(x) + GAIN\n",
    "lab_pack__user": "from . import parts\nfrom .parts import GAIN\n\n\ndef step(x):\n    return parts.scaled(x) + GAIN\n",
    "lab_pack__other": "import lab_pack.parts\n\n\ndef step(x):\n    return lab_pack.parts.scaled(x) + lab_pack.parts.GAIN\n",
    "lab_pack__third": "from lab_pack import parts as p\n\n\ndef step(x):\n    return p.scaled(x) + p.GAIN\n",
}


@pytest.mark.parametrize("name", IMPORTS)
@pytest.mark.parametrize("same", [False, True], ids=["other names", "the same names"])
def test_imports_of_the_users_modules(name: str, same: bool, tmp_path: pathlib.Path, importable: Callable[..., types.ModuleType]) -> None:
    (tmp_path / "lab_pack").mkdir()
    (tmp_path / "lab_pack" / "__init__.py").touch()
    net = "import torch\n\nGAIN = 5\n" if same else "import torch\n"
    net += "\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return step(x)" + (" + GAIN\n" if same else "\n")
    module = importable(lab_parts=PARTS, lab_pack__parts=PARTS, **{name: f"{IMPORTS[name]}\n\n{net}"})
    script, _ = written(module.Net())
    made = made_by(script, tmp_path)["model"]
    assert "lab_p" not in "".join(line for line in script.splitlines() if line.lstrip().startswith(("import", "from")))
    assert made(torch.ones(2)).tolist() == module.Net()(torch.ones(2)).tolist()


LOCAL = """
import functools
import os as system
import os.path
import xml.dom, xml.sax

import torch

FACTOR = 2
COUNT = len("word")
scale = lambda x: x * 2
table = {"scale": lambda x, by=FACTOR: x * by}
pair = [lambda x: x + 1, lambda x: x + 2]
long = (
    lambda x:
        x * 3
)


def make(factor):
    def first(x):
        return x * factor

    return first


class Outer:
    class Inner:
        @staticmethod
        def twice(x):
            return x * 2

        @classmethod
        def thrice(cls, x):
            return x * 3


def cached(x):
    return system.path.basename("a/b") and os.path.basename("a/b") and xml.dom and xml.sax and x


def enclosing():
    def renamed(x):
        return x

    renamed.__name__ = renamed.__qualname__ = "another"
    return renamed


if FACTOR > 1:
    def branched(x):
        return x * 7


class Scale:
    def __init__(self, by):
        self.by = by

    def all(self):
        return self.by * COUNT


def scaled(by_object):
    def inner(x):
        return x * by_object.all()

    return inner


def make_class():
    class Local(torch.nn.Module):
        factor = 4

        def forward(self, x):
            return x * __class__.factor

        def scaling(self):
            return lambda x: x * __class__.factor

    return Local


class Net(torch.nn.Module):
    def __init__(self, **given):
        super().__init__()
        for name, value in given.items():
            setattr(self, name, value)

    def forward(self, x):
        for name in NAMES:
            x = getattr(self, name)(x)
        return x
"""

BORROWING = """
import torch

import lab_borrowed

FACTOR = 3


class Net(torch.nn.Module):
    borrowed = staticmethod(lab_borrowed.helper)
    library = staticmethod(torch.nn.functional.relu)

    def forward(self, x):
        return self.borrowed(self.library(x)) * FACTOR
"""


@pytest.mark.parametrize("registered", [True, False], ids=["a module", "a module that nobody can import"])
def test_a_class_with_functions_of_others(
    tmp_path: pathlib.Path, load: Load, importable: Callable[..., types.ModuleType], registered: bool
) -> None:
    """Its code uses the names of its own module, which may be loaded by path and then forgotten."""
    importable(lab_borrowed="FACTOR = 5\n\n\ndef helper(x):\n    return x + FACTOR\n")
    module = load(BORROWING)
    model = module.Net()
    kept = sys.modules[module.__name__]
    if not registered:
        del sys.modules[module.__name__]
    try:
        script, _ = written(model)
    finally:
        sys.modules[module.__name__] = kept
    made = made_by(script, tmp_path)["model"]
    assert made(torch.ones(2)).tolist() == model(torch.ones(2)).tolist() == [18.0, 18.0]


def test_strings_over_lines_stay_in_a_file_that_becomes_a_function(
    tmp_path: pathlib.Path, load: Load, importable: Callable[..., types.ModuleType]
) -> None:
    text = 'FACTOR = 5\n\n\ndef helper(x):\n    text = """one\n  two\n\nthree"""\n\n    return x * FACTOR + len(text)\n'
    importable(lab_borrowed=text)
    model = load(BORROWING).Net()
    script, _ = written(model)
    assert '"""one\n  two\n\nthree"""\n\n        return' in script
    assert made_by(script, tmp_path)["model"](torch.ones(2)).tolist() == model(torch.ones(2)).tolist() == [3 * (5 + 16)] * 2


FUNCTIONS: dict[str, Callable[[types.ModuleType], Any]] = {
    "a function": lambda m: m.cached,
    "a lambda": lambda m: m.scale,
    "a lambda on two lines": lambda m: m.long,
    "a lambda in a dict": lambda m: m.table["scale"],
    "a method of an inner class": lambda m: m.Outer.Inner.twice,
    "a class method of an inner class": lambda m: m.Outer.Inner.thrice,
    "a function of a library": lambda m: torch.nn.functional.relu,
    "a local function": lambda m: m.make(3),
    "a local function with an object": lambda m: m.scaled(m.Scale(5)),
    "a function in a branch": lambda m: m.branched,
    "a module of a local class that names itself": lambda m: m.make_class()(),
}
AMBIGUOUS: dict[str, Callable[[types.ModuleType], Any]] = {
    "one of two lambdas on a line": lambda m: m.pair[0],
    "a function without a definition": lambda m: m.enclosing(),
    "a lambda that names the class around it": lambda m: m.make_class()().scaling(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_in_attributes(name: str, load: Load, tmp_path: pathlib.Path) -> None:
    module = load(LOCAL.replace("NAMES", "['function']"))
    model = module.Net(function=FUNCTIONS[name](module))
    script, _ = written(model)
    made = made_by(script, tmp_path)["model"]
    assert "NOTE" not in head(script)
    assert made(torch.ones(2)).tolist() == model(torch.ones(2)).tolist()


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_functions_that_cannot_be_told_from_others(name: str, load: Load) -> None:
    module = load(LOCAL.replace("NAMES", "['function']"))
    script, _ = written(module.Net(function=AMBIGUOUS[name](module)))
    assert "NOTE" in head(script)
    assert "'function': None" in script


REGISTRATIONS = """
import collections

import torch
from torch.utils import _pytree as pytree


@torch.library.custom_op("lab_used::cube", mutates_args=())
def cube(x: torch.Tensor) -> torch.Tensor:
    return x**3


@torch.library.custom_op("lab_unused::cube", mutates_args=())
def unused_cube(x: torch.Tensor) -> torch.Tensor:
    return x**3


@cube.register_fake
def taken_1(x):
    return torch.empty_like(x)


def taken_2(x):
    return torch.empty_like(x)


torch.library.register_fake("lab_used::cube", allow_override=True)(taken_2)
taken_3 = torch.library.Library("lab_used", "FRAGMENT")
left_3 = torch.library.Library("lab_unused", "FRAGMENT")
taken_18 = torch.library.Library("lab_named", "FRAGMENT")
taken_3.define("twice(Tensor x) -> Tensor")
taken_3.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")


class Batch:
    pass


class Other:
    pass


class Registry:
    def __init__(self):
        self.known = []
        self.named = {}

    def add(self, value):
        self.known.append(value)
        return value


def register_both(value):
    return REGISTRY.add(value)


REGISTRY = Registry()
UNUSED = Registry()
TABLE = collections.OrderedDict(a=1)
SPARE = {}
REGISTRY.add("taken_4")
UNUSED.add("left_4")
REGISTRY.named["taken_5"] = 1
SPARE["left_5"] = 1
TABLE.limit = "taken_6"
SPARE["left_6"] = REGISTRY.left_6 = 1
pytree.register_pytree_node(Batch, lambda each: ([], "taken_7"), lambda parts, context: Batch())
pytree.register_pytree_node(Other, lambda each: ([], "left_7"), lambda parts, context: Other())
print(Batch, "left_8")
Registry.taken_9 = register_both("taken_9")
left_10 = register_both(Batch)
register_both(value=[Batch, "taken_11"])
torch.manual_seed(12 + len("left_12"))
assert register_both(Batch)
left_13, left_14 = register_both(Batch), Batch
TABLE["b"] = "taken_15"
Registry.taken_16 = REGISTRY.named["taken_5"]
Net = None


class Net(torch.nn.Module):
    def forward(self, x):
        TABLE, REGISTRY, Batch, "lab_named::cube", "no operator:: at all"
        return torch.ops.lab_used.twice(cube(x))


taken_19 = torch.library.custom_op("lab_used::last", lambda x: x * 1, mutates_args=(), schema="(Tensor x) -> Tensor")
Net.add("left_17") if hasattr(Net, "add") else None
"""


def test_registrations_for_the_code_in_use(load: Load, tmp_path: pathlib.Path) -> None:
    module = load(REGISTRATIONS)
    script, _ = written(module.Net())
    assert re.findall(r"left_\d+", script) == []
    assert {f"taken_{number}" for number in (1, 2, 3, 4, 5, 6, 7, 9, 11, 15, 16, 18, 19)} <= {*re.findall(r"taken_\d+", script)}
    for text in ('cube", mutates_args', "taken_3.define(", "taken_3.impl("):
        assert script.count(text) == 1


BLOCKS = """
import math as arithmetic
import xml.dom.minidom as names

import torch

FACTOR = lambda x: (
    x * 2
)


def doubled(module, args, output):
    return output * 2


def halved(module, args, kwargs, output):
    return output / 2


def prepared(module, args):
    return (args[0] + 1,)


class Inner(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.first = torch.nn.Linear(size, size, bias=False)
        self.second = torch.nn.Linear(size, size, bias=False, dtype=torch.float64)

    def forward(self, x):
        return self.first(x) * self.size


class Block(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.left = Inner(size)
        self.right = torch.nn.Sequential(torch.nn.Linear(size, size, dtype=torch.float64), torch.nn.ReLU())

    def forward(self, x):
        return self.left(x) + self.right(x)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Block(4), Block(4)
        self.three = Inner(4)
        self.inner = torch.nn.Linear(2, 2)

    def forward(self, x):
        x = FACTOR(x) * arithmetic.pi + len(names.__name__)
        return self.inner(x)

"""


def test_equal_modules_share_a_function(load: Load, tmp_path: pathlib.Path) -> None:
    model = load(BLOCKS.replace("return self.inner(x)", "return self.one(x), self.two(x), self.three(x)")).Net()
    script, _ = written(model)
    made = made_by(script, tmp_path)["model"]
    assert repr(made) == repr(model)
    functions = {node.name: node for node in ast.parse(script).body if isinstance(node, ast.FunctionDef)}
    assert {"make_inner", "make_block"} <= functions.keys()
    calls = [node.func.id for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    assert (calls.count("make_inner"), calls.count("make_block")) == (2, 2)
    assert list(functions).index("make_inner") < list(functions).index("make_block")


def test_functions_have_other_names_than_the_users_code(load: Load, tmp_path: pathlib.Path) -> None:
    source = BLOCKS.replace("return self.inner(x)", "return make_inner(self.one(x), self.two(x), self.three(x))")
    model = load(source + "\n\ndef make_inner(*parts):\n    return parts\n").Net()
    script, _ = written(model)
    functions = [node.name for node in ast.parse(script).body if isinstance(node, ast.FunctionDef)]
    assert {"make_inner", "make_inner_", "make_block"} <= {*functions}
    assert len({*functions}) == len(functions)
    assert repr(made_by(script, tmp_path)["model"]) == repr(model)


def test_two_files_of_one_name_beside_a_third(tmp_path: pathlib.Path, importable: Callable[..., types.ModuleType]) -> None:
    """Files with names that the script already has become functions, with different names."""
    (tmp_path / "lab_one").mkdir()
    (tmp_path / "lab_two").mkdir()
    step = "GAIN = {}\n\n\ndef step(x):\n    return x * GAIN\n"
    net = "from lab_one import parts as one\nfrom lab_two import parts as two\nimport torch\n\nGAIN = 5\n\n\n"
    net += "class Net(torch.nn.Module):\n    def forward(self, x):\n        return one.step(x) + two.step(x) * GAIN\n"
    module = importable(lab_one__parts=step.format(2), lab_two__parts=step.format(3), lab_net=net)
    script, _ = written(module.Net())
    made = made_by(script, tmp_path)["model"]
    assert made(torch.ones(1)).tolist() == module.Net()(torch.ones(1)).tolist() == [17.0]


TAGS = """
import torch


class Tag:
    def __init__(self, name):
        self.name = name


class Net(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        self.first_of_all_tags_that_the_model_has, self.second = Tag(name), Tag(name)

    def forward(self, x):
        return x if self.first_of_all_tags_that_the_model_has.name == "known" else x + len(self.second.name)
"""


@pytest.mark.parametrize(("name", "is_long"), [("known", False), ("a long and secret name of a tag", True)])
def test_only_long_expressions_have_a_function(load: Load, name: str, is_long: bool) -> None:
    """A name that the user's code shows has no placeholder, which is longer."""
    script, _ = written(load(TAGS).Net(name))
    assert ("def make_tag():" in script) == is_long


def test_hooks_aliases_and_lambdas_over_lines(load: Load, tmp_path: pathlib.Path) -> None:
    module = load(BLOCKS)
    model = module.Net()
    for inner in (model, model.inner):
        inner.register_forward_hook(module.doubled)
        inner.register_forward_hook(module.halved, with_kwargs=True)
        inner.register_forward_pre_hook(module.prepared)
    script, _ = written(model)
    made = made_by(script, tmp_path)["model"]
    made.load_state_dict(model.state_dict(), strict=False)
    x = torch.ones(2)
    torch.testing.assert_close(made(x), model(x))
    assert "import math as arithmetic\n" in script
    assert "import xml.dom.minidom as names\n" in script
    for mine, theirs in ((made, model), (made.inner, model.inner)):
        assert [each.__name__ for each in mine._forward_hooks.values()] == [each.__name__ for each in theirs._forward_hooks.values()]
        assert [each.__name__ for each in mine._forward_pre_hooks.values()] == ["prepared"]


def test_hooks_without_an_expression_are_left_out(tmp_path: pathlib.Path) -> None:
    model = torch.nn.Sequential(torch.nn.ReLU())
    model[0].register_forward_hook(iter([]).__next__)
    script, _ = written(model)
    assert "# Left out: 0._forward_hooks" in head(script)
    assert "register_forward_hook" not in script
    assert repr(made_by(script, tmp_path)["model"]) == repr(model)


PUBLIC = """
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return x if self.public or self.secret else -x
"""


@pytest.mark.parametrize(
    ("value", "public"),
    [
        ("abc", True),
        ("abcd", False),
        (b"abc", True),
        (b"abcd", False),
        ("ij,jk->ik", True),
        ("ij;jk->ik", False),
        ("cuda:12", True),
        ("cuda:x", False),
        ("torch.float32", True),
        ("leaky_relu", True),
        ("Linear", True),
        ("bilinear", True),
        ("forward", True),
        ("forwards", False),
    ],
)
def test_strings_of_attributes(load: Load, value: str | bytes, public: bool) -> None:
    model = load(PUBLIC).Net()
    model.public, model.secret = value, "correct-horse-battery"
    script, _ = written(model)
    assert (f"'public': {value!r}" in script) == public
    assert "correct-horse" not in script


@pytest.mark.parametrize(("value", "public"), [("leaky_relu", True), ("mirrored", False)])
def test_strings_of_a_librarys_class(value: str, public: bool, importable: Callable[..., types.ModuleType]) -> None:
    """The literals in the library's source tell nothing about the user."""
    source = 'import torch\n\nMODES = ("flat_mode",)\n\n\nclass Layer(torch.nn.Module):\n    def forward(self, x):\n        return x\n'
    layer = importable("site-packages", lab_strings=source).Layer()
    layer.kept, layer.mode = value, "flat_mode"
    script, _ = written(torch.nn.Sequential(layer))
    assert "'mode': 'flat_mode'" in script
    assert (f"'kept': {value!r}" in script) == public


GLOBALS = """
import math
import os

import numpy as np
import torch

SUM = sum([1, 2])
ROOT = math.sqrt(16)
RANGE = list(range(3))
TENSOR = torch.arange(3) + 1
ARRAY = int(np.prod((2, 3)))
ANNOTATED: float = max(1.0, 2.0)
READ = len(open(__file__).read()) * 0
LOADED = int(np.array([7]).item()) or np.load("missing")
FOLDER = os.sep.join(["a", "b"])
HERE = os.getcwd() and 3
first = second = math.floor(2.5)
left, right = 1, math.ceil(2.5)
counter = 1
counter += 1
for index in range(3):
    last = index
with torch.no_grad():
    GRADS = torch.is_grad_enabled()
try:
    import missing_module
except ImportError:
    missing_module = None
if missing_module is None:
    CHOSEN = "chosen"
else:
    CHOSEN = missing_module.chosen


class Net(torch.nn.Module):
    def forward(self, x):
        names = (SUM, ROOT, RANGE, TENSOR, ARRAY, ANNOTATED, READ, LOADED, FOLDER, HERE, first, second, left, right, counter, last, GRADS)
        return names, chosen(), READ


def chosen():
    return CHOSEN if READ == LOADED - 7 else READ


def unused():
    return missing_module
"""


def test_global_values(load: Load, tmp_path: pathlib.Path) -> None:
    model = load(GLOBALS).Net()
    script, _ = written(model)
    names = made_by(script, tmp_path)
    kept, expected = names["model"](None), model(None)
    assert [type(each) for each in kept[0]] == [type(each) for each in expected[0]]
    for mine, theirs, name in zip(
        kept[0], expected[0], re.findall(r"\w+", GLOBALS.partition("names = (")[2].partition(")")[0]), strict=True
    ):
        assert name == "TENSOR" or mine == theirs or name == "FOLDER", name
    assert kept[1] == "chosen"
    assert "unused" not in names
    assert [len(re.findall(rf"^{name} = ", script, re.MULTILINE)) for name in ("READ", "LOADED", "HERE")] == [1, 1, 1]
    for copied in ("ROOT = math.sqrt(16)", "RANGE = list(range(3))", "TENSOR = torch.arange(3) + 1", "ARRAY = int(np.prod((2, 3)))"):
        assert f"{copied}\n" in script
    for computed in ("open(", "np.load", "os.getcwd"):
        assert computed not in script


SHARED = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(5, 4)
        self.head = torch.nn.Linear(4, 5, bias=False)
        self.head.weight = self.embedding.weight
        self.norm = torch.nn.BatchNorm1d(4)
        self.other_norm = torch.nn.BatchNorm1d(4)
        self.other_norm.running_mean = self.norm.running_mean
        self.block = torch.nn.TransformerEncoderLayer(4, 2, 8)
        self.block.linear2 = self.block.linear1
        self.again = self.block.self_attn.out_proj
        self.layers = torch.nn.ModuleList([self.head, torch.nn.ReLU(), None])
        self.register_buffer("table", torch.ones(2))
        self.register_buffer("copy", self.table, persistent=False)
        self.config = {"weight": self.head.weight, "layer": self.norm}

    def forward(self, x):
        return x if self.again is None or self.config or self.table is None or self.copy is None else self.layers
"""


def test_what_modules_share_stays_shared(load: Load, tmp_path: pathlib.Path) -> None:
    model = load(SHARED).Net()
    made = made_by(written(model)[0], tmp_path)["model"]
    assert made.head.weight is made.embedding.weight
    assert made.other_norm.running_mean is made.norm.running_mean
    assert made.other_norm.running_var is not made.norm.running_var
    assert made.block.linear2 is made.block.linear1
    assert made.again is made.block.self_attn.out_proj
    assert made.layers[0] is made.head
    assert made.layers[2] is None
    assert made.copy is made.table
    assert made.config["weight"] is made.head.weight
    assert made.config["layer"] is made.norm
    assert made.state_dict().keys() == {*model.state_dict(), "copy"}


LAYOUT = """
from __future__ import annotations

import dataclasses
import functools

import torch

LIMIT = 3
TABLE = {"first": [1, 2, 3], "second": (4, 5), "a key that is long": "a text that is long", "another key that is long": 0.5}


@dataclasses.dataclass
class Settings:
    width: int
    name: str
    inner: Settings | None = None


class Token:
    def __init__(self, text):
        self.text = text


def scaled(x, by):
    '''Scales
    over lines.'''
    # A comment.
    return x * by + LIMIT


class Block(torch.nn.Module):
    def __init__(self, index):
        super().__init__()
        self.index = index
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8, dtype=torch.float64))
        self.settings = Settings(8, "a secret name", Settings(4, "a secret name"))
        self.scale = functools.partial(scaled, by=2)
        self.gate = torch.nn.Parameter(torch.zeros(3, 8).t(), requires_grad=False)
        self.register_buffer("steps", torch.arange(3), persistent=False)

    def forward(self, x):
        return self.scale(self.layers(x)) + self.index * self.settings.width + self.gate + self.steps + len(self.settings.name)

    def unused(self):
        return 1

    def also_unused(self):
        return self.settings.inner

    def last(self):
        return 2


class Empty(torch.nn.Module):
    def extra_repr(self):
        return "nothing"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(10, 8, padding_idx=0)
        self.blocks = torch.nn.ModuleList([Block(index) for index in range(4)])
        self.others = torch.nn.ModuleList([Block(7), Block(9), torch.nn.ReLU(), torch.nn.ReLU(), torch.nn.ReLU(), Empty()])
        self.head = torch.nn.Linear(8, 10, bias=False)
        self.head.weight = self.embedding.weight
        self.token, self.stream, self.rows = Token("another secret"), iter(()), [[number, number + 1] for number in range(14)]

    def forward(self, ids, *more, mask=None):
        x = self.embedding(ids) + len(TABLE["first"]) + len(self.token.text) + len(self.rows) + len(self.stream)
        for block in (*self.blocks, *self.others):
            x = block.last() and block(x)
        return self.head(x)
"""


def test_the_layout_of_a_script(load: Load, golden: Callable[[str, str], None], tmp_path: pathlib.Path) -> None:
    module = load(LAYOUT)
    model, mask = module.Net().eval(), torch.zeros(2, 100, 3)
    model.blocks[0].train()
    ids = torch.tensor([[4, 2], [0, 9]])
    args = (ids, mask, mask.transpose(0, 1), {"a": [1, 2.5, None], "b": slice(1, None)}, "a secret argument")
    script, _ = written(
        model, args, kwargs={"mask": torch.tensor([True, False]), "rest": mask}, dynamic_shapes=None, strategies=("strict",)
    )
    assert max(map(len, script.splitlines())) <= 140
    golden("repro.txt", script)
    made = made_by(script, tmp_path)
    found, wanted = (dict(each.named_modules()) for each in (made["model"], model))
    assert [(name, type(each).__name__, each.training) for name, each in found.items()] == [
        (name, type(each).__name__, each.training) for name, each in wanted.items()
    ]
    assert made["args"][1] is made["kwargs"]["rest"]


CALLS = """
import torch


class Base(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size


class Made(Base):
    def __init__(self, size):
        super().__init__(size)
        self.twice = helper(size)

    def forward(self, x):
        return x * self.twice + self.size


class Never(Base):
    def __init__(self, size):
        super().__init__(size)
        self.unused = size


def helper(size):
    return size * 2


class Net(Base):
    def __init__(self, size):
        super().__init__(size)
        self.hidden = [1, 2, 3]
        self.never = Never(1)

    def forward(self, x):
        return BODY

    def found_by_name(self, x):
        return x + len(self.hidden)
"""


@pytest.mark.parametrize(
    ("body", "everything"),
    [
        ("Made(3)(x)", False),
        ("getattr(self, 'found_' + 'by_name')(x)", True),
        ("getattr(self, 'found_by_name')(x)", False),
        ("x + len(vars(self)['hid' + 'den'])", True),
        ("self.found_by_name(x)", False),
    ],
)
def test_what_calls_need(load: Load, tmp_path: pathlib.Path, body: str, everything: bool) -> None:
    model = load(CALLS.replace("BODY", body)).Net(5)
    script, _ = written(model)
    made, x = made_by(script, tmp_path)["model"], torch.ones(2)
    assert made(x).tolist() == model(x).tolist()
    kept = {
        node.name: {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
        for node in ast.parse(script).body
        if isinstance(node, ast.ClassDef)
    }
    if everything:
        assert kept["Net"] == {"__init__", "forward", "found_by_name"}
    elif "Made" in body:
        assert kept == {"Base": {"__init__"}, "Made": {"__init__", "forward"}, "Never": set(), "Net": {"forward"}}
    else:
        assert kept == {"Base": set(), "Never": set(), "Net": {"forward", "found_by_name"}}


ROWS = """
import torch


class Item(torch.nn.Module):
    def __init__(self, number, pair=0):
        super().__init__()
        self.number, self.pair = number, [pair, number]

    def forward(self, x):
        return x + self.number + self.pair[0]


class Net(torch.nn.Module):
    def __init__(self, items):
        super().__init__()
        self.items = torch.nn.ModuleList(items)

    def forward(self, x):
        for item in self.items:
            x = item(x)
        return x
"""


@pytest.mark.parametrize(
    ("numbers", "written_once"),
    [
        ([0, 1, 2, 3], 1),
        ([5, 6, 7], 1),
        ([4, 4, 4], 1),
        ([5, 6], 2),
        ([4, 4], 2),
        ([5, 6, 8], 3),
        ([5, 7, 9], 3),
        ([2, 1, 0], 3),
        ([-1, 0, 1], 2 + 1),
        ([0, 1, 2, 9, 9, 9], 2),
        ([7, 0, 1, 2, 7], 3),
        ([1.0, 1.0, 1.0, 2.0], 2),
        ([9, 10, 11, 12], 1),
    ],
)
def test_modules_in_a_row(load: Load, tmp_path: pathlib.Path, numbers: list[float], written_once: int) -> None:
    module = load(ROWS)
    script, _ = written(module.Net([module.Item(number) for number in numbers]))
    made = made_by(script, tmp_path)["model"]
    assert [each.number for each in made.items] == numbers
    assert [each.pair for each in made.items] == [[0, number] for number in numbers]
    assert "".join(script.split()).count("make(Item,") == written_once


def test_modules_in_a_row_that_are_not_alike(load: Load, tmp_path: pathlib.Path) -> None:
    module = load(ROWS)
    items = [
        module.Item(0),
        module.Item(1, pair=3),
        module.Item(2),
        torch.nn.ReLU(),
        torch.nn.Linear(2, 2),
        torch.nn.Linear(2, 3),
        torch.nn.Linear(2, 4),
    ]
    made = made_by(written(module.Net(items))[0], tmp_path)["model"]
    assert repr(made) == repr(module.Net(items))
    assert [each.pair for each in made.items[:3]] == [[0, 0], [3, 1], [0, 2]]
