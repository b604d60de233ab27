"""The rule book: its pages, its histories, and its examples."""

from __future__ import annotations

import ast
import pathlib
import re
import runpy
import subprocess
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import onnxplain.rules
from onnxplain.diagnostics import (
    Added,
    ArgumentsChanged,
    Deprecated,
    HistoryEvent,
    Level,
    LevelChanged,
    MeaningChanged,
    Renamed,
    Retired,
    Rule,
    State,
    markdown,
    read_log,
    sarif,
)
from onnxplain.rules import ExportCutShort, OutputReplaced, book

RULES = book.rules()
ROOT = pathlib.Path(__file__).parents[2]
# NOTE: the pages of the checkout, because those of the package are as old as its installation.
CATALOG, RELEASES = (ROOT / "rules" / page.name for page in (book.CATALOG, book.RELEASES))

rule_parameter = pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.id}-{rule.__name__}")


# The pages


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
    path, log = run(rule.page.failing)
    found = [(finding.rule.id, finding.location and (finding.location.file, finding.location.line)) for finding in log.findings]
    assert found == [(rule.id, (path, marked_line(rule, rule.page.failing)))], "\n".join(map(str, log.findings))
    if rule is not ExportCutShort:  # its log is one that was read already
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


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the rules that a test defines from the book."""
    monkeypatch.setattr(Rule, "_book", dict(Rule._book))


PAGE = """Something is odd.

What happened:
    It happened.

Why it matters:
    It matters.

How to fix it:
    Fix it.

Example:
    ```python
    x = 1  # OXP7001
    ```

    ```python
    x = 2
    ```
