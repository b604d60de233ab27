"""`onnxplain export`: options, targets, files and exit codes."""

from __future__ import annotations

import json
import pathlib
import re
import shlex
import signal
import sys
from typing import Any

import click
import pytest
from cli_models import MODELS
from click.testing import CliRunner, Result

import onnxplain
from onnxplain.cli import main
from onnxplain.diagnostics import DiagnosticOptions, InvalidArgument, Level, Location, Region
from onnxplain.repro.minimise import Minimised
from onnxplain.signals import Terminated


def run(*args: str) -> Result:
    """The result of `onnxplain ARGS`."""
    return CliRunner().invoke(main, args)


def test_help_tells_the_exit_codes() -> None:
    text = run("export", "--help").stdout
    assert [int(code) for code in re.findall(r"^ +(\d+)  +\w", text, re.MULTILINE)] == [0, 1, 2, 130]


def test_the_options_name_the_strategies_that_there_are() -> None:
    from onnxplain.request import STRATEGIES

    command = main.get_command(click.Context(main), "export")
    assert command is not None
    option = next(param for param in command.params if param.name == "strategies")
    assert isinstance(option.type, click.Choice)
    assert tuple(option.type.choices) == STRATEGIES


def test_what_export_is_called_with(folder: pathlib.Path, calls: list[Any]) -> None:
    assert run("export", "models.py:double").exit_code == 0
    (model, (example,)), kwargs = calls[0]
    assert type(model).__name__ == "Double"
    assert example.shape == (3,)
    assert kwargs["f"] == pathlib.Path("Double.onnx")
    assert kwargs["sarif"] == pathlib.Path(".sarif", "Double.sarif")
    assert {name for name, value in kwargs.items() if value is False} == {"report", "repro", "verify", "profile"}
    assert (kwargs["name"], kwargs["control_flow"], kwargs["sarif_profile"]) == (None, "rewrite", "full")
    assert kwargs["external_data"] is None
    assert kwargs["opset_version"] is None
    assert kwargs["optimize"] is True
    assert kwargs["try_fixes"] is True
    assert kwargs["verify_sizes"] == 2
    assert kwargs["strategies"] == ("non-strict", "strict", "draft")
    assert kwargs["diagnostic_options"] == DiagnosticOptions()
    assert kwargs["_command_line"] == "onnxplain export models.py:double"
    line = MODELS.splitlines().index("def double():") + 1
    assert kwargs["_caller"] == Location(str(folder / "models.py"), Region(line))


def test_options_reach_export(calls: list[Any]) -> None:
    given = (
        "models.py:with_all -o out/a.onnx --sarif s.sarif --report=r.md --opset 18 --verify --warnings-as-errors --select OXP1,oxp2 "
        "--select OXP3 --ignore oxp1003 --level OXP1007=note --level oxp4=ERROR --verbosity debug --external-data --no-optimize "
        "--strategy strict --strategy draft --profile --no-try-fixes --name net --control-flow report --sarif-profile github --repro=r.py "
        "--verify-sizes batch=7 --verify-sizes 'batch=9, length = 3'"
    )
    assert run("export", *shlex.split(given)).exit_code == 0
    (_, args), kwargs = calls[0]
    assert args == ()
    assert kwargs["kwargs"]["x"].shape == (3, 4)
    assert kwargs["dynamic_shapes"] == {"x": {0: "batch"}}
    assert [str(kwargs[name]) for name in ("f", "sarif", "report", "repro")] == [str(pathlib.Path("out/a.onnx")), "s.sarif", "r.md", "r.py"]
    assert (kwargs["name"], kwargs["control_flow"], kwargs["sarif_profile"]) == ("net", "report", "github")
    assert (kwargs["opset_version"], kwargs["verify"], kwargs["external_data"], kwargs["optimize"]) == (18, True, True, False)
    assert (kwargs["strategies"], kwargs["profile"], kwargs["try_fixes"]) == (("strict", "draft"), True, False)
    assert kwargs["verify_sizes"] == ({"batch": 7}, {"batch": 9, "length": 3})
    assert kwargs["diagnostic_options"] == DiagnosticOptions(
        verbosity_level=10,
        warnings_as_errors=True,
        levels={"OXP1007": Level.NOTE, "OXP4": Level.ERROR},
        select=("OXP1", "OXP2", "OXP3"),
        ignore=("OXP1003",),
    )


