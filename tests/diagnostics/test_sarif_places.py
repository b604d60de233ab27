"""Places in SARIF logs: URIs, regions, columns and snippets are exact."""

from __future__ import annotations

import json
import linecache
import pathlib
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from marks import IS_3_11
from sarif_checks import check_log
from sarif_logs import MODEL, Read, at, make_context, physical, results, source

import onnxplain
from onnxplain.diagnostics import ExportFailed, Location, Region, sarif
from onnxplain.rules import DataDependentBranch


def test_columns_are_utf16_code_units(tmp_path: pathlib.Path, read: Read) -> None:
    line = 'name = "模型 😀😀"; y = x.item() + 1\n'
    file = source(tmp_path, f"import torch\n{line}")
    context = make_context()
    context.report(DataDependentBranch(condition="x.item()"), at=at(file, "x.item()"))
    region = physical(results(read(context.log()))[0])["region"]
    start = len(line[: line.index("x.item()")].encode("utf-16-le")) // 2 + 1
    assert start == line.index("x.item()") + 3
    assert region == {
        "startLine": 2,
        "startColumn": start,
        "endLine": 2,
        "endColumn": start + len("x.item()"),
        "snippet": {"text": "x.item()"},
    }


@pytest.mark.parametrize(("text", "line"), [(MODEL, 7), (" " * 12 + "return -x", 1)])
def test_whole_line_begins_after_its_indentation(tmp_path: pathlib.Path, read: Read, text: str, line: int) -> None:
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=Location(source(tmp_path, text), Region(line)))
    region = physical(results(read(context.log()))[0])["region"]
    assert region.pop("properties") == {"wholeLine": True}
    assert region == {"startLine": line, "startColumn": 13, "endLine": line, "endColumn": 22, "snippet": {"text": "return -x"}}


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        ("my model.py", "my%20model.py"),
        ("src/模型#1?.py", "src/%E6%A8%A1%E5%9E%8B%231%3F.py"),
        ("100%.py", "100%25.py"),
        ("c:x.py", "c%3Ax.py"),
    ],
)
def test_uris_below_the_root_are_relative_and_encoded(tmp_path: pathlib.Path, read: Read, name: str, uri: str) -> None:
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=at(source(tmp_path, name=name), "return"))
    (result,) = results(read(context.log()))
    assert physical(result)["artifactLocation"] == {"uri": uri, "uriBaseId": "SRCROOT"}
    assert "primaryLocationLineHash" in result["partialFingerprints"]


@pytest.mark.parametrize(
    ("folder", "uri", "base"),
    [
        ("other place", "model.py", "ELSEWHERE"),
        ("venv/lib/python3/site-packages/pack age", "pack%20age/model.py", "PACKAGES"),
        ("root/venv/lib/python3/site-packages/package", "venv/lib/python3/site-packages/package/model.py", "SRCROOT"),
    ],
)
def test_uris_tell_no_folder_outside_the_root(tmp_path: pathlib.Path, folder: str, uri: str, base: str) -> None:
    file = source(tmp_path / folder)
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=at(file, "return"))
    content = check_log(json.loads(sarif.to_json(context.log(), tmp_path / "root")))
    assert physical(results(content)[0])["artifactLocation"] == {"uri": uri, "uriBaseId": base}
    assert {*content["runs"][0]["originalUriBaseIds"]} == {"SRCROOT", base}


def test_uris_have_no_dots_and_follow_links(tmp_path: pathlib.Path, read: Read) -> None:
    file = source(tmp_path / "src")
    (tmp_path / "a").mkdir()
    link = tmp_path.with_name(f"{tmp_path.name}-link")
    link.symlink_to(tmp_path)
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=Location(str(tmp_path / "a/../src/model.py"), Region(6)))
    context.report(DataDependentBranch(condition="y"), at=Location(str(link / "src/model.py"), Region(6)))
    assert pathlib.Path(file).exists()
    assert {physical(result)["artifactLocation"]["uri"] for result in results(read(context.log()))} == {"src/model.py"}


