"""Exports from a model to its files, through the public functions."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import logging
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import Any
from unittest import mock

import onnx
import onnxruntime
import pytest
import torch
from sarif_checks import check_log

import onnxplain
from onnxplain import DiagnosticOptions, ExportFailed, Level
from onnxplain.diagnostics import LogNotSaved

Load = Callable[..., ModuleType]
Marked = Callable[..., list[int]]


class Small(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


def failing(model: torch.nn.Module, args: tuple[object, ...], tmp_path: pathlib.Path, **options: object) -> ExportFailed:
    """The failure of an export. Checks that its log is valid and not empty, and that no other file was written."""
    before = set(tmp_path.iterdir())
    with pytest.raises(ExportFailed) as caught:
        onnxplain.export(model, args, tmp_path / "model.onnx", sarif=tmp_path / "log.sarif", **options)  # type: ignore[arg-type]
    # The graphs are there only if a finding leads through them.
    assert {"log.sarif"} <= {path.name for path in set(tmp_path.iterdir()) - before} <= {"log.sarif", "log.graphs"}
    log = json.loads((tmp_path / "log.sarif").read_text(encoding="utf-8"))
    check_log(tmp_path / "log.sarif")
    assert log["runs"][0]["results"]
    assert log["runs"][0]["invocations"][0]["executionSuccessful"] is False
    assert log["runs"][0]["invocations"][0]["exitCode"] == 1
    assert caught.value.findings
    return caught.value


def places(failed: ExportFailed, rule: str) -> list[tuple[int | None, int]]:
    """First line and count of each finding of `rule`."""
    return sorted((each.location.line, each.count) for each in failed.findings if each.rule.id == rule and each.location)


THREE_UNSUPPORTED = """
    import torch

    def helper(x):
        return torch.nextafter(x, -x)  # first

    def other_helper(x):
        y = x * 2
        return torch.linalg.eigvals(torch.outer(y, y)).real  # second

    class Net(torch.nn.Module):
        def forward(self, x):
            x = helper(x)  # caller
            x = other_helper(x)
            x = torch.sin(x) + torch.histogram(x, 4)[0].sum()  # third
            return helper(x)
