"""The database of a triage: what became of each model, and in which of its runs."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .freshness import Facts
from .jobs import TriageError
from .verdicts import OUTCOMES, LoggedFinding, Verdict

NAME = "triage.sqlite"
_VERSION = 1
_TABLES = """
CREATE TABLE models (name TEXT PRIMARY KEY, place INTEGER NOT NULL);
CREATE TABLE verdicts (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, key TEXT NOT NULL, input TEXT NOT NULL, facts TEXT NOT NULL, ended REAL NOT NULL,
    outcome TEXT NOT NULL, seconds REAL NOT NULL, memory INTEGER NOT NULL, weights INTEGER NOT NULL, findings TEXT NOT NULL,
    log TEXT NOT NULL
);
CREATE INDEX verdicts_of_model ON verdicts (name, number);
"""


@dataclasses.dataclass(frozen=True)
class Known:
    """A verdict, with what the model depended on.

    Attributes:
        verdict: The verdict.
        facts: What the model imported.
        key: A hash of all that the verdict depends on.
        input: The key of the first verdict on the same input. Later ones may have other keys, because the model has imported more.
    """

    verdict: Verdict
    facts: Facts
    key: str
    input: str


def _changing(sets: Sequence[set[str]]) -> set[str]:
    """What only some of the sets have."""
    return sets[0].union(*sets) - sets[0].intersection(*sets)


class State:
    """The database in the folder of a triage. Each verdict is on the disk when `add` returns.

    Raises:
        TriageError: The file is no such database, or belongs to a newer onnxplain.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._path = folder / NAME
        with self._errors():
            self._connection = sqlite3.connect(self._path, isolation_level=None)
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            if version == 0:
                self._connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {_VERSION}; COMMIT;")
            elif version != _VERSION:
                raise TriageError(f"{self._path}: expected a database of version {_VERSION}, got {version}. Give another folder.")

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def list_models(self, names: Sequence[str]) -> None:
        """Makes these the models of the triage, in this order. The verdicts of others stay, for when they come back."""
        with self._errors(), self._connection:
            self._connection.execute("BEGIN")
            self._connection.execute("DELETE FROM models")
            self._connection.executemany("INSERT INTO models VALUES (?, ?)", [(name, place) for place, name in enumerate(names)])

    def add(self, known: Known) -> None:
        """Keeps a verdict."""
        verdict = known.verdict
        row = (
            verdict.name,
            known.key,
            known.input,
            json.dumps(dataclasses.asdict(known.facts)),
            time.time(),
            verdict.outcome,
            verdict.seconds,
            verdict.memory,
            verdict.weights,
            json.dumps([dataclasses.astuple(each) for each in verdict.findings]),
            verdict.log.relative_to(self._folder).as_posix(),
        )
        columns = "name, key, input, facts, ended, outcome, seconds, memory, weights, findings, log"
        with self._errors():
            self._connection.execute(f"INSERT INTO verdicts ({columns}) VALUES ({', '.join('?' * len(row))})", row)

    def last(self) -> dict[str, Known]:
        """The last verdict on each listed model that has one, in the order of the models."""
        return {known.verdict.name: known for known in self._select("AND number = (SELECT MAX(number) FROM verdicts WHERE name = v.name)")}

    def flaky(self) -> frozenset[tuple[str, str]]:
        """The models and fingerprints of failing findings that come and go between exports of the same input."""
        found: dict[tuple[str, str], list[set[str]]] = {}
        for known in self._select(""):
            fingerprints = {finding.fingerprint for finding in known.verdict.findings if finding.fails}
            found.setdefault((known.verdict.name, known.input), []).append(fingerprints)
        last = {name: known.input for name, known in self.last().items()}
        return frozenset((name, each) for (name, key), sets in found.items() if key == last[name] for each in _changing(sets))

    def _select(self, condition: str) -> Iterable[Known]:
        columns = "v.name, outcome, seconds, memory, weights, findings, log, facts, key, input"
        query = f"SELECT {columns} FROM verdicts v JOIN models m ON v.name = m.name WHERE 1 {condition} ORDER BY m.place, number"
        with self._errors():
            return [self._known(row) for row in self._connection.execute(query)]

    def _known(self, row: tuple[Any, ...]) -> Known:
        name, outcome, seconds, memory, weights, findings, log, facts, key, input = row
        if outcome not in OUTCOMES:
            raise TriageError(f"{self._path}: expected one of the outcomes {', '.join(OUTCOMES)}, got {outcome!r}")
        verdict = Verdict(
            name, outcome, seconds, memory, weights, tuple(LoggedFinding(*each) for each in json.loads(findings)), self._folder / log
        )
        return Known(verdict, Facts(**{name: tuple(values) for name, values in json.loads(facts).items()}), key, input)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError) as error:
            if not self._path.is_file():
                raise TriageError(f"{self._path}: the folder of the triage was removed while it ran, perhaps by a model.") from error
            raise TriageError(f"{self._path}: the database of the triage cannot be used: {error}. Give another folder.") from error
