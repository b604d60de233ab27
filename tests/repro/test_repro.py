"""The script of a failed export: it fails in the same way in an empty folder, and contains the right parts of the user's code."""

from __future__ import annotations

import ast
import importlib.util
import pathlib
import re
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
import warm
from scoreboard import case as cases
from torch import nn

import onnxplain
from onnxplain.diagnostics import Diagnostic, Log
from onnxplain.process import Budget
from onnxplain.repro import trial

pytestmark = pytest.mark.usefixtures("whole_scripts")
Load = Callable[..., types.ModuleType]

CORPUS = pathlib.Path(__file__).parents[3] / "shared" / "corpus"


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out the run of the script, which the test does itself."""
    monkeypatch.setattr(trial, "difference", lambda script, finding, budget: "")


def failed(model: Any, args: tuple[Any, ...], path: pathlib.Path, **options: Any) -> tuple[str, Log]:
    """The script of an export that fails, and its log."""
    with pytest.raises(onnxplain.ExportFailed) as failure:
        onnxplain.export(model, args, repro=path, **{"control_flow": "report", **options})
    return (path.read_text(encoding="utf-8") if path.exists() else ""), failure.value.log


def first(log: Log) -> Diagnostic:
    return next(finding for finding in log.findings if finding.fails)


def check(model: Any, args: tuple[Any, ...], tmp_path: pathlib.Path, **options: Any) -> str:
    """Exports, runs the script alone in an empty folder, and compares the rule and the text of the blamed line."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    script, log = failed(model, args, folder / "repro.py", **options)
    assert not any(finding.stage == "repro" for finding in log.findings)
    with warm.started(folder, ["repro.py"]) as process:
        process.join()
    output = (folder / "out.txt").read_text(encoding="utf-8")
    found = re.search(r"ExportFailed: error\[(\w+)\].*?--> repro\.py:(\d+)", output, re.DOTALL)
    assert found is not None, output
    assert found[1] == first(log).rule.id
    location = first(log).location
    assert location is not None
    assert script.splitlines()[int(found[2]) - 1].strip() == location.snippet
    return script


HELPERS = """
import math
import sys

import torch
from torch import nn
from torch.nn import functional as F

LIMIT = 1 / math.sqrt(2)
FACTOR = float(len(sys.argv)) * 0
PASSWORD = "hunter2"
model = "a name that functions use, too"


def is_large(x):
    return x.abs().max() > LIMIT


def soften(x):
    if is_large(x):  # blamed
        return x / 2
    return x


class Net(nn.Module):
    def __init__(self, path):
        super().__init__()
        self.data = open(path).read()
        self.path = path
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        model = self.fc(F.relu(x)) + FACTOR
        return soften(self.finish(model))

    def training_step(self, batch):
        return PASSWORD

    def finish(self, x):
        return x * 2


print("a statement that runs only here")
if __name__ == "__main__":
    train()
"""


@pytest.mark.usefixtures("untried")
def test_helpers_and_globals_come_along_and_nothing_else(load: Load, tmp_path: pathlib.Path) -> None:
    (tmp_path / "data.txt").write_text("the user's data", encoding="utf-8")
    module = load(HELPERS)
    script = check(module.Net(str(tmp_path / "data.txt")), (torch.randn(2, 4),), tmp_path)
    assert "LIMIT = 1 / math.sqrt(2)" in script
    for absent in ("hunter2", "the user's data", str(tmp_path), "training_step", "__main__", "only here", "import sys", "def __init__"):
        assert absent not in script


OPERATOR = """
import torch


@torch.library.custom_op("repro_lab::cube", mutates_args=())
def cube(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.numpy() ** 3)


@cube.register_fake
def _(x):
    return torch.empty_like(x)


library = torch.library.Library("repro_lab2", "DEF")
library.define("halve(Tensor x) -> Tensor")
library.impl("halve", lambda x: x / 2, "CompositeExplicitAutograd")


class Net(torch.nn.Module):
    def forward(self, x):
        return cube(torch.ops.repro_lab2.halve(x))  # blamed
"""


@pytest.mark.usefixtures("untried")
def test_custom_operators_are_registered(load: Load, tmp_path: pathlib.Path) -> None:
    check(load(OPERATOR).Net(), (torch.randn(2),), tmp_path)