"""


def make(
    id: str = "OXP7001",
    level: Level = Level.ERROR,
    history: Sequence[HistoryEvent] = (Added("1.0"),),
    message: str = "The '{thing}' is odd.",
    doc: str = PAGE,
    fields: dict[str, object] | None = None,
    name: str = "Odd",
    volatile: object = (),
) -> type[Rule]:
    """A rule, as a class statement makes it."""
    annotations = {"thing": str} if fields is None else fields
    body = {"__doc__": doc, "__module__": __name__, "message": message, "volatile": volatile, "__annotations__": annotations}
    return types.new_class(name, (Rule,), {"id": id, "level": level, "history": history}, lambda namespace: namespace.update(body))


HISTORY = (
    Added("1.0"),
    LevelChanged("1.1", Level.WARNING, Level.ERROR),
    ArgumentsChanged("1.2", ("item",), ("thing",)),
    MeaningChanged("1.3", "it finds more"),
    Renamed("1.10", "Strange", "Odd"),
    Deprecated("1.11", "OXP7002"),
    Retired("2.0"),
)


@pytest.mark.usefixtures("scratch")
@pytest.mark.parametrize(
    ("version", "state"),
    [
        ("0.9", None),
        ("1.0", State("Strange", Level.WARNING, ("item",), 1)),
        ("1.1", State("Strange", Level.ERROR, ("item",), 1)),
        ("1.2", State("Strange", Level.ERROR, ("thing",), 2)),
        ("1.3", State("Strange", Level.ERROR, ("thing",), 3)),
        ("1.9", State("Strange", Level.ERROR, ("thing",), 3)),
        ("1.10", State("Odd", Level.ERROR, ("thing",), 3)),
        ("1.11", State("Odd", Level.ERROR, ("thing",), 3)),
        ("2.0", State("Odd", Level.ERROR, ("thing",), 3)),
    ],
)
def test_history_replays_to_any_version(version: str, state: State | None) -> None:
    assert make(history=HISTORY).state_at(version) == state


@pytest.mark.usefixtures("scratch")
def test_a_release_freezes_its_table() -> None:
    first = make(history=[Added("1.0")])
    new = book.releases([first], "# Releases\n\n")
    shipped = book.frozen([first], new, "1.0")
    assert shipped.startswith("# Releases\n\n## Unshipped\n\nNothing.\n\n## 1.0\n\n| Id |")
    assert book.shipped(shipped) == {"1.0": {"OXP7001": State("Odd", Level.ERROR, ("thing",), 1)}}
    assert book.releases([first], shipped) == shipped
    assert book.disagreements([first], shipped) == []

    second = make(id="OXP7002", name="Even", history=[Added("1.1")])
    grown = book.releases([first, second], shipped)
    assert "OXP7002" in grown.partition("## 1.0")[0]
    assert "OXP7001" not in grown.partition("## 1.0")[0]
    assert grown.partition("## 1.0")[2] == shipped.partition("## 1.0")[2]


@pytest.mark.usefixtures("scratch")
def test_a_change_without_its_event_is_found() -> None:
    before = make(level=Level.WARNING)
    shipped = book.frozen([before], book.releases([before], "# Releases\n\n"), "1.0")
    silently = make(id="OXP7002", name="Odd")
    told = make(id="OXP7003", name="Odd", history=[Added("1.0"), LevelChanged("1.1", Level.WARNING, Level.ERROR)])
    assert book.disagreements([silently], shipped.replace("OXP7001", "OXP7002")) == [("1.0", "OXP7002")]
    assert book.disagreements([told], shipped.replace("OXP7001", "OXP7003")) == []
    assert book.disagreements([], shipped) == [("1.0", "OXP7001")]


@pytest.mark.usefixtures("scratch")
def test_cells_escape_pipes() -> None:
    rule = make(doc=PAGE.replace("odd", "a | b"))
    assert r"| error | Something is a \| b. |" in book.catalog([rule])


# Refused definitions


@pytest.mark.usefixtures("scratch")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": "ABC7001"}, "must be OXP and four digits"),
        ({"id": "OXP9001"}, "must be OXP and four digits"),
        ({"id": "OXP70011"}, "must be OXP and four digits"),
        ({"id": RULES[0].id}, f"taken by {RULES[0].__name__}"),
        ({"message": "The '{thing}' and the '{other}' are odd."}, "other"),
        ({"message": "The '{thing.name}' is odd."}, "thing.name"),
        ({"message": "The '{}' is odd."}, "are not fields"),
        ({"message": "The '{thing' is odd."}, "OXP7001"),
        ({"message": "The '{thing}' is odd"}, "period"),
        ({"volatile": ("other",)}, "volatile names ['other']"),
        ({"volatile": "thing"}, "volatile names"),
        ({"doc": ""}, "needs the sections"),
        ({"doc": PAGE.replace("Why it matters:", "")}, "needs the sections"),
        ({"doc": PAGE.replace("What happened", "Why").replace("Why it matters", "What happened")}, "needs the sections"),
        ({"doc": PAGE.replace("```python\n    x = 2\n    ```", "")}, "two ```python blocks, it has 1"),
        ({"doc": PAGE.replace("x = 2", "x = = 2")}, "invalid syntax"),
        ({"fields": {"thing": list[str]}}, "field thing has type"),
        ({"fields": {"thing": dict}}, "field thing has type"),
        ({"history": []}, "must begin with Added"),
        ({"history": [LevelChanged("1.0", Level.WARNING, Level.ERROR)]}, "must begin with Added"),
        ({"history": [Added("1.0"), Added("1.1")]}, "only the first event"),
        ({"history": [Added("1.0"), Retired("1.1"), Deprecated("1.2", "OXP7002")]}, "only the last event"),
        ({"history": [Added("1.1"), Deprecated("1.0", "OXP7002")]}, "order of their versions"),
        ({"history": [Added("one")]}, "one"),
        ({"history": [Added("1.0"), LevelChanged("1.1", Level.ERROR, Level.WARNING)]}, "leads to level"),
        ({"history": [Added("1.0"), ArgumentsChanged("1.1", (), ("item",))]}, "leads to arguments"),
        ({"history": [Added("1.0"), Renamed("1.1", "Odd", "Even")]}, "leads to name"),
    ],
)
def test_bad_rule_is_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(TypeError, match=re.escape(reason)):
        make(**change)
    assert Rule.find("OXP7001") is None


@pytest.mark.usefixtures("scratch")
def test_finding_without_an_argument_is_refused() -> None:
    rule: Any = make()
    assert str(rule(thing="x")) == "The 'x' is odd."
    with pytest.raises(TypeError, match="thing"):
        rule()


@pytest.mark.usefixtures("scratch")
@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (int, 3, "3"),
        (float, 0.5, "0.5"),
        (str, "two\n  lines", "two lines"),
        (tuple[str, ...], ("a", "b"), "a, b"),
        (tuple[str, ...], tuple("abcdefg"), "a, b, c, d, e and 2 more"),
    ],
)
def test_argument_as_text(kind: object, value: object, text: str) -> None:
    rule: Any = make(fields={"thing": kind})
    assert rule(thing=value).argument_texts() == (text,)


def test_findings_about_an_operator_are_one_wherever_it_is() -> None:
    everywhere = {rule.id for rule in RULES if rule.everywhere}
    assert everywhere == {"OXP3001", "OXP3002", "OXP3003"}
