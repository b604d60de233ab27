"""Fixes are tried before they are offered: on copies that no other code can call, within a budget, and not at all if that is forbidden."""

from __future__ import annotations

import copy
import pathlib
import textwrap
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

import onnxplain
from onnxplain.diagnostics import Confidence, Fix, Log
from onnxplain.process import Budget

Load = Callable[..., ModuleType]

BRANCH = "    if x.sum() > 0:\n        return x + 1\n    return x - 1\n"
HEAD = "import contextlib\nimport enum\nimport functools\nimport threading\n\nimport torch\n\n\n"


def failed(model: Any, args: tuple[Any, ...], **options: Any) -> Log:
    with pytest.raises(onnxplain.ExportFailed) as failure:
        onnxplain.export(model, args, **{"control_flow": "report", **options})
    return failure.value.log


def first_fix(log: Log) -> Fix:
    return log.findings[0].fixes[0]


def noting(path: pathlib.Path, rest: str) -> str:
    """A model that writes a line to a file whenever it runs: `capture` in a capture, or else `eager`."""
    return f"""\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        with open({str(path)!r}, "a") as file:
            file.write("capture\\n" if torch.compiler.is_exporting() else "eager\\n")
{textwrap.indent(rest, "        ")}
"""


FOUR = """\
if x.sum() > 0:
    x = x + 1
if x.min() > 0:
    x = x * 2
if x.max() > 3:
    x = x - 1
if x.mean() > 1:
    x = -x
return x
"""


def test_the_model_runs_once_for_all_fixes_and_once_for_each(load: Load, tmp_path: pathlib.Path) -> None:
    runs = tmp_path / "runs"
    log = failed(load(noting(runs, FOUR)).Net(), (torch.ones(3),))
    assert [finding.rule.id for finding in log.findings if finding.blocking] == ["OXP1001"] * 4
    assert all(finding.fixes[0].confidence is Confidence.SAFE for finding in log.findings if finding.blocking)
    said = runs.read_text().split()
    assert said.count("eager") == 1 + 4
    # The strategies non-strict and draft, and a capture for each fix; the strict one does not run Python.
    assert said.count("capture") == 2 + 4


def test_nothing_runs_if_that_is_forbidden(load: Load, tmp_path: pathlib.Path) -> None:
    runs = tmp_path / "runs"
    log = failed(load(noting(runs, FOUR)).Net(), (torch.ones(3),), try_fixes=False)
    assert [finding.rule.id for finding in log.findings if finding.blocking] == ["OXP1001"] * 4
    fixes = [finding.fixes[0] for finding in log.findings if finding.blocking]
    assert all(fix.confidence is Confidence.GUESS and fix.edits for fix in fixes)
    assert runs.read_text().split() == ["capture"] * 2


def test_the_older_interface_forbids_it_as_well(load: Load, tmp_path: pathlib.Path) -> None:
    runs = tmp_path / "runs"
    options = onnxplain.ExportOptions(try_fixes=False)
    with pytest.raises(onnxplain.ExportFailed):
        onnxplain.dynamo_export(load(noting(runs, FOUR)).Net(), torch.ones(3), export_options=options)
    assert "eager" not in runs.read_text().split()
    with pytest.raises(onnxplain.InvalidArgument):
        onnxplain.ExportOptions(try_fixes=1)  # type: ignore[arg-type]


def test_what_is_not_tried_for_lack_of_runs_says_so(load: Load) -> None:
    many = "".join(f"        if x.sum() > {number}:\n            x = x + {number}\n" for number in range(10))
    log = failed(load(f"{HEAD}class Net(torch.nn.Module):\n    def forward(self, x):\n{many}        return x\n").Net(), (torch.ones(3),))
    fixes = [finding.fixes[0] for finding in log.findings]
    tried = [fix for fix in fixes if fix.confidence is Confidence.SAFE]
    assert len(fixes) == 10
    assert 3 <= len(tried) < 10
    # A fix that did not work would have lost its edits.
    untried = [fix for fix in fixes if fix.confidence is Confidence.GUESS and fix.edits]
    assert len(tried) + len(untried) == 10
    assert all(fix.description.startswith(tried[0].description) and fix.description != tried[0].description for fix in untried)


def test_a_loop_that_ends_in_python_is_offered_as_a_loop(load: Load) -> None:
    module = load(
        """
        import torch


        class Net(torch.nn.Module):
            def forward(self, x):
                s = x.sum()
                while s > 1:
                    x = x / 2
                    s = x.sum()
                return x
        """
    )
    began = time.monotonic()
    fix = first_fix(failed(module.Net(), (torch.ones(3),)))
    assert time.monotonic() - began < 20
    assert fix.confidence is Confidence.SAFE
    assert fix.edits