"""


@pytest.mark.parametrize("strategy", ["non-strict", "strict"])
def test_lists_every_unsupported_operator_in_one_run(load: Load, marked: Marked, tmp_path: pathlib.Path, strategy: str) -> None:
    model = load(THREE_UNSUPPORTED).Net().eval()
    failed = failing(model, (torch.rand(3),), tmp_path, strategies=(strategy,))
    (first,), (second,), (third,), (caller,) = marked("first"), marked("second"), marked("third"), marked("caller")
    assert {each.rule.id for each in failed.findings} == {"OXP3001"}
    assert places(failed, "OXP3001") == [(first, 2), (second, 1), (third, 1)]
    of_first = next(each for each in failed.findings if each.location and each.location.line == first)
    assert [frame.line for frame in of_first.stack] == [caller, first]
    assert of_first.location is not None
    assert pathlib.Path(of_first.location.file) == tmp_path / "model.py"
    assert of_first.location.function == "helper"


def test_message_begins_with_first_finding_and_has_no_colour(load: Load, marked: Marked, tmp_path: pathlib.Path) -> None:
    failed = failing(load(THREE_UNSUPPORTED).Net(), (torch.rand(3),), tmp_path)
    text = str(failed)
    assert text.splitlines()[0].startswith("error[OXP3001]: ")
    assert f"model.py:{marked('first')[0]}" in text.splitlines()[1]
    assert "\x1b" not in text
    assert text.splitlines()[-1] == "3 errors."


@pytest.mark.parametrize("stage", ["open_destination", "capture", "passes.run", "plan", "build", "optimize", "serialize", "verify", "save"])
def test_exception_in_a_stage_becomes_a_finding(stage: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"onnxplain.pipeline.{stage}", mock.Mock(side_effect=RuntimeError("a fault, injected")))
    failed = failing(Small().eval(), (torch.randn(2, 8),), tmp_path, verify=True)
    (finding,) = failed.findings
    assert finding.rule.id == "OXP0001"
    assert finding.level is Level.ERROR
    assert finding.blocking
    assert "a fault, injected" in finding.cause
    assert finding.location is not None
    assert finding.location.snippet.startswith("onnxplain.export(model, args")
    assert isinstance(failed.__cause__, RuntimeError)
    assert [each.completed for each in failed.log.stages][-1] is False


WRITERS = [("onnxplain.storage.single_file.write", False), ("onnx_ir.external_data.convert_tensors_to_external", True)]


@pytest.mark.parametrize(("writer", "external"), WRITERS)
def test_full_disk_leaves_no_file(writer: str, external: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object, folder: pathlib.Path, *name: str) -> None:
        folder.joinpath(*name).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, full)
    failed = failing(torch.nn.Linear(80, 4), (torch.randn(2, 80),), tmp_path, external_data=external)
    assert [each.rule.id for each in failed.findings] == ["OXP5003"]


def test_failed_export_keeps_the_file_of_the_last_one(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    onnxplain.export(Small().eval(), (torch.randn(2, 8),), path)
    before = path.read_bytes()
    monkeypatch.setattr("onnxplain.pipeline.verify", lambda *args: 1 / 0)
    with pytest.raises(ExportFailed):
        onnxplain.export(Small().eval(), (torch.randn(2, 8),), path, verify=True)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_killed_export_leaves_no_half_written_file(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import pathlib, sys, time
            import torch, onnxplain
            from onnxplain.storage import single_file
            real = single_file.write
            def slow(model, path):
                real(model, path)
                print("written", flush=True)
                time.sleep(60)
            single_file.write = slow
            onnxplain.export(torch.nn.Linear(8, 4), (torch.randn(2, 8),), sys.argv[1])
            """
        ),
        encoding="utf-8",
    )
    folder = tmp_path / "out"
    folder.mkdir()
    with subprocess.Popen([sys.executable, str(script), str(folder / "model.onnx")], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        process.send_signal(signal.SIGKILL)
    assert not (folder / "model.onnx").exists()


NOISY = """
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.dropout = torch.nn.Dropout(0.5)

        def forward(self, x):
            return self.dropout(x){comment}
"""


def noisy(load: Load, comment: str = "") -> torch.nn.Module:
    """A model in training mode: one warning, OXP1007, at the call of the layer that behaves differently."""
    model = load(NOISY.format(comment=comment)).Net()
    assert isinstance(model, torch.nn.Module)
    return model.train()


def results(path: pathlib.Path) -> list[dict[str, Any]]:
    check_log(path)
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["runs"][0]["results"]
    return found


def test_warning_does_not_fail_the_export(load: Load, tmp_path: pathlib.Path) -> None:
    program = onnxplain.export(noisy(load), (torch.randn(3),), tmp_path / "m.onnx", sarif=tmp_path / "log.sarif")
    assert [(each.rule.id, each.level) for each in program.diagnostics.findings] == [("OXP1007", Level.WARNING)]
    assert program.diagnostics.exit_code == 0
    assert [each["level"] for each in results(tmp_path / "log.sarif")] == ["warning"]
    assert (tmp_path / "m.onnx").exists()


def test_warnings_as_errors(load: Load, tmp_path: pathlib.Path) -> None:
    failed = failing(noisy(load), (torch.randn(3),), tmp_path, diagnostic_options=DiagnosticOptions(warnings_as_errors=True))
    assert [(each.rule.id, each.level) for each in failed.findings] == [("OXP1007", Level.ERROR)]
    assert [each["level"] for each in results(tmp_path / "log.sarif")] == ["error"]
    # Every stage ran nevertheless: one run shows all problems.
    assert [each.name for each in failed.log.stages] == ["open", "capture", "passes", "dispatch", "build", "optimize", "serialize"]


@pytest.mark.parametrize("level", list(Level))
def test_level_of_a_rule(load: Load, tmp_path: pathlib.Path, level: Level) -> None:
    options = DiagnosticOptions(levels={"OXP1007": level})
    if level is Level.ERROR:
        log = failing(noisy(load), (torch.randn(3),), tmp_path, diagnostic_options=options).log
    else:
        log = onnxplain.export(noisy(load), (torch.randn(3),), sarif=tmp_path / "log.sarif", diagnostic_options=options).diagnostics
    assert [each.level for each in log.findings] == [level]
    assert [each["level"] for each in results(tmp_path / "log.sarif")] == [level.value]


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (DiagnosticOptions(ignore=("OXP1007",)), False),
        (DiagnosticOptions(ignore=("OXP1",)), False),
        (DiagnosticOptions(ignore=("OXP1",), select=("OXP1007",)), True),
        (DiagnosticOptions(select=("OXP3",)), False),
        (DiagnosticOptions(select=("OXP1",), ignore=("OXP1007",)), False),
        (DiagnosticOptions(ignore=("OXP1007",), warnings_as_errors=True), False),
    ],
)
def test_ignored_rules(load: Load, tmp_path: pathlib.Path, options: DiagnosticOptions, reported: bool) -> None:
    program = onnxplain.export(noisy(load), (torch.randn(3),), sarif=tmp_path / "log.sarif", diagnostic_options=options)
    assert len(program.diagnostics.findings) == reported
    assert len(results(tmp_path / "log.sarif")) == reported
    assert program.diagnostics.exit_code == 0


