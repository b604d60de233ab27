"""State of a model that is no buffer: it is told at the line that changes it, and is after an export what it was before."""

from __future__ import annotations

import pathlib
import types
from collections.abc import Callable

import pytest
import torch

import onnxplain

Load = Callable[..., types.ModuleType]
Marked = Callable[[str], list[int]]

STATES = {
    "global": "TOTAL = TOTAL + x.mean(0)  # here\nreturn TOTAL",
    "global-number": "global COUNT\nCOUNT += 1  # here\nreturn x * COUNT",
    "class-number": "Net.count += 1  # here\nreturn x * Net.count",
    "class-tensor": "type(self).total = self.total + x.mean(0)  # here\nreturn self.total",
    "class-list": "self.seen.append(x.shape[0])  # here\nreturn x * len(self.seen)",
    "base-class": "Base.rounds += 1  # here\nreturn x * Base.rounds",
    "private": "self._total = self._total + x.mean(0)  # here\nreturn self._total",
    "private-number": "self._count += 1  # here\nreturn x * self._count",
    "private-from-none": "if self._last is None:\n    self._last = x  # here\nself._last = self._last + 1  # here\nreturn x * self._last",
    "nonlocal": "nonlocal inner\ninner = inner + x.mean(0)  # here\nreturn inner",
    "helper": "return add(x)",
    "method-of-a-helper": "return Helper().add(x)",
    "decorated": "return counted(x)",
}

PROGRAM = """
import functools

import torch

TOTAL = torch.zeros(3)
COUNT = 0
CACHE = None
STEP = 0


def train():
    global STEP
    STEP += 1


def add(x):
    global TOTAL
    TOTAL = TOTAL + x.mean(0){add}
    return TOTAL


class Helper:
    def add(self, x):
        global COUNT
        COUNT = COUNT + 1{method}
        return x * COUNT


def counting(function):
    calls = 0

    @functools.wraps(function)
    def wrapper(x):
        nonlocal calls
        calls += 1{decorated}
        return function(x) * calls

    return wrapper


@counting
def counted(x):
    return x + 1


def positions():
    global CACHE
    if CACHE is None:
        CACHE = torch.arange(3.0)
    return CACHE


class Base(torch.nn.Module):
    rounds = 0


def make():
    inner = torch.zeros(3)

    class Net(Base):
        count = 0
        total = torch.zeros(3)
        seen = []

        def __init__(self):
            super().__init__()
            self._total, self._count, self._last = torch.zeros(3), 0, None

        def forward(self, x):
            {body}

        def peek(self):
            return inner

    return Net
"""


def program(name: str, body: str) -> str:
    here = {"helper": "add", "method-of-a-helper": "method", "decorated": "decorated"}
    marks = {key: "  # here" if here.get(name) == key else "" for key in ("add", "method", "decorated")}
    head = "global TOTAL\n" if body.startswith("TOTAL") else ""
    return PROGRAM.format(body=(head + body).replace("\n", "\n            "), **marks)


@pytest.mark.parametrize(("name", "body"), STATES.items(), ids=STATES)
def test_state_is_told_and_put_back(load: Load, marked: Marked, name: str, body: str) -> None:
    module = load(program(name, body))
    cls = module.make()
    model = cls()
    exported = onnxplain.export(torch.nn.Sequential(model), (torch.ones(4, 3),))
    findings = [each for each in exported.diagnostics.findings if each.rule.id == "OXP1018"]
    assert {each.location.line for each in findings if each.location is not None} == set(marked("here"))
    assert len(exported.diagnostics.findings) == len(findings)
    assert (module.COUNT, module.Base.rounds, cls.count, cls.seen, model._count, model._last) == (0, 0, 0, [], 0, None)
    zeros = torch.zeros(3)
    for each in (module.TOTAL, cls.total, model._total, model.peek()):
        assert type(each) is torch.Tensor
        assert torch.equal(each, zeros)


