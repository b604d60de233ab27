"""What reports for people tell of a log: no folders, users or secrets of the machine, and no more than people read."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterable, Iterator

from .diagnostic import Diagnostic
from .display import cell_name
from .fix import Edit
from .location import Location, Region
from .log import PREPARED_GRAPH, Log
from .privacy import privacy_of

EVENT_LIMIT = 100
"""The last events, which a report shows."""
_NOTE_LIMIT = 100
_FIX_LIMIT = 20
"""Notes and fixes of a finding, of which exports give a few: a log may hold as many as it likes, and to render them takes minutes."""


class Discloser:
    """Hides folders, users and secrets for the reports on exports that ran in `folder`."""

    def __init__(self, folder: pathlib.Path | None) -> None:
        self._folder = folder or pathlib.Path.cwd()
        self._privacy = privacy_of(self._folder)
        # NOTE: findings name a few files in thousands of places.
        self._paths: dict[str, str] = {}

    def log(self, log: Log) -> Log:
        """`log` with what a report may tell of the machine, except for its findings."""
        text = self._privacy.text
        last = len(log.events) - EVENT_LIMIT
        return dataclasses.replace(
            log,
            command_line=text(log.command_line),
            events=tuple(
                dataclasses.replace(event, text=text(event.text)) if index >= last else event for index, event in enumerate(log.events)
            ),
            attachments=tuple(dataclasses.replace(each, text=text(each.text)) for each in log.attachments if each.name != PREPARED_GRAPH),
            artifacts=tuple(dataclasses.replace(each, path=pathlib.Path(self._path(str(each.path)))) for each in log.artifacts),
        )

    def finding(self, finding: Diagnostic) -> Diagnostic:
        """`finding` with what a report may tell of the machine. Its places keep their lines: their files have no folders any more."""
        finding = self._privacy.finding(_cut(finding))
        return dataclasses.replace(
            finding,
            location=finding.location and self._place(finding.location),
            occurrences=tuple(map(self._place, finding.occurrences)),
            stack=tuple(map(self._place, finding.stack)),
            related=tuple(map(self._place, finding.related)),
            fixes=tuple(dataclasses.replace(fix, edits=tuple(map(self._edit, fix.edits))) for fix in finding.fixes),
        )

    def _path(self, file: str) -> str:
        if file not in self._paths:
            self._paths[file] = cell_name(file) or self._privacy.path(file, self._folder)
        return self._paths[file]

    def _place(self, of: Location) -> Location:
        return dataclasses.replace(of, file=self._path(of.file), region=of.region and _region(of.region, of.file))

    def _edit(self, of: Edit) -> Edit:
        return dataclasses.replace(of, file=self._path(of.file), region=_region(of.region, of.file))


def disclosed(logs: Iterable[Log]) -> Iterator[tuple[Log, tuple[Diagnostic, ...]]]:
    """`logs` as reports show them, each with its active findings."""
    # NOTE: to look up what a machine hides takes longer than to hide it.
    known: dict[pathlib.Path | None, Discloser] = {}
    for log in logs:
        discloser = known.get(log.folder) or known.setdefault(log.folder, Discloser(log.folder))
        yield discloser.log(log), tuple(map(discloser.finding, log.active))


def _region(of: Region, file: str) -> Region:
    return dataclasses.replace(of, lines=of.texts(file))


def _cut(finding: Diagnostic) -> Diagnostic:
    """`finding` with as many notes and fixes as a report shows. A last note counts the others."""
    left_out = {"notes": len(finding.notes) - _NOTE_LIMIT, "fixes": len(finding.fixes) - _FIX_LIMIT}
    told = [f"{count:,} more {name} are left out." for name, count in left_out.items() if count > 0]
    return dataclasses.replace(finding, notes=(*finding.notes[:_NOTE_LIMIT], *told), fixes=finding.fixes[:_FIX_LIMIT])
