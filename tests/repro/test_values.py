"""Values in a script: the written code makes an equal value again."""

from __future__ import annotations

import ast
import collections
import functools
import logging
import pathlib
import re
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from repro_scripts import made_by, written
from torch import nn

from onnxplain.repro import trial

pytestmark = pytest.mark.usefixtures("whole_scripts")
Load = Callable[..., types.ModuleType]


@pytest.fixture(autouse=True)
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out the run of the script, which tests do themselves. Scripts with placeholders seem to fail in another way."""
    monkeypatch.setattr(
        trial, "difference", lambda script, finding, budget: "It has placeholders." if re.search("'<[^']+>'", script) else ""
    )


def script_of(model: Any, args: tuple[Any, ...], **options: Any) -> str:
    script, _ = written(model, args, **options)
    return script


KINDS = """
import collections
import dataclasses
import enum
import functools
import pathlib

import torch


class Color(enum.Enum):
    RED = "red"


Point = collections.namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Settings:
    width: int
    colors: list


class Checked:
    def __post_init__(self):
        pass


@dataclasses.dataclass
class Derived:
    width: int
    twice: int = dataclasses.field(init=False)

    def __post_init__(self):
        self.twice = 2 * self.width


class Slotted:
    __slots__ = ("left", "right")

    def __init__(self):
        self.left, self.right = 1, [2]


class Plain:
    def __init__(self, name):
        self.name = name

    def scaled(self, x):
        return x * 2

    @classmethod
    def of(cls, x):
        return x


class Table(dict):
    pass


@dataclasses.dataclass
class Result(collections.OrderedDict):
    scores: list
    loss: float = None

    def __post_init__(self):
        self.update((name, value) for name, value in vars(self).items() if value is not None)


def double(x, by=2):
    return x * by


class Net(torch.nn.Module):
    def __init__(self, state):
        super().__init__()
        self.state = state

    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x if self.state else x