@pytest.mark.parametrize(
    "body",
    [
        "return x + positions()",
        "if self._last is None:\n    self._last = torch.arange(3.0)\nreturn x + self._last",
        "return x * self.count + COUNT + inner",
    ],
)
def test_a_cache_and_constants_are_no_state(load: Load, body: str) -> None:
    module = load(program("", body))
    exported = onnxplain.export(torch.nn.Sequential(module.make()()), (torch.ones(4, 3),))
    assert exported.diagnostics.findings == ()
    assert module.CACHE is None


MEMOS = {
    "by number": ("if 3 not in self._memo:\n    self._memo[3] = torch.arange(3.0)\nreturn x + self._memo[3]", 0),
    "by size": ("key = x.ndim, 'rows'\nif key not in self._memo:\n    self._memo[key] = (0, 1)\nreturn x.permute(self._memo[key])", 0),
    "of layers": ("self._memo.setdefault('first', torch.ones(3))\nreturn x + self._memo['first']", 0),
    "every time": ("self._memo['last'] = x\nreturn x + 1", 1),
    "counted": ("self._memo['calls'] = self._memo.get('calls', 0) + 1\nreturn x + 1", 1),
    "offered to others": ("if 3 not in self.memo:\n    self.memo[3] = x * 2\nreturn x + 1", 1),
}


@pytest.mark.parametrize(("body", "count"), MEMOS.values(), ids=MEMOS)
def test_a_dict_that_only_the_first_call_fills_is_no_state(load: Load, body: str, count: int) -> None:
    source = program("", body).replace("self._total, ", "self._memo, self.memo = {}, {}\n            self._total, ")
    model = load(source).make()()
    exported = onnxplain.export(torch.nn.Sequential(model), (torch.ones(4, 3),))
    assert [each.rule.id for each in exported.diagnostics.findings] == ["OXP1018"] * count
    assert (model._memo, model.memo) == ({}, {})


def test_what_the_model_does_not_reach_stays_as_other_code_leaves_it(load: Load) -> None:
    # As another thread of the program might, `forward` calls a function that the exporter cannot know from its names.
    module = load(program("", "globals()['tr' + 'ain']()\nreturn x + 1"))
    onnxplain.export(torch.nn.Sequential(module.make()()), (torch.ones(4, 3),))
    assert module.STEP > 0


def test_state_of_a_model_whose_capture_fails_is_put_back(load: Load, tmp_path: pathlib.Path) -> None:
    body = "global COUNT, TOTAL\nCOUNT += 1\ndel TOTAL\nNet.count += 1\nself._count += 1\nif x.sum() > 0:\n    return x.numpy()\nreturn x"
    module = load(program("", body))
    total = module.TOTAL
    cls = module.make()
    model = cls()
    with pytest.raises(onnxplain.ExportFailed):
        onnxplain.export(model, (torch.ones(4, 3),), tmp_path / "model.onnx")
    assert (module.COUNT, cls.count, model._count) == (0, 0, 0)
    assert module.TOTAL is total


def test_a_state_that_a_submodule_computes(load: Load, marked: Marked) -> None:
    module = load(
        """
        import torch


        class Inner(torch.nn.Module):
            def forward(self, x):
                return x.mean(0)


        class Outer(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner, self.last = Inner(), torch.zeros(3)

            def forward(self, x):
                self.last = self.inner(x)  # here
                return x + self.last
        """
    )
    findings = onnxplain.export(module.Outer(), (torch.ones(4, 3),)).diagnostics.findings
    assert [(each.rule.id, each.location and each.location.line) for each in findings] == [("OXP1018", *marked("here"))]


