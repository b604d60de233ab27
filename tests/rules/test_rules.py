"""The rule book: its pages, its histories, and its examples."""

from __future__ import annotations

import ast
import pathlib
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from marks import IS_3_11
from rule_classes import PAGE, make

import onnxplain.rules
from onnxplain.diagnostics import (
    Added,
    Level,
    LevelChanged,
    Retired,
    Rule,
    State,
    markdown,
    read_log,
    sarif,
)
from onnxplain.rules import ExportCutShort, OperatorNeedsNewerOpset, OutputReplaced, TargetNotLoaded, WorkerEnded, book

RULES = book.rules()
ROOT = pathlib.Path(__file__).parents[2]
# NOTE: the pages of the checkout, because those of the package are as old as its installation.
CATALOG, RELEASES = (ROOT / "rules" / page.name for page in (book.CATALOG, book.RELEASES))

rule_parameter = pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.id}-{rule.__name__}")


# The pages


def test_without_docstrings_the_pages_are_read_from_the_sources() -> None:
    """`python -OO` loads no docstrings."""
    program = "import onnxplain.rules; print(onnxplain.rules.OutputReplaced.page)"
    pages = [
        subprocess.run([sys.executable, *flags, "-c", program], capture_output=True, text=True, check=True).stdout
        for flags in ((), ("-OO",))
    ]
    assert pages == [f"{OutputReplaced.page}\n"] * 2


def test_catalog_is_fresh() -> None:
    assert CATALOG.read_text(encoding="utf-8") == book.catalog(RULES), "run `make rules` to refresh CATALOG.md"


def test_unshipped_rules_are_fresh() -> None:
    text = RELEASES.read_text(encoding="utf-8")
    assert text == book.releases(RULES, text), "run `make rules` to refresh RELEASES.md"


def test_every_link_of_the_catalog_has_its_section() -> None:
    text = book.catalog(RULES)
    sections = {heading.lower().replace(" ", "-") for heading in re.findall(r"^## (.+)$", text, re.MULTILINE)}
    assert set(re.findall(r"\]\(#(.+?)\)", text)) == sections


def test_the_book_never_imports_torch() -> None:
    code = "import sys, onnxplain.rules; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@rule_parameter
def test_message_quotes_every_field(rule: type[Rule]) -> None:
    assert {name for name in rule.fields() if f"'{{{name}}}'" in rule.message} == set(rule.fields())


@rule_parameter
def test_summary_is_one_sentence(rule: type[Rule]) -> None:
    assert re.fullmatch(r"[^\n]+[^.]\.", rule.page.summary)
    assert ". " not in rule.page.summary


def test_every_class_of_the_chapters_is_in_the_book() -> None:
    bodies = (ast.parse(path.read_text(encoding="utf-8")).body for path in (ROOT / "rules").rglob("*.py"))
    defined = {node.name for body in bodies for node in body if isinstance(node, ast.ClassDef) and node.keywords}
    assert defined == {rule.__name__ for rule in RULES}
    assert all(getattr(onnxplain.rules, name).__name__ == name for name in defined)