@pytest.mark.parametrize("given", ["batch", "batch=x", "7,batch=3", "batch=3,batch=4", "-1", "batch=3,"])
def test_sizes_that_cannot_be_read(given: str, calls: list[Any]) -> None:
    result = run("export", "models.py:double", f"--verify-sizes={given}")
    assert (result.exit_code, calls) == (2, [])
    assert "--verify-sizes" in result.output


@pytest.mark.parametrize(
    ("args", "path"),
    [
        (["models.py:double", "--report"], "Double.md"),
        (["--report", "models.py:double"], "Double.md"),
        (["--report", "models.py:double", "-o", "a/b.onnx"], "a/b.md"),
        (["--report", "c.md", "models.py:double"], "c.md"),
        (["--profile", "models.py:double"], "Double.md"),
    ],
)
def test_the_report_needs_no_path(args: list[str], path: str, calls: list[Any]) -> None:
    assert run("export", *args).exit_code == 0
    assert calls[0][1]["report"] == pathlib.Path(path)


@pytest.mark.parametrize(
    ("args", "path"),
    [
        (["models.py:double", "--repro"], "Double.repro.py"),
        (["--repro", "models.py:double"], "Double.repro.py"),
        (["--report", "--repro", "models.py:double", "-o", "a/b.onnx"], "a/b.repro.py"),
        (["--repro=c.py", "models.py:double"], "c.py"),
    ],
)
def test_the_script_needs_no_path(args: list[str], path: str, calls: list[Any]) -> None:
    assert run("export", *args).exit_code == 0
    assert calls[0][1]["repro"] == pathlib.Path(path)


@pytest.mark.parametrize("remark", ["", "This script does something else."])
def test_a_script_is_shown_among_the_files(remark: str, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxplain.repro.trial.difference", lambda *_: remark)
    monkeypatch.setattr("onnxplain.repro.minimise.minimised", lambda script, *_: Minimised(script))
    result = run("export", "models.py:flip", "--control-flow=report", "--repro")
    assert result.exit_code == 1
    assert "  repro   Flip.repro.py\n" in result.stdout
    assert (result.stdout.splitlines()[-1] == remark) is bool(remark)
    assert "if x.sum() < 0:" in (folder / "Flip.repro.py").read_text(encoding="utf-8")
    assert "  repro" not in run("export", "models.py:double", "--repro").stdout
    assert not (folder / "Double.repro.py").exists()


@pytest.mark.parametrize("option", ["--repro", "--report"])
def test_the_target_is_not_overwritten(option: str, folder: pathlib.Path) -> None:
    result = run("export", "models.py:flip", f"{option}=models.py")
    assert result.exit_code == 2
    assert option in result.stderr
    assert (folder / "models.py").read_text(encoding="utf-8") == MODELS


def test_a_folder_is_no_script(folder: pathlib.Path) -> None:
    result = run("export", "models.py:flip", "--repro=.")
    assert result.exit_code == 2
    assert "repro: " in result.stderr


@pytest.mark.parametrize("target", ["models.py:model", "models:model", "models:Constant", "models:Holder.model"])
def test_models_that_need_no_inputs(target: str, folder: pathlib.Path, calls: list[Any]) -> None:
    assert run("export", target).exit_code == 0
    (model, args), kwargs = calls[0]
    assert type(model).__name__ == "Constant"
    assert args == ()
    assert kwargs["_caller"].file == str(folder / "models.py")


def test_neighbours_of_the_file_can_be_imported(folder: pathlib.Path, calls: list[Any]) -> None:
    package = folder / "code"
    package.mkdir()
    (package / "neighbour.py").write_text(MODELS, encoding="utf-8")
    (package / "entry.py").write_text("from neighbour import double\n", encoding="utf-8")
    assert run("export", "code/entry.py:double").exit_code == 0
    assert calls[0][1]["_caller"] == Location(str(package / "entry.py"))


@pytest.mark.usefixtures("calls")
def test_a_file_may_have_the_name_of_a_module(folder: pathlib.Path) -> None:
    (folder / "json.py").write_text(MODELS, encoding="utf-8")
    assert run("export", "json.py:double").exit_code == 0
    assert sys.modules["json"] is json


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("models.py", "path/to/file.py:NAME"),
        ("models.py:", "path/to/file.py:NAME"),
        ("other.py:double", "other.py"),
        ("other:double", "'other'"),
        ("models.py:duble", "double"),
        ("models.py:needs", "'size'"),
        ("models.py:number", "int"),
        ("models.py:returns_numbers", "(int, int)"),
        ("models.py:bare", "forward"),
        ("models.py:Double", "(model, args)"),
    ],
)
def test_targets_that_are_none(target: str, told: str, calls: list[Any]) -> None:
    result = run("export", target)
    assert result.exit_code == 2
    assert told in result.stderr
    assert not calls


