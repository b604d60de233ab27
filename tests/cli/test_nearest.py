"""Mistyped commands, options and values: exit code 2, and the nearest name."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from onnxplain.cli import main
from onnxplain.diagnostics import DiagnosticOptions, Level


@pytest.mark.parametrize(
    ("command", "near"),
    [
        ("exprot models.py:double", "'export'"),
        ("baseline acept a.sarif", "'accept'"),
        ("--verison", "'--version'"),
        ("export models.py:double --verfy", "'--verify'"),
        ("gate a.sarif --fromat json", "'--format'"),
        ("gate a.sarif --format gitlba", "'gitlab'"),
        ("baseline accept a.sarif --basline b", "'--baseline'"),
        ("fix a.sarif --unsaf", "'--unsafe'"),
        ("report a.sarif --outptu b", "'--output'"),
        ("rules --jsno", "'--json'"),
        ("export models.py:double --strategy stirct", "'strict'"),
        ("export models.py:double --verbosity debgu", "'debug'"),
        ("export models.py:double --select DataDependantBranch", "OXP1001"),
        ("export models.py:double --ignore OXP10011", "OXP1001"),
        ("export models.py:double --level DataDependantBranch=note", "OXP1001"),
        ("export models.py:double --level OXP1001=warnin", "'warning'"),
        ("explain DataDependantBranch", "OXP1001"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_the_nearest_name_is_offered(command: str, near: str) -> None:
    result = CliRunner().invoke(main, command.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert near in result.stderr


@pytest.mark.parametrize("command", ["qqq", "--qqq", "export --qqq", "export models.py:double --level OXP1001", "baseline qqq"])
@pytest.mark.usefixtures("folder")
def test_nothing_is_offered_where_nothing_is_near(command: str) -> None:
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 2
    assert "Did you mean" not in result.stderr


def test_a_rule_may_be_named(calls: list[tuple[tuple[object, ...], dict[str, object]]]) -> None:
    given = ["--select", "oxp1,DataDependentBranch", "--level", "datadependentbranch=note"]
    assert CliRunner().invoke(main, ["export", "models.py:double", *given]).exit_code == 0
    assert calls[0][1]["diagnostic_options"] == DiagnosticOptions(select=("OXP1", "OXP1001"), levels={"OXP1001": Level.NOTE})


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_options_and_rules(shell: str) -> None:
    def completed(words: str, last: str) -> str:
        environment = {"_ONNXPLAIN_COMPLETE": f"{shell}_complete", "COMP_WORDS": f"{words} {last}".strip()}
        environment["COMP_CWORD"] = last if shell == "fish" else str(len(words.split()))
        return CliRunner().invoke(main, [], prog_name="onnxplain", env=environment).stdout

    source = CliRunner().invoke(main, [], prog_name="onnxplain", env={"_ONNXPLAIN_COMPLETE": f"{shell}_source"})
    assert (source.exit_code, "_ONNXPLAIN_COMPLETE" in source.stdout) == (0, True)
    assert "export" in completed("onnxplain", "exp")
    assert "--verify" in completed("onnxplain export", "--ver")
    assert "OXP1001" in completed("onnxplain explain", "OXP100")
    assert "DataDependentBranch" in completed("onnxplain explain", "DataDep")
    assert "DataDependentBranch" not in completed("onnxplain explain", "OXP3")
    assert "OXP1,OXP3001" in completed("onnxplain export --ignore", "OXP1,OXP3")
    assert "OXP1001=" in completed("onnxplain export --level", "OXP1001")
    assert "OXP1001=note" in completed("onnxplain export --level", "OXP1001=n")


@pytest.mark.usefixtures("folder")
def test_shells_complete_what_a_file_defines() -> None:
    def completed(*words: str, last: str = "") -> list[str]:
        line = " ".join(("onnxplain", "export", *words, last)).strip()
        environment = {"_ONNXPLAIN_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) + 2)}
        told = CliRunner().invoke(main, [], prog_name="onnxplain", env=environment).stdout
        return [item.partition(",")[2] for item in told.splitlines() if item]

    assert completed(last="models.py:dou") == ["models.py:double"]
    assert completed("models.py", last=":")[:2] == ["Double", "Constant"]
    assert completed("models.py", ":", last="wi") == ["with_all"]
    assert completed("other.py", ":", last="b") == []
    assert completed(last="mod") == ["mod"]
