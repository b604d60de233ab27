"""The command line: exit codes, what is shown where, and what is loaded for it."""

from __future__ import annotations

import contextlib
import importlib.resources
import io
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import click
import jsonschema
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

import onnxplain
from onnxplain.cli import COMMANDS, main
from onnxplain.cli.progress import StageLine
from onnxplain.diagnostics import (
    Confidence,
    DiagnosticContext,
    DiagnosticOptions,
    Edit,
    ExportFailed,
    Fix,
    InvalidArgument,
    Level,
    Location,
    Log,
    Region,
    Rule,
    Tool,
    console,
)
from onnxplain.rules import DataDependentBranch, InternalError, TrainingMode

MODELS = """\
import torch


class Double(torch.nn.Module):
    def forward(self, x):
        return x * 2


class Constant(torch.nn.Module):
    def forward(self):
        return torch.ones(3)


class Flip(torch.nn.Module):
    def forward(self, x):
        if x.sum() < 0:
            return -x
        return x


class Drop(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = torch.nn.Dropout()

    def forward(self, x):
        return self.dropout(x)


def double():
    return Double(), (torch.ones(3),)


def with_all():
    return Double(), (), {"x": torch.ones(3, 4)}, {"x": {0: "batch"}}


def flip():
    return Flip(), (torch.ones(3),)


def drop():
    return Drop(), (torch.ones(3),)


def needs(size):
    return Double(), (torch.ones(size),)


def raises():
    return helper()


def helper():
    raise LookupError("no such layer")


def returns_numbers():
    return 3, 4


class Holder:
    model = Constant()


model = Constant()
bare = Double()
number = 3
"""


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """The current folder, with `models.py` in it. What the command line does to the process is undone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = {*sys.modules}
    (tmp_path / "models.py").write_text(MODELS, encoding="utf-8")
    yield tmp_path
    for name in {*sys.modules} - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def calls(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Puts something that only records its calls in place of `onnxplain.export`."""
    recorded: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    class Program:
        diagnostics = context().log()

    def export(*args: Any, **kwargs: Any) -> Program:
        recorded.append((args, kwargs))
        return Program()

    monkeypatch.setitem(vars(onnxplain), "export", export)
    return recorded


def context(options: DiagnosticOptions | None = None) -> DiagnosticContext:
    """A context with all that it needs."""
    return DiagnosticContext(
        tool=Tool("onnxplain", "0.1.0", "https://example.com"),
        subject="Double",
        options=options or DiagnosticOptions(),
        internal_error=lambda stage, error: InternalError(stage=stage, error=str(error)),
    )


def run(*args: str) -> Result:
    """The result of `onnxplain ARGS`."""
    return CliRunner().invoke(main, args)


def shown(log: Log, **options: Any) -> str:
    """What the console shows of `log`."""
    file = io.StringIO()
    console.render(log, Console(file=file, **options))
    return file.getvalue()


def test_the_group_lists_its_commands() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for name in COMMANDS:
        assert re.search(rf"^  {name} +\S", result.stdout, re.MULTILINE)


@pytest.mark.parametrize("args", ["['--help']", "['rules']", "['rules', '--json']", "['explain', 'OXP1001']", "['export', '--help']"])
def test_commands_that_only_read_import_nothing_heavy(args: str) -> None:
    program = f"""\
import sys
from onnxplain.cli import main
main({args}, standalone_mode=False)
assert not {{'torch', 'numpy', 'onnx', 'onnx_ir', 'onnxscript', 'onnxruntime', 'jinja2', 'sarif_om'}} & {{*sys.modules}}
"""
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


def test_python_dash_m_is_the_command_line() -> None:
    ran = subprocess.run([sys.executable, "-m", "onnxplain", "rules"], check=True, capture_output=True, text=True)
    assert "OXP1001" in ran.stdout


def test_a_pipe_without_unicode_is_no_reason_to_fail() -> None:
    program = "from onnxplain.cli import main; main(['rules'], standalone_mode=False); import click; click.echo(chr(960))"
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment)
    assert "\\u03c0" in ran.stdout


def test_rules_lists_every_rule_once_a_line_when_piped() -> None:
    lines = [line for line in run("rules").stdout.splitlines() if line.startswith(" ")]
    assert [line.split()[0] for line in lines] == [rule.id for rule in Rule.all()]
    assert [line.split()[1] for line in lines] == [rule.level.value for rule in Rule.all()]


