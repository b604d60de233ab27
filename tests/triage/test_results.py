"""What a triage makes of its verdicts: clusters, files for GitHub, and findings that come and go."""

from __future__ import annotations

import dataclasses
import itertools
import json
import pathlib
import re
import types
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from click.testing import CliRunner
from fleets import triage, verdicts
from gate_logs import IGNORED, write
from gate_logs import run as run_gate

from onnxplain.cli import main
from onnxplain.triage import Limits, Model, Options, Triage, Triaged, clusters, merged, to_lines, to_markdown
from onnxplain.triage.verdicts import LoggedFinding, Verdict

_numbers = itertools.count()


def verdict(name: str, weights: int, *causes: tuple[str, str], fails: bool = True) -> Verdict:
    findings = tuple(
        LoggedFinding(rule, "Title", "error", fails, f"{next(_numbers):032x}", f"{cause} in {name}", cause) for rule, cause in causes
    )
    return Verdict(name, "failed" if causes else "exported", 1.0, 0, weights, findings, pathlib.Path(f"{name}.sarif"))


def test_the_cause_that_blocks_the_most_models_comes_first() -> None:
    gelu, line, note = ("OXP3001", "aten::gelu"), ("OXP1001", "model.py:3"), ("OXP1034", "model.py:4")
    found = clusters.clusters(
        [
            verdict("large", 100, gelu, line),
            verdict("small", 10, gelu),
            verdict("unknown", 0, gelu),
            verdict("other", 5, line),
            verdict("healthy", 1),
            verdict("noted", 1, note, fails=False),
        ]
    )
    assert [(each.cause, each.models, each.alone, each.message) for each in found] == [
        ("aten::gelu", ("small", "large", "unknown"), 2, "aten::gelu in small"),
        ("model.py:3", ("other", "large"), 1, "model.py:3 in other"),
    ]


def test_the_time_of_an_export_does_not_change_what_stands_for_a_cause() -> None:
    gelu = ("OXP3001", "aten::gelu")
    slow, fast = dataclasses.replace(verdict("a", 10, gelu), seconds=9.0), dataclasses.replace(verdict("a dynamic", 10, gelu), seconds=1.0)
    for members in ([slow, fast], [fast, slow]):
        (found,) = clusters.clusters(members)
        assert (found.smallest, found.message) == ("a", "aten::gelu in a")