REPEATED = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, index):
        super().__init__()
        self.index = index
        self.norm = nn.LayerNorm(8)
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8, bias=False))
        self.register_buffer("scale", torch.ones(8), persistent=False)
        self.gate = nn.Parameter(torch.zeros(3, 8).t(), requires_grad=False)

    def forward(self, x):
        return x + self.mlp(self.norm(x)) * self.scale + self.gate[:, 0] + self.index


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 8)
        self.blocks = nn.ModuleList(Block(index) for index in range(32))
        self.head = nn.Linear(8, 10, bias=False)
        self.head.weight = self.embedding.weight
        self.first = self.blocks[0]
        self.rnn = nn.LSTM(8, 8, batch_first=True)
        self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(8, 8))
        self.normed.register_forward_hook(lambda module, args, output: output * 2)

    def forward(self, ids):
        x = self.embedding(ids)
        for block in [*self.blocks, self.first]:
            x = block(x)
        x = self.normed(self.rnn(x)[0])
        assert self.head.weight is self.embedding.weight and self.first is self.blocks[0]
        if x.shape[1] > 3 and x.mean() > 0:  # blamed
            return self.head(x)
        return self.head(-x)
"""


@pytest.mark.usefixtures("untried")
def test_repeated_layers_are_written_once(load: Load, tmp_path: pathlib.Path) -> None:
    shapes = {"ids": {0: torch.export.Dim("batch", max=16), 1: "length"}}
    model = load(REPEATED).Net().eval()
    script = check(model, (torch.randint(0, 10, (2, 5)),), tmp_path, dynamic_shapes=shapes, strategies=["non-strict"])
    assert script.count("Block,") == 1
    assert len(script.splitlines()) < 130
    assert "torch.export.Dim('batch', max=16)" in script
    assert "1: 'length'" in script


@pytest.mark.usefixtures("untried")
def test_the_model_is_the_same_but_for_its_numbers(load: Load, tmp_path: pathlib.Path) -> None:
    model = load(REPEATED).Net().eval()
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            tensor += 1
    script, _ = failed(model, (torch.randint(0, 10, (2, 5)),), tmp_path / "repro.py", strategies=["non-strict"])
    made: dict[str, Any] = {}
    exec(compile(script.partition("onnxplain.export(")[0], str(tmp_path / "repro.py"), "exec"), made)
    again = made["model"]
    assert [name for name, _ in again.named_modules()] == [name for name, _ in model.named_modules()]
    for ours, theirs in ((again.named_parameters(), model.named_parameters()), (again.named_buffers(), model.named_buffers())):
        found, wanted = dict(ours), dict(theirs)
        assert list(found) == list(wanted)
        for name, tensor in wanted.items():
            assert (found[name].shape, found[name].stride(), found[name].dtype) == (tensor.shape, tensor.stride(), tensor.dtype)
            assert found[name].requires_grad == tensor.requires_grad
            assert tensor.numel() < 2 or not torch.equal(found[name], tensor)
    assert again.state_dict().keys() == model.state_dict().keys()
    assert not any(module.training for module in again.modules())


LAYERS = """
import torch

GAIN = 3


class Part(torch.nn.Module):
    def forward(self, x):
        if x.sum() > GAIN:  # blamed
            return x
        return -x


def finish(x):
    text = '''a string
of two lines'''
    return x if text.splitlines()[1] == "of two lines" else None
"""

NET = """
import repro_layers
import torch
from repro_layers import Part as Inner

GAIN = 2