HOLDERS = """
import collections
import dataclasses

import torch


class Plain:
    def __init__(self):
        self.total = torch.zeros(3)


@dataclasses.dataclass
class Sums:
    total: torch.Tensor


class Slotted:
    __slots__ = ("total", "unset")

    def __init__(self, total):
        self.total = total


class Both(Slotted):
    def __init__(self, total):
        super().__init__(total)
        self.other = 1


class Guarded(Slotted):
    def __getattr__(self, name):
        raise RuntimeError(name)


def bumping():
    calls = 0

    def bump():
        nonlocal calls
        calls += 1  # here: closure
        return calls

    return bump


def step():
    step.calls += 1  # here: attribute
    return step.calls


step.calls = 0


def seen(more, before=[]):
    before.append(more)  # here: default
    return len(before)


def make(held):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.held = held

        def forward(self, x):
            {body}

    return Net()
"""


@pytest.mark.parametrize(
    ("held", "body"),
    [
        ("Plain()", "self.held.total = self.held.total + x.mean(0)  # here\nreturn x + self.held.total"),
        ("Sums(torch.zeros(3))", "self.held.total = self.held.total + x.mean(0)  # here\nreturn x + self.held.total"),
        ("{'a': {'b': torch.zeros(3)}}", "self.held['a']['b'] = self.held['a']['b'] + x.mean(0)  # here\nreturn x + self.held['a']['b']"),
        (
            "[1, [{'a': torch.zeros(3)}]]",
            "self.held[1][0]['a'] = self.held[1][0]['a'] + x.mean(0)  # here\nreturn x + self.held[1][0]['a']",
        ),
        ("[[torch.zeros(3)]]", "self.held[0][0] = self.held[0][0] + x.mean(0)  # here\nreturn x + self.held[0][0]"),
        (
            "collections.deque([torch.zeros(3)], maxlen=2)",
            "self.held.append(x.mean(0))  # here\nreturn torch.stack(list(self.held)).sum(0)",
        ),
        ("collections.Counter(a=1)", "self.held['a'] += 1  # here\nreturn x * self.held['a']"),
        ("collections.OrderedDict(a=1)", "self.held['a'] += 1  # here\nreturn x * self.held['a']"),
        ("None", "result = x if self.held is None else x - self.held\nself.held = x  # here\nreturn result"),
    ],
    ids=[
        "object",
        "dataclass",
        "dict-in-a-dict",
        "dict-in-a-list-in-a-list",
        "list-in-a-list",
        "deque",
        "counter",
        "ordered-dict",
        "last-input",
    ],
)
def test_state_in_what_an_attribute_holds(load: Load, marked: Marked, held: str, body: str) -> None:
    module = load(HOLDERS.format(body=body.replace("\n", "\n            ")))
    made = module.make(eval(held, vars(module)))
    x = torch.ones(4, 3)
    want = module.make(eval(held, vars(module)))(x)
    program = onnxplain.export(made, (x,))
    findings = [finding for finding in program.diagnostics.findings if finding.rule.id == "OXP1018"]
    assert [each.location.line for each in findings if each.location is not None] == marked("here")
    # The capture has left the state as it was.
    torch.testing.assert_close(made(x), want)
    torch.testing.assert_close(program(x)[0], want)