def test_merged_files_keep_the_limits(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    logs = []
    for number in range(45):
        logs.append(tmp_path / f"{number}.sarif")
        write(["a  # E", "b  # W"], str(logs[-1]), model=f"Net{number}")
    (tmp_path / "triage-9.sarif").touch()
    made = merged.write([*logs, tmp_path / "missing.sarif"], tmp_path)
    documents: list[Any] = [json.loads(path.read_text(encoding="utf-8")) for path in made]
    assert [len(each["runs"]) for each in documents] == [20, 20, 5]
    assert len({run["automationDetails"]["id"] for each in documents for run in each["runs"]}) == 45
    assert sorted(tmp_path.glob("triage-*.sarif")) == made
    monkeypatch.setattr(merged, "RESULT_LIMIT", 4)
    assert len(merged.write(logs[:5], tmp_path)) == 3
    monkeypatch.setattr(merged, "RESULT_LIMIT", 1000)
    (whole,) = merged.write(logs[:4], tmp_path)
    monkeypatch.setattr(merged, "SIZE_LIMIT", whole.stat().st_size * 5 // 8)
    assert [len(json.loads(path.read_text(encoding="utf-8"))["runs"]) for path in merged.write(logs[:4], tmp_path)] == [2, 2]


FLAKY = """\
import pathlib

import torch

runs = pathlib.Path("runs")


class Flaky(torch.nn.Module):
    def forward(self, x):
        if runs.exists():
            return -x if x.sum() > 0 else x
        return x * 2


def build():
    return Flaky(), (torch.ones(3),)


class Steady(torch.nn.Module):
    def forward(self, x):
        return -x if x.min() > 0 else x


def build_steady():
    return Steady(), (torch.ones(3),)
"""


def test_the_gate_takes_a_triage_and_tells_flaky_findings_apart(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.py").write_text(FLAKY, encoding="utf-8")

    def counts(*args: str) -> tuple[int, Any, Any, Any]:
        told = CliRunner().invoke(main, ["gate", "triage", "--format", "json", *args])
        report = json.loads(told.stdout)
        states = sorted((each["model"], each["state"]) for each in report["findings"] if each["level"] == "error")
        return told.exit_code, states, report["new"]["error"], report["flaky"]

    options = ("models.py", "--control-flow", "report", "--no-try-fixes")
    assert triage(*options).exit_code == 1
    assert counts() == (1, [("models:build_steady", "new")], 1, 0)
    assert CliRunner().invoke(main, ["baseline", "accept", "triage"]).exit_code == 0
    baseline = ("--baseline", "onnxplain-baseline.sarif")
    assert counts(*baseline) == (0, [("models:build_steady", "unchanged")], 0, 0)
    (tmp_path / "runs").touch()
    assert triage(*options, "--again").exit_code == 1
    assert [outcome for _, outcome in sorted(verdicts(tmp_path / "triage"))] == ["exported", "failed", "failed", "failed"]
    code, states, new, flaky = counts(*baseline)
    assert (code, states, new) == (0, [("models:build_steady", "unchanged")], 0)
    assert flaky == 1
    # A change of the source makes the finding new, not flaky.
    (tmp_path / "models.py").write_text(FLAKY.replace("x * 2", "x * 3"), encoding="utf-8")
    assert triage(*options).exit_code == 1
    assert counts(*baseline)[2:] == (1, 0)


def test_a_folder_that_is_no_triage_is_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert run_gate("gate", "empty").exit_code == 2
    (tmp_path / "triage.sqlite").write_text("no database", encoding="utf-8")
    assert run_gate("gate", "triage.sqlite").exit_code == 2


def test_a_script_shows_the_smallest_model_that_fails_first_for_a_cause() -> None:
    gelu, line = ("OXP3001", "aten::gelu"), ("OXP1001", "model.py:3")
    found = clusters.clusters([verdict("large", 100, gelu), verdict("small", 10, line, gelu)])
    assert [(each.cause, each.smallest, each.first) for each in found] == [
        ("aten::gelu", "small", "large"),
        ("model.py:3", "small", "small"),
    ]
    (alone, _) = clusters.clusters([verdict("small", 10, line, gelu)])[::-1]
    assert (alone.cause, alone.first) == ("aten::gelu", "")


def test_the_smallest_model_of_a_cause_gets_a_script(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = (
        "import torch\n\ndef build():\n    return Net(), (torch.ones(3, 3),)\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n"
    )
    # A comment hides no finding that ends the export.
    last = "return torch.linalg.eigvals(x)  # onnxplain: ignore[OXP3001] known"
    (tmp_path / "net.py").write_text(f"{source}        x = x.exp() + 1\n        {last}\n", encoding="utf-8")
    assert triage("net.py", "--repro").exit_code == 1
    script = (tmp_path / "triage" / "logs" / "net_build.repro.py").read_text(encoding="utf-8")
    assert "torch.linalg.eigvals(x)" in script
    assert "x.exp()" not in script
    assert "(logs/net_build.repro.py)" in (tmp_path / "triage" / "summary.md").read_text(encoding="utf-8")
    page = (tmp_path / "triage" / "report.html").read_text(encoding="utf-8")
    assert page.count("torch.manual_seed(0)") == 1
    assert not [*(tmp_path / "triage" / "logs").glob("*.repro.sarif"), *(tmp_path / "triage" / "logs").glob("*.repro.graphs")]


def test_the_terminal_shows_ten_causes_and_the_summary_a_hundred() -> None:
    verdicts = tuple(verdict(f"net{number}", 1, ("OXP3001", f"cause {number}")) for number in range(102))
    models = tuple(Model(each.name, each.name, each.name, "nets.py", "build", {}, False, Options()) for each in verdicts)
    triaged = Triaged(models, verdicts, len(models), tuple(clusters.clusters(verdicts)), frozenset(), (), {})
    rows = [line for line in to_lines(triaged) if "OXP3001" in "".join(text for text, _ in line)]
    assert len(rows) == 10
    rows_of = [part.count("OXP3001") for part in to_markdown(triaged).split("## ")]
    assert rows_of == [0, 100, 100]


@pytest.mark.parametrize(("count", "more"), [(1, []), (5, []), (6, ["1"]), (102, ["97"])])
def test_flaky_models_are_told_each_once(count: int, more: list[str]) -> None:
    names = [f"net{number:03}" for number in range(count)]
    models = tuple(Model(name, name, name, "nets.py", "build", {}, False, Options()) for name in names)
    flaky = frozenset((name, finding) for name in names for finding in "ab")
    triaged = Triaged(models, tuple(verdict(name, 1) for name in names), 1, (), flaky, (), {})
    told, counts = ("".join(text for text, _ in line) for line in to_lines(triaged))
    assert re.findall(r"net\d+", told) == names[:5]
    assert re.findall(r"(?<= )\d+(?= more)", told) == more
    assert re.findall(r"\b\d+\b", counts) == [str(each) for each in (count, count, count - 1) if each]
    assert re.findall(r"net\d+", to_markdown(triaged)) == names[:100]


def test_scripts_that_fail_alike_are_linked() -> None:
    verdicts = tuple(verdict(name, 1, ("OXP3001", f"aten::{name}")) for name in "ab")
    models = tuple(Model(each.name, each.name, each.name, "nets.py", "build", {}, False, Options()) for each in verdicts)
    scripts = {"b": pathlib.Path("triage/logs/b c.repro.py")}
    triaged = Triaged(models, verdicts, 2, tuple(clusters.clusters(verdicts)), frozenset(), (), scripts)
    assert sum("b c.repro.py" in "".join(text for text, _ in line) for line in to_lines(triaged)) == 1
    (link,) = (line for line in to_markdown(triaged).splitlines() if "](" in line)
    assert link.startswith("- ")
    assert ("aten::b" in link, link.endswith("](logs/b%20c.repro.py)")) == (True, True)


def test_the_summary_counts_the_models_of_each_family() -> None:
    verdicts = (verdict("a", 1), verdict("b", 1, ("OXP3001", "aten::gelu")), verdict("c", 1))
    models = [
        Model(each.name, each.name, family, "nets.py", "build", {}, False, Options())
        for each, family in zip(verdicts, ("small", "large", "large"), strict=True)
    ]
    for count, expected in ((3, [("large", "2", "1"), ("small", "1", "1")]), (1, [])):
        triaged = Triaged(tuple(models[:count]), verdicts[:count], count, (), frozenset(), (), {})
        assert re.findall(r"^\| (\w+) \| (\d) \| (\d) \|$", to_markdown(triaged).replace("`", ""), re.MULTILINE) == expected


def test_all_errors_of_a_log_that_no_comment_suppresses_are_causes(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def engine(jobs: Sequence[Any], _: Limits) -> Iterator[Any]:
        for job in jobs:
            write(["a  # E", "b  # W", f"c  # E{IGNORED.partition(' # E')[2]}", "d  # E"], str(job.files.log))
            yield types.SimpleNamespace(name=job.model.name, cause="exit", number=0, seconds=1.0, memory=2)

    model = Model("net", "net", "net", "net.py", "build", {}, False, Options())
    triaged = Triage([model], tmp_path / "triage", Limits(1.0, None), engine, "onnxplain triage").run(lambda _: None)
    (found,) = triaged.verdicts
    assert [(each.level, each.fails) for each in found.findings] == [("error", True), ("error", True), ("warning", False)]
    assert [(each.models, each.alone) for each in triaged.clusters] == [(("net",), 0), (("net",), 0)]