class Part(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return repro_layers.finish(self.inner(x) * GAIN)
"""


@pytest.mark.usefixtures("untried")
def test_two_files_with_the_same_names(load: Load, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "repro_layers.py").write_text(LAYERS, encoding="utf-8")
    script = check(load(NET).Part(), (torch.randn(2),), tmp_path)
    monkeypatch.delitem(sys.modules, "repro_layers")
    assert "import repro_layers" not in script


CONFIG = """
import torch
import transformers


class Classifier(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.encoder = transformers.BertModel(config)

    def forward(self, input_ids, attention_mask=None):
        pooled = self.encoder(input_ids, attention_mask).pooler_output
        if pooled.mean() > 0:  # blamed
            return pooled
        return -pooled
"""


@pytest.mark.slow
@pytest.mark.usefixtures("untried")
def test_a_library_s_model_is_made_from_its_configuration(load: Load, tmp_path: pathlib.Path) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 30}
    config = transformers.BertConfig(**sizes, pad_token_id=0, _name_or_path="private/secret")
    model = load(CONFIG).Classifier(config).eval()
    mask = {"attention_mask": torch.ones(1, 4, dtype=torch.int64)}
    script = check(model, (torch.tensor([[5, 7, 29, 3]]),), tmp_path, kwargs=mask)
    assert "transformers.BertModel(" in script
    assert "secret" not in script
    assert "[5, 7, 29, 3]" not in script
    assert len(script) < 4000


INPUTS = """
import dataclasses
import enum

import torch


@dataclasses.dataclass
class Batch:
    image: torch.Tensor
    sizes: dict


torch.export.register_dataclass(Batch, serialized_type_name="repro.Batch")


class Net(torch.nn.Module):
    def forward(self, batch, mode, scale, *, mask):
        if batch.sizes["a 'key'"][0].sum() > 0 and mode == "fast":  # blamed
            return batch.image * scale
        return batch.image.masked_fill(mask, 0.0)
"""


@pytest.mark.usefixtures("untried")
def test_inputs_of_many_kinds(load: Load, tmp_path: pathlib.Path) -> None:
    module = load(INPUTS)
    image = torch.randn(3, 2, dtype=torch.float64).t()
    batch = module.Batch(image, {"a 'key'": [torch.tensor([4, 17, 5])]})
    script = check(module.Net(), (batch, "fast", float("inf")), tmp_path, kwargs={"mask": torch.tensor([True, False, True])})
    assert "random(2, 3, dtype=torch.float64, stride=(1, 2))" in script
    assert "torch.randint(4, 18, (3,))" in script
    assert "torch.tensor([True, False, True])" in script
    assert "'fast',\n" in script
    assert 'float("inf")' in script


HOSTILE = """
import torch

EVIL = "\\n\\nraise SystemExit(3)\\n#"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = {EVIL: 1, "'''": 2, "\\udc80": 3, '"': float("nan")}
        self.add_module("{evil}'\\n)", torch.nn.Linear(2, 2))
        self.register_buffer("''' + exit() + '''", torch.zeros(2))

    def forward(self, x):
        for module in self.children():
            x = module(x)
        x = x + self.get_buffer("''' + exit() + '''")
        if x.sum() > self.table[EVIL]:  # blamed \\u202e
            return x
        return -x
"""


@pytest.mark.usefixtures("untried")
def test_names_and_strings_of_a_model_are_data(load: Load, tmp_path: pathlib.Path) -> None:
    module = load(HOSTILE)
    module.Net.__name__ = "Net\nraise SystemExit(4)\n"
    script = check(module.Net(), (torch.randn(2),), tmp_path)
    assert not any(isinstance(node, ast.Raise) for node in ast.walk(ast.parse(script)))


@pytest.mark.usefixtures("untried")
def test_a_function_and_a_class_inside_a_function(tmp_path: pathlib.Path) -> None:
    limit = 2

    @torch.no_grad()
    def helper(x: torch.Tensor) -> torch.Tensor:
        text = """a string
        of two lines"""
        return x.sum() > limit + len(text)

    class Local(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if helper(x):  # blamed
                return x
            return -x

    script = check(Local(), (torch.randn(2),), tmp_path)
    assert "limit = 2" in script
    assert "\n@torch.no_grad()\ndef helper(" in script
    assert '"""a string\n        of two lines"""' in script

    def function(x: torch.Tensor) -> torch.Tensor:
        return x if helper(x) else -x

    script, log = failed(function, (torch.randn(2),), tmp_path / "repro.py")
    assert first(log).location is not None
    assert "model = function" in script


@pytest.mark.usefixtures("untried")
def test_options_that_matter_come_along(load: Load, tmp_path: pathlib.Path) -> None:
    options = onnxplain.DiagnosticOptions(warnings_as_errors=True, levels={"OXP1007": onnxplain.Level.NOTE})
    script, _ = failed(
        load(HELPERS.replace("open(path).read()", "path")).Net(""),
        (torch.randn(2, 4),),
        tmp_path / "repro.py",
        f=tmp_path / "model.onnx",
        opset_version=18,
        input_names=["x'y"],
        strategies=["strict"],
        verify=True,
        diagnostic_options=options,
    )
    call = ast.parse(script).body[-1]
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    assert {each.arg for each in call.value.keywords} == {
        "control_flow",
        "opset_version",
        "input_names",
        "strategies",
        "diagnostic_options",
    }


def test_an_export_that_succeeds_writes_none(tmp_path: pathlib.Path) -> None:
    onnxplain.export(nn.ReLU(), (torch.randn(2),), repro=tmp_path / "repro.py")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("where", ["beside", "folder"])
@pytest.mark.usefixtures("untried")
def test_where_the_script_goes(where: str, load: Load, tmp_path: pathlib.Path) -> None:
    module = load(OPERATOR.replace("repro_lab", f"repro_{where}"))
    options = {"f": tmp_path / "a.b.onnx"} if where == "beside" else {"artifacts_dir": tmp_path / "new"}
    with pytest.raises(onnxplain.ExportFailed):
        onnxplain.export(module.Net(), (torch.randn(2),), repro=True, **options)
    assert (tmp_path / ("a.b.repro.py" if where == "beside" else "new/Net.repro.py")).exists()


def test_paths_that_cannot_be_written(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    for bad in (tmp_path, tmp_path / "file" / "repro.py", 3):
        with pytest.raises(onnxplain.InvalidArgument, match=r"^repro: expected"):
            onnxplain.export(nn.ReLU(), (torch.randn(2),), repro=bad)  # type: ignore[arg-type]
    with pytest.raises(onnxplain.InvalidArgument, match=r"^repro: expected another path than that of f"):
        onnxplain.export(nn.ReLU(), (torch.randn(2),), tmp_path / "a", repro=tmp_path / "a")
    with pytest.raises(onnxplain.InvalidArgument, match=r"^repro: expected another path than a source"):
        onnxplain.export(nn.ReLU(), (torch.randn(2),), repro=__file__)


def test_the_script_is_tried_out(load: Load, tmp_path: pathlib.Path) -> None:
    module = load("import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x if x.sum() > 0 else -x\n")
    script, log = failed(module.Net(), (torch.randn(2),), tmp_path / "repro.py")
    (event,) = [event.text for event in log.events if event.stage == "repro"]
    assert "OXP1001" in event
    assert "NOTE" not in script
    assert [(artifact.path, artifact.role) for artifact in log.artifacts] == [(tmp_path / "repro.py", "debugOutputFile")]
    assert trial.difference(script.replace("x.sum() > 0", "True"), first(log), Budget()).endswith("no exception")
    assert "NameError" in trial.difference(f"undefined\n{script}", first(log), Budget())
    assert "another line" in trial.difference(script.replace("x.sum() > 0", "x.sum() > 1"), first(log), Budget())


def test_a_script_that_does_not_fail_alike_says_so(load: Load, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "difference", lambda script, finding, budget: "This script does something else.")
    script, log = failed(load(HELPERS.replace("open(path).read()", "path")).Net(""), (torch.randn(2, 4),), tmp_path / "repro.py")
    assert "# NOTE: This script does something else.\n" in script
    assert [event.text for event in log.events if event.stage == "repro"] == ["This script does something else."]


def test_no_script_where_there_is_no_source(tmp_path: pathlib.Path) -> None:
    made: dict[str, Any] = {}
    exec("import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x if x.sum() > 0 else -x\n", made)
    script, log = failed(made["Net"](), (torch.randn(2),), tmp_path / "repro.py")
    assert script == ""
    assert next(event.text for event in log.events if event.stage == "repro").startswith("No script was written")
    assert not any(finding.stage == "repro" for finding in log.findings)


def test_a_fault_of_ours_hides_no_finding(load: Load, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(script: str, finding: Diagnostic) -> str:
        raise LookupError("ours")

    monkeypatch.setattr(trial, "difference", broken)
    script, log = failed(load(HELPERS.replace("open(path).read()", "path")).Net(""), (torch.randn(2, 4),), tmp_path / "repro.py")
    assert [finding.rule.id for finding in log.findings] == ["OXP1001", "OXP0001"]
    assert script == ""


@pytest.mark.slow
def test_most_failures_of_the_corpus_are_reproduced(tmp_path: pathlib.Path) -> None:
    # NOTE: every sixth one, since each trial is a separate process that takes seconds.
    paths = [path for path in sorted(CORPUS.glob("case_*.py")) if cases.read(path).expect == "error"][::6]
    if not paths:
        pytest.skip(f"no corpus at {CORPUS}: nothing was tried")
    told: dict[str, str] = {}
    for path in paths:
        spec = importlib.util.spec_from_file_location(f"{path.stem}_for_repro", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        try:
            spec.loader.exec_module(module)
            model, args, kwargs, options = cases.build(module)
            onnxplain.export(model, args, kwargs=kwargs, repro=tmp_path / f"{path.stem}.py", **{"control_flow": "report", **options})
        except onnxplain.ExportFailed as failure:
            events = [event.text for event in failure.log.events if event.stage == "repro"]
            told[path.stem] = "" if events and "tried out" in events[0] else f"{events}"
        except onnxplain.InvalidArgument:
            continue
        finally:
            del sys.modules[spec.name]
    missed = {name: text for name, text in told.items() if text}
    assert len(told) > 2
    assert len(missed) <= 0.15 * len(told), missed


def test_the_script_does_not_find_the_users_modules(load: Load, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load("import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x if x.sum() > 0 else -x\n")
    library = tmp_path / "site-packages"
    library.mkdir()
    (tmp_path / "users_own.py").touch()
    (library / "a_library.py").touch()
    script, log = failed(module.Net(), (torch.randn(2),), tmp_path / "repro.py")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{library}")
    assert "users_own" in trial.difference(f"import users_own\n{script}", first(log), Budget())
    assert trial.difference(f"import a_library\n{script}", first(log), Budget()) == ""


def test_a_script_that_takes_too_long_is_stopped(load: Load, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load("import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x if x.sum() > 0 else -x\n")
    monkeypatch.setattr(trial, "_LEAST_SECONDS", 0.5)
    script, log = failed(module.Net(), (torch.randn(2),), tmp_path / "repro.py", try_fixes=False)
    assert "stopped" in trial.difference(f"import time\ntime.sleep(60)\n{script}", first(log), Budget(seconds=0.5))
