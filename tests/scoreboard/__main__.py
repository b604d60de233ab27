"""The command line: `python -m scoreboard [FOLDER]`, from the folder of the tests."""

from __future__ import annotations

import concurrent.futures
import json
import pathlib
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from . import case as cases
from .case import Case
from .run import run

_HERE = pathlib.Path(__file__).parent
_CORPUS = _HERE.parent.parent.parent / "shared" / "corpus"
_Path = click.Path(path_type=pathlib.Path, exists=True, file_okay=False, resolve_path=True)


@click.command()
@click.argument("folder", type=_Path, default=_CORPUS)
@click.option("--only", default="", help="Only cases whose name contains this.")
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(min=1))
@click.option("--no-theirs", is_flag=True, help="Leave torch.onnx.export out.")
@click.option("--json", "json_path", type=click.Path(path_type=pathlib.Path), help="Save the outcomes.")
def main(folder: pathlib.Path, only: str, jobs: int, no_theirs: bool, json_path: pathlib.Path | None) -> None:
    """Exports every case of FOLDER, each in a separate process, and prints what a user learned."""
    everything = [case for case in map(cases.read, sorted(folder.glob("case_*.py"))) if only in case.name]
    found = [case for case in everything if not case.needs]
    who = ("ours",) if no_theirs else ("ours", "theirs")
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = {(case.name, each): pool.submit(run, each, case) for case in found for each in who}
        results = {key: run.result() for key, run in runs.items()}
    console = Console(width=None if Console().is_terminal else 180)
    console.print(_table(found, results))
    for line in (*_summary(found, results), *_verdict(found, results)):
        console.print(line, markup=False)
    for case in everything:
        if case.needs:
            console.print(f"not run: {case.name}, which needs {', '.join(case.needs)}", markup=False)
    if json_path:
        json_path.write_text(json.dumps({f"{name} {each}": result for (name, each), result in results.items()}, indent=1), encoding="utf-8")


def right(case: Case, result: dict[str, Any]) -> bool:
    """Whether ours reports what the case expects, on its line. An export that verifies may be right as well."""
    level = result.get("level", "")
    match case.expect:
        case "ok":
            return _verified(result) and (result.get("worst") in ("ok", "note") or case.warning_is_right)
        case "error":
            return _verified(result) or (
                result["outcome"] in ("failed", "refused") and level == "error" and result["line"] and result["stage"]
            )
        case _:
            return bool(result["line"]) or (_verified(result) and case.a_right_export_counts)


def _verified(result: dict[str, Any]) -> bool:
    return result["outcome"] == "exported" and result.get("worst") != "error" and result.get("other_inputs", True)


def _table(found: Sequence[Case], results: dict[tuple[str, str], dict[str, Any]]) -> Table:
    table = Table(
        "case", "expected", "right", "outcome", "rule", "level", "line", "stage", "action", "edits", "fixed", "s", "theirs", "line", "s"
    )
    for case in found:
        mine, other = results[case.name, "ours"], results.get((case.name, "theirs"), {})
        table.add_row(
            case.name,
            case.expect,
            _mark(right(case, mine)),
            mine["outcome"],
            mine.get("rule", ""),
            mine.get("level", ""),
            _mark(mine.get("line")),
            _mark(mine.get("stage")),
            _mark(mine.get("action")),
            str(mine.get("edits", "")),
            ", ".join(mine.get("fixed", [])),
            f"{mine.get('seconds', 0):.1f}",
            other.get("outcome", ""),
            _mark(other.get("line")),
            f"{other.get('seconds', 0):.1f}",
        )
    return table


def _mark(value: object) -> str:
    return {True: "yes", False: "no"}.get(value, "") if isinstance(value, bool) else ""


def _summary(found: Sequence[Case], results: dict[tuple[str, str], dict[str, Any]]) -> list[str]:
    """The shares that count."""
    lines = []

    def share(title: str, among: Sequence[Case], test: Any) -> None:
        good = [case for case in among if test(results[case.name, "ours"], case)]
        missed = ", ".join(case.name.split("_")[0] for case in among if case not in good)
        lines.append(f"{title}: {len(good)} of {len(among)}" + (f"; not {missed}" if missed else ""))

    errors = [case for case in found if case.expect == "error" and not _verified(results[case.name, "ours"])]
    warned = [case for case in found if case.expect in ("warning", "note")]
    healthy = [case for case in found if case.expect == "ok"]
    share("errors: fail with a finding", errors, lambda result, _: result["outcome"] in ("failed", "refused"))
    share("errors: at the right stage", errors, lambda result, _: result.get("stage"))
    share("errors: first error on the line", errors, lambda result, _: result.get("line"))
    share("errors: an action is named", errors, lambda result, _: result.get("action"))
    share("errors: a fix can be applied", errors, lambda result, _: result.get("edits"))
    fixable = [case for case in errors if results[case.name, "ours"].get("fixed")]
    share("errors: every fix exports and verifies", fixable, lambda result, _: all(each.startswith("exported") for each in result["fixed"]))
    share("warnings and notes: on the line", warned, lambda result, case: right(case, result))
    share("healthy: exported without a warning", healthy, lambda result, case: right(case, result))
    broken = [
        case.name
        for case in found
        if results[case.name, "ours"]["outcome"] in ("crash", "hang")
        or results[case.name, "ours"].get("internal")
        or results[case.name, "ours"].get("traceback")
    ]
    lines.append(f"crashes, hangs, internal errors, tracebacks: {', '.join(broken) or 'none'}")
    return lines


def _verdict(found: Sequence[Case], results: dict[tuple[str, str], dict[str, Any]]) -> list[str]:
    """The shares that must not fall: what a user gets, cases of all kinds together."""
    mine = {case.name: results[case.name, "ours"] for case in found}
    failing = [case for case in found if mine[case.name]["outcome"] != "exported"]
    explained = [case for case in found if case.expect != "ok" and not (case.expect == "error" and _verified(mine[case.name]))]
    edited = [case for case in failing if mine[case.name].get("edits")]
    tried = [each for case in found for each in mine[case.name].get("fixed", ())]
    healthy = [case for case in found if case.expect == "ok"]

    def line(title: str, good: int, among: int) -> str:
        return f"{title}: {good} of {among}" + (f" ({good / among:.0%})" if among else "")

    rights = sum(right(case, mine[case.name]) for case in found)
    lines = sum(bool(mine[case.name].get("line")) or right(case, mine[case.name]) for case in explained)
    actions = sum(bool(mine[case.name].get("action")) or right(case, mine[case.name]) for case in explained)
    return [
        line("outcome right", rights, len(found)),
        line("line right", lines, len(explained)),
        line("advice given", actions, len(explained)),
        line("healthy cases without a warning that is not true", sum(right(case, mine[case.name]) for case in healthy), len(healthy)),
        line("failing cases with an edit", len(edited), len(failing)),
        line("edits after which the case exports and verifies", sum(each.startswith("exported") for each in tried), len(tried)),
    ]


if __name__ == "__main__":
    main()