ELSEWHERE = {
    "private number": ("None", "calls = getattr(self, '_calls', 0)\nself._calls = calls + 1  # here\nreturn x + calls"),
    "past the module": ("1", "y = x * self.held\nobject.__setattr__(self, 'held', self.held + 1)  # here\nreturn y"),
    "slot": ("Slotted(torch.zeros(3))", "self.held.total = self.held.total + x.mean(0)  # here\nreturn x + self.held.total"),
    "number in a slot": ("Slotted(1)", "self.held.total += 1  # here\nreturn x * self.held.total"),
    "guarded slot": ("Guarded(1)", "self.held.total += 1  # here\nreturn x * self.held.total"),
    "slot of a base": ("Both(1)", "self.held.total += 1  # here\nreturn x * self.held.total"),
    "beside slots": ("Both(1)", "self.held.other += 1  # here\nreturn x * self.held.other"),
    "list in a slot": ("Slotted([1])", "self.held.total.append(2)  # here\nreturn x * sum(self.held.total)"),
    "closure": ("bumping()", "return x * self.held()"),
    "attribute": ("None", "return x * step()"),
    "default": ("None", "return x * seen(2)"),
}


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("kind", ELSEWHERE)
def test_state_in_slots_functions_and_private_numbers(load: Load, marked: Marked, kind: str, verify: bool) -> None:
    held, body = ELSEWHERE[kind]
    source = HOLDERS.format(body=body.replace("\n", "\n            "))
    module = load(source)
    made, x = module.make(eval(held, vars(module))), torch.ones(4, 3)
    program = onnxplain.export(made, (x,), verify=verify)
    (finding,) = (each for each in program.diagnostics.findings if each.rule.id == "OXP1018")
    assert finding.location is not None
    assert [finding.location.line] == (marked("here") or marked(f"here: {kind}"))
    if not verify:
        other = load(source, "other")
        torch.testing.assert_close(made(x), other.make(eval(held, vars(other)))(x))


@pytest.mark.parametrize(
    "body",
    [
        "if not hasattr(self, '_scale'):\n    self._scale = 2\nreturn x * self._scale",
        "self._width = x.shape[1]\nreturn x * self._width",
        "self.held._last = 3\nreturn x * self.held._last",
    ],
)
def test_private_numbers_that_stay_are_no_state(load: Load, body: str) -> None:
    module = load(HOLDERS.format(body=body.replace("\n", "\n            ")))
    assert onnxplain.export(module.make(module.Plain()), (torch.ones(4, 3),)).diagnostics.findings == ()


@pytest.mark.falls_back
def test_contents_that_stay_are_no_state(load: Load) -> None:
    module = load(HOLDERS.format(body="return x * self.held[0]['a'] + self.held[1].total"))
    loop: list[object] = [{"a": 2}, module.Plain()]
    loop.append(loop)
    assert onnxplain.export(module.make(loop), (torch.ones(4, 3),)).diagnostics.findings == ()


INITIALIZERS = """
import onnxplain
import torch


class Scaled:
    def __init__(self, x):
        self.value = x * 2


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = 3

    def forward(self, x):
        return Scaled(x).value * self.factor


def main():
    return onnxplain.export(Net(), (torch.ones(3),))
"""


def test_an_initializer_that_forward_runs_is_not_taken_for_that_of_the_module(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    made, export = [], torch.export.export
    monkeypatch.setattr(torch.export, "export", lambda *args, **kwargs: made.append(1) or export(*args, **kwargs))
    assert load(INITIALIZERS).main().diagnostics.findings == ()
    assert len(made) == 1


HELD = {
    "dict": "{'a': 1}",
    "nested": "{'a': [1, {'b': (2, 3)}]}",
    "tuple": "(3, 3)",
    "named tuple": "collections.namedtuple('Pair', 'a b')(1, [2])",
    "deque": "collections.deque([1, 2])",
    "defaultdict": "collections.defaultdict(int, a=1)",
    "tensors": "[torch.ones(3)]",
    "modules": "[torch.nn.Linear(3, 3)]",
}


@pytest.mark.parametrize("name", ["sizes", "_sizes"])
@pytest.mark.parametrize("kind", HELD)
def test_a_container_that_stays_costs_no_second_capture(kind: str, name: str, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load(f"""
        import collections
        import onnxplain
        import torch


        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.{name} = {HELD[kind]}

            def forward(self, x):
                return x * len(self.{name})


        def main():
            return onnxplain.export(Net(), (torch.ones(3),))
    """)
    made, export = [], torch.export.export
    monkeypatch.setattr(torch.export, "export", lambda *args, **kwargs: made.append(1) or export(*args, **kwargs))
    assert module.main().diagnostics.findings == ()
    assert len(made) == 1