def test_a_run_that_never_ends_is_stopped(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxplain.api.Budget", lambda runs=12: Budget(runs, seconds=5.0))
    module = load(
        """
        import torch


        class Net(torch.nn.Module):
            def forward(self, x):
                while not torch.compiler.is_exporting():
                    try:
                        x = x + 1
                    except Exception:
                        pass
                if x.sum() > 0:
                    return x + 1
                return x
        """
    )
    began = time.thread_time()
    log = failed(module.Net(), (torch.ones(3),))
    assert time.thread_time() - began < 10
    (finding,) = (finding for finding in log.findings if finding.blocking)
    assert (finding.rule.id, finding.location and finding.location.line) == ("OXP1001", 12)
    assert first_fix(log).confidence is Confidence.GUESS
    assert any("stopped" in event.text for event in log.events)


def test_an_edited_loop_that_never_ends_is_stopped(load: Load) -> None:
    # The edit carries the variables that the source shows, and not those that `shrink` changes.
    module = load(
        """
        import torch


        class Net(torch.nn.Module):
            def forward(self, x):
                self.left = 3
                while self.more(x):
                    x = x / 2
                return x

            def more(self, x):
                self.left = self.left - 1
                return x.sum() > 0 if self.left else x.sum() < 0
        """
    )
    began = time.monotonic()
    log = failed(module.Net(), (torch.ones(3),))
    assert time.monotonic() - began < 20
    assert log.findings[0].rule.id.startswith("OXP1")
    assert not any(fix.confidence is Confidence.SAFE and fix.edits for fix in log.findings[0].fixes)


MADE = "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
NET = "class Net(torch.nn.Module):\n    def forward(self, x):\n"

WAYS = {
    "method": f"{NET}        return self.choose(x)\n\n    def choose(self, x):\n{{method}}",
    "function": f"def choose(x):\n{{function}}\n\n{NET}        return choose(x)\n",
    "static": f"class Tools:\n    @staticmethod\n    def choose(x):\n{{method}}\n\n{NET}        return Tools.choose(x)\n",
    "class method": f"class Tools:\n    @classmethod\n    def choose(cls, x):\n{{method}}\n\n{NET}        return Tools.choose(x)\n",
    "made while it runs": f"class Tools:\n    def choose(self, x):\n{{method}}\n\n{NET}        return Tools().choose(x)\n",
    "object": (
        f"class Tools:\n    def choose(self, x):\n{{method}}\n\n{MADE}        self.tools = {{{{'one': [Tools()]}}}}\n\n"
        "    def forward(self, x):\n        return self.tools['one'][0].choose(x)\n"
    ),
    "inherited": (
        "class Base(torch.nn.Module):\n    def forward(self, x):\n{method}\n\nclass Middle(Base):\n    def forward(self, x):\n"
        "        return super().forward(x * 2)\n\nclass Net(Middle):\n    def forward(self, x):\n        return super().forward(x) + 1\n"
    ),
    "inherited by name": (
        "class Base(torch.nn.Module):\n    def forward(self, x):\n{method}\n\n"
        "class Net(Base):\n    def forward(self, x):\n        return super(Net, self).forward(x) + 1\n"
    ),
    "submodule": (
        f"class Part(torch.nn.Module):\n    def forward(self, x):\n{{method}}\n\n{MADE}"
        "        self.parts = torch.nn.Sequential(torch.nn.Linear(3, 3), Part())\n\n"
        "    def forward(self, x):\n        return self.parts(x)\n"
    ),
    "closure": (
        "def make(step):\n    def choose(x):\n        x = x + step\n{method}\n    return choose\n\nCHOOSE = make(2)\n\n"
        f"{NET}        return CHOOSE(x)\n"
    ),
    "decorated": (
        "def plain(function):\n    @functools.wraps(function)\n    def call(*args):\n        return function(*args)\n    return call\n\n"
        f"@plain\n@torch.no_grad()\ndef choose(x):\n{{function}}\n\n{NET}        return choose(x)\n"
    ),
    "partial": (
        f"def choose(step, x):\n    x = x + step\n{{function}}\n\n{MADE}        self.choose = functools.partial(choose, 2)\n\n"
        "    def forward(self, x):\n        return self.choose(x)\n"
    ),
    "registry": f"def choose(x):\n{{function}}\n\nTABLE = {{{{'choose': choose}}}}\n\n{NET}        return TABLE['choose'](x)\n",
    "property": (
        f"{NET}        self.x = x\n        return self.chosen\n\n    @property\n    def chosen(self):\n        x = self.x\n{{method}}"
    ),
    "beside odd objects": (
        f"class Slots:\n    __slots__ = 'x'\n\n    def choose(self, x):\n{{method}}\n\nclass Frozen(tuple):\n    pass\n\n{MADE}"
        "        self.odd = [iter([1]), threading.Lock(), Slots, Frozen((1,)), {{1}}, (1, [2]), frozenset([3]), list(range(10_001))]\n\n"
        "    def forward(self, x):\n        slots = self.odd[2]()\n        slots.x = 1\n        return slots.choose(x)\n"
    ),
    "member of an enumeration": (
        f"class Mode(enum.Enum):\n    FAST = 1\n\n{MADE}        self.mode = Mode.FAST\n\n"
        "    def forward(self, x):\n        if self.mode is not Mode.FAST:\n            raise ValueError\n{method}\n"
    ),
    "object with slots": (
        f"class Slots:\n    __slots__ = ('step', 'other')\n\n    def choose(self, x):\n        x = x + self.step\n{{method}}\n\n{MADE}"
        "        self.slots = Slots()\n        self.slots.step = 2\n\n    def forward(self, x):\n        return self.slots.choose(x)\n"
    ),
    "object with attributes": (
        f"class Tools:\n    def __init__(self):\n        self.step = 2\n\n    def choose(self, x):\n        x = x + self.step\n"
        f"{{method}}\n\n{MADE}        self.tools = (1, [Tools()])\n\n    def forward(self, x):\n        return self.tools[1][0].choose(x)\n"
    ),
    "object that holds a function": (
        f"class Box:\n    pass\n\ndef choose(x):\n{{function}}\n\n{MADE}        self.box = Box()\n        self.box.call = choose\n\n"
        "    def forward(self, x):\n        return self.box.call(x)\n"
    ),
    "function with attributes": (
        f"def choose(x):\n    x = x + choose.step\n{{function}}\n\nchoose.step = 2\n\n{NET}        return choose(x)\n"
    ),
    "function of an attribute": (
        f"def choose(x):\n{{function}}\n\ndef run(x):\n    return run.choose(x)\n\nrun.choose = choose\n\n{NET}        return run(x)\n"
    ),
    "function that holds itself": f"def choose(x):\n{{function}}\n\nchoose.own = choose\n\n{NET}        return choose.own.own(x)\n",
    "functions that call each other": (
        f"def choose(x, more=True):\n    x = other(x) if more else x\n{{function}}\n\ndef other(x):\n    return choose(x + 1, False)\n\n"
        f"{NET}        return choose(x)\n"
    ),
    "default of a parameter": (
        f"def choose(x, step=2, *, more=1):\n    x = x + step + more\n{{function}}\n\n{NET}        return choose(x)\n"
    ),
    "partial with keywords": (
        f"def choose(x, step, call=abs):\n    x = x + step\n{{function}}\n\ndef run(x, call):\n    return call(x, 2)\n\n{MADE}"
        "        self.run = functools.partial(run, call=choose)\n\n    def forward(self, x):\n        return self.run(x)\n"
    ),
    "ordered dict": (
        f"import collections\n\nclass Tools:\n    def choose(self, x):\n{{method}}\n\n{MADE}"
        "        self.tools = collections.OrderedDict(one=Tools())\n\n    def forward(self, x):\n"
        "        return next(iter(self.tools.values())).choose(x)\n"
    ),
    "setter": (
        f"{NET}        self.chosen = x\n        return self.y\n\n    @property\n    def chosen(self):\n        return self.y\n\n"
        "    @chosen.setter\n    def chosen(self, x):\n        self.y = self.choose(x)\n\n    def choose(self, x):\n{method}"
    ),
    "slot of one name": (
        f"class Slots:\n    __slots__ = 'tools'\n\nclass Tools:\n    def choose(self, x):\n{{method}}\n\n{MADE}"
        "        self.slots = Slots()\n        self.slots.tools = Tools()\n\n"
        "    def forward(self, x):\n        return self.slots.tools.choose(x)\n"
    ),
    "an object twice": (
        f"class Tools:\n    calls = 0\n\n    def choose(self, x):\n        self.calls += 1\n        x = x + self.calls\n{{method}}\n\n"
        f"{MADE}        self.one = self.other = Tools()\n\n    def forward(self, x):\n"
        "        if self.one is not self.other:\n            raise ValueError\n        return self.other.choose(x)\n"
    ),
    "set on the instance": f"def choose(self, x):\n{{function}}\n\n{MADE}        self.forward = choose.__get__(self)\n",
    "model is a function": "def choose(x):\n{function}\n\ndef Net():\n    return choose\n",
    "model is a method": "class Part(torch.nn.Module):\n    def run(self, x):\n{method}\n\ndef Net():\n    return Part().run\n",
}


@pytest.mark.parametrize("way", WAYS)
def test_edits_are_proven_wherever_the_function_is(way: str, load: Load) -> None:
    source = HEAD + WAYS[way].format(function=BRANCH, method=textwrap.indent(BRANCH, "    "))
    log = failed(load(source).Net(), (torch.ones(3),))
    assert [finding.rule.id for finding in log.findings if finding.blocking] == ["OXP1001"]
    assert first_fix(log).confidence is Confidence.SAFE, first_fix(log)
    assert first_fix(log).edits


def test_edits_are_proven_in_another_file(load: Load, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "toolbox"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "choices.py").write_text(f"import torch\n\n\ndef choose(x):\n{BRANCH}")
    monkeypatch.syspath_prepend(tmp_path)
    for imported, call in (("import toolbox.choices", "toolbox.choices.choose"), ("from toolbox import choices", "choices.choose")):
        source = f"{HEAD}{imported}\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return {call}(x)\n"
        log = failed(load(source).Net(), (torch.ones(3),))
        assert first_fix(log).confidence is Confidence.SAFE
        assert {edit.file for edit in first_fix(log).edits} == {str(package / "choices.py")}


STATEFUL = """
import torch


class Tools:
    def __init__(self):
        self.calls = 0


SEEN = []


class Net(torch.nn.Module):
    announced = []

    def __init_subclass__(cls):
        Net.announced.append(cls)

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.calls = 0
        self.history = []
        self.tools = Tools()
        self.register_buffer("total", torch.zeros(3))
        self.plain = torch.zeros(3)

    def forward(self, x):
        if not torch.compiler.is_exporting():
            self.calls += 1
            self.history.append(self.calls)
            self.tools.calls += 1
            self.total += 1
            self.plain += 1
            self.new = 1
            SEEN.append(1)
        x = self.norm(x)
        if x.sum() > 0:
            return x + 1
        return x
"""


def test_a_failed_export_leaves_the_model_alone(load: Load) -> None:
    module = load(STATEFUL)
    model, x = module.Net().train(), torch.ones(4, 3)
    before = copy.deepcopy(vars(model))
    log = failed(model, (x,))
    assert first_fix(log).edits
    assert vars(model).keys() == before.keys()
    assert (model.calls, model.history, model.tools.calls, module.SEEN) == (0, [], 0, [])
    assert torch.equal(model.total, torch.zeros(3))
    assert torch.equal(model.plain, torch.zeros(3))
    assert int(model.norm.num_batches_tracked) == 0
    assert torch.equal(x, torch.ones(4, 3))
    assert module.Net.announced == []
    assert type(model) is module.Net


def test_weights_that_forward_writes_stay(load: Load) -> None:
    module = load(
        """
        import torch


        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.seen = torch.nn.Parameter(torch.zeros(1))

            def forward(self, x):
                with torch.no_grad():
                    self.seen.add_(1)
                if x.sum() > 0:
                    x = x + 1
                return x * self.seen
        """
    )
    model = module.Net()
    weight = model.seen
    assert first_fix(failed(model, (torch.ones(3),))).confidence is Confidence.SAFE
    assert model.seen is weight
    assert weight.item() == 0


def test_a_metaclass_learns_of_no_edited_class(load: Load) -> None:
    module = load(
        """
        import torch

        MADE = []


        class Meta(type):
            def __new__(cls, name, bases, namespace):
                MADE.append(super().__new__(cls, name, bases, namespace))
                return MADE[-1]


        class Net(torch.nn.Module, metaclass=Meta):
            def forward(self, x):
                if x.sum() > 0:
                    return x + 1
                return x
        """
    )
    fix = first_fix(failed(module.Net(), (torch.ones(3),)))
    assert fix.confidence is Confidence.SAFE
    assert [module.Net] == module.MADE


@pytest.mark.parametrize("options", [{}, {"try_fixes": False}])
def test_a_survey_that_never_ends_is_stopped(load: Load, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    monkeypatch.setattr("onnxplain.api.Budget", lambda runs=12: Budget(runs, seconds=4.0))
    module = load(
        """
        import torch


        class Net(torch.nn.Module):
            def forward(self, x):
                total = x.sum()
                while total > -1:
                    x = x / 2
                    total = x.sum()
                return x
        """
    )
    began = time.monotonic()
    log = failed(module.Net(), (torch.ones(3),), **options)
    assert time.monotonic() - began < 30
    (finding,) = log.findings
    assert (finding.rule.id, finding.location and finding.location.line) == ("OXP1001", 8)
    assert any("draft was stopped" in event.text for event in log.events)


@pytest.mark.parametrize(
    "endless",
    [
        "while True: pass",
        "while True:\n                        pass",
        "[each for each in itertools.repeat(1) if each > 2]",
        "next(each for each in itertools.repeat(1) if each > 2)",
        "while True: time.sleep(0.1)",
    ],
)
def test_a_loop_that_computes_nothing_is_stopped(load: Load, monkeypatch: pytest.MonkeyPatch, endless: str) -> None:
    monkeypatch.setattr("onnxplain.api.Budget", lambda runs=12: Budget(runs, seconds=2.0))
    monkeypatch.setattr("onnxplain.process.budget._PAUSE", 1.0)
    module = load(
        f"""
        import itertools
        import time

        import torch


        class Net(torch.nn.Module):
            def forward(self, x):
                if x.sum() > 0:
                    x = x + 1
                if x.max() > 0:
                    {endless}
                return x
        """
    )
    log = failed(module.Net(), (torch.ones(3),))
    assert (log.findings[0].rule.id, log.findings[0].location and log.findings[0].location.line) == ("OXP1001", 10)
    assert any("stopped" in event.text for event in log.events)


def test_another_thread_never_runs_edited_code(load: Load) -> None:
    source = f"""
import torch


def choose(x):
{BRANCH}

class Net(torch.nn.Module):
    def forward(self, x):
        return choose(x)
"""
    module = load(source)
    code = module.choose.__code__
    seen, results, done = set(), [], threading.Event()

    def other() -> None:
        while not done.is_set():
            seen.add(module.choose.__code__)
            seen.add(module.Net.forward.__globals__["choose"].__code__)
            results.append(module.choose(torch.ones(3)))

    thread = threading.Thread(target=other)
    thread.start()
    try:
        fix = first_fix(failed(module.Net(), (torch.ones(3),)))
    finally:
        done.set()
        thread.join()
    assert fix.confidence is Confidence.SAFE
    assert seen == {code}
    assert all(torch.equal(each, torch.full((3,), 2.0)) for each in results)


@pytest.mark.parametrize(
    ("statements", "offered"),
    [
        ("return x.reshape(3, 1, 3, 1)[:, 0] * 2", [("-1", 26, Confidence.GUESS)]),
        # The first number is not the size of the dim that varies.
        ("return x.reshape(3, 3).sum(1) + torch.ones(3)", [("-1", 29, Confidence.SAFE)]),
        ("return x.reshape(3, 2).t()", [("-1", 26, Confidence.SAFE)]),
        ("return x.reshape(-1, 2) + torch.zeros(3, 2)", [("x.shape[0]", 47, Confidence.CHANGES_BEHAVIOUR)]),
    ],
)
def test_of_edits_that_say_the_same_the_first_that_works_is_offered(
    load: Load, statements: str, offered: list[tuple[str, int, Confidence]]
) -> None:
    source = f"import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n{textwrap.indent(statements, ' ' * 8)}\n"
    # NOTE: no literal, which a fix would change.
    shapes = dict.fromkeys("x", dict.fromkeys([0], torch.export.Dim("n")))
    log = failed(load(source).Net(), (torch.rand(3, 2 if ", 2)" in statements else 3),), dynamic_shapes=shapes)
    assert {finding.rule.id for finding in log.findings} == {"OXP1003"}
    edited = [(edit.replacement, edit.region.column, fix.confidence) for fix in log.findings[0].fixes for edit in fix.edits]
    assert edited == offered


@pytest.mark.parametrize("seconds", [0.01, 0.1, 0.2, 0.4, 0.8, 20.0])
def test_a_short_budget_takes_no_edit_away(load: Load, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Wherever the time ends, in an eager run or in a capture, the edit is offered: as proven, or as a guess."""
    model = load(HEAD + "class Net(torch.nn.Module):\n    def forward(self, x):\n" + textwrap.indent(BRANCH, "    ")).Net()
    monkeypatch.setattr("onnxplain.api.Budget", lambda: Budget(seconds=seconds))
    fix = first_fix(failed(model, (torch.ones(3),)))
    assert fix.edits
    assert fix.confidence in ((Confidence.SAFE,) if seconds == 20.0 else (Confidence.SAFE, Confidence.GUESS))