def test_options_cannot_hide_what_stops_an_export(load: Load, tmp_path: pathlib.Path) -> None:
    options = DiagnosticOptions(ignore=("OXP",), levels={"OXP3001": Level.NOTE})
    failed = failing(load(THREE_UNSUPPORTED).Net(), (torch.rand(3),), tmp_path, diagnostic_options=options)
    assert [each.level for each in failed.findings] == [Level.ERROR] * 3


@pytest.mark.parametrize("warnings_as_errors", [False, True])
def test_suppression_in_the_source(load: Load, tmp_path: pathlib.Path, warnings_as_errors: bool) -> None:
    model = noisy(load, comment="  # onnxplain: ignore[OXP1007] the noise is wanted")
    program = onnxplain.export(
        model,
        (torch.randn(3),),
        sarif=tmp_path / "log.sarif",
        diagnostic_options=DiagnosticOptions(warnings_as_errors=warnings_as_errors),
    )
    (finding,) = program.diagnostics.findings
    assert finding.suppression is not None
    assert finding.suppression.justification == "the noise is wanted"
    assert program.diagnostics.count(finding.level) == 0
    assert program.diagnostics.exit_code == 0
    (result,) = results(tmp_path / "log.sarif")
    (suppression,) = result["suppressions"]
    assert {name: suppression[name] for name in ("kind", "status", "justification")} == {
        "kind": "inSource",
        "status": "accepted",
        "justification": "the noise is wanted",
    }


def test_suppression_of_another_rule_does_not_count(load: Load) -> None:
    program = onnxplain.export(noisy(load, comment="  # onnxplain: ignore[OXP1001]"), (torch.randn(3),))
    assert [each.suppression for each in program.diagnostics.findings] == [None]


TALKER = """
    import logging, sys, warnings
    import torch, onnxplain

    class Talker(torch.nn.Module):
        def forward(self, x):
            sys.stderr.write("printed\\n")
            logging.getLogger("mine").warning("logged")
            warnings.warn("warned")
            return x * 2

    onnxplain.export(Talker(), (torch.ones(3),))
"""