"""

Make = Callable[[types.ModuleType], Any]
VALUES: dict[str, Make] = {
    "none": lambda m: None,
    "numbers": lambda m: [1, 2.5, 3 + 4j, True, -0.0],
    "texts": lambda m: ["a 'b' \n \"c\"", b"\x00d"],
    "list": lambda m: [1, [2, []]],
    "tuple": lambda m: (1, (2,), ()),
    "set": lambda m: {1},
    "frozenset": lambda m: frozenset({"a"}),
    "dict": lambda m: {"a": 1, 2: {"b": (3,)}, None: None},
    "ordered dict": lambda m: collections.OrderedDict(b=1, a=2),
    "counter": lambda m: collections.Counter(a=3),
    "defaultdict": lambda m: collections.defaultdict(list, {"a": [1]}),
    "table": lambda m: m.Table(a=1),
    "dataclass that is a dict": lambda m: m.Result([1, 2]),
    "enum": lambda m: [m.Color.RED],
    "named tuple": lambda m: m.Point(1, [2]),
    "dataclass": lambda m: m.Settings(3, [m.Color.RED]),
    "partial": lambda m: functools.partial(m.double, by=3),
    "partial of a builtin": lambda m: functools.partial(max, 3),
    "slice": lambda m: [slice(1, None, 2), slice(None)],
    "range": lambda m: range(1, 9, 3),
    "path": lambda m: pathlib.PurePosixPath("weights.bin"),
    "dtype": lambda m: [torch.float16, torch.int8],
    "device": lambda m: torch.device("cpu"),
    "layout": lambda m: [torch.strided, torch.channels_last],
    "ellipsis": lambda m: (..., 1),
    "class": lambda m: [m.Plain, torch.nn.ReLU, dict],
    "function": lambda m: [m.double, torch.relu, torch.nn.functional.gelu, len],
    "module": lambda m: [nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Conv1d(2, 2, 1)), nn.ModuleList([nn.ReLU()])],
    "operator": lambda m: [torch.ops.aten.sin.default, torch.ops.aten.sin],
}


def same(left: Any, right: Any) -> bool:
    """Whether two values are alike, of modules that are alike."""
    if isinstance(left, nn.Module):
        return type(left) is type(right) and repr(left) == repr(right)
    if isinstance(left, functools.partial):
        return same((left.func, left.args, left.keywords), (right.func, right.args, right.keywords))
    if type(left).__module__ in ("builtins", "collections", "torch") and isinstance(left, list | tuple):
        return type(left) is type(right) and len(left) == len(right) and all(map(same, left, right))
    if type(left) is dict:
        return same([*left.items()], [*right.items()])
    if isinstance(left, type | types.FunctionType | types.MethodType):
        return bool(left is right or left.__qualname__ == right.__qualname__)
    if type(left).__module__.startswith("model"):
        names = getattr(left, "__dict__", None) or {name: getattr(left, name) for name in getattr(left, "__slots__", ())}
        others = getattr(right, "__dict__", None) or {name: getattr(right, name) for name in names}
        return type(left).__qualname__ == type(right).__qualname__ and same([*names.items()], [*others.items()])
    return type(left).__qualname__ == type(right).__qualname__ and bool(left == right) and repr(left) == repr(right)


@pytest.mark.parametrize("make", VALUES.values(), ids=VALUES)
def test_attributes_of_many_kinds(load: Load, tmp_path: pathlib.Path, make: Make) -> None:
    module = load(KINDS)
    value = make(module)
    script = script_of(module.Net({"value": value}), (torch.randn(2),))
    assert "Left out" not in script
    found = made_by(script, tmp_path)["model"].state["value"]
    assert same(value, found), f"{value!r} became {found!r}"


OBJECTS: dict[str, Make] = {
    "object": lambda m: m.Plain("a"),
    "slots": lambda m: m.Slotted(),
    "fields that are computed": lambda m: m.Derived(3),
    "method": lambda m: m.Plain("a").scaled,
    "class method": lambda m: m.Plain.of,
    "nested": lambda m: {"a": [m.Plain(m.Plain("b"))]},
}


@pytest.mark.parametrize("make", OBJECTS.values(), ids=OBJECTS)
def test_objects_of_the_users_classes(load: Load, tmp_path: pathlib.Path, make: Make) -> None:
    module = load(KINDS.replace("self.state else", "self.state.name or self.state.left or self.state.width or self.state.twice else"))
    value = make(module)
    script = script_of(module.Net({"value": value}), (torch.randn(2),))
    assert "Left out" not in script
    found = made_by(script, tmp_path)["model"].state["value"]
    if isinstance(value, types.MethodType):
        assert found(3) == value(3)
        assert type(found.__self__).__qualname__ == type(value.__self__).__qualname__
        value, found = value.__self__, found.__self__
    assert same(value, found), f"{value!r} became {found!r}"


def circle() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


LEFT_OUT: dict[str, Make] = {
    "a circle": lambda m: circle(),
    "a long text": lambda m: "a" * 2000,
    "an open file": lambda m: sys.stderr,
    "a generator": lambda m: (each for each in "ab"),
    "a key that is an object": lambda m: {m.Plain("a"): 1},
    "a sparse tensor": lambda m: torch.eye(3).to_sparse(),
}


@pytest.mark.parametrize("make", LEFT_OUT.values(), ids=LEFT_OUT)
def test_values_without_an_expression_are_left_out(load: Load, tmp_path: pathlib.Path, make: Make) -> None:
    module = load(KINDS.replace("self.state else", "(self.extra, self.width) else"))
    model = module.Net([])
    model.extra, model.width = make(module), 3
    script = script_of(model, (torch.ones(2),))
    assert "# Left out: extra" in script or "# Left out: a key" in script
    made = made_by(script, tmp_path)["model"]
    assert made.width == 3
    assert not hasattr(made, "extra")
    # Attributes that the code does not mention are also left out, without a remark.
    assert not hasattr(made, "state")


RAISING = """
import torch


def fail(*args, **kwargs):
    raise RuntimeError("do not look")


class NoHash:
    __hash__ = None


class Hash:
    __hash__ = fail


class Parts:
    parameters = named_parameters = buffers = named_buffers = children = named_children = modules = named_modules = state_dict = fail


class Attributes:
    def __getattr__(self, name):
        return super().__getattr__(name) if name in ("inner", "weight", "buffer") else fail()


class Equal(type):
    def __eq__(cls, other):
        fail()

    def __hash__(cls):
        return 1


class Mapping(dict):
    items = fail


class Value(metaclass=Equal):
    pass


