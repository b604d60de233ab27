"""The rule book as pages: `CATALOG.md` shows every rule, `RELEASES.md` records what each release shipped. `make rules` writes both."""

from __future__ import annotations

import itertools
import pathlib
import re
from collections.abc import Iterable, Sequence

from onnxplain.diagnostics import Level, Rule, State

FOLDER = pathlib.Path(__file__).parent
CATALOG = FOLDER / "CATALOG.md"
RELEASES = FOLDER / "RELEASES.md"

_UNSHIPPED = "Unshipped"
_SECTION = re.compile(r"^## (.+)\n", re.MULTILINE)
_ROW = re.compile(r"^\| (OXP\d{4}) \| (\w+) \| (\w+) \| (.*?) \| (\d+) \|$", re.MULTILINE)


def rules() -> tuple[type[Rule], ...]:
    """The rules of the book, by id. Rules that are defined elsewhere do not count."""
    return tuple(rule for rule in Rule.all() if rule.__module__.startswith(f"{__package__}."))


def refresh(folder: pathlib.Path = FOLDER) -> None:
    """Rewrites both pages in `folder`."""
    page = folder / RELEASES.name
    (folder / CATALOG.name).write_text(catalog(rules()), encoding="utf-8")
    page.write_text(releases(rules(), page.read_text(encoding="utf-8")), encoding="utf-8")


def catalog(rules: Iterable[type[Rule]]) -> str:
    """All rules as one markdown page: a table for each chapter, then the page of each rule."""
    rules = tuple(rules)
    parts = ["# The rules of onnxplain\n\nWritten by `make rules` from the rules' docstrings.\n"]
    for chapter, members in itertools.groupby(rules, key=lambda rule: rule.chapter()):
        rows = [(f"[{rule.id}](#{anchor(rule)})", rule.__name__, rule.level.value, rule.page.summary) for rule in members]
        parts.append(f"**{chapter}**\n\n{_table(('Id', 'Name', 'Level', 'Summary'), rows)}")
    return "\n".join((*parts, *map(_section, rules)))


def anchor(rule: type[Rule]) -> str:
    """The fragment of the rule's section in `CATALOG.md`, as GitHub derives it from the heading."""
    return f"{rule.id}-{rule.__name__}".lower()


def releases(rules: Iterable[type[Rule]], text: str) -> str:
    """The page of releases, `text`, with a fresh unshipped table: the rules that are new or changed since the last release."""
    recorded = _last_states(shipped(text))
    changed = [rule for rule in rules if rule.state() != recorded.get(rule.id)]
    head, *sections = _SECTION.split(text)
    if sections[:1] == [_UNSHIPPED]:
        sections = sections[2:]
    frozen = "".join(f"## {title}\n{body}" for title, body in zip(sections[::2], sections[1::2], strict=True))
    body = _table(("Id", "Name", "Level", "Arguments", "Revision"), map(_row, changed)) if changed else "Nothing.\n"
    return f"{head}## {_UNSHIPPED}\n\n{body}" + (f"\n{frozen}" if frozen else "")


def frozen(rules: Iterable[type[Rule]], text: str, version: str) -> str:
    """The page of releases, `text`, with its unshipped table frozen under `version` and a fresh unshipped table."""
    return releases(rules, text.replace(f"## {_UNSHIPPED}\n", f"## {version}\n", 1))


def disagreements(rules: Iterable[type[Rule]], text: str) -> list[tuple[str, str]]:
    """Compares the histories of `rules` with the frozen tables of `text`. Returns version and id for each difference."""
    rules, found, recorded = tuple(rules), list[tuple[str, str]](), dict[str, State]()
    for version, table in reversed(shipped(text).items()):
        recorded |= table
        states = {rule.id: state for rule in rules if (state := rule.state_at(version)) is not None}
        found += [(version, id) for id in sorted(recorded | states) if recorded.get(id) != states.get(id)]
    return found


def shipped(text: str) -> dict[str, dict[str, State]]:
    """The frozen tables of the page of releases, `text`, newest first: version to the rules that it added or changed, by id."""
    _, *sections = _SECTION.split(text)
    return {
        version: {
            id: State(name, Level(level), tuple(re.findall(r"\w+", arguments)), int(revision))
            for id, name, level, arguments, revision in _ROW.findall(body)
        }
        for version, body in zip(sections[::2], sections[1::2], strict=True)
        if version != _UNSHIPPED
    }


def _last_states(tables: dict[str, dict[str, State]]) -> dict[str, State]:
    return {id: state for version in reversed(tables) for id, state in tables[version].items()}


def _section(rule: type[Rule]) -> str:
    page = re.sub(r"^## ", "### ", rule.page.markdown, flags=re.MULTILINE)
    facts = f"`{rule.level.value}`, since {rule.history[0].version}, revision {rule.revision()}"
    return f"## {rule.id} {rule.__name__}\n\n{facts}\n\n> {rule.message}\n\n{page}"


def _row(rule: type[Rule]) -> tuple[str, ...]:
    state = rule.state()
    return rule.id, state.name, state.level.value, ", ".join(state.arguments), str(state.revision)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (header, ["---"] * len(header), *rows)
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
