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

    _, model = made(torch.nn.ReLU(), library.Config(size=3))
    assert model.config.given == {"size": 3}


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

scale = lambda x: x * 2
pair = [lambda x: x + 1, lambda x: x + 2]


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

FUNCTIONS: dict[str, Callable[[types.ModuleType], Any]] = {
    "a function": lambda m: m.cached,
    "a lambda": lambda m: m.scale,
    "a method of an inner class": lambda m: m.Outer.Inner.twice,
    "a class method of an inner class": lambda m: m.Outer.Inner.thrice,
    "a function of a library": lambda m: torch.nn.functional.relu,
    "a local function": lambda m: m.make(3),
}
AMBIGUOUS: dict[str, Callable[[types.ModuleType], Any]] = {
    "one of two lambdas on a line": lambda m: m.pair[0],
    "a function without a definition": lambda m: m.enclosing(),
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
        TABLE, REGISTRY, Batch
        return torch.ops.lab_used.twice(cube(x))


Net.add("left_17") if hasattr(Net, "add") else None
"""


def test_registrations_for_the_code_in_use(load: Load, tmp_path: pathlib.Path) -> None:
    module = load(REGISTRATIONS)
    script, _ = written(module.Net())
    assert re.findall(r"left_\d+", script) == []
    assert {f"taken_{number}" for number in (1, 2, 3, 4, 5, 6, 7, 9, 11, 15, 16)} <= {*re.findall(r"taken_\d+", script)}
    for text in ('cube", mutates_args', "taken_3.define(", "taken_3.impl("):
        assert script.count(text) == 1