def test_the_models_own_words_go_out(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "talker.py"
    script.write_text(textwrap.dedent(TALKER), encoding="utf-8")
    shown = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stderr
    assert [line.split(": ")[-1] for line in shown.splitlines() if not line.startswith(" ")] == ["printed", "logged", "warned"]


def test_two_names_for_one_size_are_said() -> None:
    class Add(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

    shapes = {"x": {0: "rows"}, "y": {0: "lines"}}
    program = onnxplain.export(Add(), (torch.ones(3, 2), torch.ones(3, 2)), dynamic_shapes=shapes)
    assert [(each.rule.id, each.message.split("'")[1::2]) for each in program.diagnostics.findings] == [
        ("OXP4001", ["dim", "lines", "rows"])
    ]


def test_missing_folder_is_found_before_the_work(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ExportFailed) as caught:
        onnxplain.export(Small().eval(), (torch.randn(2, 8),), tmp_path / "missing" / "m.onnx")
    assert [each.rule.id for each in caught.value.findings] == ["OXP5003"]
    assert [each.name for each in caught.value.log.stages] == ["open"]


def test_debug_writes_dumps_only_where_asked(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = DiagnosticOptions(verbosity_level=logging.DEBUG)
    onnxplain.export(Small().eval(), (torch.randn(2, 8),), diagnostic_options=options)
    assert list(tmp_path.iterdir()) == []
    dumps = tmp_path / "dumps"
    onnxplain.export(Small().eval(), (torch.randn(2, 8),), diagnostic_options=options, artifacts_dir=dumps, dynamic_shapes=({0: "rows"},))
    assert "f32[rows, 8]" in (dumps / "prepared-graph.txt").read_text(encoding="utf-8")


def test_random_outputs_are_not_compared(load: Load) -> None:
    program = onnxplain.export(noisy(load), (torch.randn(3),), verify=True)
    assert [each.rule.id for each in program.diagnostics.findings] == ["OXP1007", "OXP6006"]


def test_names_and_dynamic_dims(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.onnx"
    onnxplain.export(
        Small().eval(), (torch.randn(2, 8),), path, input_names=["features"], output_names=["scores"], dynamic_shapes={"x": {0: "batch"}}
    )
    session = onnxruntime.InferenceSession(path)
    assert [(each.name, each.shape) for each in session.get_inputs()] == [("features", ["batch", 8])]
    assert [(each.name, each.shape) for each in session.get_outputs()] == [("scores", ["batch", 4])]


@pytest.mark.parametrize("axes", [{"x": {0: "batch"}}, {"x": [0]}, {"x": {0: "batch"}, "y": {0: "batch"}}])
def test_dynamic_axes(tmp_path: pathlib.Path, axes: dict[str, dict[int, str]]) -> None:
    model = Small().eval()
    program = onnxplain.export(model, (torch.randn(2, 8),), output_names=["y"], dynamic_axes=axes)
    x = torch.randn(5, 8)
    torch.testing.assert_close(program(x)[0], model(x))


def test_old_arguments_become_notes() -> None:
    program = onnxplain.export(Small().eval(), (torch.randn(2, 8),), do_constant_folding=True, dynamo=False)
    assert [(each.rule.id, each.level) for each in program.diagnostics.findings] == [("OXP1010", Level.NOTE)] * 2
    here = program.diagnostics.findings[0].location
    assert here is not None
    assert pathlib.Path(here.file) == pathlib.Path(__file__)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"opset_version": "18"}, "opset_version"),
        ({"opset_version": True}, "opset_version"),
        ({"kwargs": [1]}, "kwargs"),
        ({"args": "x"}, "args"),
        ({"input_names": "x"}, "input_names"),
        ({"strategies": ("eager",)}, "strategies"),
        ({"f": 3}, "f"),
        ({"f": "same.onnx", "sarif": "same.onnx"}, "sarif"),
        ({"sarif": "/dev/null/log.sarif"}, "sarif"),
        ({"report": "/dev/null/report.md"}, "report"),
        ({"artifacts_dir": "/dev/null/folder"}, "artifacts_dir"),
        ({"custom_translation_table": {torch.ops.aten.add: len}}, "custom_translation_table"),
        ({"custom_translation_table": {"aten::add": len}}, "custom_translation_table"),
        ({"sarif": 3}, "sarif"),
        ({"model": Small}, "model"),
        ({"diagnostic_options": {"verbosity_level": 10}}, "diagnostic_options"),
        ({"diagnostic_options": DiagnosticOptions(ignore=("OXP1999",))}, "ignore"),
        ({"custom_translation_table": [1]}, "custom_translation_table"),
        ({"colour": True}, "colour"),
        *(
            ({name: "x"}, name)
            for name in ("dynamo", "optimize", "verify", "profile", "dump_exported_program", "external_data", "verbose", "export_params")
        ),
        ({"keep_initializers_as_inputs": 3}, "keep_initializers_as_inputs"),
        ({"input_names": [1]}, "input_names"),
        ({"output_names": [None]}, "output_names"),
        *(({name: []}, name) for name in ("diagnostic_options", "kwargs", "dynamic_axes", "custom_translation_table")),
        ({"input_names": 0}, "input_names"),
        *(({name: path}, name) for name in ("f", "sarif", "report", "repro", "artifacts_dir") for path in ("a\0b", "a" * 300)),
        ({"name": "a" * 300, "dump_exported_program": True}, "dump_exported_program"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], named: str) -> None:
    with pytest.raises((TypeError, ValueError), match=rf"\b{named}\b") as caught:
        onnxplain.export(**{"model": Small().eval(), "args": (torch.randn(2, 8),), **arguments})  # type: ignore[arg-type]
    assert isinstance(caught.value, onnxplain.OnnxExporterError)


@pytest.mark.parametrize("argument", ["f", "sarif", "report", "repro"])
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX")
def test_only_files_are_replaced(argument: str, tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(onnxplain.InvalidArgument, match=rf"^{argument}:"):
            onnxplain.export(Small().eval(), (torch.randn(2, 8),), **{argument: tmp_path / name})  # type: ignore[arg-type]
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()


def test_what_a_link_leads_to_is_written(tmp_path: pathlib.Path) -> None:
    (tmp_path / "folder").mkdir()
    names = {"f": "model.onnx", "sarif": "log.sarif", "report": "report.md"}
    for name in names.values():
        (tmp_path / name).symlink_to(tmp_path / "folder" / name)
    links: dict[str, Any] = {argument: tmp_path / name for argument, name in names.items()}
    onnxplain.export(Small().eval(), (torch.randn(2, 8),), **links)
    for name in names.values():
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "folder" / name).is_file()
    onnx.checker.check_model(str(tmp_path / "folder" / "model.onnx"))
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(onnxplain.InvalidArgument, match=r"^f:"):
        onnxplain.export(Small().eval(), (torch.randn(2, 8),), tmp_path / "loop")


def test_exported_program_is_dumped_whole_or_not_at_all(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dump() -> None:
        onnxplain.export(Small().eval(), (torch.randn(2, 8),), dump_exported_program=True, artifacts_dir=tmp_path)

    def full(_: object, path: pathlib.Path) -> None:
        path.write_bytes(b"half")
        raise RuntimeError("PytorchStreamWriter failed writing file")

    dump()
    before = (tmp_path / "Small.pt2").read_bytes()
    torch.export.load(tmp_path / "Small.pt2")
    monkeypatch.setattr("torch.export.save", full)
    with pytest.raises(LogNotSaved) as caught:
        dump()
    assert caught.value.log.succeeded
    assert (tmp_path / "Small.pt2").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["Small.pt2"]


@pytest.mark.skipif(not pathlib.Path("/sys").is_dir(), reason="the folder that nobody may write to is Linux's")
def test_nowhere_to_dump_is_found_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/sys")
    monkeypatch.setattr("onnxplain.pipeline.capture", lambda *_: pytest.fail("captured"))
    with pytest.raises(onnxplain.InvalidArgument, match=r"^dump_exported_program:"):
        onnxplain.export(Small().eval(), (torch.randn(2, 8),), dump_exported_program=True)


def test_inputs_of_a_program_that_is_given() -> None:
    x = torch.randn(2, 8)
    given = torch.export.export(Small().eval(), (x,), dynamic_shapes={"x": {0: torch.export.Dim.DYNAMIC}})
    for args, kwargs in (((), {}), ((torch.randn(3, 8),), {}), ((), {"x": x})):
        assert onnxplain.export(given, args, kwargs=kwargs, verify=True).diagnostics.findings == ()
    for wrong, named in (((x, x), "args"), ((x.double(),), "x"), ((x[:, 1:],), "x"), ((x[0],), "x"), ((3,), "x")):
        with pytest.raises(onnxplain.InvalidArgument, match=rf"^{named}:"):
            onnxplain.export(given, wrong)
        with pytest.raises(onnxplain.InvalidArgument, match=rf"^{named}:"):
            onnxplain.dynamo_export(given, *wrong)


def test_metadata_leads_from_each_node_to_its_line(load: Load, marked: Marked, tmp_path: pathlib.Path) -> None:
    module = load(
        """
        import torch

        def helper(x):
            return torch.sin(x)  # sin

        class Inner(torch.nn.Module):
            def forward(self, x):
                return helper(x)

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.ModuleList([Inner(), Inner()])

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x
        """
    )
    onnxplain.export(module.Net(), (torch.randn(3),), tmp_path / "m.onnx")
    nodes = onnx.load(tmp_path / "m.onnx").graph.node
    facts = [{entry.key: entry.value for entry in node.metadata_props} for node in nodes]
    assert [each["onnxplain.module"] for each in facts] == ["layers.0", "layers.1"]
    assert {each["onnxplain.operator"] for each in facts} == {"aten::sin"}
    assert [each["onnxplain.fx_node"] for each in facts] == ["sin", "sin_1"]
    assert all(each["onnxplain.source"].endswith(f"model.py:{marked('sin')[0]}") for each in facts)


def test_nodes_carry_the_metadata_of_torch_onnx(load: Load, marked: Marked, tmp_path: pathlib.Path) -> None:
    """Modules, classes and Python's stack, without the folders that the stack's files lie in."""
    module = load(
        """
        import torch

        class Inner(torch.nn.Module):
            def forward(self, x):
                return x.sin()  # sin

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = Inner()

            def forward(self, x):
                return self.inner(x)
        """
    )
    onnxplain.export(module.Net(), (torch.randn(3),), tmp_path / "m.onnx")
    (node,) = onnx.load(tmp_path / "m.onnx").graph.node
    facts = {entry.key: entry.value for entry in node.metadata_props}
    classes = [f"{module.__name__}.Net", f"{module.__name__}.Inner"]
    assert ast.literal_eval(facts["pkg.torch.onnx.name_scopes"]) == ["", "inner", "sin"]
    assert ast.literal_eval(facts["pkg.torch.onnx.class_hierarchy"]) == [*classes, "aten.sin.default"]
    assert facts["namespace"] == f": {classes[0]}/inner: {classes[1]}/sin: aten.sin.default"
    assert f'File "model.py", line {marked("sin")[0]}, in forward' in facts["pkg.torch.onnx.stack_trace"]
    assert str(tmp_path) not in str(facts)


def test_a_branch_may_return_what_it_got() -> None:
    def choose(x: torch.Tensor) -> torch.Tensor:
        doubled = x * 2
        return torch.cond(doubled.sum() > 0, lambda t: t.abs(), lambda t: t.clone(), (doubled,)) + 1  # type: ignore[no-any-return]

    program = onnxplain.export(choose, (torch.randn(3),))
    for x in (torch.ones(3), -torch.ones(3)):
        torch.testing.assert_close(program(x)[0], choose(x))


def test_cond_exports(load: Load) -> None:
    module = load(
        """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos(), (x,))
        """
    )
    model = module.Net()
    program = onnxplain.export(model, (torch.ones(3),), verify=True)
    for x in (torch.ones(3), -torch.ones(3)):
        torch.testing.assert_close(program(x)[0], model(x))


@pytest.mark.parametrize("opset", [15, 18, 20, 21, 23])
def test_opsets(tmp_path: pathlib.Path, opset: int) -> None:
    program = onnxplain.export(Small().eval(), (torch.randn(2, 8),), tmp_path / "m.onnx", opset_version=opset, verify=True)
    assert {each.domain: each.version for each in onnx.load(tmp_path / "m.onnx").opset_import} == {"": opset}
    assert program.diagnostics.findings == ()


def test_external_data_when_asked(tmp_path: pathlib.Path) -> None:
    model = torch.nn.Linear(80, 4)
    program = onnxplain.export(model, (torch.randn(2, 80),), tmp_path / "m.onnx", external_data=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]
    assert sorted(each.path.name for each in program.diagnostics.artifacts) == ["m.onnx", "m.onnx.data"]
    x = torch.randn(2, 80)
    got = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"input": x.numpy()})[0]
    torch.testing.assert_close(torch.from_numpy(got), model(x))