@pytest.mark.parametrize("name", ["<stdin>", "<eval_with_key>.1 from model.py:3"])
def test_source_in_no_file(read: Read, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(linecache.cache, name, (7, None, ["y = x\n"], name))
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=Location(name, Region(1, 5, 1, 6)))
    (result,) = results(read(context.log()))
    assert "uriBaseId" not in physical(result)["artifactLocation"]
    assert physical(result)["region"]["snippet"] == {"text": "x"}
    assert "primaryLocationLineHash" in result["partialFingerprints"]


@pytest.mark.parametrize(
    ("text", "region", "around"),
    [
        ("only = 1\n", Region(1), None),
        ("only = 1", Region(1, 1, 1, 5), (1, 1)),
        ("a\nb\nc\nd\ne\nf\n", Region(1), (1, 3)),
        ("a\nb\nc\nd\ne\nf\n", Region(3, 1, 4, 2), (1, 6)),
        ("a\nb\nc\nd\ne\nf", Region(6), (4, 6)),
    ],
)
def test_context_is_a_proper_superset_inside_the_file(
    tmp_path: pathlib.Path, read: Read, text: str, region: Region, around: tuple[int, int] | None
) -> None:
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=Location(source(tmp_path, text), region))
    found = physical(results(read(context.log()))[0]).get("contextRegion")
    assert (found and (found["startLine"], found["endLine"])) == around


@pytest.mark.parametrize(
    ("region", "expected"),
    [
        (Region(4), None),
        (Region(0), None),
        (Region(2, 3, 99, 7), (2, 3, 3, 5)),
        (Region(2, 99), (2, 5, 2, 5)),
        (Region(2, 3, 2, 1), (2, 3, 2, 5)),
        (Region(2, -3, 1, -3), (2, 1, 2, 5)),
    ],
)
def test_regions_stay_inside_the_file(
    tmp_path: pathlib.Path, read: Read, region: Region, expected: tuple[int, int, int, int] | None
) -> None:
    file = source(tmp_path, "aaaa\nbbbb\ncccc\n")
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=Location(file, region))
    found = physical(results(read(context.log()))[0]).get("region")
    assert (found and (found["startLine"], found["startColumn"], found["endLine"], found["endColumn"])) == expected


def test_source_that_is_not_at_hand(read: Read) -> None:
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=Location("/nowhere/model.py", Region(3, 5, 4, 9)))
    context.report(DataDependentBranch(condition="y"), at=Location("", module="encoder"))
    context.report(DataDependentBranch(condition="z"))
    unseen, module, nowhere = results(read(context.log()))
    assert physical(unseen) == {"artifactLocation": {"uri": "model.py", "uriBaseId": "ELSEWHERE"}, "region": {"startLine": 3, "endLine": 4}}
    assert module["locations"] == [{"logicalLocations": [{"fullyQualifiedName": "encoder", "index": 1, "kind": "module"}]}]
    assert "locations" not in nowhere
    assert "primaryLocationLineHash" not in unseen["partialFingerprints"]


def test_columns_of_an_export_behind_other_scripts(load: Callable[..., ModuleType], tmp_path: pathlib.Path) -> None:
    if not IS_3_11:
        pytest.skip("Python 3.10 knows no columns")
    module = load(
        """
        import torch

        class Solve(torch.nn.Module):
            def forward(self, x):
                label = "模型 😀😀"; y = torch.nextafter(x, x)
                return y
        """
    )
    path = tmp_path / "log.sarif"
    with pytest.raises(ExportFailed):
        onnxplain.export(module.Solve(), (torch.eye(3),), sarif=path)
    (result,) = results(check_log(path))
    region = physical(result)["region"]
    line = (tmp_path / "model.py").read_text(encoding="utf-8").splitlines()[region["startLine"] - 1].encode("utf-16-le")
    blamed = line[2 * (region["startColumn"] - 1) : 2 * (region["endColumn"] - 1)].decode("utf-16-le")
    assert blamed == region["snippet"]["text"] == "torch.nextafter(x, x)"