def test_every_rule_is_reported_somewhere() -> None:
    made = set()
    for file in (ROOT / "exporter").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                made.add(node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", ""))
    silent = [rule.__name__ for rule in RULES if rule.__name__ not in made and not isinstance(rule.history[-1], Retired)]
    assert not silent


# The examples


def marked_line(rule: type[Rule], program: str) -> int:
    lines = [number for number, line in enumerate(program.splitlines(), start=1) if line.endswith(f"# {rule.id}")]
    assert len(lines) == 1, f"exactly one line must end with '# {rule.id}'"
    return lines[0]


@pytest.fixture
def run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[str, Any]]:
    """Runs a program as a script. Returns its path and the log of its export."""

    def call(program: str) -> tuple[str, Any]:
        import onnxplain

        path = tmp_path / "program.py"
        path.write_text(program, encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        try:
            return str(path), runpy.run_path(str(path))["program"].diagnostics
        except onnxplain.ExportFailed as failed:
            return str(path), failed.log

    return call


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule is not OutputReplaced], ids=lambda rule: f"{rule.id}-{rule.__name__}")
def test_failing_example_has_the_finding(rule: type[Rule], run: Callable[[str], tuple[str, Any]]) -> None:
    if rule is OperatorNeedsNewerOpset and not IS_3_11:
        pytest.skip("Python 3.10 knows only the first line of a statement")
    path, log = run(rule.page.failing)
    found = [(finding.rule.id, finding.location and (finding.location.file, finding.location.line)) for finding in log.findings]
    assert found == [(rule.id, (path, marked_line(rule, rule.page.failing)))], "\n".join(map(str, log.findings))
    if rule not in (ExportCutShort, TargetNotLoaded, WorkerEnded):  # their logs were read already
        saved = pathlib.Path("program.sarif")
        sarif.write(log, saved)
        assert markdown.to_markdown(read_log(saved)) == markdown.to_markdown(log)


def test_failing_example_of_the_gate_has_the_finding(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "program.py"
    program.write_text(OutputReplaced.page.failing, encoding="utf-8")
    verdict = runpy.run_path(str(program))["verdict"]
    assert [each.result.rule for each in verdict.having("new")] == [OutputReplaced.id]


@rule_parameter
def test_clean_example_has_no_finding(rule: type[Rule], run: Callable[[str], tuple[str, Any]]) -> None:
    _, log = run(rule.page.clean)
    assert not log.findings


# Releases


def test_shipped_tables_agree_with_the_histories() -> None:
    assert book.disagreements(RULES, RELEASES.read_text(encoding="utf-8")) == []


@pytest.mark.usefixtures("scratch")
def test_a_release_freezes_its_table() -> None:
    first = make(history=[Added("1.0")])
    new = book.releases([first], "# Releases\n\n")
    shipped = book.frozen([first], new, "1.0")
    assert shipped.startswith("# Releases\n\n## Unshipped\n\nNothing.\n\n## 1.0\n\n| Id |")
    assert book.shipped(shipped) == {"1.0": {"OXP7901": State("Odd", Level.ERROR, ("thing",), 1)}}
    assert book.releases([first], shipped) == shipped
    assert book.disagreements([first], shipped) == []

    second = make(id="OXP7902", name="Even", history=[Added("1.1")])
    grown = book.releases([first, second], shipped)
    assert "OXP7902" in grown.partition("## 1.0")[0]
    assert "OXP7901" not in grown.partition("## 1.0")[0]
    assert grown.partition("## 1.0")[2] == shipped.partition("## 1.0")[2]


@pytest.mark.usefixtures("scratch")
def test_a_change_without_its_event_is_found() -> None:
    before = make(level=Level.WARNING)
    shipped = book.frozen([before], book.releases([before], "# Releases\n\n"), "1.0")
    silently = make(id="OXP7902", name="Odd")
    told = make(id="OXP7903", name="Odd", history=[Added("1.0"), LevelChanged("1.1", Level.WARNING, Level.ERROR)])
    assert book.disagreements([silently], shipped.replace("OXP7901", "OXP7902")) == [("1.0", "OXP7902")]
    assert book.disagreements([told], shipped.replace("OXP7901", "OXP7903")) == []
    assert book.disagreements([], shipped) == [("1.0", "OXP7901")]


@pytest.mark.usefixtures("scratch")
def test_cells_escape_pipes() -> None:
    rule = make(doc=PAGE.replace("odd", "a | b"))
    assert r"| error | Something is a \| b. |" in book.catalog([rule])


def test_findings_about_an_operator_are_one_wherever_it_is() -> None:
    everywhere = {rule.id for rule in RULES if rule.everywhere}
    assert everywhere == {"OXP3001", "OXP3002", "OXP3003"}
