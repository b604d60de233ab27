"""The stages of an export that write the model: what they refuse, at which line, and what is on disk afterwards."""

from __future__ import annotations

import errno
import hashlib
import os
import pathlib
from collections.abc import Callable
from typing import Any

import onnx
import pytest
import torch
from marks import IS_3_11
from onnxscript import opset20 as op

import onnxplain
from onnxplain.diagnostics import Diagnostic

X = torch.ones(1, 80)
BYTES = 4 * (80 * 4 + 4)


def linear(device: str | None = None) -> torch.nn.Module:
    return torch.nn.Linear(80, 4, device=device)


def line_of(function: Callable[..., Any]) -> int:
    return function.__code__.co_firstlineno


def refused(export: Callable[[], object], stage: str = "serialize") -> Diagnostic:
    """The finding of an export that fails in a stage."""
    with pytest.raises(onnxplain.ExportFailed) as failed:
        export()
    assert failed.value.log.stages[-1].name == stage
    (finding,) = failed.value.findings
    assert finding.blocking
    return finding


def refusing(*_: object, **__: object) -> Any:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@pytest.mark.parametrize("stage", ["open", "serialize", "save"])
@pytest.mark.parametrize("external", [False, True])
def test_a_file_that_cannot_be_written(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, stage: str, external: bool) -> None:
    path = tmp_path / "m.onnx"
    path.write_text("older")
    # NOTE: the folder of an export is made when it begins, and the files are moved when it ends.
    match stage:
        case "open":
            if not IS_3_11:
                pytest.skip("pathlib of Python 3.10 holds the functions of os, which a test can then not replace")
            monkeypatch.setattr(os, "mkdir", refusing)
        case "serialize":
            monkeypatch.setattr("onnxplain.weights.Weight.tofile", refusing)
            monkeypatch.setattr("onnxplain.weights.Computed.tofile", refusing)
        case "save":
            monkeypatch.setattr(pathlib.Path, "replace", refusing)
    export = lambda: onnxplain.export(linear(), (X,), path, external_data=external)  # noqa: E731  its line is the caller's
    finding = refused(export, stage)
    monkeypatch.undo()
    assert finding.rule.id == "OXP5003"
    assert finding.rule.path == str(path)  # type: ignore[attr-defined]
    assert finding.location is not None
    assert (finding.location.file, finding.location.line) == (__file__, line_of(export))
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("m.onnx", "older")]


def test_weights_above_the_limit_of_a_message(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxplain.weights.PROTOBUF_LIMIT", BYTES)
    onnxplain.export(linear(), (X,), tmp_path / "m.onnx", external_data=False)
    monkeypatch.setattr("onnxplain.weights.PROTOBUF_LIMIT", BYTES - 1)
    onnxplain.export(linear(), (X,), tmp_path / "m.onnx", external_data=False, export_params=False)
    for path in (None, tmp_path / "other.onnx"):
        export = lambda path=path: onnxplain.export(linear(), (X,), path, external_data=False)  # noqa: E731  its line is the caller's
        finding = refused(export)
        assert finding.rule.id == "OXP5001"
        assert (finding.rule.size, finding.rule.limit) == (BYTES, BYTES - 1)  # type: ignore[attr-defined]
        assert finding.location is not None
        assert finding.location.line == line_of(export)
        assert finding.fixes[0].snippet == "external_data=True"
    onnxplain.export(linear(), (X,), tmp_path / "m.onnx")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]


def test_weights_without_data(tmp_path: pathlib.Path) -> None:
    x = torch.ones(1, 80, device="meta")
    onnxplain.export(linear("meta"), (x,))
    export = lambda: onnxplain.export(linear("meta"), (x,), tmp_path / "m.onnx")  # noqa: E731  its line is the caller's
    finding = refused(export)
    assert (finding.rule.id, finding.rule.names) == ("OXP5004", ("weight", "bias"))  # type: ignore[attr-defined]
    assert finding.location is not None
    assert finding.location.line == line_of(export)
    assert not list(tmp_path.iterdir())
    onnxplain.export(linear("meta"), (x,), tmp_path / "m.onnx", export_params=False, keep_initializers_as_inputs=True)
    assert [each.name for each in onnx.load(tmp_path / "m.onnx").graph.input] == ["input", "weight", "bias"]


def turned(x: Any) -> Any:
    return op.Transpose(x, perm=[0, 5])


def test_a_model_that_the_checker_rejects(tmp_path: pathlib.Path) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.t_copy(x) + 1

    table: Any = {torch.ops.aten.t_copy.default: turned, torch.ops.aten.transpose_copy.int: lambda x, *_: turned(x)}
    finding = refused(lambda: onnxplain.export(model, (torch.ones(2, 3),), tmp_path / "m.onnx", custom_translation_table=table))
    assert finding.rule.id == "OXP5002"
    assert "\n" not in finding.rule.error  # type: ignore[attr-defined]
    assert finding.location is not None
    assert finding.location.line == line_of(model) + 1
    assert not list(tmp_path.iterdir())


class Sizes(torch.nn.Module):
    """Weights of 1024 and 1028 bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.small, self.large = (torch.nn.Parameter(torch.ones(size)) for size in (256, 257))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.small.sum() + self.large.sum()


def test_the_checker_gets_the_data_of_small_weights_only(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = list[Any]()
    check = onnx.checker.check_model

    def recorded(model: onnx.ModelProto, **options: Any) -> None:
        checked.append((model, options))
        check(model, **options)

    monkeypatch.setattr(onnx.checker, "check_model", recorded)
    program = onnxplain.export(Sizes(), (torch.ones(3),))
    ((model, options),) = checked
    assert options == {"full_check": True}
    assert "small" in {each.name for each in model.graph.initializer}
    assert "large" not in {each.name for each in model.graph.initializer}
    assert [each.name for each in model.graph.input] == ["x", "large"]
    assert [value.name for value in program.model.graph.inputs] == ["x"]


def test_each_file_is_recorded_with_its_content(tmp_path: pathlib.Path) -> None:
    log = onnxplain.export(linear(), (X,), tmp_path / "m.onnx", external_data=True).diagnostics
    files = [tmp_path / "m.onnx.data", tmp_path / "m.onnx"]
    assert [(each.path, each.role) for each in log.artifacts] == [(file, "resultFile") for file in files]
    assert [each.sha256 for each in log.artifacts] == [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