def test_rules_as_json() -> None:
    listed = json.loads(run("rules", "--json").stdout)
    schema = json.loads(importlib.resources.files("onnxplain.schemas").joinpath("rules.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(listed, schema)
    assert [rule["id"] for rule in listed] == [rule.id for rule in Rule.all()]
    branch = next(rule for rule in listed if rule["name"] == "DataDependentBranch")
    assert branch == {
        "id": "OXP1001",
        "name": "DataDependentBranch",
        "level": "error",
        "chapter": "capture",
        "summary": DataDependentBranch.page.summary,
        "message": DataDependentBranch.message,
        "arguments": ["condition"],
        "revision": 1,
        "since": "0.1.0",
    }


@pytest.mark.parametrize("id", ["OXP1001", "oxp1001", "DataDependentBranch"])
def test_explain_prints_the_page_as_markdown_when_piped(id: str) -> None:
    result = run("explain", id)
    assert result.exit_code == 0
    assert result.stdout.startswith("# OXP1001: DataDependentBranch\n")
    assert DataDependentBranch.page.markdown in result.stdout


def test_explain_takes_several_rules() -> None:
    headings = re.findall(r"^# (\w+)", run("explain", "OXP1007", "OXP1001").stdout, re.MULTILINE)
    assert headings == ["OXP1007", "OXP1001"]


def test_explain_names_the_nearest_rules() -> None:
    result = run("explain", "OXP10O1")
    assert result.exit_code == 2
    assert re.search(r"OXP10\d1", result.stderr)


def test_help_tells_the_exit_codes() -> None:
    text = run("export", "--help").stdout
    assert [int(code) for code in re.findall(r"^ +(\d+)  +\w", text, re.MULTILINE)] == [0, 1, 2, 130]


def test_the_options_name_the_strategies_that_there_are() -> None:
    from onnxplain.cli.export import command
    from onnxplain.request import STRATEGIES

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
    assert kwargs["report"] is False
    assert kwargs["external_data"] is None
    assert kwargs["opset_version"] is None
    assert kwargs["optimize"] is True
    assert kwargs["strategies"] == ("non-strict", "strict", "draft")
    assert kwargs["diagnostic_options"] == DiagnosticOptions()
    assert kwargs["_command_line"] == "onnxplain export models.py:double"
    line = MODELS.splitlines().index("def double():") + 1
    assert kwargs["_caller"] == Location(str(folder / "models.py"), Region(line))


def test_options_reach_export(calls: list[Any]) -> None:
    given = (
        "models.py:with_all -o out/a.onnx --sarif s.sarif --report=r.md --opset 18 --verify --warnings-as-errors --select OXP1,oxp2 "
        "--select OXP3 --ignore oxp1003 --level OXP1007=note --level oxp4=ERROR --verbosity debug --external-data --no-optimize "
        "--strategy strict --strategy draft --profile"
    )
    assert run("export", *shlex.split(given)).exit_code == 0
    (_, args), kwargs = calls[0]
    assert args == ()
    assert kwargs["kwargs"]["x"].shape == (3, 4)
    assert kwargs["dynamic_shapes"] == {"x": {0: "batch"}}
    assert [str(kwargs[name]) for name in ("f", "sarif", "report")] == [str(pathlib.Path("out/a.onnx")), "s.sarif", "r.md"]
    assert (kwargs["opset_version"], kwargs["verify"], kwargs["external_data"], kwargs["optimize"]) == (18, True, True, False)
    assert (kwargs["strategies"], kwargs["profile"]) == (("strict", "draft"), True)
    assert kwargs["diagnostic_options"] == DiagnosticOptions(
        verbosity_level=10,
        warnings_as_errors=True,
        levels={"OXP1007": Level.NOTE, "OXP4": Level.ERROR},
        select=("OXP1", "OXP2", "OXP3"),
        ignore=("OXP1003",),
    )


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
    monkeypatch.setattr("onnxplain.repro.trial.difference", lambda script, finding, budget: remark)
    result = run("export", "models.py:flip", "--repro")
    assert result.exit_code == 1
    assert "  repro   Flip.repro.py\n" in result.stdout
    assert result.stdout.endswith(f"{remark}\n" if remark else "to read more.\n")
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
    assert "repro: expected a file" in result.stderr


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
        ("other.py:double", "There is no file other.py"),
        ("other:double", "No module named 'other'"),
        ("models.py:duble", "Did you mean double?"),
        ("models.py:needs", "'size'"),
        ("models.py:number", "int"),
        ("models.py:returns_numbers", "(int, int)"),
        ("models.py:bare", "forward takes x"),
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
    assert f"called from: models.py:{called}" in result.stderr
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
        (KeyboardInterrupt(), 130, "Interrupted"),
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
    result = run("export", "models.py:flip")
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


def with_finding(folder: pathlib.Path, **arguments: Any) -> Log:
    """A log with one finding, in a file whose line has tabs and wide characters."""
    file = folder / "wide.py"
    file.write_text('\ty = table["表"] + missing(x)\n', encoding="utf-8")
    made = context()
    place = Location(str(file), Region(1, 19, 1, 29), "forward")
    with contextlib.suppress(ExportFailed), made.stage("capture"):
        raise made.fail(DataDependentBranch(condition="x > 0"), at=place, **arguments)
    return made.log()


def test_the_caret_stands_under_the_code(folder: pathlib.Path) -> None:
    code, caret = shown(with_finding(folder)).splitlines()[2:4]
    # Each of the two wide characters takes two columns.
    assert caret.index("^") == code.index("missing") + 1
    assert caret.count("^") == len("missing(x)")


def test_an_edit_is_shown_as_whole_lines(folder: pathlib.Path) -> None:
    edit = Edit(str(folder / "wide.py"), Region(1, 19, 1, 26), "present")
    text = str(with_finding(folder, fixes=[Fix("Call the other.", Confidence.SAFE, edits=(edit,))]).findings[0])
    assert '   - \ty = table["表"] + missing(x)\n   + \ty = table["表"] + present(x)' in text


def test_what_comes_from_a_model_steers_no_terminal(folder: pathlib.Path) -> None:
    hostile = "\x1b[2J\x07 [red]x[/red] :smile: \u202e \udc80"
    log = with_finding(folder, notes=[hostile], fixes=[Fix(hostile, Confidence.GUESS, snippet=hostile)])
    text = shown(log, force_terminal=True, color_system=None)
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e\udc80]", text)
    assert text.count("\\x1b[2J\\x07 [red]x[/red] :smile: \\u202e \\udc80") == 3


@pytest.mark.parametrize("width", [10, 80])
def test_no_line_depends_on_the_width(width: int, folder: pathlib.Path) -> None:
    log = with_finding(folder, notes=["long " * 50 + "note"])
    assert shown(log, width=width) == shown(log, width=1000)


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert console.make_console().color_system is not None
    monkeypatch.setenv("NO_COLOR", "1")
    assert console.make_console().color_system is None
    monkeypatch.delenv("FORCE_COLOR")
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b" not in run("rules").stdout


def test_suppressed_findings_and_events_are_shown_at_debug_only(folder: pathlib.Path) -> None:
    file = folder / "models.py"
    file.write_text("model = 1  # onnxplain: ignore[OXP1007] on purpose\n", encoding="utf-8")
    for verbosity, expected in ((20, False), (10, True)):
        made = context(DiagnosticOptions(verbosity_level=verbosity))
        with made.stage("capture"):
            made.event("A step.")
            made.report(TrainingMode(layers=("dropout",)), at=Location(str(file), Region(1)))
        text = shown(made.finish())
        assert ("OXP1007" in text, "A step." in text) == (expected, expected)
        assert "1 suppressed in the source" in text


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True

    def screen(self) -> str:
        """What it shows, after carriage returns have let later characters overwrite earlier ones."""
        rows = []
        for row in self.getvalue().split("\n"):
            cells: list[str] = []
            for part in row.split("\r"):
                cells[: len(part)] = part
            rows.append("".join(cells).rstrip())
        return "\n".join(rows)


def test_the_stage_line_steps_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    stages = StageLine()
    with stages.active():
        stages.show("capture")
        sys.stdout.write("a\n")
        assert terminal.screen() == "a\ncapture ..."
        sys.stdout.write("b")
        assert terminal.screen() == "a\nb"
        stages.show("passes")
        assert terminal.screen() == "a\nb"
        sys.stderr.write("c\n")
        assert terminal.screen() == "a\nbc\npasses ..."
    assert terminal.screen() == "a\nbc\n"
    assert sys.stdout is terminal


def test_the_stage_line_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = io.StringIO()
    monkeypatch.setattr(sys, "stderr", errors)
    stages = StageLine()
    with stages.active():
        stages.show("capture")
    assert errors.getvalue() == ""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
def test_the_users_prints_are_whole_in_a_terminal(folder: pathlib.Path) -> None:
    import pty

    (folder / "chatty.py").write_text(
        textwrap.dedent("""\
            import torch

            class Chatty(torch.nn.Module):
                def forward(self, x):
                    print("[bold]hi[/bold]", end=" ")
                    print("there")
                    return x * 2

            def chatty():
                return Chatty(), (torch.ones(3),)
            """),
        encoding="utf-8",
    )
    written = bytearray()
    owner, terminal = pty.openpty()
    program = "from onnxplain.cli import main; main(['export', 'chatty.py:chatty'])"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=terminal, stderr=terminal, stdin=terminal)
    os.close(terminal)
    with contextlib.suppress(OSError):
        while chunk := os.read(owner, 65_536):
            written += chunk
    os.close(owner)
    assert process.wait() == 0
    shown = Terminal(written.decode().replace("\r\n", "\n")).screen()
    assert re.sub(r"\x1b\[[\d;]*m", "", shown).startswith("[bold]hi[/bold] there\n")
    assert b"capture ..." in written


def test_name_tells_models_of_one_class_apart(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text("import torch\n\ndef build():\n    return torch.nn.ReLU(), (torch.ones(2),)\n", encoding="utf-8")
    assert CliRunner().invoke(main, ["export", "model.py:build", "--name", "relu-small"]).exit_code == 0
    log = json.loads((tmp_path / ".sarif/relu-small.sarif").read_text(encoding="utf-8"))
    assert log["runs"][0]["automationDetails"]["id"] == "onnx-export/relu-small/"
    assert (tmp_path / "relu-small.onnx").exists()
    for name in ("a/b", "", "a\nb"):
        assert CliRunner().invoke(main, ["export", "model.py:build", "--name", name]).exit_code == 2