@pytest.mark.usefixtures("folder")
def test_what_the_users_code_raises_is_shown_with_its_line() -> None:
    lines = MODELS.splitlines()
    raised = lines.index('    raise LookupError("no such layer")') + 1
    called = lines.index("    return helper()") + 1
    result = run("export", "models.py:raises")
    assert result.exit_code == 2
    assert "LookupError: no such layer" in result.stderr
    assert f"--> models.py:{raised}" in result.stderr
    assert f": models.py:{called}" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("code", "place", "told"),
    [
        ("import torch\nimport no_such_module\n", "broken.py:2", "No module named 'no_such_module'"),
        ("import torch\nx = (\n", "broken.py:2", "SyntaxError"),
        ("raise SystemExit('stop')\n", "broken.py:1", "stop"),
    ],
)
def test_a_file_that_cannot_be_loaded(code: str, place: str, told: str, folder: pathlib.Path) -> None:
    (folder / "broken.py").write_text(code, encoding="utf-8")
    result = run("export", "broken.py:x")
    assert result.exit_code == 2
    assert f"--> {place}" in result.stderr
    assert told in result.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["--level", "OXP9999=note"],
        ["--level", "OXP1001=fatal"],
        ["--level", "OXP1001"],
        ["--select", "OXP1999"],
        ["--ignore", "everything"],
        ["--opset", "many"],
        ["--strategy", "lucky"],
    ],
)
def test_option_values_that_are_wrong(args: list[str], calls: list[Any]) -> None:
    assert run("export", "models.py:double", *args).exit_code == 2
    assert not calls


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (InvalidArgument("opset_version: expected an int"), 2, "opset_version: expected an int"),
        (KeyboardInterrupt(), 130, "Double.sarif names the line that was running.\nInterrupted."),
        (Terminated(signal.SIGTERM), 143, "SIGTERM"),
        (ZeroDivisionError("a fault"), 1, "ZeroDivisionError: a fault"),
        (PermissionError(13, "Permission denied", "a.sarif"), 1, "a.sarif"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_how_export_may_end(error: BaseException, code: int, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def export(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setitem(vars(onnxplain), "export", export)
    result = run("export", "models.py:double")
    assert result.exit_code == code
    assert told in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.usefixtures("folder")
def test_a_crash_shows_its_traceback_at_debug(monkeypatch: pytest.MonkeyPatch) -> None:
    def export(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a fault")

    monkeypatch.setitem(vars(onnxplain), "export", export)
    result = run("export", "models.py:double", "--verbosity", "debug")
    assert result.exit_code == 1
    assert isinstance(result.exception, ZeroDivisionError)


def test_an_export_writes_and_names_its_files(folder: pathlib.Path) -> None:
    result = run("export", "models.py:double", "--report")
    assert result.exit_code == 0, result.output
    for path in ("Double.onnx", ".sarif/Double.sarif", "Double.md"):
        assert (folder / path).is_file()
        assert str(pathlib.Path(path)) in result.stdout
    assert result.stderr == ""


def test_findings_that_fail_the_export_are_shown(folder: pathlib.Path) -> None:
    line = MODELS.splitlines().index("        if x.sum() < 0:") + 1
    result = run("export", "models.py:flip", "--control-flow=report")
    assert result.exit_code == 1
    assert "error[OXP1001]" in result.stdout
    assert f"--> models.py:{line}" in result.stdout
    assert not (folder / "Flip.onnx").exists()
    assert (folder / ".sarif" / "Flip.sarif").is_file()


@pytest.mark.usefixtures("folder")
def test_warnings_fail_the_export_if_asked() -> None:
    assert run("export", "models.py:drop").exit_code == 0
    failed = run("export", "models.py:drop", "--warnings-as-errors")
    assert failed.exit_code == 1
    assert "error[OXP1007]" in failed.stdout
    assert run("export", "models.py:drop", "--warnings-as-errors", "--ignore", "OXP1007").exit_code == 0


def test_wrong_arguments_of_the_target_are_bad_usage(folder: pathlib.Path) -> None:
    (folder / "wrong.py").write_text(f"{MODELS}\ndef wrong():\n    return Double(), 3\n", encoding="utf-8")
    result = run("export", "wrong.py:wrong")
    assert result.exit_code == 2
    assert "args" in result.stderr


def test_a_module_is_sought_in_the_current_folder_first(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "models.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(elsewhere)
    assert run("export", "models:drop").exit_code == 0


def test_name_tells_models_of_one_class_apart(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text("import torch\n\ndef build():\n    return torch.nn.ReLU(), (torch.ones(2),)\n", encoding="utf-8")
    assert CliRunner().invoke(main, ["export", "model.py:build", "--name", "relu-small"]).exit_code == 0
    log = json.loads((tmp_path / ".sarif/relu-small.sarif").read_text(encoding="utf-8"))
    assert log["runs"][0]["automationDetails"]["id"] == "onnx-export/relu-small/"
    assert (tmp_path / "relu-small.onnx").exists()
    for name in ("a/b", "", "a\nb"):
        assert CliRunner().invoke(main, ["export", "model.py:build", "--name", name]).exit_code == 2


SHOWN = """\
import torch


class Two(torch.nn.Module):
    def forward(self, x, past):
        return {"product": x @ past.transpose(1, 2), "noise": x.sum() + torch.rand(1)}


def two():
    batch = torch.export.Dim("batch", max=64)
    return Two(), (torch.randn(2, 8, 4), torch.randn(2, 5, 4)), {}, {"x": {0: batch, 1: "time"}, "past": {0: batch}}


class Sum(torch.nn.Module):
    def forward(self, xs):
        return torch.stack(xs).sum(0)


def many():
    return Sum(), ([torch.full((3,), float(number)) for number in range(10)],)


class Halved(torch.nn.Module):
    def forward(self, x, y):
        assert x.shape[0] % 2 == 0
        assert x.shape[2] > x.shape[0]
        return x * 2, y * 2


def halved():
    return Halved(), (torch.randn(6, 4, 8), torch.randn(3)), {}, {"x": {0: "height", 2: "width"}, "y": {0: "time"}}


def fixed():
    return torch.nn.Linear(8, 2), (torch.randn(3, 8),), {}, True


class Table(torch.nn.Module):
    def forward(self, x):
        return x + torch.zeros(64)[: x.shape[0]], 2 if x.shape[0] == 9 or x.shape[0] == 1 else 3


def table():
    return Table(), (torch.randn(5),), {}, {"x": {0: "rows"}}


class Diagonal(torch.nn.Module):
    def forward(self, x, y):
        z = x.clone()
        z.diagonal().copy_(y)
        return z


def diagonal():
    auto = torch.export.Dim.AUTO
    return Diagonal(), (torch.randn(4, 2, 1), torch.randn(1, 2)), {}, {"x": dict.fromkeys(range(3), auto), "y": (auto, auto)}


def unlimited():
    made = torch.export.export(torch.nn.ReLU(), (torch.randn(5),), dynamic_shapes=({0: torch.export.Dim("rows", min=4)},))
    return torch.export.ExportedProgram(
        root=made.graph_module,
        graph=made.graph,
        graph_signature=made.graph_signature,
        state_dict=made.state_dict,
        range_constraints={},
        module_call_graph=made.module_call_graph,
    )


def large():
    return torch.nn.Linear(1000, 2000), (torch.randn(1, 1000),), {}, {"input": {0: torch.export.Dim("rows", min=4)}}
"""


def shown(target: str, *options: str) -> list[tuple[str, str]]:
    """The lines about the exported model, each with its label."""
    lines = run("export", f"shown.py:{target}", "-o", "out.onnx", *options).stdout.splitlines()
    found = (re.fullmatch(r"  (\w+) +(.*)", line) for line in lines)
    return [(each[1], each[2]) for each in found if each is not None and each[1] not in ("model", "log")]


def test_artifacts_go_to_their_folder(folder: pathlib.Path) -> None:
    assert run("export", "models.py:double", "--artifacts", "new/kept", "--verbosity", "debug", "--profile").exit_code == 0
    assert sorted(each.name for each in (folder / "new" / "kept").iterdir()) == [
        "memory.txt",
        "model.mmd",
        "prepared-graph.txt",
        "profile.txt",
    ]
    assert run("export", "models.py:double", "--artifacts", "models.py").exit_code == 2


def test_what_was_exported_is_shown(folder: pathlib.Path) -> None:
    (folder / "shown.py").write_text(SHOWN.replace("torch.randn(1, 1000)", "torch.randn(5, 1000)"), encoding="utf-8")
    *lines, (label, verified), (apart, product) = shown("two", "--verify")
    assert lines[:5] == [
        ("input", "x: float32[batch, time, 4]"),
        ("input", "past: float32[batch, 5, 4]"),
        ("output", "product: float32[batch, time, 5]"),
        ("output", "noise: float32[1]"),
        ("dims", "batch: 1 to 64; time: any size"),
    ]
    assert lines[5][0] == "graph"
    size = (folder / "out.onnx").stat().st_size / 1000
    assert re.fullmatch(rf"\d+ operators, opset 20, 0 bytes of weights, {size:.3g} KB in 1 file", lines[5][1])
    assert label == "checked"
    assert verified.startswith("1 of 2 ")
    assert verified.count("batch = ") == 2
    assert apart == "apart"
    assert product.startswith("product ")
    many = shown("many", "--verify", "--opset", "18")
    assert [text for each, text in many if each == "input"][7:] == ["xs_7: float32[3]", "and 2 more"]
    assert dict(many)["graph"].split(", ")[1] == "opset 18"
    assert dict(many)["checked"].startswith("all ")
    assert dict(shown("table"))["dims"] == "rows: 2 to 64, not 9"
    large = dict(shown("large"))
    assert large["dims"] == "rows: at least 4"
    assert "8.01 MB of weights" in large["graph"]
    # NOTE: torch's range has 2 as well, where the program checks that there is less.
    assert "x_dim_2: only 1;" in dict(shown("diagonal"))["dims"]
    halved = dict(shown("halved"))
    assert halved["dims"] == "height: multiple of 2; width: any size; time: any size; height < width"
    assert dict(shown("fixed"))["fixed"].startswith("input.shape[1]")
    assert large["checked"].startswith("no ")


RELATIONS = {
    "torch._check(x.shape[1] == 2 * (x.shape[1] // 2)); return x * 2": "multiple of 2",
    "return x.reshape(x.shape[0], x.shape[1] // 16, 16)": "multiple of 16",
    "torch._check(x.shape[1] // 8 > 0); return x * 2": "at least 8",
    "torch._check((x.shape[1] + 1) % 3 == 0); return x * 2": "(h + 1) % 3 == 0",
}


@pytest.mark.parametrize("body", RELATIONS)
def test_relations_are_told_as_multiples_and_least_sizes(folder: pathlib.Path, body: str) -> None:
    source = f"import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        {body}\n"
    (folder / "shown.py").write_text(source, encoding="utf-8")
    assert dict(shown("Net", "--input", "x=f32[b,h=32]"))["dims"] == f"b: any size; h: {RELATIONS[body]}"


def test_a_program_without_ranges_takes_any_size(folder: pathlib.Path) -> None:
    (folder / "shown.py").write_text(SHOWN, encoding="utf-8")
    (dims,) = (text for label, text in shown("unlimited") if label == "dims")
    assert dims.endswith(": any size")


def test_the_largest_differences_of_each_output_are_shown(folder: pathlib.Path) -> None:
    """The sums of 1000 products are not rounded alike. The other output is exact."""
    text = SHOWN.replace("torch.nn.Linear(1000, 2000)", "Linear(1000, 2000)").replace("torch.randn(1, 1000)", "torch.randn(5, 1000)")
    exact = "\n\nclass Linear(torch.nn.Linear):\n    def forward(self, input):\n        return super().forward(input), -input\n"
    (folder / "shown.py").write_text(text + exact, encoding="utf-8")
    found = [float(number) for label, text in shown("large", "--verify") if label == "apart" for number in re.findall(r"\d[-.e\d]*", text)]
    absolute, relative, *exact = found[-4:]
    assert 0 < absolute < 1e-4
    assert relative > 0
    assert exact == [0, 0]


def test_a_target_that_goes_to_another_folder(folder: pathlib.Path) -> None:
    (folder / "elsewhere").mkdir()
    source = 'import os, torch\n\ndef build():\n    os.chdir("elsewhere")\n    return torch.nn.ReLU(), (torch.ones(3),)\n'
    (folder / "goes.py").write_text(source, encoding="utf-8")
    done = CliRunner().invoke(main, ["export", "goes.py:build", "-o", "net.onnx", "--sarif", "net.sarif"])
    assert done.exit_code == 0, done.output
    assert (folder / "net.onnx").is_file()
    assert (folder / "net.sarif").is_file()
    assert not any((folder / "elsewhere").iterdir())