def test_external_data_above_the_limit_of_one_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxplain.weights.PROTOBUF_LIMIT", 100)
    model = torch.nn.Linear(80, 4)
    onnxplain.export(model, (torch.randn(2, 80),), tmp_path / "m.onnx", verify=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]
    (tmp_path / "m.onnx").unlink()
    (tmp_path / "m.onnx.data").unlink()
    failed = failing(model, (torch.randn(2, 80),), tmp_path, external_data=False)
    assert [each.rule.id for each in failed.findings] == ["OXP5001"]


@pytest.mark.parametrize(("export_params", "as_inputs"), [(True, True), (False, False), (False, True)])
def test_weights_in_and_outside_the_file(tmp_path: pathlib.Path, export_params: bool, as_inputs: bool) -> None:
    onnxplain.export(
        Small().eval(),
        (torch.randn(2, 8),),
        tmp_path / "m.onnx",
        export_params=export_params,
        keep_initializers_as_inputs=as_inputs,
    )
    graph = onnx.load(tmp_path / "m.onnx").graph
    names = {"linear.weight", "linear.bias"}
    assert names <= {each.name for each in graph.initializer} if export_params else not graph.initializer
    assert {each.name for each in graph.input} == ({"x", *names} if as_inputs else {"x"})


def test_nothing_is_written_unasked(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnxplain.export(Small().eval(), (torch.randn(2, 8),))
    with pytest.raises(ExportFailed):
        onnxplain.export(lambda x: torch.nextafter(x, x), (torch.randn(2),))
    assert list(tmp_path.iterdir()) == []


def test_report_and_artifacts_are_written_where_asked(tmp_path: pathlib.Path) -> None:
    onnxplain.export(Small().eval(), (torch.randn(2, 8),), tmp_path / "m.onnx", report=True)
    assert (tmp_path / "m.md").exists()
    onnxplain.export(Small().eval(), (torch.randn(2, 8),), report=tmp_path / "other.md", artifacts_dir=tmp_path)
    assert (tmp_path / "other.md").exists()


def test_exported_program_is_taken_as_it_is() -> None:
    model = Small().eval()
    captured = torch.export.export(model, (torch.randn(2, 8),))
    program = onnxplain.export(captured)
    assert program.exported_program is captured
    x = torch.randn(2, 8)
    torch.testing.assert_close(program(x)[0], model(x))


def test_program_saves_and_runs(tmp_path: pathlib.Path) -> None:
    model = Small().eval()
    program = onnxplain.export(model, (torch.randn(2, 8),))
    program.save(tmp_path / "m.onnx")
    program.save_diagnostics(tmp_path / "m.sarif")
    check_log(tmp_path / "m.sarif")
    assert program.model_proto.graph.node
    program.initialize_inference_session()
    program.release()
    x = torch.randn(2, 8)
    torch.testing.assert_close(program(x)[0], model(x))
    with pytest.raises(onnxplain.InvalidArgument, match="destination"):
        program.save(3)  # type: ignore[arg-type]
    with pytest.raises(onnxplain.InvalidArgument, match="args"):
        program(x, x)


def test_same_export_twice_gives_the_same_log(tmp_path: pathlib.Path, load: Load) -> None:
    times = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z|\d+(\.\d+)?(e-\d+)?( s\b)|(?<=\"seconds\":)[\d.e-]+")
    logs = []
    path = tmp_path / "log.sarif"
    for _ in range(2):
        with pytest.raises(ExportFailed):
            onnxplain.export(load(THREE_UNSUPPORTED).Net(), (torch.rand(3),), sarif=path)
        logs.append(times.sub("<time>", path.read_text(encoding="utf-8")))
    assert logs[0] == logs[1]


def test_logs_name_the_version_and_the_homepage_of_the_package() -> None:
    tool = onnxplain.export(torch.relu, (torch.ones(3),)).diagnostics.tool
    package = importlib.metadata.metadata("onnxplain")
    assert tool.version == package["Version"]
    assert f"Homepage, {tool.uri}" in package.get_all("Project-URL", [])


def test_logs_name_the_versions_of_what_they_depend_on(tmp_path: pathlib.Path) -> None:
    failed = failing(Small(), (torch.randn(2, 7),), tmp_path)
    assert dict(failed.log.environment)["torch"] == torch.__version__
    assert dict(failed.log.environment)["onnxruntime"] == onnxruntime.__version__


def test_packages_from_other_distributions(tmp_path: pathlib.Path) -> None:
    script = """
import importlib.metadata

version = importlib.metadata.version


def other(name):
    if name in ("onnxruntime", "onnxscript"):
        raise importlib.metadata.PackageNotFoundError(name)
    return "1.99" if name == "onnxruntime-gpu" else version(name)


importlib.metadata.version = other
importlib.metadata.packages_distributions = lambda: {"onnxruntime": ["onnxruntime-gpu"]}
import onnxplain, torch

log = onnxplain.export(torch.nn.ReLU(), (torch.ones(3),), verify=True).diagnostics
print(*(dict(log.environment)[name] for name in ("onnxruntime", "onnxscript")), sep=",")
"""
    (tmp_path / "exports.py").write_text(script, encoding="utf-8")
    ran = subprocess.run([sys.executable, "exports.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == "onnxruntime-gpu 1.99,unknown\n"