class Base(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.register_buffer("buffer", torch.ones(3))
        self.width, self.extra, self.inner = 3, None, None

    def forward(self, x, given=None):
        return x * self.weight + self.buffer.sum() + self.width + (self.extra is None) + (self.inner is None)
"""


@pytest.mark.parametrize("inner", [False, True], ids=["model", "submodule"])
@pytest.mark.parametrize("mixin", ["NoHash", "Hash", "Parts", "Attributes"])
def test_models_whose_methods_raise(load: Load, tmp_path: pathlib.Path, mixin: str, inner: bool) -> None:
    # The class has to be in the source, since the script copies it.
    source = RAISING + f"\n\nclass Net({mixin}, Base):\n    pass\n"
    module = load(source)
    outer, model = module.Base(), module.Net()
    outer.__dict__["_modules"]["inner"] = model
    script = script_of(outer if inner else model, (torch.ones(2),))
    assert "Left out" not in script
    before, _, mode = script.partition("model.eval()\n" if "model.eval()" in script else "model.train()\n")
    assert mode
    found = made_by(before, tmp_path)["model"]
    found = found._modules["inner"] if inner else found
    assert (type(found).__qualname__, found.width) == ("Net", 3)
    assert (*found._parameters, *found._buffers) == ("weight", "buffer")


@pytest.mark.parametrize("make", [lambda m: m.Mapping(a=1), lambda m: m.Value(), lambda m: [m.Value()]], ids=["items", "eq", "list"])
def test_values_whose_methods_raise_are_left_out(load: Load, tmp_path: pathlib.Path, make: Make) -> None:
    module = load(RAISING)
    model = module.Base()
    model.extra = make(module)
    script = script_of(model, (torch.ones(2),), kwargs={"given": make(module)})
    assert "# Left out: given" in script
    assert "# Left out: extra" in script
    assert "do not look" not in script
    made = made_by(script, tmp_path)["model"]
    assert (made.width, hasattr(made, "extra")) == (3, False)


def test_a_model_that_cannot_be_looked_at_has_no_script(load: Load) -> None:
    module = load(RAISING + "\n\nclass Net(Base, metaclass=Equal):\n    pass\n")
    script, log = written(module.Net(), (torch.ones(2),))
    assert script == ""
    (told,) = [event for event in log.events if event.stage == "repro"]
    assert told.level == logging.WARNING
    line = next(number for number, text in enumerate(RAISING.splitlines(), 1) if "raise" in text)
    assert f"model.py:{line}" in told.text


TENSORS: dict[str, tuple[torch.Tensor, str]] = {
    "floats": (torch.randn(2, 3), "torch.randn(2, 3)"),
    "a scalar": (torch.tensor(2.5), "torch.randn(())"),
    "half": (torch.randn(2).half(), "torch.randn(2, dtype=torch.float16)"),
    "strided": (torch.randn(2, 3).t(), "random(3, 2, stride=(1, 3))"),
    "complex": (torch.randn(2, dtype=torch.complex64), "random(2, dtype=torch.complex64)"),
    "an integer": (torch.tensor(7), "torch.tensor(7)"),
    "equal integers": (torch.full((2, 2), 7, dtype=torch.int32), "torch.full((2, 2), 7, dtype=torch.int32)"),
    "positions": (torch.arange(3), "torch.arange(3)"),
    "positions in rows": (torch.arange(6).reshape(2, 3), "torch.arange(6).reshape((2, 3))"),
    "positions from 1": (torch.arange(1, 4), "torch.randint(1, 4, (3,))"),
    "indices": (torch.tensor([[4, -9], [2, 2]]), "torch.randint(-9, 5, (2, 2))"),
    "bytes": (torch.tensor([4, 250], dtype=torch.uint8), "torch.randint(4, 251, (2,), dtype=torch.uint8)"),
    "no elements": (torch.zeros(0, 3, dtype=torch.int64), "torch.zeros((0, 3), dtype=torch.int64)"),
    "a mask": (torch.tensor([True, False]), "torch.tensor([True, False])"),
    "a mask of 64": (torch.arange(64) % 2 == 0, f"torch.tensor({[True, False] * 32}"),
    "a large mask": (torch.arange(65) % 2 == 0, "torch.rand((65,)) > 0.5"),
    "a full mask": (torch.ones(100, dtype=torch.bool), "torch.full((100,), True, dtype=torch.bool)"),
}


@pytest.mark.parametrize(("tensor", "text"), TENSORS.values(), ids=TENSORS)
def test_inputs_by_shape_and_dtype(load: Load, tmp_path: pathlib.Path, tensor: torch.Tensor, text: str) -> None:
    module = load("import torch\n\n\ndef model(x, y):\n    if x.sum() > 0:\n        return x * y\n    return -x\n")
    script = script_of(module.model, (torch.ones(1), tensor))
    assert f" {text}".replace(" ", "").replace("\n", "") in f"{script}".replace(" ", "").replace("\n", "").replace(",]", "]")
    made = made_by(script, tmp_path)["args"][1]
    assert (made.shape, made.dtype, made.stride()) == (tensor.shape, tensor.dtype, tensor.stride())
    if not tensor.is_floating_point() and not tensor.is_complex() and tensor.numel():
        assert tensor.min() <= made.min()
        assert made.max() <= tensor.max()


def test_an_input_that_is_passed_twice_stays_one(load: Load, tmp_path: pathlib.Path) -> None:
    module = load("import torch\n\n\ndef model(x, y, *, z):\n    if x.sum() > 0:\n        return x * y + z\n    return -x\n")
    x = torch.randn(3)
    made = made_by(script_of(module.model, (x, torch.randn(3)), kwargs={"z": x}), tmp_path)
    assert made["kwargs"]["z"] is made["args"][0]
    assert made["args"][1] is not made["args"][0]


WEIGHTS = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.tensor([5, 3, 9]))
        self.register_buffer("positions", torch.arange(4))
        self.register_buffer("empty", None)
        self.register_parameter("absent", None)
        self.quiet = nn.Parameter(torch.ones(2), requires_grad=False)
        self.plain = torch.randn(3)
        self.gate = None

    def forward(self, x):
        if self.empty is None and self.absent is None and self.gate is None:
            x = x + self.quiet[0] + self.table[0] + self.positions[0] + self.plain[0]
        if x.sum() > 0:
            return x
        return -x
"""


def test_buffers_and_parameters_that_are_special(load: Load, tmp_path: pathlib.Path) -> None:
    model = load(WEIGHTS).Net()
    made = made_by(script_of(model, (torch.randn(2),)), tmp_path)["model"]
    assert made.table.tolist() == [0, 0, 0]
    assert made.positions.tolist() == [0, 1, 2, 3]
    assert dict(made.named_buffers()).keys() == dict(model.named_buffers()).keys()
    assert dict(made.named_parameters()).keys() == dict(model.named_parameters()).keys()
    assert (made.empty, made.absent, made.gate) == (None, None, None)
    assert not made.quiet.requires_grad
    assert isinstance(made.plain, torch.Tensor)
    assert not isinstance(made.plain, nn.Parameter)


LISTED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.register_buffer("scale", torch.ones(2))
        self.listed = [self.linear.weight, {"scale": self.scale}, self.linear]

    def forward(self, x):
        if x.sum() > 0:
            return x
        return self.linear(x) * self.listed[1]["scale"] + self.listed[0].sum()
"""


def test_weights_that_have_another_place_as_well_stay_one(load: Load, tmp_path: pathlib.Path) -> None:
    made = made_by(script_of(load(LISTED).Net(), (torch.randn(2),)), tmp_path)["model"]
    assert made.listed[0] is made.linear.weight
    assert made.listed[1]["scale"] is made.scale
    assert made.listed[2] is made.linear


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: nn.Linear(3, 4, bias=False, dtype=torch.float64),
    "convolution": lambda: nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2),
    "lstm": lambda: nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True),
    "attention": lambda: nn.MultiheadAttention(8, 2, batch_first=True),
    "norm": lambda: nn.BatchNorm2d(4, eps=0.1),
    "norm without weights": lambda: nn.BatchNorm2d(4, affine=False),
    "embedding": lambda: nn.Embedding(5, 3, padding_idx=0),
    "pool": lambda: nn.MaxPool2d(2, ceil_mode=True),
    "encoder": lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2, enable_nested_tensor=False),
    "sequence": lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU(), *(nn.Linear(2, 2) for _ in range(4))),
    "named sequence": lambda: nn.Sequential(collections.OrderedDict(first=nn.Linear(2, 2), second=nn.ReLU())),
    "list": lambda: nn.ModuleList([nn.Linear(2, size) for size in (2, 3, 4, 5)]),
    "dict": lambda: nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(1, 1)}),
}


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_modules_of_torch(load: Load, tmp_path: pathlib.Path, make: Callable[[], nn.Module]) -> None:
    module = load(
        """
        import torch


        class Net(torch.nn.Module):
            def __init__(self, layer):
                super().__init__()
                self.layer = layer

            def forward(self, x):
                if x.sum() > 0:
                    return x
                return self.layer(x)
        """
    )
    layer = make().eval()
    script = script_of(module.Net(layer).eval(), (torch.randn(2),))
    made = made_by(script, tmp_path)["model"].layer
    assert repr(made) == repr(layer)
    assert type(made) is type(layer)
    state = {name: (tensor.shape, tensor.dtype) for name, tensor in layer.state_dict().items()}
    assert {name: (tensor.shape, tensor.dtype) for name, tensor in made.state_dict().items()} == state
    held, wanted = ({name for name, value in vars(each).items() if value is not None} for each in (made, layer))
    assert held == wanted


MODES = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Dropout()
        self.second = torch.nn.Dropout()

    def forward(self, x):
        if x.sum() > 0:
            return x
        return self.second(self.first(x))
"""


@pytest.mark.parametrize("training", [[], ["first"], ["", "first", "second"], ["", "second"]])
def test_training_and_evaluation(load: Load, tmp_path: pathlib.Path, training: list[str]) -> None:
    model = load(MODES).Net()
    for name, module in model.named_modules():
        module.training = name in training
    made = made_by(script_of(model, (torch.randn(2),)), tmp_path)["model"]
    assert [name for name, module in made.named_modules() if module.training] == training


def test_dims_of_every_kind(load: Load, tmp_path: pathlib.Path) -> None:
    module = load("import torch\n\n\ndef model(x, y, z):\n    if x.sum() > 0:\n        return x\n    return -x\n")
    half = torch.export.Dim("half", min=2, max=64)
    shapes = {
        "x": {0: 2 * half + 1, 1: torch.export.Dim.AUTO},
        "y": {0: half, 1: torch.export.Dim.DYNAMIC(min=1, max=9)},
        "z": {0: torch.export.Dim("free"), 1: torch.export.Dim.STATIC, 2: torch.export.Dim("some", min=1)},
    }
    args = (torch.randn(9, 3), torch.randn(4, 3), torch.randn(5, 3, 2))
    script = script_of(module.model, args, dynamic_shapes=shapes)
    call = ast.parse(script).body[-1].value  # type: ignore[attr-defined]
    (text,) = [ast.unparse(each.value) for each in call.keywords if each.arg == "dynamic_shapes"]
    assert ("torch.export.Dim.AUTO" in text, "torch.export.Dim.DYNAMIC(min=1, max=9)" in text) == (True, True)
    made = eval(text, {"torch": torch, **made_by(script, tmp_path)})
    assert {name: {axis: str(dim) for axis, dim in dims.items()} for name, dims in made.items()} == {
        name: {axis: str(dim) for axis, dim in dims.items()} for name, dims in shapes.items()
    }
    assert [(made["y"][0].min, made["y"][0].max), made["x"][0].fn(10)] == [(2, 64), 21]


def test_a_scripted_module(load: Load, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "scripted").mkdir()
    (tmp_path / "scripted" / "parts.py").write_text(
        "import torch\n\n\nclass Part(torch.nn.Module):\n    def forward(self, x):\n        return x * 2\n", encoding="utf-8"
    )
    module = load(
        """
        import torch
        from scripted.parts import Part


        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.part = torch.jit.script(Part())

            def forward(self, x):
                if x.sum() > 0:
                    return x
                return self.part(x)
        """
    )
    script = script_of(module.Net(), (torch.randn(2),))
    monkeypatch.delitem(sys.modules, "scripted.parts")
    assert "torch.jit.script(make(Part" in script
    assert "import scripted" not in script
    assert "from scripted" not in script


FUNCTIONS = """
import math, torch
from torch.nn import functional as F
import os.path
import torch.nn

if math.pi > 3:
    SCALE = 2
else:
    SCALE = 3
LIMIT: float = math.sqrt(4.0)
TABLE = {"a": [1, 2]}; OTHER = 5
TABLE["b"] = [3]
first, *rest = 1, 2, 3
LOADED = torch.load(__file__ + ".pt") if False else 7
double = lambda x: x * SCALE


def decorated(function):
    def wrapper(*args):
        return function(*args)

    return wrapper


@decorated
def helper(x):
    '''Text
    over lines.'''
    return F.relu(x) * LIMIT + TABLE["b"][0] + OTHER + rest[0] + first + LOADED


class Base(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.size = 3

    def unused(self):
        return os.path.join("never")

    @property
    def half(self):
        return self.size / 2

    @staticmethod
    def shift(x):
        return x + 1


class Net(Base):
    def forward(self, x):
        y = double(helper(x)) * self.half + Net.shift(x)
        if y.sum() > 0:  # blamed
            return y
        return -y
"""


def test_sources_of_many_kinds(load: Load, tmp_path: pathlib.Path) -> None:
    model, x = load(FUNCTIONS).Net(), torch.randn(3)
    script = script_of(model, (x,), control_flow="report")
    assert "never" not in script
    assert "NOTE" not in script
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    made = made_by(script, folder)["model"]
    torch.testing.assert_close(made(x), model(x))
    (folder / "repro.py").write_text(script, encoding="utf-8")
    ran = subprocess.run([sys.executable, "repro.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert "error[OXP1001]" in ran.stderr
